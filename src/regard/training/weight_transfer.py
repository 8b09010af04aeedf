"""Weight transfer (warm start): a new model loads the weights of another run that match by name and shape.

    loaded               here and there, of the same shape
    newly initialised    not there, or of another shape, or of other tokens or labels: the model's own initial weights stay
    skipped              there, and not here

Weights of tokens are loaded only with their vocabulary, those of a head only for the same task and labels. Which weights
match is found in `weight_match.py`, and reported by `weight_report.py`.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import ModelTable
from regard.data.text.tokenizer import Tokenizer
from regard.errors import CheckpointError, DataError, RunError
from regard.runs import checkpoints
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder
from regard.runs.json_files import read_json
from regard.runs.names import EMA, MODEL, MOST_STATE
from regard.tasks.images.preprocessing import FILE as IMAGES
from regard.tasks.labelling.labels import FILE as LABELS
from regard.tasks.task import Task
from regard.training.init_from import ParentRun, ParentWeights, tokenizer_files
from regard.training.weight_match import head_path, match_weights, token_weights
from regard.training.weight_report import Facts, differing_settings, grouped, match_facts


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """The weights that a run was initialised with from another: enough to report, to fine-tune and to load them again."""

    checkpoint: str
    files: Mapping[str, str]  # the sha256 of each file with weights
    loaded: tuple[str, ...]  # the names of the weights
    facts: Facts

    def as_json(self) -> dict[str, Any]:
        return {"checkpoint": self.checkpoint, "files": dict(self.files), "taken": self.loaded, "facts": self.facts}

    @classmethod
    def of_run(cls, run: RunFolder) -> "WarmStart | None":
        """Read what a run was initialised with, None if with no other run."""
        kept = run.read_task().get("init")
        match kept:
            case None:
                return None
            case {"checkpoint": str(path), "files": dict(files), "taken": list(loaded), "facts": list(facts)} if (
                _are_texts([path, *files, *files.values(), *loaded])
                and all(isinstance(fact, list) and len(fact) == 2 and _are_texts(fact) for fact in facts)
            ):
                told = tuple((label, text) for label, text in facts)
                return cls(checkpoint=path, files=files, loaded=tuple(loaded), facts=told)
        raise RunError(
            f"{run.task_file} is damaged: it does not say what the run was initialised with.",
            "Put back the file that the run was started with.",
        )

    def reload(self, model: nn.Module, run: RunFolder) -> None:
        """Load the same weights again, for a run that was stopped before its first checkpoint."""
        try:
            checkpoint = checkpoints.verify(Path(self.checkpoint))
            theirs = checkpoints.load_used_weights(checkpoint)
        except CheckpointError as error:
            raise self._unavailable(run, f"cannot be loaded. {error.problem}") from error
        if weight_files(checkpoint) != self.files:
            raise self._unavailable(run, "has changed.")
        found = match_weights(model.state_dict(), theirs).loaded
        missing = [name for name in self.loaded if name not in found]
        if missing:
            raise RunError(
                f"{run} was initialised with weights that this network does not have: {grouped(missing)}.",
                "Resume with the same network.",
            )
        copy_weights(model, theirs, {name: found[name] for name in self.loaded})

    def _unavailable(self, run: RunFolder, problem: str) -> RunError:
        return RunError(
            f"{run} has no checkpoint yet, and the one it was initialised from, {self.checkpoint}, {problem}",
            "Restore that checkpoint, or train a new run.",
        )


def warm_start(
    model: nn.Module, parent: ParentRun, chosen: ParentWeights, *, task: Task, table: ModelTable
) -> WarmStart:
    """Load the weights of the chosen checkpoint that match into a new model.

    table: which network the model is, with every field, or an empty one for a custom network.
    """
    checkpoint, theirs = chosen.checkpoint, chosen.weights
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        task.save(Path(folder))
        same_tokens = _tokens(Path(folder)) == _tokens(parent.vocabulary)
        same_labels = _labels(Path(folder)) == _labels(parent.vocabulary)
    found = match_weights(
        model.state_dict(),
        theirs,
        of_tokens=() if same_tokens else token_weights(model),
        without=None if same_labels and task.spec.name == parent.config.task else head_path(model),
    )
    if not any(theirs[name].dim() > 1 for name in found.loaded.values()):
        raise CheckpointError(
            f"No weight of {parent} ({parent.model_name}) matches the new model ({table.preset or 'a custom network'}).",
            f"Initialise from a run of the same model and sizes, or leave --model out to use those of {parent}.",
        )
    copy_weights(model, theirs, found.loaded)
    facts = [
        ("init from", f"{parent}, {checkpoint.path.name} ({parent.model_name})"),
        *match_facts(model, found),
        *differing_settings(parent.config.model, table),
    ]
    if not same_tokens and tokenizer_files(parent.vocabulary):
        facts.append(("note", f"the vocabulary differs from that of {parent}: the embeddings are newly initialised"))
    facts += [("note", text) for text in chosen.notes]
    return WarmStart(
        checkpoint=str(checkpoint.path), files=weight_files(checkpoint), loaded=tuple(found.loaded), facts=tuple(facts)
    )


def copy_weights(model: nn.Module, theirs: Mapping[str, Tensor], loaded: Mapping[str, str]) -> None:
    """Copy weights into a model: `loaded` is name here to name there."""
    own = model.state_dict()
    with torch.no_grad():
        for here, there in loaded.items():
            own[here].copy_(theirs[there])


def weight_files(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the sha256 of each file with the weights that a run is used with."""
    return {name: entry["sha256"] for name, entry in checkpoint.manifest.files.items() if name in (MODEL, EMA)}


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) and "\0" not in value for value in values)


def _tokens(vocabulary: Path) -> dict[str, tuple[str, dict[str, int]]]:
    """Return what the rows of embeddings stand for; whether text is lower-cased makes no difference there."""
    found = {file.name: Tokenizer.load(file) for file in tokenizer_files(vocabulary)}
    return {name: (tokenizer.kind, tokenizer.vocabulary) for name, tokenizer in found.items()}


def _labels(vocabulary: Path) -> list[str] | None:
    """Return what the outputs of a run's head stand for, None if for no labels."""
    for file in (vocabulary / LABELS, vocabulary / IMAGES):
        try:
            kept = read_json(file, most=MOST_STATE)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            problem = f"{file}: not the labels of a run: {error}."
            raise DataError(problem, "Put back the file that the run was trained with.") from None
        return kept.get("labels") if isinstance(kept, dict) else None
    return None
