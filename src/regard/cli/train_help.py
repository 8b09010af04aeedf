"""`regard train TASK --help`: the options that apply to the task; without a task, the tasks and what all of them have."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, evolve
from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel

from regard.cli.options import flag
from regard.cli.train_options import LEARNING, TASK, DataOptions, LearningOptions, ModelOptions, applies
from regard.tasks.spec import TASKS, TaskSpec

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

# Options by the flags that the help shows; those of the run, such as --dry-run, belong to no setting.
OPTIONS = {flag(name): name for group in (DataOptions, ModelOptions, LearningOptions) for name in vars(group())}


@define(kw_only=True)
class TrainHelp(DefaultFormatter):
    """The help of `regard train`, for one task or for all."""

    spec: TaskSpec | None = None

    @classmethod
    def of(cls, arguments: Sequence[str]) -> "TrainHelp":
        """The help for the task that is among the arguments, if any is."""
        return cls(spec=next((TASKS[argument] for argument in arguments if argument in TASKS), None))

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:
        if self.spec is not None:
            usage = f"Usage: regard train {self.spec.name} --train FILE… [OPTIONS]\n"
        super().render_usage(console, options, usage)

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:
        if self.spec is not None:
            console.print(f"{self.spec.about[0].upper()}{self.spec.about[1:]}.\n", markup=False, highlight=False)
        super().render_description(console, options, description)

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: HelpPanel) -> None:
        if any(entry.positional_label == TASK for entry in panel.entries):
            if self.spec is None:
                super().__call__(console, options, task_panel())
            return
        entries = [self._described(entry) for entry in panel.entries if self._is_shown(entry)]
        about = end_text(self.spec) if self.spec is not None and panel.title == LEARNING.name else panel.description
        super().__call__(console, options, evolve(panel, entries=entries, description=about))

    def _is_shown(self, entry: HelpEntry) -> bool:
        name = next((OPTIONS[label] for label in entry.names if label in OPTIONS), "")
        specs = TASKS.values() if self.spec is None else [self.spec]
        return not name or all(applies(spec, name) for spec in specs)

    def _described(self, entry: HelpEntry) -> HelpEntry:
        """What a task says of an option itself: its files, its presets."""
        if self.spec is None:
            return entry
        own = {
            "--train": f"training data: {self.spec.files}",
            "--model": f"a preset, see: regard models {self.spec.name} (default: that of --init, else the smallest)",
        }
        label = next((label for label in entry.names if label in own), None)
        return entry if label is None else evolve(entry, description=own[label])


def task_panel() -> HelpPanel:
    """The tasks, a line each."""
    entries = [HelpEntry(positive_names=(spec.name,), description=spec.about) for spec in TASKS.values()]
    file = HelpEntry(
        positive_names=("FILE.toml",), description="a run file; DIR/config.toml repeats a run, with its vocabulary"
    )
    title = "Tasks, each with options of its own: regard train TASK --help"
    return HelpPanel(format="command", title=title, entries=[*entries, file])


def end_text(spec: TaskSpec) -> str:
    """When a run of a task ends by itself."""
    ends = {
        "steps": "after {:,} steps",
        "epochs": "after {:,} epochs",
        "min_steps": "not before {:,} steps",
        "patience": "earlier after {:,} validations without improvement",
    }
    described = ", ".join(ends[key].format(value) for key, value in spec.end.items())
    return f"Without --steps, --epochs or --minutes a run ends {described}."
