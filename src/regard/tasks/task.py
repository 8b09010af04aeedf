"""The protocol that every task follows, which makes one training loop, one command and one API enough for all.

A task owns its job: it turns examples into batches, a model's logits into a loss, predictions into results and scores. It
knows neither the optimizer nor the run folder's checkpoints. What is known of it without torch is its row in `spec.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.intervals import Interval
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.tasks.evaluation import Evaluation
from regard.tasks.options import Options, Progress
from regard.tasks.probe_example import ProbeExample
from regard.tasks.reading import Reading
from regard.tasks.results import Result
from regard.tasks.spec import TaskSpec

Indices = npt.NDArray[np.int64]
N_SAMPLES = 3  # predictions that a validation shows
Sample = tuple[str, str, str]  # input, expected, predicted: what the task calls them

OptionsType = TypeVar("OptionsType", bound=Options, contravariant=True)


class Examples(Protocol):
    """Encoded examples of one task, and the order in which they are learned."""

    def __len__(self) -> int: ...

    def order(self, epoch: int) -> list[Indices]:
        """The batches of an epoch: a function of the seed and the epoch alone."""
        ...

    def fixed_order(self) -> list[Indices]:
        """Batches for validation, always the same."""
        ...

    def batch(self, indices: Indices, device: torch.device) -> Any:
        """Put examples together, padded."""
        ...

    def size(self, indices: Indices) -> int:
        """What the budget of a batch counts of these examples: tokens, padded, or images."""
        ...

    def places(self, indices: Indices) -> list[str]:
        """Where the examples come from, as FILE:LINE."""
        ...


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What a validation found: the loss per unit of weight, further scores by name, and a few outputs to show.

    intervals: the 95 % confidence intervals of those scores that have one
    """

    loss: float
    scores: Mapping[str, float]
    samples: tuple[Sample, ...] = ()
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    @classmethod
    def of(cls, scores: Iterable[Score], samples: Iterable[Sample] = ()) -> Self:
        """From scores, of which the first is the loss."""
        loss, *others = scores
        return cls(
            loss=loss.value,
            scores={score.name: score.value for score in others},
            samples=tuple(samples),
            intervals={score.name: score.interval for score in others if score.interval is not None},
        )


def sample_rows(n: int) -> range:
    """Which of n examples a validation shows: a few, in equal distances."""
    return range(0, n, max(1, n // N_SAMPLES))[:N_SAMPLES]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A task with its data, and what there is to tell about it before the first step."""

    task: "Task"
    train: Examples
    valid: Examples
    facts: tuple[tuple[str, str], ...]  # what the report shows, label and text
    hashes: Mapping[str, str]  # the content of each file that was read
    example: str = ""  # what the command that uses the run may be given, where it is not as the task's spec has it
    throughput_unit: str = ""  # what is counted per second, and
    batch_unit: str = ""  # what in a batch, where these are not as the task's spec has them
    suited: Mapping[str, Any] = field(default_factory=dict)  # fields of a model that suit the data, where nobody chose


class Task(Protocol):
    """One job, as training sees it."""

    spec: ClassVar[TaskSpec]
    config: RunConfig

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        """Read the data; learn the vocabulary, or take the one in the given folder, which may be gone afterwards.

        Labels are taken from there too if the folder has them, which is so where a run goes on.
        """
        ...

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        """Make the task of a finished run, without its data."""
        ...

    def save(self, vocabulary: Path) -> None:
        """Write the vocabulary into a run's folder."""
        ...

    def model_fields(self) -> Mapping[str, int | str]:
        """The fields of the model's config that the data and the task decide: the vocabulary's size, the head."""
        ...

    def initialise(self, model: nn.Module) -> None:
        """Put given weights (word vectors) into a new model; refuse one that does not fit the data."""
        ...

    def loss(self, model: nn.Module, batch: Any, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the losses of a batch, and how many tokens (or examples) it is over."""
        ...

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Score the model on held-out examples; predict at most `n_samples` of them (-1 for all) where that is dear."""
        ...

    @property
    def baseline_kinds(self) -> tuple[type[Baseline], ...]:
        """Which baselines fit the data."""
        ...

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        """How many features a baseline reads that reads some, and how many classes, numbers or tokens each predicts."""
        ...

    def fit_baselines(self, train: Examples) -> Sequence[Baseline]:
        """Learn what a model should beat, of the `baseline_kinds`, from a bounded number of examples, in seconds."""
        ...

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """Score a baseline as `validate` does a model; no scores where nothing is predicted."""
        ...


class UsableTask(Task, Protocol[OptionsType]):
    """One job, as the users of a trained run see it."""

    options: ClassVar[type[Options]]

    def predict(self, model: nn.Module, inputs: Sequence[Any], options: OptionsType) -> Sequence[Result]:
        """What the model says of each input, in their order."""
        ...

    def evaluate(self, model: nn.Module, files: Sequence[str], options: OptionsType) -> Evaluation:
        """Score the model on a test set."""
        ...

    def read(self, files: Sequence[str], options: OptionsType) -> Examples:
        """Read and encode a test set."""
        ...

    def costs(self, model: nn.Module, batch: Any) -> Floats:
        """What each of B examples adds to the scores, (B, 2 to 4): its loss and the weight of it; where something is right
        or wrong, how much of it is right, and of how much, where that is not the weight."""
        ...

    def reading(self, model: nn.Module, input: Any, result: Any, options: OptionsType) -> Reading:
        """One input and what the model said of it, such that the pass can be repeated and looked into."""
        ...

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """At most n of the validation examples, in equal distances, as `predict` takes them."""
        ...
