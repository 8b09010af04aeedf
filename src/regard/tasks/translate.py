"""Translation: pairs of sentences, cross entropy of the target's tokens, search, BLEU.

Works with any model that offers `states(source, lengths, target)` and an output layer (or plainly returns logits), and,
to decode, `start` and `step`.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data import batching
from regard.data.corpus import Corpus, Integers
from regard.data.parallel import ParallelData, Vocabulary, prepare_parallel
from regard.data.sentences import split_to_fit
from regard.data.tokenizers import Tokenizer
from regard.data.vectors import read_vectors
from regard.decoding.batches import run_in_batches
from regard.decoding.ensemble import Ensemble
from regard.decoding.protocol import Decoder
from regard.decoding.result import Decoded, Hypothesis
from regard.decoding.rules import Banned, ForcedPrefix, Rule
from regard.decoding.search import decode
from regard.errors import ConfigError, UsageError
from regard.evaluation.alignment import Link, align_words
from regard.evaluation.scores import Score, perplexity, score_translations
from regard.parts.losses import output_cross_entropy
from regard.parts.taps import recording
from regard.tasks.task import Examples, Indices, Prepared, Progress, Validation

Rows = Sequence[Sequence[int] | Integers]


@dataclass(frozen=True)
class PairBatch:
    """source (B, S) with its end token, of `source_lengths` (B,); target (B, T) from the start token to the end token."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class PairExamples:
    """Encoded pairs, in batches under a budget of tokens."""

    def __init__(
        self, corpus: Corpus, files: Sequence[str], vocabulary: Vocabulary, *, batch_tokens: int, seed: int
    ) -> None:
        self.corpus = corpus
        self.files = files
        self.vocabulary = vocabulary
        self.batch_tokens = batch_tokens
        self.seed = seed
        # One more on each side: the end token of the source, the start or the end token of the target.
        self.lengths = np.stack([corpus.ragged["source"].lengths, corpus.ragged["target"].lengths], axis=1) + 1

    def __len__(self) -> int:
        return len(self.corpus)

    def order(self, epoch: int) -> list[Indices]:
        return batching.plan(self.lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def fixed_order(self) -> list[Indices]:
        return batching.fixed_batches(self.lengths, self.batch_tokens)

    def batch(self, indices: Indices, device: torch.device) -> PairBatch:
        sources, targets = self.corpus.ragged["source"].take(indices), self.corpus.ragged["target"].take(indices)
        return pair_batch(sources, targets, self.vocabulary, device)

    def places(self, indices: Indices) -> list[str]:
        files, lines = self.corpus.numbers["file"], self.corpus.numbers["line"]
        return [f"{self.files[files[index]]}:{lines[index]}" for index in indices]

    def texts(self, n: int) -> tuple[list[str], list[str]]:
        """The first n pairs as they were written; for validation corpora, which keep their text."""
        columns = self.corpus.ragged["source_text"], self.corpus.ragged["target_text"]
        source, target = ([column.text(row) for row in range(min(n, len(self)))] for column in columns)
        return source, target


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One translation: its text, its score, and the log-probability of each token."""

    text: str
    score: float
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]
    alignment: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Translation:
    """What became of a line: its candidates, best first, and how many parts it was translated in."""

    source: str
    candidates: tuple[Candidate, ...]
    n_parts: int = 1

    @property
    def text(self) -> str:
        """The best candidate."""
        return self.candidates[0].text


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
        return Prepared(task=task, train=train, valid=valid, facts=_facts(data, train), hashes=data.hashes)

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
        """Translate lines, whatever their number and length, with one model or an ensemble; in order.

        A line too long for the model is cut into sentences, which are translated and joined. An empty line stays empty.
        """
        if prefixes and len(prefixes) != len(texts):
            raise UsageError(
                f"There are {len(texts):,} lines and {len(prefixes):,} beginnings for their translations.",
                "Give one for each line, empty where the translation is free.",
            )
        parts = [self._fitting(text, models[0]) for text in texts]
        lines = [part for own in parts for part in own]
        # Of a line in several parts, only the first has the beginning.
        begun = [
            prefix if n == 0 else "" for prefix, own in zip(prefixes, parts, strict=False) for n in range(len(own))
        ]
        sources = [[*ids, self.vocabulary.source.end_id] for ids in self.vocabulary.source.encode_batch(lines)]
        search = _Search(self, models, decoding, prefixes=begun, banned=banned, seed=seed)
        with torch.inference_mode():
            decoded = run_in_batches(
                [len(ids) for ids in sources],
                lambda numbers: search.run(numbers, [sources[number] for number in numbers]),
                batch_size=decoding.batch_size,
                progress=progress,
            )
            found = [
                self._candidates(line, ids, one, models[0] if align else None)
                for line, ids, one in zip(lines, sources, decoded, strict=True)
            ]
        results, taken = [], 0
        for text, own in zip(texts, parts, strict=True):
            results.append(_joined(text, own, found[taken : taken + len(own)]))
            taken += len(own)
        return results

    def score(self, translations: Sequence[str], references: Sequence[str], *, tokenize: str = "13a") -> list[Score]:
        return score_translations(translations, references, tokenize=tokenize)

    def _fitting(self, text: str, model: Any) -> list[str]:
        """The parts of a line that the model can take: none for an empty one."""
        limit = min(getattr(model, "max_length", None) or math.inf, self.config.data.max_length) - 1
        return (
            split_to_fit(text, lambda part: len(self.vocabulary.source.encode(part)) <= limit) if text.strip() else []
        )

    def _candidates(self, line: str, source: list[int], decoded: Decoded, model: Any | None) -> tuple[Candidate, ...]:
        target = self.vocabulary.target
        return tuple(
            Candidate(
                text=target.decode(one.ids),
                score=one.score,
                tokens=tuple(target.piece_text(id) for id in one.ids),
                log_probs=one.log_probs,
                alignment=() if model is None else tuple(self._align(model, line, source, one)),
            )
            for one in decoded.hypotheses
        )

    def _align(self, model: Any, line: str, source: list[int], hypothesis: Hypothesis) -> list[Link]:
        """Which source word each target word was read from."""
        if not hypothesis.ids:
            return []
        weights = self.attention(model, source, hypothesis.ids)[: len(hypothesis.ids)]
        return align_words(
            weights,
            source_words=[*self.vocabulary.source.words(line), None],
            target_words=_words_of_ids(self.vocabulary.target, hypothesis.ids),
        )

    def attention(self, model: Any, source: Sequence[int], target: Sequence[int]) -> np.ndarray[Any, Any]:
        """The weights (T, S) of the model's cross-attention over the source while it writes the target and its end.

        Averaged over the heads of the layer that the model names: the one before the last shows alignment best
        (Garg et al. 2019, "Jointly Learning to Align and Translate").
        """
        device = next(model.parameters()).device
        ids = torch.tensor([list(source)], device=device)
        read = torch.tensor([[self.vocabulary.target.start_id, *target]], device=device)
        with recording(model, model.alignment_tap) as record, torch.inference_mode():
            model.states(ids, torch.tensor([ids.shape[1]], device=device), read)
        weights: np.ndarray[Any, Any] = record[model.alignment_tap][0].mean(0).float().cpu().numpy()
        return weights


class _Search:
    """Decodes batches of encoded lines with the rules of one call."""

    def __init__(
        self,
        task: Translate,
        models: Sequence[Any],
        decoding: DecodingConfig,
        *,
        prefixes: Sequence[str],
        banned: Sequence[str],
        seed: int,
    ) -> None:
        self.task = task
        self.decoding = decoding
        self.decoder: Decoder[Any] = models[0] if len(models) == 1 else Ensemble(models)
        self.n_models = len(models)
        self.device = next(models[0].parameters()).device
        own_limits = [getattr(model, "max_length", None) for model in models]
        self.model_limit = min((limit for limit in own_limits if limit), default=sys.maxsize)
        target = task.vocabulary.target
        # What no training target holds must not be written either.
        self.rules: list[Rule] = [
            Banned((target.pad_id, target.start_id, *(id for w in banned for id in target.encode(w))))
        ]
        self.prefixes = [target.encode(prefix) for prefix in prefixes]
        self.seed = seed

    def run(self, numbers: list[int], sources: list[list[int]]) -> list[Decoded]:
        """Decode some lines; `numbers` are their places among all, by which sampling is seeded."""
        source = self.task.vocabulary.source
        lengths = torch.tensor([len(ids) for ids in sources], device=self.device)
        width = max(len(ids) for ids in sources)
        ids = torch.tensor([ids + [source.pad_id] * (width - len(ids)) for ids in sources], device=self.device)
        inputs: Any = (ids, lengths) if self.n_models == 1 else [(ids, lengths)] * self.n_models
        limits = torch.full_like(lengths, self.decoding.max_length) if self.decoding.max_length else lengths * 2 + 10
        prefixes: list[Rule] = [ForcedPrefix([self.prefixes[n] for n in numbers])] if self.prefixes else []
        return decode(
            self.decoder,
            self.decoder.start(inputs),
            self.decoding,
            start_id=self.task.vocabulary.target.start_id,
            end_id=self.task.vocabulary.target.end_id,
            limits=limits.clamp(max=self.model_limit),
            rules=[*prefixes, *self.rules],
            seed=self.seed,
            keys=numbers,
        )


def _joined(text: str, parts: list[str], found: list[tuple[Candidate, ...]]) -> Translation:
    """Put the translations of a line's parts together; with several parts, the n-th best of each make the n-th best."""
    if not parts:
        return Translation(source=text, candidates=(Candidate(text="", score=0.0, tokens=(), log_probs=()),))
    if len(parts) == 1:
        return Translation(source=text, candidates=found[0])
    first_words = _first_words(text, parts)
    candidates = tuple(_concatenated(row, first_words) for row in zip(*found, strict=False))
    return Translation(source=text, candidates=candidates, n_parts=len(parts))


def _concatenated(row: tuple[Candidate, ...], first_words: list[int]) -> Candidate:
    """Put a candidate of each part together; `first_words` says which word of the line each part begins with."""
    links: list[Link] = []
    n_written = 0
    for part, n_read in zip(row, first_words, strict=True):
        links += [
            Link(source=link.source + n_read, target=link.target + n_written, score=link.score)
            for link in part.alignment
        ]
        n_written += len(part.text.split())
    return Candidate(
        text=" ".join(part.text for part in row),
        score=sum(part.score for part in row) / len(row),
        tokens=tuple(token for part in row for token in part.tokens),
        log_probs=tuple(value for part in row for value in part.log_probs),
        alignment=tuple(sorted(links)),
    )


def _first_words(text: str, parts: list[str]) -> list[int]:
    """Return the number of the word in which each part begins; the parts are pieces of the text in order."""
    numbers, end = [], 0
    for part in parts:
        start = text.index(part, end)
        numbers.append(len(text[: start + 1].split()) - 1)
        end = start + len(part)
    return numbers


def pair_batch(sources: Rows, targets: Rows, vocabulary: Vocabulary, device: torch.device) -> PairBatch:
    """Put encoded pairs together, padded behind, with their start and end tokens."""
    source, source_lengths = _padded(sources, vocabulary.source, start=False)
    target, target_lengths = _padded(targets, vocabulary.target, start=True)
    return PairBatch(*(tensor.to(device) for tensor in (source, source_lengths, target, target_lengths)))


def _padded(rows: Rows, tokenizer: Tokenizer, *, start: bool) -> tuple[Tensor, Tensor]:
    """Return ids (B, T), each row with the end token behind and, if asked for, the start token in front.

    The lengths (B,) count the end token, but not the start token.
    """
    lengths = np.fromiter((len(ids) + 1 for ids in rows), np.int64, len(rows))
    first = 1 if start else 0
    padded = np.full((len(rows), first + int(lengths.max())), tokenizer.pad_id, np.int64)
    if start:
        padded[:, 0] = tokenizer.start_id
    for row, ids in enumerate(rows):
        padded[row, first : first + len(ids)] = ids
        padded[row, first + len(ids)] = tokenizer.end_id
    return torch.from_numpy(padded), torch.from_numpy(lengths)


def _words_of_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int | None]:
    """Which word of the decoded text each id belongs to; by decoding growing beginnings, so that any ids will do.

    White space alone belongs to the word before it; None where there is no word.
    """
    counts = [len(tokenizer.decode(ids[:end]).split()) for end in range(1, len(ids) + 1)]
    # The first bytes of a character may look like a word, until all of them turn out to be a space.
    return [min(max(1, count), counts[-1]) - 1 if counts[-1] else None for count in counts]


