"""Classification: a text, or two, or a sequence of vectors, to one of several classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.pipeline.corpus import Corpus
from regard.evaluation import classification as evaluation
from regard.evaluation.confusion_matrix import confusion_counts
from regard.evaluation.scores import Score
from regard.tasks.labelling.base import softmax
from regard.tasks.labelling.class_weights import class_weights, weighed, weight_facts, weight_signature
from regard.tasks.labelling.examples import Outputs, SequenceExamples
from regard.tasks.labelling.whole_sequence import WholeSequenceTask
from regard.tasks.spec import TASKS
from regard.tasks.task import Indices


@dataclass(frozen=True, kw_only=True)
class Classified:
    """The likeliest class of a text, and the probability of each, the likeliest first.

    cut: whether the text's end was left out, because it is longer than those that were learned from.
    """

    label: str
    probability: float
    probabilities: Mapping[str, float]
    cut: bool = False


class ClassificationTask(WholeSequenceTask[Classified]):
    """The task of classification."""

    spec: ClassVar = TASKS["classify"]

    def gold(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        return torch.from_numpy(np.asarray(corpus.numbers["label"][indices], np.int64))

    def loss_of(self, outputs: Tensor, labels: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy of the classes; with class weights, each example's times its own."""
        goals = labels.to(outputs.device)
        losses = F.cross_entropy(outputs.float(), goals, label_smoothing=smoothing, reduction="none")
        return weighed(losses, labels, self.class_weights)

    @cached_property
    def class_weights(self) -> Tensor | None:
        """How much an example of each class counts, (N,); None where all count the same."""
        return class_weights(self.config, self.table.counts)

    def scores_of(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[Score]:
        """The loss, the accuracy and the macro F1."""
        logits, gold = np.stack(outputs), np.array(examples.corpus.numbers["label"])
        loss, weight = self.loss_of(torch.from_numpy(logits), torch.from_numpy(gold), smoothing=0.0)
        found = logits.argmax(1)
        return [
            Score(
                name="loss", value=float(loss) / weight, signature=f"unit:example{weight_signature(self.class_weights)}"
            ),
            evaluation.accuracy(gold, found),
            evaluation.macro_f1(gold, found, self.n_outputs),
        ]

    def confusion(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> npt.NDArray[np.int64]:
        """How often each class (a row) was taken for which (a column), in the order of `table.labels`."""
        return confusion_counts(examples.corpus.numbers["label"], np.stack(outputs).argmax(1), self.n_outputs)

    def expected(self, examples: SequenceExamples) -> list[str]:
        return [self.table.labels[number] for number in examples.corpus.numbers["label"].tolist()]

    def sample(self, examples: SequenceExamples, row: int, output: Outputs) -> tuple[str, str]:
        found = self.said(output, cut=False)
        expected = self.table.labels[examples.corpus.numbers["label"][row]]
        return expected, f"{found.label} ({100 * found.probability:.0f} %)"

    def label_facts(self) -> list[tuple[str, str]]:
        return [*super().label_facts(), *weight_facts(self.class_weights, self.table.labels)]

    def said(self, output: Outputs, *, cut: bool) -> Classified:
        return classified(output, self.table.labels, cut=cut)


def classified(output: Outputs, labels: Sequence[str], *, cut: bool = False) -> Classified:
    """What logits (K,) of the classes `labels` say."""
    shares = softmax(output)
    order = np.argsort(-shares, kind="stable").tolist()
    probabilities = {labels[number]: float(shares[number]) for number in order}
    label = labels[order[0]]
    return Classified(label=label, probability=probabilities[label], probabilities=probabilities, cut=cut)
