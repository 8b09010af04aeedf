"""Export: a run as files of other programs (Hugging Face, CTranslate2, ONNX, Argos Translate), whole or not at all."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from regard.api.engine_folder import vocabulary_map
from regard.api.run import Run, load
from regard.errors import ConfigError, RegardError, UsageError, did_you_mean
from regard.exchange.export_kinds import find_kind
from regard.exchange.exportable import Exportable
from regard.exchange.image_preprocessing import ImagePreprocessing
from regard.models.model_config import ModelConfig
from regard.runs.disk import delete_tree, sync, temporary_name
from regard.runs.folder import RunFolder
from regard.tasks.exported import parts_of

_USE = "\n## Use\n"  # of a run's card, behind which only what its folder is good for follows


def export(
    run: str | Path | Run[Any],
    to: str,
    out: str | Path,
    *,
    approve: Callable[[], object] | None = None,
    **settings: Any,
) -> tuple[str, ...]:
    """Write a run as what another program reads; return what there is to note about it.

    to:        huggingface, ctranslate2, onnx, argos or safetensors
    out:       a new folder; for argos a new file
    approve:   called when everything is written, before it gets its name: what it raises leaves nothing behind
    settings:  compute_type (float32, int8, …) of ctranslate2 and argos; shortlist (True) of ctranslate2, learned from the
               training pairs; source_language and target_language of argos
    """
    kind, path = find_kind(to), Path(out)
    for name in settings:
        if name not in kind.options:
            near = did_you_mean(name, kind.options) if kind.options else "Leave it out."
            raise UsageError(f"There is no setting '{name}' of an export to {to}.", near)
    if os.path.lexists(path):
        raise UsageError(f"{path} is already there.", "Give a new name.")
    loaded = run if isinstance(run, Run) else load(run, device="cpu")
    given = exportable(loaded)
    if "shortlist" in settings:
        settings["shortlist"] = vocabulary_map(loaded.task) if settings["shortlist"] else b""
    with _whole(path) as temporary:
        if not kind.is_file:
            temporary.mkdir()
        notes = tuple(kind.write(temporary, given, settings))
        if approve is not None:
            approve()
    return notes


def exportable(run: Run[Any]) -> Exportable:
    """What an exporter is given of a run; ConfigError for a network of the caller's own."""
    config = getattr(run.model, "config", None)
    if not isinstance(config, ModelConfig) or not run.config.model.preset:
        raise ConfigError(
            f"{run.reference} trained a network of your own, which no other program knows.",
            "Save its state_dict, or export it with torch.onnx yourself.",
        )
    parts = parts_of(run.task, {name: tensor.detach().cpu() for name, tensor in run.model.state_dict().items()})
    image, table = None, parts.images
    if table is not None:
        image = ImagePreprocessing(size=table.shape.size, mean=table.mean, deviation=table.deviation)
    return Exportable(
        task=run.spec.name,
        config=config,
        weights=parts.weights,
        source=parts.source,
        target=parts.target,
        labels=parts.labels,
        longest=parts.longest,
        unit=parts.unit,
        pooling=parts.pooling,
        normalised=parts.normalised,
        image=image,
        card=_card(run),
    )


def _card(run: Run[Any]) -> str:
    """The run's own card, and which of its checkpoints is exported; of an imported run only its name."""
    file = RunFolder(run.reference.path).card_file
    card = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else f"# {run.reference.path.name}\n"
    return f"{card.partition(_USE)[0].rstrip()}\n\nExported from checkpoint `{run.checkpoint.path.name}`.\n"


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give a name to write under, so that what has the real one is whole; of what fails nothing is left."""
    target = path.absolute()
    temporary = temporary_name(target)
    made = [folder for folder in target.parents if not os.path.lexists(folder)]
    try:
        _remove(temporary)  # what a killed process of the same number left
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.rename(target)
        sync(target.parent)
    except BaseException as error:
        _remove(temporary)
        for folder in made:
            with suppress(OSError):  # somebody else's file may be in it by now
                folder.rmdir()
        if isinstance(error, OSError | SafetensorError):
            reason = getattr(error, "strerror", None) or error
            raise RegardError(
                f"{path} cannot be written: {reason}.", "Give another place, or free some space."
            ) from error
        raise


def _remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    delete_tree(path)
    with suppress(OSError):
        path.unlink()
