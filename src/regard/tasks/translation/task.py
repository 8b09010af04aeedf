"""Translation: pairs of sentences, cross entropy of the target's tokens, search, BLEU.

Works with any model that offers `states(source, lengths, target)` and an output layer (or plainly returns logits), and,
to decode, `start` and `step`. How lines become translations is in `translating.py`.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data import batching
from regard.data.pairs.dataset import Vocabulary, prepare_pairs
from regard.errors import ConfigError
from regard.evaluation.generated_text import score_translations
from regard.evaluation.perplexity import perplexity
from regard.evaluation.scores import Score
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Prepared, Progress, Validation
from regard.tasks.token_loss import token_loss
from regard.tasks.translation.examples import PairBatch, PairExamples, pair_batch, pair_facts
from regard.tasks.translation.translator import Translation, Translator
from regard.tasks.word_vectors import WordVectors


class TranslationTask:
    """The task of translation over one vocabulary."""

    spec: ClassVar = TASKS["translate"]

    def __init__(self, vocabulary: Vocabulary, config: RunConfig) -> None:
        self.vocabulary = vocabulary
        self.config = config

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Vocabulary.load(vocabulary) if vocabulary is not None else None
        data = prepare_pairs(config.data, config.tokenizer, vocabulary=given, progress=progress)
        files = config.data.train, config.data.valid or config.data.train
        train, valid = (
            PairExamples(corpus, own, data.vocabulary, batch_tokens=config.training.batch_tokens, seed=config.seed)
            for corpus, own in zip((data.train, data.valid), files, strict=True)
        )
        task = cls(data.vocabulary, config)
        vectors = [("vectors", found.about(f"{side} words")) for side, found in task.word_vectors.items()]
        facts = (*pair_facts(data, train), *vectors)
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=data.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> "TranslationTask":
        return cls(Vocabulary.load(vocabulary), config)

    def save(self, vocabulary: Path) -> None:
        self.vocabulary.save(vocabulary)

    def sizes(self) -> dict[str, int]:
        source, target = self.vocabulary.source.vocab_size, self.vocabulary.target.vocab_size
        return {"source_vocab": source, "target_vocab": target}

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embeddings; a word without a vector keeps its random one.

        Learned positions must reach as far as the longest example may, its end token counted.
        """
        longest, limit = self.config.data.max_length, getattr(model, "max_length", None)
        if limit is not None and longest >= limit:
            raise ConfigError(
                f"data.max_length is {longest:,}, but the model has positions for {limit:,} tokens, one of "
                "them for the end.",
                f"Set data.max_length={limit - 1}, or model.max_positions={longest + 1}.",
            )
        for side, vectors in self.word_vectors.items():
            vectors.put_into(model, f"{side}_embedding.tokens.weight", self.config)

    @cached_property
    def word_vectors(self) -> dict[str, WordVectors]:
        """The given vectors of each side, read when first asked for."""
        path = self.config.tokenizer.vectors
        if not path:
            return {}
        source = WordVectors.read(path, self.vocabulary.source)
        target = source if self.vocabulary.shared else WordVectors.read(path, self.vocabulary.target)
        return {"source": source, "target": target}

    def loss(self, model: Any, batch: PairBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the target's tokens, and their number."""
        read, written = batch.target[:, :-1], batch.target[:, 1:]
        real = torch.arange(written.shape[1], device=written.device) < batch.target_lengths[:, None]
        inputs = batch.source, batch.source_lengths, read
        return token_loss(model, inputs, written, real, smoothing=smoothing)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_decoded: int) -> Validation:
        """Loss and perplexity on all pairs, BLEU and chrF on the first `n_decoded`, decoded greedily."""
        assert isinstance(examples, PairExamples)
        device = next(model.parameters()).device
        loss = self._mean_loss(model, (examples.batch(indices, device) for indices in examples.fixed_order()))
        scores = {"perplexity": perplexity(loss).value}
        samples: tuple[tuple[str, str, str], ...] = ()
        n_decoded = len(examples) if n_decoded < 0 else n_decoded
        if n_decoded and hasattr(model, "step"):  # a network of the caller's own may know nothing of decoding
            sources, references = examples.texts(n_decoded)
            greedy = replace(decoding, beam=1, n_best=1, sample=False)
            outputs = [one.text for one in self.translate([model], sources, greedy)]
            found = score_translations(outputs, references, metrics=("bleu", "chrf"))
            scores |= {score.name: score.value for score in found}
            samples = tuple(zip(sources, references, outputs, strict=True))[:3]
        return Validation(loss=loss, scores=scores, samples=samples)

    def mean_loss(self, model: nn.Module, sources: Sequence[str], targets: Sequence[str]) -> tuple[float, int]:
        """The mean cross entropy of the targets' tokens, their end tokens among them, in nats, and over how many pairs.

        Pairs that are longer than the model's positions have none.
        """
        device = next(model.parameters()).device
        limit = getattr(model, "max_length", None) or sys.maxsize
        encoded = zip(
            self.vocabulary.source.encode_batch(sources), self.vocabulary.target.encode_batch(targets), strict=True
        )
        pairs = [(source, target) for source, target in encoded if max(len(source), len(target)) < limit]
        lengths = np.array([[len(source) + 1, len(target) + 1] for source, target in pairs]).reshape(-1, 2)
        batches = (
            pair_batch([pairs[i][0] for i in rows], [pairs[i][1] for i in rows], self.vocabulary, device)
            for rows in batching.fixed_batches(lengths, self.config.training.batch_tokens)
        )
        return self._mean_loss(model, batches), len(pairs)

    def _mean_loss(self, model: nn.Module, batches: Iterable[PairBatch]) -> float:
        total, weight = 0.0, 0.0
        with torch.inference_mode():
            for batch in batches:
                loss, n_tokens = self.loss(model, batch, smoothing=0.0)
                total, weight = total + float(loss), weight + n_tokens
        return total / weight if weight else math.nan

    def translate(
        self,
        models: Sequence[Any],
        texts: Sequence[str],
        decoding: DecodingConfig,
        *,
        align: bool = False,
        prefixes: Sequence[str] = (),
        banned: Sequence[str] = (),
        seed: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translate lines with one model or an ensemble; see `translating.Translator`."""
        limit = self.config.data.max_length
        translator = Translator(self.vocabulary, models, decoding, max_length=limit, banned=banned, seed=seed)
        return translator.translate(texts, align=align, prefixes=prefixes, progress=progress)

    def score(self, translations: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> list[Score]:
        return score_translations(translations, references, tokenize=tokenize)
