"""Which weights of another run a new model takes: all that fit by name and shape. What else there is, is told.

    taken     here and there, of the same shape
    new       not there, or of another shape, or of other tokens or labels: the model's own first weights stay
    dropped   there, and not here

Weights of tokens are taken only with their vocabulary, those under `head.` only where the same is asked of the head.
"""

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import ModelTable
from regard.errors import CheckpointError, RunError
from regard.models.presets import decided_by_data, find_preset
from regard.parts.embedding import OutputLayer, TokenEmbedding
from regard.runs import checkpoints
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder
from regard.runs.names import EMA, MODEL
from regard.runs.tensors import find_tied
from regard.tasks.images.preprocessing import FILE as IMAGES
from regard.tasks.labelling.labels import FILE as LABELS
from regard.tasks.task import Task
from regard.training.init_from import Forerunner, tokenizer_files

HEAD = "head."
SHOWN = 3  # weights of another shape that are named one by one

Shape = tuple[int, ...]
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What a run began with of another: enough to tell it, to treat those weights apart, and to take them again."""

    checkpoint: str
    files: Mapping[str, str]  # the sha256 of each file with weights
    taken: tuple[str, ...]  # the names of the weights
    facts: Facts

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def of_run(cls, run: RunFolder) -> "Beginning | None":
        """Read what a run began with, None if with nothing."""
        kept = run.read_task().get("init")
        if kept is None:
            return None
        facts = tuple((label, text) for label, text in kept["facts"])
        return cls(**{**kept, "taken": tuple(kept["taken"]), "facts": facts})

    def repeat(self, model: nn.Module, run: RunFolder) -> None:
        """Take the same weights again, for a run that was stopped before it had saved any."""
        try:
            checkpoint = checkpoints.verify(Path(self.checkpoint))
        except CheckpointError as error:
            raise self._lost(run, f"is gone. {error.problem}") from error
        if weight_files(checkpoint) != self.files:
            raise self._lost(run, "holds other weights now.")
        theirs = weights_of(checkpoint)
        found = fit(model.state_dict(), theirs).taken
        missing = [name for name in self.taken if name not in found]
        if missing:
            raise RunError(
                f"{run} began with weights that this network does not have: {grouped(missing)}.",
                "Resume with the network that the run began with.",
            )
        put(model, theirs, {name: found[name] for name in self.taken})

    def _lost(self, run: RunFolder, problem: str) -> RunError:
        return RunError(
            f"{run} was stopped before its first save, and what it began with, {self.checkpoint}, {problem}",
            "Put that checkpoint back, or train a new run.",
        )


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How the tensors of two models go together; tied ones count once, under the first of their names."""

    taken: Mapping[str, str]  # name here to name there
    new: tuple[str, ...]
    reshaped: Mapping[str, tuple[Shape, Shape]]  # new as well, with the shapes there and here
    dropped: tuple[str, ...]


def begin(
    model: nn.Module, before: Forerunner, chosen: tuple[Checkpoint, list[str]], *, task: Task, table: ModelTable
) -> Beginning:
    """Give a new model the weights of the chosen checkpoint that fit.

    table: which network the model is, with every field, or an empty one for a network of the caller's own.
    """
    checkpoint, passed_over = chosen
    theirs = weights_of(checkpoint)
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        task.save(Path(folder))
        same_tokens = _tokenizers(Path(folder)) == _tokenizers(before.vocabulary)
        same_labels = _labels(Path(folder)) == _labels(before.vocabulary)
    found = fit(
        model.state_dict(),
        theirs,
        of_tokens=() if same_tokens else token_weights(model),
        heads=same_labels and task.name == before.config.task,
    )
    if not any(theirs[name].dim() > 1 for name in found.taken.values()):
        raise CheckpointError(
            f"No weight of {before} ({before.model_name}) fits the new model ({table.preset or 'a network of your own'}).",
            f"Begin with a run of the same model and sizes: leave --model out for those of {before}.",
        )
    put(model, theirs, found.taken)
    facts = [
        ("begun with", f"{before}, {checkpoint.path.name} ({before.model_name})"),
        *_facts(model, found),
        *_other_fields(before.config.model, table),
    ]
    if not same_tokens and tokenizer_files(before.vocabulary):
        facts.append(
            ("note", f"the vocabulary is another than that of {before}: what is learned of tokens begins anew")
        )
    facts += [("note", text) for text in passed_over]
    return Beginning(
        checkpoint=str(checkpoint.path), files=weight_files(checkpoint), taken=tuple(found.taken), facts=tuple(facts)
    )


