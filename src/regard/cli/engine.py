"""The engine of a command that generates or embeds: which is asked for, and the line that says which one it is, and why."""

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
class EncoderOptions:
    """What computes; the usual is `auto`."""

    engine: Annotated[
        str,
        Parameter(
            group=ENGINE,
            metavar="NAME",
            help="torch: our own network and search; ctranslate2: faster on a CPU; auto (the default): that where it can",
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
    engine_workers: Annotated[
        int, Parameter(group=ENGINE, help="batches that ctranslate2 computes at a time (0: as measured)")
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
        asked = self._asked()
        if asked and self.engine == "torch":
            raise UsageError(f"{asked[0]} is for ctranslate2, and the engine is to be torch.", "Leave one out.")
        return {
            "engine": self.engine or ("ctranslate2" if asked else usual),
            "compute_type": "" if self.int8 is None else "int8" if self.int8 else "float32",
            "engine_workers": self.engine_workers,
            "engine_threads": self.engine_threads,
        }

    def _asked(self) -> list[str]:
        """What is asked for that ctranslate2 alone has."""
        return ["--int8"] * bool(self.int8)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineOptions(EncoderOptions):
    """What searches for outputs; the usual is `auto`."""

    shortlist: Annotated[
        bool,
        Parameter(
            group=ENGINE,
            help="let ctranslate2 write only tokens that those of the source may become, learned from the training pairs:"
            " faster, not quite the same outputs; for translators",
        ),
    ] = False

    def loading(self, usual: str = "auto") -> dict[str, Any]:
        """The same with the shortlist."""
        return {**super().loading(usual), "shortlist": self.shortlist}

    def _asked(self) -> list[str]:
        return [*super()._asked(), *["--shortlist"] * self.shortlist]


def open_engine(
    run: "Run[Any]", options: "GenerationOptions", *, n_models: int = 1, alone: bool = False, prefixed: bool = False
) -> None:
    """Open the engine of a run, perhaps after a conversion, and say which one it is.

    alone:     for one text
    prefixed:  outputs have a beginning that is given
    """
    from regard.decoding.engine.search_engine import SearchEngine

    if run.engine_wish.name == "torch":
        return
    with busy("preparing the engine"):
        chosen = run.engine
    engine = chosen.engine
    if engine is None:
        tell(f"engine: our own search; {chosen.reason}")
        return
    assert isinstance(engine, SearchEngine)
    if reason := engine.unsupported(
        options.decoding or run.config.decoding,
        banned=bool(options.banned),
        n_models=n_models,
        alone=alone,
        log_probs=options.log_probs or prefixed,
    ):
        tell(f"engine: our own search; CTranslate2 cannot do {reason}")
    else:
        tell(f"engine: {chosen.reason}")


def open_encoder(run: "Run[Any]") -> None:
    """The same for texts that are embedded; of networks that only torch has, nothing is said unless it is asked for."""
    from regard.api.engine import can_embed

    if run.engine_wish.name == "torch":
        return
    if not can_embed(run.model):
        if run.engine_wish.name == "ctranslate2":
            tell("engine: our own network; CTranslate2 embeds by BERT alone")
        return
    with busy("preparing the engine"):
        chosen = run.engine
    tell(f"engine: {chosen.reason}" if chosen.engine else f"engine: our own network; {chosen.reason}")
