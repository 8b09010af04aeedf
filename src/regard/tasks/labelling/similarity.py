"""Similarity: two texts to a number of agreement, by a bi-encoder (Reimers and Gurevych 2019, "Sentence-BERT").

    text ──── encoder ── mean of its states ─┐
                                             ├─ cosine ── score
    second ── encoder ── mean of its states ─┘

One encoder reads each text by itself, so that texts have vectors that compare: `embed` gives the very same. Scores are
learned as cosines: the lowest of the training data as 0, texts at right angles, and the highest as 1. They are told in the
unit of the data. A network of the caller's own offers `encode(ids, lengths)`, or returns a vector for each text (B, D). An
imported sentence encoder may have the class token's state in the place of the mean (`LabelTable.pooling`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import DataConfig, RunConfig
from regard.data.batching import Lengths
from regard.data.labelled.dataset import LabelledDataset
from regard.data.labelled.rows import find_columns
from regard.data.labelled.vectors import are_vectors
from regard.data.pipeline.corpus import Corpus
from regard.data.text.tokenizer import Tokenizer
from regard.errors import ConfigError, DataError, UsageError
from regard.evaluation.baselines.baseline import Baseline, as_logits
from regard.evaluation.baselines.constant import Mean
from regard.evaluation.baselines.tfidf import TfIdf
from regard.evaluation.regression import pearson, spearman
from regard.evaluation.scores import Score
from regard.tasks.batches import pad
from regard.tasks.labelling.base import LabelOptions
from regard.tasks.labelling.examples import (
    Flags,
    Logits,
    Rows,
    SequenceBatch,
    SequenceExamples,
    Sequences,
    row_lengths,
)
from regard.tasks.labelling.labels import LabelTable
from regard.tasks.labelling.regression import RegressionTask, values_of
from regard.tasks.offers import can_encode, device_of
from regard.tasks.options import Options, Progress
from regard.tasks.reading import Reading, read_positions
from regard.tasks.results import Result
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices, Prepared


class PairedSequences:
    """Pairs of texts of which each is read by itself: a batch has the first texts as rows, then the second ones."""

    def __init__(self, texts: Rows, texts_b: Rows, tokenizer: Tokenizer, *, cut: Flags) -> None:
        self.rows = texts, texts_b
        self.tokenizer = tokenizer
        self.lengths: Lengths = np.stack([row_lengths(own) for own in self.rows], axis=1) + np.int32(2)  # (N, 2)
        self.cut = cut

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        tokenizer = self.tokenizer
        rows = [texts[index] for texts in self.rows for index in indices.tolist()]
        ids = pad(rows, tokenizer.pad_id, start=tokenizer.start_id, end=tokenizer.end_id)
        lengths = self.lengths[indices].astype(np.int64).T.ravel()
        return SequenceBatch(torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device))


class SimilarityTask(RegressionTask):
    """The task of similarity."""

    spec: ClassVar = TASKS["similarity"]
    n_specials: ClassVar = 2
    ngrams: ClassVar = (1, 4)

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        files = *config.data.train, *config.data.valid
        if are_vectors(files, config.tokenizer):
            raise ConfigError("Texts are compared, and these files hold vectors.", "Give tables with two text columns.")
        _require_pairs(files, config.data)
        return super().prepare(config, vocabulary=vocabulary, progress=progress)

    @classmethod
    def table_of(cls, data: LabelledDataset) -> LabelTable:
        values = values_of(data.train)
        lowest, highest = float(values.min()), float(values.max())
        return replace(LabelTable.of(data), offset=lowest, scale=highest - lowest)

    def model_fields(self) -> dict[str, int | str]:
        return {**super().model_fields(), "n_outputs": 0, "pooling": "mean"}

    def forward(self, model: Any, batch: SequenceBatch) -> Tensor:
        """The cosines (B, 1) of the pairs of a batch."""
        first, second = text_vectors(model, batch.inputs, batch.lengths, pooling=self.table.pooling).float().chunk(2)
        return F.cosine_similarity(first, second)[:, None]

    def read(self, files: Sequence[str], options: Options) -> SequenceExamples:
        _require_pairs(files, options.data or self.config.data)
        return super().read(files, options)

    def paired(self, texts: Rows, texts_b: Rows, tokenizer: Tokenizer, *, cut: Flags) -> PairedSequences:
        return PairedSequences(texts, texts_b, tokenizer, cut=cut)

    def encode(self, inputs: Sequence[Any], options: LabelOptions) -> Sequences:
        for number, second in enumerate(options.texts_b):
            if not second.strip():
                raise UsageError(f"Text {number} has no second text.", "Give each text one to be compared with.")
        return super().encode(inputs, options)

    def reading(self, model: Any, text: Any, result: Result, options: LabelOptions) -> Reading:
        """The first text of a pair, of which the model makes a vector, to look into."""
        assert self.tokenizer is not None  # texts are compared, not vectors
        batch = self.encode([text], options).batch(np.array([0]), device_of(model))
        lengths = batch.lengths[:1]
        ids = batch.inputs[:1, : int(lengths[0])]
        own = read_positions(self.tokenizer, ids[0].tolist(), text, name="token")
        return Reading(
            forward=lambda: text_vectors(model, ids, lengths, pooling=self.table.pooling),
            places=(("", own),),
            outputs=self.output_name,
        )

    def scores(self, corpus: Corpus, logits: Sequence[Logits]) -> list[Score]:
        """The loss, and Spearman's and Pearson's correlation."""
        gold, predicted = values_of(corpus), self.numbers(logits)
        loss = self.squared_error(gold, predicted, of="cosines")
        return [loss, spearman(gold, predicted), pearson(gold, predicted)]

    @property
    def baseline_kinds(self) -> tuple[type[Baseline], ...]:
        return Mean, TfIdf

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The mean, and the cosine of tf-idf."""
        assert isinstance(train, SequenceExamples)
        rows = self.features.rows(train.corpus)
        numbers = self.scaled(train.corpus, rows)
        return [Mean.fit(numbers), TfIdf.fit(*self.features.bags_of_both(train.corpus, rows), numbers)]

    def baseline_logits(self, baseline: Baseline, corpus: Corpus, rows: Indices) -> Iterable[Logits]:
        if isinstance(baseline, TfIdf):
            return as_logits(baseline.predict(*self.features.bags_of_both(corpus, rows))[:, None])
        return super().baseline_logits(baseline, corpus, rows)

    def label_facts(self) -> list[tuple[str, str]]:
        return [("scores", f"from {self.table.offset:g} to {self.table.offset + self.table.scale:g}")]


def text_vectors(model: Any, ids: Tensor, lengths: Tensor, *, pooling: str = "mean") -> Tensor:
    """The vectors (B, D) of texts: the mean of their states, or the first, as `Embedder` has it."""
    if can_encode(model):
        states: Tensor = model.encode(ids, lengths)
        if pooling == "class":
            return states[:, 0]
        padding = torch.arange(ids.shape[1], device=ids.device) >= lengths[:, None]
        return states.masked_fill(padding[..., None], 0.0).sum(1) / lengths[:, None]
    vectors: Tensor = model(ids, lengths, None)
    if vectors.shape[:-1] != ids.shape[:1]:
        raise ConfigError(
            f"The network returned {tuple(vectors.shape)} for {len(ids)} texts, and a vector for each was expected.",
            "Let its forward(inputs, lengths, segments) return (B, D), or give it encode(ids, lengths).",
        )
    return vectors


def _require_pairs(files: Sequence[str], data: DataConfig) -> None:
    """Refuse tables without a second text, before they are read."""
    for file in files:
        if Path(file).is_file() and not find_columns(file, data).text_b:
            raise DataError(
                f"{file}: two texts are compared, and no column holds the second one.",
                "Say which column it is with --text-b.",
            )
