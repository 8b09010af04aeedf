"""The settings of a new run: a task's or a run file's, changed by keys, with defaults chosen and a ready vocabulary found.

The one assembler: `regard.train` and the command both call it.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import ModelTable, RunConfig, default_config, names_no_preset, override, read
from regard.errors import UsageError
from regard.models.presets import default_preset
from regard.runs.folder import CONFIG, RunFolder
from regard.tasks.spec import find_spec

SAME_TEXT = (
    "train",
    "source",
    "target",
    "text",
    "text_b",
    "image",
    "split_column",
)  # to what text a vocabulary belongs


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """What is to be trained: resolved settings, the folder of a ready vocabulary if there is one, notes about both."""

    config: RunConfig
    vocabulary: Path | None
    notes: tuple[str, ...] = ()


def assemble(
    what: str,
    changes: Mapping[str, Any],
    *,
    model: str = "",
    vocabulary: str | Path | None = None,
    own_network: bool = False,
    origin: str,
) -> NewRun:
    """Put together the settings of a new run.

    what:         a task's name, or a run file; the config.toml of a run brings the run's vocabulary
    changes:      settings by dotted key, which have the last word
    model:        a preset, in place of the file's model with all of its fields
    vocabulary:   a run whose vocabulary is taken
    own_network:  whether the caller brings a network, so that none is chosen
    origin:       names the caller in messages
    """
    from regard.training import init_from

    begun, ready = starting_point(what)
    if model:
        begun = dataclasses.replace(begun, model=ModelTable(preset=model))
    if vocabulary is not None:
        begun, ready = _with_vocabulary_of(vocabulary, begun, changes)
    elif changes.get("training.init"):
        # What the file says of another vocabulary goes: that of the run to begin with is taken.
        begun, ready = dataclasses.replace(begun, tokenizer=default_config(begun.task).tokenizer), None
    config = override(begun, changes, origin=origin) if changes else begun
    notes = []
    if ready is not None and vocabulary is None and not _reads_the_same_text(config, begun):
        if not config.training.init:
            notes.append(f"the training data differ from those of {what}: a new vocabulary is learned")
        ready = None
    # A vocabulary that was learned with other settings is not what was asked for.
    ready = ready if vocabulary is not None or config.tokenizer == begun.tokenizer else None
    if (
        not (own_network or config.model.preset or config.training.init)
        and is_file(what)
        and names_no_preset(Path(what))
    ):
        raise UsageError(
            f"{what} is of a run with a custom network, which no file describes.",
            f'Pass it from Python: regard.train("{what}", model=YourNetwork(…), run=…); or choose a preset: --model PRESET',
        )
    config = dataclasses.replace(with_end(config), model=ModelTable()) if own_network else with_defaults(config)
    config, ready = init_from.with_vocabulary(config, ready)
    return NewRun(config=config, vocabulary=ready, notes=tuple(notes))


def starting_point(what: str) -> tuple[RunConfig, Path | None]:
    """Return the settings that a task's name or a run file stands for, and the folder of a vocabulary that goes with them.

    The config.toml of a run brings the run's vocabulary: it repeats that run.
    """
    path = Path(what)
    if path.is_dir() and (path / CONFIG).is_file():
        raise UsageError(
            f"{what} is the folder of a run.",
            f"Resume it: regard resume {what}. Repeat it: regard train {path / CONFIG}",
        )
    if not is_file(what):
        return default_config(what), None
    vocabulary = RunFolder(path.parent).vocabulary
    of_run = path.name == CONFIG and vocabulary.is_dir()
    return read(path, of_run=of_run), vocabulary if of_run else None


def is_file(what: str) -> bool:
    """Whether a run file is named, and not a task."""
    return Path(what).suffix == ".toml" or "/" in what or Path(what).is_file()


def _with_vocabulary_of(run: str | Path, config: RunConfig, changes: Mapping[str, Any]) -> tuple[RunConfig, Path]:
    """Return the settings with the tokenizer of another run, and the folder of its vocabulary."""
    for key, value in changes.items():
        if key.startswith("tokenizer.") and key != "tokenizer.lowercase":
            raise UsageError(
                f"--vocabulary uses the vocabulary of {run}, which conflicts with {key} = {value}.",
                f"Leave out one of them: --vocabulary or {key}.",
            )
    folder = RunFolder.open(Path(run))
    return dataclasses.replace(config, tokenizer=folder.read_config().tokenizer), folder.vocabulary


def _reads_the_same_text(config: RunConfig, other: RunConfig) -> bool:
    """Tell whether two runs learn from the same text, to which their vocabularies belong."""
    from regard.training.run import with_absolute_paths

    one, two = with_absolute_paths(config).data, with_absolute_paths(other).data
    return all(getattr(one, name) == getattr(two, name) for name in SAME_TEXT)


def with_defaults(config: RunConfig) -> RunConfig:
    """Choose what a user need not say: the model, and an end for the run."""
    from regard.training import init_from

    config = init_from.with_model(config)
    if not config.model.preset:
        preset = default_preset(config.task)
        config = dataclasses.replace(config, model=dataclasses.replace(config.model, preset=preset))
    return with_end(config)


def with_end(config: RunConfig) -> RunConfig:
    """Choose an end for the run, if it has none."""
    end = config.training
    if not (end.steps or end.epochs or end.minutes):
        for key, value in find_spec(config.task).end.items():
            chosen: dict[str, Any] = {key: getattr(end, key) or value}
            end = dataclasses.replace(end, **chosen)
    return dataclasses.replace(config, training=end)
