"""Regression: a text, a protein letter by letter, or a sequence of vectors, to a number.

Numbers are learned standardised, (number - mean) / deviation of the training data, and told as they were written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.pipeline.corpus import Corpus
from regard.evaluation.baselines.baseline import Baseline, as_logits
from regard.evaluation.baselines.constant import Mean
from regard.evaluation.baselines.linear import LinearRegression
from regard.evaluation.baselines.ridge import Ridge, RidgeByPosition
from regard.evaluation.regression import mean_absolute_error, r_squared, regression_statistics, spearman
from regard.evaluation.scores import Score
from regard.tasks.baseline_inputs import MOST_TOKENS, bounded_rows
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelling.base import LabellingTask
from regard.tasks.labelling.baseline_features import input_lengths
from regard.tasks.labelling.examples import Logits, SequenceExamples, Sequences
from regard.tasks.results import Result
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Measured(Result):
    """The number of a text; `cut` where the text's end was left out, because it is longer than those learned from."""

    value: float
    cut: bool = False

    @property
    def truncation(self) -> str:
        return "cut at the end" if self.cut else ""

    def lines(self, *, top: int = 0) -> list[str]:
        return [f"{self.value:.9g}"]  # all that single precision holds

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"prediction": self.value}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        return {"value": self.value, "cut": self.cut}


class RegressionTask(LabellingTask):
    """The task of regression."""

    spec: ClassVar = TASKS["regress"]
    label: ClassVar = "number"

    def targets(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """The scaled numbers (B,)."""
        return torch.from_numpy(self.scaled(corpus, indices).astype(np.float32))

    def scaled(self, corpus: Corpus, indices: Indices) -> Numbers:
        """The numbers of some examples (N,) as they are learned."""
        scaled: Numbers = (values_of(corpus)[indices] - self.table.offset) / self.table.scale
        return scaled

    def loss_of(self, logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """The squared error of scaled numbers."""
        return (logits[:, 0].float() - targets.to(logits.device)).square().sum(), len(targets)

    def scores(self, corpus: Corpus, logits: Sequence[Logits]) -> list[Score]:
        """The loss, Spearman's correlation, R² and the mean absolute error in the unit of the data."""
        gold, predicted = values_of(corpus), self.numbers(logits)
        return [
            self.squared_error(gold, predicted, of="standardised numbers"),
            spearman(gold, predicted),
            r_squared(gold, predicted),
            mean_absolute_error(gold, predicted),
        ]

    def numbers(self, logits: Sequence[Logits]) -> Numbers:
        """What logits (1,) say of each example, in the unit of the data."""
        return np.array([self.table.offset + self.table.scale * float(own[0]) for own in logits])

    def squared_error(self, gold: Numbers, predicted: Numbers, *, of: str) -> Score:
        """The loss of numbers in the unit of the data; `of` says what it is a loss of."""
        loss = float(np.square((predicted - gold) / self.table.scale).mean()) if len(gold) else float("nan")
        return Score(name="loss", value=loss, signature=f"unit:example|of:{of}")

    @property
    def baseline_kinds(self) -> tuple[type[Baseline], ...]:
        return (Mean, Ridge, RidgeByPosition) if self.tokenizer is not None else (Mean, LinearRegression)

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The mean; ridge regression over texts, by position where all have one length, linear regression over vectors."""
        assert isinstance(train, SequenceExamples)
        corpus = train.corpus
        rows = self.features.rows(corpus)
        numbers = self.scaled(corpus, rows)
        mean = Mean.fit(numbers)
        if self.tokenizer is None:
            return [mean, LinearRegression.fit(self.features.summaries(corpus, rows), numbers)]
        if self.features.are_aligned(corpus):
            rows = bounded_rows(input_lengths(corpus), MOST_TOKENS)
            return [mean, RidgeByPosition.fit(self.features.places(corpus, rows), self.scaled(corpus, rows))]
        return [mean, Ridge.fit(self.features.bags(corpus, rows), numbers)]

    def baseline_logits(self, baseline: Baseline, corpus: Corpus, rows: Indices) -> Iterable[Logits]:
        if isinstance(baseline, Mean):
            return baseline.repeated(len(rows))
        if isinstance(baseline, RidgeByPosition):
            return as_logits(baseline.predict(self.features.places(corpus, rows))[:, None])
        if isinstance(baseline, Ridge):
            return as_logits(baseline.predict(self.features.bags(corpus, rows))[:, None])
        assert isinstance(baseline, LinearRegression)
        return as_logits(baseline.predict(self.features.summaries(corpus, rows))[:, None])

    def expected(self, corpus: Corpus) -> list[float]:
        return list(values_of(corpus).tolist())

    def result(self, sequences: Sequences, row: int, logits: Logits) -> Measured:
        [value] = self.numbers([logits])
        return Measured(value=float(value), cut=bool(sequences.cut[row]))

    def sample(self, expected: float, result: Measured) -> tuple[str, str]:
        return f"{expected:.4g}", f"{result.value:.4g}"

    def report(self, found: Evaluation) -> Evaluation:
        """Add what each example adds to the metrics, and the numbers to write."""
        predicted = [one.value for one in found.predictions if isinstance(one, Measured)]
        statistics = regression_statistics(found.expected, predicted)
        return replace(
            found,
            statistics=tuple(one for one in statistics if one.metric in self.spec.metrics),
            output=tuple(f"{gold:.15g}\t{value:.9g}" for gold, value in zip(found.expected, predicted, strict=True)),
        )

    def label_facts(self) -> list[tuple[str, str]]:
        return [("numbers", f"mean {self.table.offset:.4g}, standard deviation {self.table.scale:.4g}")]


def values_of(corpus: Corpus) -> Numbers:
    """The numbers of a corpus, which keeps their bits."""
    return corpus.numbers["value"].view(np.float64)
