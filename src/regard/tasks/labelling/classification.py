"""Classification: a text, or two, or a sequence of vectors, to one of several classes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.pipeline.corpus import Corpus
from regard.evaluation import classification as metrics
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.constant import MajorityClass
from regard.evaluation.baselines.naive_bayes import NaiveBayes
from regard.evaluation.baselines.nearest_mean import NearestMean
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.tasks.class_evaluation import class_costs, class_probabilities, class_sections, class_statistics
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelling.base import LabellingTask
from regard.tasks.labelling.class_weights import class_weights, weighed, weight_facts, weight_signature
from regard.tasks.labelling.examples import Logits, SequenceBatch, SequenceExamples, Sequences
from regard.tasks.results import Result, one_line
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices


@dataclass(frozen=True, kw_only=True, repr=False)
class Classified(Result):
    """The likeliest class of a text, and the probability of each, the likeliest first.

    cut: whether the text's end was left out, because it is longer than those that were learned from.
    """

    label: str
    probability: float
    probabilities: Mapping[str, float]
    cut: bool = False

    @property
    def truncation(self) -> str:
        return "cut at the end" if self.cut else ""

    def lines(self, *, top: int = 0) -> list[str]:
        likeliest = islice(self.probabilities.items(), max(1, top))
        return ["\t".join(f"{one_line(label)}\t{share:.4f}" for label, share in likeliest)]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        cells: dict[str, Any] = {}
        for rank, (label, share) in enumerate(islice(self.probabilities.items(), max(1, top)), start=1):
            number = f"_{rank}" if rank > 1 else ""
            cells |= {f"prediction{number}": label, f"probability{number}": round(share, 6)}
        return cells

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        probabilities = dict(islice(self.probabilities.items(), top or None))
        return {
            "label": self.label,
            "probability": self.probability,
            "probabilities": probabilities,
            "cut": self.cut,
        }


class ClassificationTask(LabellingTask):
    """The task of classification."""

    spec: ClassVar = TASKS["classify"]
    label: ClassVar = "class"

    def targets(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        return torch.from_numpy(np.asarray(corpus.numbers["label"][indices], np.int64))

    def loss_of(self, logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy of the classes; with class weights, each example's times its own."""
        wanted = targets.to(logits.device)
        losses = F.cross_entropy(logits.float(), wanted, label_smoothing=smoothing, reduction="none")
        return weighed(losses, targets, self.class_weights)

    def costs(self, model: Any, batch: SequenceBatch) -> Floats:
        """The loss of each example, its weight, whether its class is predicted right, and 1: (B, 4)."""
        assert batch.targets is not None
        return class_costs(self.forward(model, batch).cpu(), batch.targets, partial(self.loss_of, smoothing=0.0))

    @cached_property
    def class_weights(self) -> Tensor | None:
        """How much an example of each class counts, (N,); None where all count the same."""
        return class_weights(self.config, self.table.counts)

    def scores(self, corpus: Corpus, logits: Sequence[Logits]) -> list[Score]:
        """The loss, the accuracy and the macro F1."""
        stacked, gold = np.stack(logits), np.array(corpus.numbers["label"])
        loss, weight = self.loss_of(torch.from_numpy(stacked), torch.from_numpy(gold), smoothing=0.0)
        signature = f"unit:example{weight_signature(self.class_weights)}"
        predicted = stacked.argmax(1)
        return [
            Score(name="loss", value=float(loss) / weight, signature=signature),
            metrics.accuracy(gold, predicted),
            metrics.macro_f1(gold, predicted, len(self.table.labels)),
        ]

    @property
    def baseline_kinds(self) -> tuple[type[Baseline], ...]:
        return MajorityClass, NaiveBayes if self.tokenizer is not None else NearestMean

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The majority class; naive Bayes over texts, the nearest class mean over vectors."""
        assert isinstance(train, SequenceExamples)
        corpus, n_classes = train.corpus, len(self.table.labels)
        rows = self.features.rows(corpus)
        classes, majority = np.array(corpus.numbers["label"][rows]), MajorityClass.fit(self.table.counts)
        if self.tokenizer is None:
            return [majority, NearestMean.fit(self.features.summaries(corpus, rows), classes, n_classes)]
        return [majority, NaiveBayes.fit(self.features.bags(corpus, rows), classes, n_classes)]

    def baseline_logits(self, baseline: Baseline, corpus: Corpus, rows: Indices) -> Iterable[Logits]:
        if isinstance(baseline, NaiveBayes):
            return baseline.logits(self.features.bags(corpus, rows))
        if isinstance(baseline, NearestMean):
            return baseline.logits(self.features.summaries(corpus, rows))
        assert isinstance(baseline, MajorityClass)
        return baseline.repeated(len(rows))

    def expected(self, corpus: Corpus) -> list[str]:
        return [self.table.labels[number] for number in corpus.numbers["label"].tolist()]

    def result(self, sequences: Sequences, row: int, logits: Logits) -> Classified:
        probabilities, cut = class_probabilities(logits, self.table.labels), bool(sequences.cut[row])
        label, probability = next(iter(probabilities.items()))
        return Classified(label=label, probability=probability, probabilities=probabilities, cut=cut)

    def sample(self, expected: str, result: Classified) -> tuple[str, str]:
        return expected, f"{result.label} ({100 * result.probability:.0f} %)"

    def report(self, found: Evaluation) -> Evaluation:
        """Add what each example adds to the metrics, the scores of each class, the confusion, and the classes to write."""
        labels, results = self.table.labels, [one for one in found.predictions if isinstance(one, Classified)]
        numbers = {label: number for number, label in enumerate(labels)}
        gold, predicted = [numbers[label] for label in found.expected], [numbers[one.label] for one in results]
        confusion, sections = class_sections(gold, predicted, labels, unit="examples")
        return replace(
            found,
            statistics=tuple(class_statistics(gold, predicted, labels, unit="examples")),
            sections=sections,
            confusion=confusion,
            output=tuple(
                f"{one_line(label)}\t{one_line(one.label)}\t{one.probability:.4f}"
                for label, one in zip(found.expected, results, strict=True)
            ),
        )

    def label_facts(self) -> list[tuple[str, str]]:
        return [*super().label_facts(), *weight_facts(self.class_weights, self.table.labels)]