def _facts(data: ParallelData, train: PairExamples) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of the data."""
    order = train.order(0)
    screening = data.screening
    held_out = f"{data.n_held_out:,} held out by source sentence" if data.n_held_out else f"{len(data.valid):,} pairs"
    vocabulary = data.vocabulary
    sizes = f"{vocabulary.source.vocab_size:,} shared"
    if not vocabulary.shared:
        sizes = f"{vocabulary.source.vocab_size:,} source, {vocabulary.target.vocab_size:,} target"
    facts = [
        ("training", f"{len(data.train):,} pairs"),
        ("validation", held_out),
        ("vocabulary", f"{sizes} tokens ({vocabulary.source.kind})"),
        ("batches", f"{len(order):,} an epoch, {batching.padding_share(train.lengths, order):.1%} padding"),
    ]
    if screening.n_bad:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in screening.reasons.items())
        first = next(iter(screening.examples.values()))[0]
        facts.append(("left out", f"{screening.n_bad:,} bad pairs: {reasons}; first {first.file}:{first.line}"))
    if data.train.facts["n_long"]:
        file, line = data.train.facts["first_long"]
        facts.append(("left out", f"{data.train.facts['n_long']:,} pairs too long, first {train.files[file]}:{line}"))
    if not vocabulary.target.lossless:
        facts.append(("lost", vocabulary.target.loss))
    return tuple(facts)
