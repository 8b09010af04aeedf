"""The labels of a run: its classes or tags and how often each is learned from, or the scale of its numbers.

Kept as labels.json beside the vocabulary, and told in the report before the first step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from regard.data.labelled.dataset import LabelledDataset
from regard.errors import DataError
from regard.regular_files import MEGABYTE
from regard.runs.disk import as_json, write_atomically
from regard.runs.json_files import read_json

FILE = "labels.json"
MOST_FILE = 256 * MEGABYTE
POOLINGS = ("mean", "class")
N_SHOWN = 8  # labels that a report lists with their counts


class OtherTaskError(DataError):
    """A vocabulary without labels, or with those of another task."""


@dataclass(frozen=True, kw_only=True)
class LabelTable:
    """labels: classes or tags in the order of their numbers, with their `counts` in training; none for numbers.

    offset, scale:  numbers are learned as (number - offset) / scale
    n_features:     of the vectors that are labelled; 0 for text
    pairs:          whether two texts together were labelled
    pooling:        of texts that are compared, what of its states is a text's vector: their mean, or the class token's
    normalised:     whether `embed` divides those vectors by their lengths, which cosines do not ask for
    """

    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    offset: float = 0.0
    scale: float = 1.0
    n_features: int = 0
    pairs: bool = False
    pooling: str = "mean"
    normalised: bool = False

    @property
    def n_outputs(self) -> int:
        """How many logits a sequence, or a token, has: one for each label, or a number."""
        return len(self.labels) or 1

    @classmethod
    def of(cls, data: LabelledDataset) -> "LabelTable":
        """What the training data says; numbers are standardised."""
        return cls(
            labels=data.labels,
            counts=tuple(data.counts[label] for label in data.labels),
            offset=data.mean,
            scale=data.deviation,
            n_features=data.n_features,
            pairs="ids_b" in data.train.ragged and bool(data.train.ragged["ids_b"].lengths.any()),
        )

    @classmethod
    def load(cls, vocabulary: Path, *, task: str) -> "LabelTable":
        """Read what `save` wrote for this task."""
        path = vocabulary / FILE
        remedy = f"Name a run of the task {task}."
        try:
            kept = read_json(path, most=MOST_FILE)
            if kept["task"] != task:
                raise OtherTaskError(f"{path}: it is of the task {kept['task']}, not of {task}.", remedy)
            table = cls(
                labels=tuple(map(str, kept["labels"])),
                counts=tuple(map(int, kept["counts"])),
                # Older runs have the names that fit regression alone.
                offset=float(kept["offset"] if "offset" in kept else kept["mean"]),
                scale=float(kept["scale"] if "scale" in kept else kept["deviation"]),
                n_features=int(kept["n_features"]),
                pairs=bool(kept["pairs"]),
                pooling=str(kept.get("pooling", "mean")),
                normalised=bool(kept.get("normalised", False)),
            )
            if table.pooling not in POOLINGS:
                raise ValueError(f"its pooling is {table.pooling[:20]}")
            if len(table.counts) != len(table.labels) or not isfinite(table.offset) or not isfinite(table.scale):
                raise ValueError("its values do not belong together")
            return table
        except FileNotFoundError:
            problem = f"{path}: there is no such file; a run of the task {task} has one."
            raise OtherTaskError(problem, remedy) from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            problem = f"{path}: not the labels of a run: {type(error).__name__}, {error}."
            raise DataError(problem, "Put back the file that the run was trained with.") from None

    @classmethod
    def find(cls, vocabulary: Path, *, task: str) -> "LabelTable | None":
        """Read what `save` wrote, if it is there and of this task: the vocabulary may come from a run of another."""
        try:
            return cls.load(vocabulary, task=task)
        except OtherTaskError:
            return None

    def save(self, vocabulary: Path, *, task: str) -> None:
        """Write it into a run's vocabulary folder."""
        kept: dict[str, Any] = {"task": task, **vars(self)}
        write_atomically(vocabulary / FILE, as_json(kept, indent=1) + b"\n")

    def facts(self, noun: str) -> list[tuple[str, str]]:
        """What a report says of labels; `noun` is what one is called: class, tag."""
        return label_facts(self.labels, self.counts, noun)


def label_facts(labels: Sequence[str], counts: Sequence[int], noun: str) -> list[tuple[str, str]]:
    """What a report says of labels, and how often each is learned from."""
    pairs = sorted(zip(counts, labels, strict=True), key=lambda pair: -pair[0])
    total = max(1, sum(counts))
    # A class that is called by a number is put in quotes, or the two would run into each other.
    names = [f"'{label}'" if label[-1:].isdigit() else label for _, label in pairs]
    shown = [f"{name} {count:,} ({100 * count / total:.1f} %)" for name, (count, _) in zip(names, pairs, strict=True)]
    if len(shown) > N_SHOWN:
        shown = [*shown[: N_SHOWN - 2], f"{len(shown) - N_SHOWN + 1:,} more", f"and last {shown[-1]}"]
    constant = f"{100 * pairs[0][0] / total:.1f} %: a constant answer has that accuracy"
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return [(plural, f"{len(pairs):,}: {', '.join(shown)}"), (f"largest {noun}", f"{names[0]}, {constant}")]
