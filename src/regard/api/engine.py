"""The engine of a run: CTranslate2 in place of our own search or encoder, where machine, model and task allow it.

What is asked for is in `engine_wish.py`, how an engine is converted and kept in `engine_folder.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.api.engine_folder import Subject, open_converted, translation_task
from regard.api.engine_wish import EngineWish
from regard.decoding.engine.encoding_engine import EncodingEngine
from regard.decoding.engine.generation_engine import GenerationEngine
from regard.decoding.engine.library import Engine
from regard.decoding.engine.translation_engine import TranslationEngine
from regard.errors import RegardError, UsageError
from regard.exchange.ctranslate2 import supports
from regard.models.bert import BertConfig
from regard.runs.checkpoints import Checkpoint
from regard.tasks.task import UsableTask


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The engine, None for our own search and network, and why."""

    engine: Engine | None
    reason: str


def choose_engine(
    engines: Path, task: UsableTask[Any], model: nn.Module, checkpoint: Checkpoint, wish: EngineWish
) -> Chosen:
    """Open the engine of a run, converted first if it is not there; by `auto` our own network where it cannot be."""
    if wish.name == "torch":
        return Chosen(engine=None, reason="asked for")
    reason = _refusal(task, model)
    if wish.shortlist:
        translation_task(task)
    if reason:
        if wish.name == "auto":
            return Chosen(engine=None, reason=reason)
        raise UsageError(f"CTranslate2 cannot serve this run: {reason}.", "Use --engine torch.")
    kind = _kind(task, model)
    assert kind is not None  # or there was a reason
    try:
        engine, converted = open_converted(engines, Subject.of(kind, task, model), checkpoint, wish)
    except (RegardError, OSError, RuntimeError, ImportError) as error:
        if wish.shortlist and isinstance(error, UsageError):
            raise  # asked for by name, and it cannot be learned
        remedy = "Use --engine torch."
        if isinstance(error, RegardError):
            said = error.problem
        elif isinstance(error, OSError) and error.strerror:
            said, remedy = f"{engines} cannot be written: {error.strerror}.", "Make it writable, or use --engine torch."
        else:
            said = str(error)
        if wish.name == "auto":
            return Chosen(engine=None, reason=f"CTranslate2 failed: {said}")
        raise UsageError(f"CTranslate2 cannot serve this run: {said}", remedy) from error
    parts = ["CTranslate2", *wish.kind, *[f"converted into {converted}"] * (converted is not None)]
    return Chosen(engine=engine, reason=", ".join(parts))


def can_embed(model: nn.Module) -> bool:
    """Whether an engine may read texts in place of a network, if its settings allow it: that of an encoder-only one may."""
    return isinstance(getattr(model, "config", None), BertConfig)


def _kind(task: UsableTask[Any], model: nn.Module) -> type[Engine] | None:
    """What serves a run, if anything does."""
    if can_embed(model):
        return EncodingEngine
    kinds: dict[str, type[Engine]] = {"translate": TranslationEngine, "language": GenerationEngine}
    return kinds.get(task.spec.name)


def _refusal(task: UsableTask[Any], model: nn.Module) -> str:
    """Why the engine cannot be used, if it cannot."""
    if _kind(task, model) is None:
        return f"it does not serve the task {task.spec.name}"
    if next(model.parameters()).device.type != "cpu":
        return "the model is not on a CPU"
    config = getattr(model, "config", None)
    if not task.config.model.preset or config is None:
        return "the network is your own"
    return supports(config)
