"""From lines to translations: cut to fit, searched for, put together. Their words are aligned in `aligning.py`.

One `Translator` serves one call: its models, its search settings and its rules. The loss and the scores are the task's.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.sentence_splitting import split_to_fit
from regard.decoding.batches import run_in_batches
from regard.decoding.ensemble import Ensemble
from regard.decoding.protocol import Decoder
from regard.decoding.request import Request
from regard.decoding.result import DeadEndError, Decoded, Hypothesis
from regard.decoding.rules import Banned, ForcedPrefix, Rule
from regard.decoding.search import decode
from regard.errors import UsageError
from regard.evaluation.alignment import Link
from regard.tasks.banned_words import banning
from regard.tasks.translation.alignment import check_alignable, cross_attentions, link_words, padded


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


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """What is translated at once: a line, or a piece of one that is too long.

    line: the line's number, from 0; source: with the end token; prefix: what the translation begins with.
    """

    line: int
    text: str
    source: list[int]
    prefix: list[int]


class Translator:
    """Translates with one model or an ensemble, under the rules of one call.

    max_length: the longest source in tokens; banned: words or phrases that are not written; seed: of sampling.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        models: Sequence[Any],
        decoding: DecodingConfig,
        *,
        max_length: int,
        banned: Sequence[str] = (),
        seed: int = 1,
    ) -> None:
        self.vocabulary = vocabulary
        self.models = models
        self.decoding = decoding
        self.decoder: Decoder[Any] = models[0] if len(models) == 1 else Ensemble(models)
        self.device = next(models[0].parameters()).device
        own_limits = [getattr(model, "max_length", None) for model in models]
        # The start or the end token needs a place too.
        self.model_limit = min((limit for limit in own_limits if limit), default=sys.maxsize) - 1
        self.source_limit = min(self.model_limit, max_length)
        target = vocabulary.target
        # What no training target holds must not be written either.
        self.rules: list[Rule] = [Banned((target.pad_id, target.start_id)), *banning(banned, target)]
        self.seed = seed

    def translate(
        self,
        texts: Sequence[str],
        *,
        align: bool = False,
        prefixes: Sequence[str] = (),
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translate lines, whatever their number and length; in order.

        A line too long for the model is cut into sentences, which are translated and joined. An empty line stays empty.
        prefixes: the beginning of each translation, empty where it is free. Limits of length count from its end.
        """
        if prefixes and len(prefixes) != len(texts):
            raise UsageError(
                f"There are {len(texts):,} lines and {len(prefixes):,} beginnings for their translations.",
                "Give one for each line, empty where the translation is free.",
            )
        if align:
            check_alignable(self.models[0])
        parts = self._parts(texts, prefixes)
        with torch.inference_mode():
            found = run_in_batches(
                [len(part.source) for part in parts],
                lambda numbers: self._translate([parts[number] for number in numbers], numbers, align=align),
                batch_size=self.decoding.batch_size,
                progress=progress,
            )
        numbers_of: list[list[int]] = [[] for _ in texts]
        for number, part in enumerate(parts):
            numbers_of[part.line].append(number)
        return [
            _joined(text, [parts[number].text for number in own], [found[number] for number in own])
            for text, own in zip(texts, numbers_of, strict=True)
        ]

    def _parts(self, texts: Sequence[str], prefixes: Sequence[str]) -> list[_Segment]:
        """Cut lines to fit and encode them. Of a line in several parts, only the first has the beginning."""
        begun = [self._beginning(line, prefix) for line, prefix in enumerate(prefixes)]
        cut = [(line, n, part) for line, text in enumerate(texts) for n, part in enumerate(self._fitting(text))]
        sources = self.vocabulary.source.encode_batch([text for _, _, text in cut])
        return [
            _Segment(
                line=line,
                text=text,
                source=[*ids, self.vocabulary.source.end_id],
                prefix=begun[line] if begun and n == 0 else [],
            )
            for (line, n, text), ids in zip(cut, sources, strict=True)
        ]

    def _fitting(self, text: str) -> list[str]:
        """The parts of a line that the model can take: none for an empty one."""
        if not text.strip():
            return []
        return split_to_fit(text, lambda part: len(self.vocabulary.source.encode(part)) <= self.source_limit)

    def _beginning(self, line: int, prefix: str) -> list[int]:
        """Encode what a translation must begin with; the end token at least must have a place behind it."""
        ids = self.vocabulary.target.encode(prefix) if prefix else []
        longest = self.model_limit - 1
        if len(ids) > longest:
            raise UsageError(
                f"With the model's positions a beginning has at most {longest:,} tokens,"
                f" but that of line {line + 1:,} has {len(ids):,}.",
                "Shorten it.",
            )
        return ids

    def _translate(self, parts: list[_Segment], numbers: list[int], *, align: bool) -> list[tuple[Candidate, ...]]:
        """Translate a batch of parts; sampling is seeded by their numbers."""
        decoded = self._decode(parts, numbers)
        links = self._align(parts, decoded) if align else None
        return [
            tuple(
                self._candidate(hypothesis, links[place][rank] if links else ())
                for rank, hypothesis in enumerate(one.hypotheses)
            )
            for place, one in enumerate(decoded)
        ]

    def _decode(self, parts: list[_Segment], numbers: list[int]) -> list[Decoded]:
        ids, lengths = padded([part.source for part in parts], self.vocabulary.source.pad_id, self.device)
        inputs: Any = (ids, lengths) if len(self.models) == 1 else [(ids, lengths)] * len(self.models)
        limits = torch.full_like(lengths, self.decoding.max_length) if self.decoding.max_length else lengths * 2 + 10
        prefixes = [part.prefix for part in parts]
        limits += torch.tensor([len(prefix) for prefix in prefixes], device=self.device)
        begun: list[Rule] = [ForcedPrefix(prefixes)] if any(prefixes) else []
        try:
            request = Request(
                prompt=self.vocabulary.target.start_id,
                end_id=self.vocabulary.target.end_id,
                limits=limits.clamp(max=self.model_limit),
                rules=[*self.rules, *begun],
                seed=self.seed,
                keys=numbers,
            )
            return decode(self.decoder, self.decoder.start(inputs), request, self.decoding)
        except DeadEndError as error:
            part = parts[error.sentence]
            name = f"The line '{excerpt(part.text)}'"
            raise DeadEndError(sentence=part.line, position=error.position, name=name) from None

    def _candidate(self, hypothesis: Hypothesis, alignment: tuple[Link, ...]) -> Candidate:
        target = self.vocabulary.target
        return Candidate(
            text=target.decode(hypothesis.ids),
            score=hypothesis.score,
            tokens=tuple(target.piece_text(id) for id in hypothesis.ids),
            log_probs=hypothesis.log_probs,
            alignment=alignment,
        )

    def _align(self, parts: list[_Segment], decoded: list[Decoded]) -> list[list[tuple[Link, ...]]]:
        """Find for each hypothesis which source word its words were read from, by the first model.

        The best of all parts are read together, then the second best: so no batch is larger than that of the search.
        """
        links: list[list[tuple[Link, ...]]] = [[] for _ in parts]
        for rank in range(max(len(one.hypotheses) for one in decoded)):
            having = [number for number, one in enumerate(decoded) if rank < len(one.hypotheses)]
            outputs = [decoded[number].hypotheses[rank].ids for number in having]
            sources = [parts[number].source for number in having]
            weights = cross_attentions(self.models[0], self.vocabulary, sources, outputs)
            for number, ids, own in zip(having, outputs, weights, strict=True):
                links[number].append(tuple(link_words(self.vocabulary, parts[number].text, ids, own)))
        return links


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
