"""Initialising from another run (`--init RUN`): the parent run, and what it decides of the new run's settings.

Its model where none is named, and its vocabulary where none is given. Which of its weights are loaded is in
`weight_transfer.py`.
"""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.config import ModelTable, RunConfig, TokenizerConfig, default_config
from regard.data.text.tokenizer import SHARED, SOURCE, TARGET, Tokenizer
from regard.errors import CheckpointError, UsageError
from regard.models.presets import decided_by_data, find_preset, merged_fields, presets_for, weight_shapes
from regard.runs import checkpoints, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import Reference, RunFolder
from regard.tasks.spec import find_spec

TOKENIZERS = (SHARED, SOURCE, TARGET)  # what of a run's vocabulary folder turns text into tokens


@dataclass(frozen=True)
class ParentRun:
    """The run that a new one is initialised from."""

    reference: Reference
    config: RunConfig
    vocabulary: Path

    @classmethod
    def open(cls, init: str) -> "ParentRun":
        """Find the run that training.init names: `runs/x`, `runs/x@best`, `runs/x@400`."""
        reference = Reference.parse(init)
        folder = RunFolder.open(reference.path)
        return cls(reference, folder.read_config(), folder.vocabulary)

    def load_weights(self) -> "ParentWeights":
        """Load the checkpoint that is meant, verified; at once, for the run may be in training and delete it."""
        shapes = weight_shapes(self.config, origin=str(self.reference)) if self.preset else None

        def read(path: Path) -> tuple[Checkpoint, Mapping[str, Tensor]]:
            if shapes is not None:
                checkpoints.require_shapes(path, shapes)
            checkpoint = checkpoints.verify(path)
            return checkpoint, checkpoints.load_used_weights(checkpoint)

        (checkpoint, weights), notes = selection.read_selected(self.reference, read)
        return ParentWeights(checkpoint, weights, tuple(notes))

    @property
    def tokenizer(self) -> TokenizerConfig:
        """How its text became tokens. Word vectors are left out: the embedding that grew from them is loaded."""
        return dataclasses.replace(self.config.tokenizer, vectors="", freeze_vectors=False)

    @property
    def preset(self) -> str:
        return self.config.model.preset

    @property
    def model_name(self) -> str:
        return self.preset or "a custom network"

    def __str__(self) -> str:
        return str(self.reference)


@dataclass(frozen=True)
class ParentWeights:
    """The weights that the parent run is used with, and a note for each checkpoint that was skipped as damaged."""

    checkpoint: Checkpoint
    weights: Mapping[str, Tensor]
    notes: tuple[str, ...]


def with_model(config: RunConfig) -> RunConfig:
    """Return the settings with the model of the run that training.init names, where they name none.

    Fields that are set stay; what the data decides, such as the vocabulary's size and the head, is not taken over, nor a
    pooling that the other run had no use for.
    """
    if config.model.preset or not config.training.init:
        return config
    parent = ParentRun.open(config.training.init)
    fitting = [preset.name for preset in presets_for(config.task)]
    if not parent.preset:
        raise UsageError(
            f"{parent} was trained with a custom network, which no preset describes.",
            f"Name the model of the new run with --model: {', '.join(fitting)}.",
        )
    if parent.preset not in fitting:
        raise UsageError(
            f"{parent} is a {parent.preset}, which does not support the task '{config.task}'.",
            f"Initialise from a run of one of: {', '.join(fitting)}.",
        )
    left = set(decided_by_data(find_preset(parent.preset)))
    if find_spec(parent.config.task).head in ("words", "tokens"):
        left.add("pooling")  # it was never used
    fields = {name: value for name, value in parent.config.model.fields.items() if name not in left}
    model = ModelTable(preset=parent.preset, fields=merged_fields(fields, config.model.fields))
    return dataclasses.replace(config, model=model)


def with_vocabulary(config: RunConfig, vocabulary: Path | None) -> tuple[RunConfig, Path | None]:
    """Return the settings with the tokenizer of the run that training.init names, and the folder of its vocabulary.

    Nothing changes where a vocabulary is ready already; a run that reads vectors has no folder to offer.
    """
    if vocabulary is not None or not config.training.init:
        return config, vocabulary
    parent = ParentRun.open(config.training.init)
    default = default_config(config.task).tokenizer
    lowercase = config.tokenizer.lowercase  # which changes no token
    for field in dataclasses.fields(TokenizerConfig):
        if field.name == "lowercase":
            continue
        value = getattr(config.tokenizer, field.name)
        if value not in (getattr(default, field.name), getattr(parent.tokenizer, field.name)):
            raise UsageError(
                f"--init uses the vocabulary of {parent}, which conflicts with tokenizer.{field.name} = {value}.",
                f"Leave tokenizer.{field.name} out, or name a run with such a vocabulary: --vocabulary RUN.",
            )
    folder = parent.vocabulary if tokenizer_files(parent.vocabulary) else None
    tokenizer = parent.tokenizer if lowercase == "auto" else dataclasses.replace(parent.tokenizer, lowercase=lowercase)
    return dataclasses.replace(config, tokenizer=tokenizer), folder


def refuse_other_architecture(parent: ParentRun, model: ModelTable) -> None:
    """Refuse weights of another architecture: some may have the same names and shapes, but not the same meaning."""
    if parent.preset and model.preset and find_preset(parent.preset).config != find_preset(model.preset).config:
        raise CheckpointError(
            f"Cannot load weights of {parent} ({parent.preset}) into {model.preset}: the architectures differ.",
            f"Choose another model with --model, or initialise from a run of {model.preset}.",
        )


def tokenizer_files(vocabulary: Path) -> list[Path]:
    """Return the tokenizers in a run's vocabulary folder."""
    return [vocabulary / name for name in TOKENIZERS if (vocabulary / name).is_file()]


@contextlib.contextmanager
def lent_tokenizers(vocabulary: Path | None, *, task: str) -> Iterator[Path | None]:
    """Lend a folder that has the tokenizers of a ready vocabulary and nothing else; None where there are none.

    What else lies there, the labels of a classifier for instance, belongs to the data of the run that wrote it.
    """
    files = [] if vocabulary is None else tokenizer_files(vocabulary)
    if not files:
        yield None
        return
    if SHARED not in {file.name for file in files} and not find_spec(task).reads_setting("tokenizer", "shared"):
        raise UsageError(
            f"{vocabulary} has separate source and target vocabularies, and the task '{task}' needs a single one.",
            "Use that of a run with a shared vocabulary (tokenizer.shared = true).",
        )
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        for file in files:
            Tokenizer.load(file).save(
                Path(folder) / file.name
            )  # read, so that an error names the file in its own place
        yield Path(folder)