def fit(
    own: Mapping[str, Tensor], theirs: Mapping[str, Tensor], *, of_tokens: Collection[str] = (), heads: bool = True
) -> Fit:
    """Find for each tensor of a model one of another's that has its name and shape.

    of_tokens: names that are not taken even so, since their rows stand for other tokens
    heads: whether those under `head.` are looked at
    """
    offered = {name for name in theirs if heads or not name.startswith(HEAD)}
    taken: dict[str, str] = {}
    reshaped: dict[str, tuple[Shape, Shape]] = {}
    new, met = [], set()
    for first, *others in _tied(own):
        shape = tuple(own[first].shape)
        named = [name for name in (first, *others) if name in offered]
        fitting = [name for name in named if tuple(theirs[name].shape) == shape]
        if fitting and first not in of_tokens:
            taken[first] = fitting[0]
            met.add(fitting[0])
        elif named and not fitting:
            reshaped[first] = tuple(theirs[named[0]].shape), shape
            met.add(named[0])
        else:
            new.append(first)
    dropped = tuple(names[0] for names in _tied(theirs) if not met & {*names})
    return Fit(taken=taken, new=tuple(new), reshaped=reshaped, dropped=dropped)


def put(model: nn.Module, theirs: Mapping[str, Tensor], taken: Mapping[str, str]) -> None:
    """Copy weights into a model: `taken` is name here to name there."""
    own = model.state_dict()
    with torch.no_grad():
        for here, there in taken.items():
            own[here].copy_(theirs[there])


def token_weights(model: nn.Module) -> set[str]:
    """Return the names of what has a row for each token of the vocabulary."""
    layers = [
        (path, module) for path, module in model.named_modules() if isinstance(module, TokenEmbedding | OutputLayer)
    ]
    return {f"{path}.{name}" for path, module in layers for name, _ in module.named_parameters()}


def weights_of(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the weights that a run is used with: their moving average, where one was kept."""
    weights = checkpoints.load_weights(checkpoint)
    if not (checkpoint.path / EMA).exists():
        return weights
    average = checkpoints.load_weights(checkpoint, which="ema")
    first = find_tied(weights)  # the average has each parameter once, under its first name, and no counts
    return {name: average.get(first.get(name, name), tensor) for name, tensor in weights.items()}


def weight_files(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the sha256 of each file that `weights_of` reads."""
    return {name: entry["sha256"] for name, entry in checkpoint.manifest.files.items() if name in (MODEL, EMA)}


def grouped(names: Iterable[str]) -> str:
    """List weights by where they belong: `embedding.tokens.weight, encoder.0…encoder.3 (64 tensors), head.… (2 tensors)`."""
    places: dict[tuple[str, int | None], list[str]] = {}
    for name in names:
        places.setdefault(_place(name), []).append(name)
    texts = []
    # Layers of one stack that follow each other are one range.
    for (stem, _), several in groupby(
        enumerate(places), key=lambda entry: (entry[1][0], (entry[1][1] or 0) - entry[0])
    ):
        found = [place for _, place in several]
        members = [name for place in found for name in places[place]]
        first, last = (f"{stem}.{number}" if number is not None else stem for _, number in (found[0], found[-1]))
        if len(members) == 1:
            texts.append(members[0])
        else:
            texts.append(f"{first}.…" if first == last else f"{first}…{last}")
            texts[-1] += f" ({len(members)} tensors)"
    return ", ".join(texts)


def _place(name: str) -> tuple[str, int | None]:
    """Where a weight belongs: a stack and the number of the layer in it, or the part of the model whose it is."""
    parts = name.split(".")
    for index, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[:index]), int(part)
    return parts[0], None


def _facts(model: nn.Module, found: Fit) -> Facts:
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    count = sum(sizes.get(name, 0) for name in found.taken)
    facts = [("taken", f"{count:,} of {sum(sizes.values()):,} parameters: {grouped(found.taken)}")]
    if found.new:
        facts.append(("new", grouped(found.new)))
    if found.reshaped:
        shown = [
            f"{name} ({_sizes(there)} there, {_sizes(here)} here)" for name, (there, here) in found.reshaped.items()
        ]
        more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
        facts.append(("new", f"of another shape: {', '.join(shown[:SHOWN])}{more}"))
    if found.dropped:
        facts.append(("dropped", grouped(found.dropped)))
    return tuple(facts)


def _other_fields(theirs: ModelTable, own: ModelTable) -> Facts:
    """What the two models have different by their settings, which a shape need not show: the number of heads."""
    if not (theirs.preset and own.preset):
        return ()
    names = [name for name in own.fields if name not in decided_by_data(find_preset(own.preset))]
    pairs = {name: (theirs.fields.get(name), own.fields[name]) for name in names if name in theirs.fields}
    differing = [f"{name} {there} there, {here} here" for name, (there, here) in pairs.items() if there != here]
    return (("differs", "; ".join(differing)),) if differing else ()


def _tied(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Return the names of each tensor, in the order of their first."""
    groups: dict[str, list[str]] = {}
    tied = find_tied(tensors)
    for name in tensors:
        groups.setdefault(tied.get(name, name), []).append(name)
    return list(groups.values())


def _sizes(shape: Shape) -> str:
    return " × ".join(map(str, shape))


def _tokenizers(vocabulary: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in tokenizer_files(vocabulary)}


def _labels(vocabulary: Path) -> list[str] | None:
    """Return what the outputs of a run's head stand for, None if for no labels."""
    for name in (LABELS, IMAGES):
        with contextlib.suppress(FileNotFoundError):
            labels: list[str] | None = json.loads((vocabulary / name).read_bytes()).get("labels")
            return labels
    return None
