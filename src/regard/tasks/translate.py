"""Translation: pairs of sentences, cross entropy of the target's tokens, search, BLEU.

Works with any model that offers `states(source, lengths, target)` and an output layer (or plainly returns logits), and,
to decode, `start` and `step`. How lines become translations is in `translating.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data import batching
from regard.data.parallel import Vocabulary, prepare_parallel
from regard.data.vectors import read_vectors
from regard.errors import ConfigError
from regard.evaluation.scores import Score, perplexity, score_translations
from regard.parts.losses import output_cross_entropy
from regard.tasks.pairs import PairBatch, PairExamples, pair_batch, pair_facts
from regard.tasks.task import Examples, Prepared, Progress, Validation
from regard.tasks.translating import Translation, Translator


class Translate:
    """The task of translation over one vocabulary."""

    name = "translate"

    def __init__(self, vocabulary: Vocabulary, config: RunConfig) -> None:
        self.vocabulary = vocabulary
        self.config = config

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Vocabulary.load(vocabulary) if vocabulary is not None else None
        data = prepare_parallel(config.data, config.tokenizer, vocabulary=given, progress=progress)
        files = config.data.train, config.data.valid or config.data.train
        train, valid = (
            PairExamples(corpus, own, data.vocabulary, batch_tokens=config.training.batch_tokens, seed=config.seed)
            for corpus, own in zip((data.train, data.valid), files, strict=True)
        )
        task = cls(data.vocabulary, config)
        return Prepared(task=task, train=train, valid=valid, facts=pair_facts(data, train), hashes=data.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> "Translate":
        return cls(Vocabulary.load(vocabulary), config)

    def save(self, vocabulary: Path) -> None:
        self.vocabulary.save(vocabulary)

    def sizes(self) -> dict[str, int]:
        source, target = self.vocabulary.source.vocab_size, self.vocabulary.target.vocab_size
        return {"source_vocab": source, "target_vocab": target}

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embeddings; a word without a vector keeps its random one."""
        path = self.config.tokenizer.vectors
        if not path:
            return
        sides = {"source_embedding": self.vocabulary.source, "target_embedding": self.vocabulary.target}
        for name, tokenizer in sides.items():
            weight = getattr(model, name).tokens.weight
            vectors, _ = read_vectors(path, tokenizer.vocabulary)
            if vectors.shape[1] != weight.shape[1]:
                raise ConfigError(
                    f"The vectors of {path} have {vectors.shape[1]} features, the model's embedding {weight.shape[1]}.",
                    f"Set model.d_model = {vectors.shape[1]}.",
                )
            with torch.no_grad():
                found = np.flatnonzero(vectors.any(axis=1))
                weight[found] = torch.from_numpy(vectors[found]).to(weight)
            weight.requires_grad_(not self.config.tokenizer.freeze_vectors)

    def loss(self, model: Any, batch: PairBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the target's tokens, and their number."""
        read, written = batch.target[:, :-1], batch.target[:, 1:]
        real = torch.arange(written.shape[1], device=written.device) < batch.target_lengths[:, None]
        goal = written[real]
        if hasattr(model, "states"):
            states = model.states(batch.source, batch.source_lengths, read)[real]
            bias = getattr(model.output, "bias", None)
            return output_cross_entropy(states, model.output.weight, bias, goal, smoothing=smoothing), len(goal)
        logits = model(batch.source, batch.source_lengths, read)[real]
        return F.cross_entropy(logits, goal, label_smoothing=smoothing, reduction="sum"), len(goal)

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
            outputs = [one.text for one in self.translate([model], sources, replace(decoding, beam=1, n_best=1))]
            found = score_translations(outputs, references, metrics=("bleu", "chrf"))
            scores |= {score.name: score.value for score in found}
            samples = tuple(zip(sources, references, outputs, strict=True))[:3]
        return Validation(loss=loss, scores=scores, samples=samples)

    def mean_loss(self, model: nn.Module, sources: Sequence[str], targets: Sequence[str]) -> float:
        """The mean cross entropy of the targets' tokens, their end tokens among them, in nats."""
        device = next(model.parameters()).device
        source = self.vocabulary.source.encode_batch(sources)
        target = self.vocabulary.target.encode_batch(targets)
        lengths = np.array([[len(a) + 1, len(b) + 1] for a, b in zip(source, target, strict=True)])
        batches = (
            pair_batch([source[i] for i in rows], [target[i] for i in rows], self.vocabulary, device)
            for rows in batching.fixed_batches(lengths, self.config.training.batch_tokens)
        )
        return self._mean_loss(model, batches)

    def _mean_loss(self, model: nn.Module, batches: Iterable[PairBatch]) -> float:
        total, weight = 0.0, 0.0
        with torch.inference_mode():
            for batch in batches:
                loss, n_tokens = self.loss(model, batch, smoothing=0.0)
                total, weight = total + float(loss), weight + n_tokens
        return total / weight

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
