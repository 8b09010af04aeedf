"""Regression: a text, a protein letter by letter, or a sequence of vectors, to a number.

Numbers are learned standardised, (number - mean) / deviation of the training data, and told as they were written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.pipeline.corpus import Corpus
from regard.evaluation.regression import mean_absolute_error, r_squared, spearman
from regard.evaluation.scores import Score
from regard.tasks.labelling.examples import Outputs, SequenceExamples
from regard.tasks.labelling.whole_sequence import WholeSequenceTask
from regard.tasks.spec import TASKS
from regard.tasks.task import Indices

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The number of a text; `cut` where the text's end was left out, because it is longer than those learned from."""

    value: float
    cut: bool = False


class RegressionTask(WholeSequenceTask[Measured]):
    """The task of regression."""

    spec: ClassVar = TASKS["regress"]

    def gold(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """The standardised numbers (B,)."""
        return torch.from_numpy(
            ((_values(corpus)[indices] - self.table.mean) / self.table.deviation).astype(np.float32)
        )

    def loss_of(self, outputs: Tensor, labels: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """The squared error of standardised numbers."""
        return (outputs[:, 0].float() - labels.to(outputs.device)).square().sum(), len(labels)

    def scores_of(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[Score]:
        """The loss, Spearman's correlation, R² and the mean absolute error in the unit of the data."""
        gold, found = _values(examples.corpus), np.array([self._number(output) for output in outputs])
        loss = float(np.square((found - gold) / self.table.deviation).mean()) if len(gold) else float("nan")
        return [
            Score(name="loss", value=loss, signature="unit:example|of:standardised numbers"),
            spearman(gold, found),
            r_squared(gold, found),
            mean_absolute_error(gold, found),
        ]

    def expected(self, examples: SequenceExamples) -> list[float]:
        return list(_values(examples.corpus).tolist())

    def sample(self, examples: SequenceExamples, row: int, output: Outputs) -> tuple[str, str]:
        return f"{_values(examples.corpus)[row]:.4g}", f"{self._number(output):.4g}"

    def label_facts(self) -> list[tuple[str, str]]:
        return [("numbers", f"mean {self.table.mean:.4g}, standard deviation {self.table.deviation:.4g}")]

    def said(self, output: Outputs, *, cut: bool) -> Measured:
        return Measured(value=self._number(output), cut=cut)

    def _number(self, output: Outputs) -> float:
        """What an output (1,) says in the unit of the data."""
        return self.table.mean + self.table.deviation * float(output[0])


def _values(corpus: Corpus) -> Numbers:
    """The numbers of a corpus, which keeps their bits."""
    return corpus.numbers["value"].view(np.float64)
