"""The engine of a command that generates: which one is asked for, and the line that says which one it is, and why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from regard.cli.terminal import busy, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.api import Run
    from regard.tasks.options import GenerationOptions

ENGINE = Group("Engine", sort_key=40)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What searches for outputs; the usual is `auto`."""

    engine: Annotated[
        str,
        Parameter(
            group=ENGINE,
            metavar="NAME",
            help="torch: our own search; ctranslate2: several times as fast on a CPU; auto (the default): that where it can",
        ),
    ] = ""
    int8: Annotated[
        bool | None,
        Parameter(
            group=ENGINE,
            negative="--no-int8",
            help="let ctranslate2 compute with 8-bit weights: faster, not quite the same outputs (the run's runtime.int8)",
        ),
    ] = None
    shortlist: Annotated[
        bool,
        Parameter(
            group=ENGINE,
            help="let ctranslate2 write only tokens that those of the source may become, learned from the training pairs:"
            " faster, not quite the same outputs; for translators",
        ),
    ] = False
    engine_workers: Annotated[
        int, Parameter(group=ENGINE, help="batches that ctranslate2 decodes at a time (0: as measured)")
    ] = 0
    engine_threads: Annotated[
        int, Parameter(group=ENGINE, help="threads of ctranslate2 for each of them (0: as measured)")
    ] = 0

    def loading(self, usual: str = "auto") -> dict[str, Any]:
        """What `regard.load` is given of them; `usual`: where none is named, and of a score it must be named."""
        if self.engine == "auto" and usual == "torch":
            raise UsageError(
                "--engine auto leaves open by which engine scores are.",
                "Name it: --engine ctranslate2 or --engine torch.",
            )
        for name, asked in (("--int8", self.int8), ("--shortlist", self.shortlist)):
            if asked and self.engine == "torch":
                raise UsageError(
                    f"{name} is for ctranslate2, and --engine torch asks for our own search.", "Leave one out."
                )
        named = self.engine or ("ctranslate2" if self.int8 or self.shortlist else usual)
        return {
            "engine": named,
            "compute_type": "" if self.int8 is None else "int8" if self.int8 else "float32",
            "shortlist": self.shortlist,
            "engine_workers": self.engine_workers,
            "engine_threads": self.engine_threads,
        }


def open_engine(
    run: "Run[Any]", options: "GenerationOptions", *, n_models: int = 1, alone: bool = False, prefixed: bool = False
) -> None:
    """Open the engine of a run, perhaps after a conversion, and say which one it is.

    alone:     for one text
    prefixed:  outputs have a beginning that is given
    """
    if run.engine_wish.name == "torch":
        return
    with busy("preparing the engine"):
        chosen = run.engine
    decoding = options.decoding or run.config.decoding
    if chosen.engine is None:
        tell(f"engine: our own search; {chosen.reason}")
    elif reason := chosen.engine.unsupported(
        decoding,
        banned=bool(options.banned),
        n_models=n_models,
        alone=alone,
        log_probs=options.log_probs or prefixed,
    ):
        tell(f"engine: our own search; CTranslate2 cannot do {reason}")
    else:
        tell(f"engine: {chosen.reason}")
