"""From lines to translations: cut to fit, searched for, put together, aligned.

One `Translator` serves one call: its models, its search settings and its rules. The loss and the scores are the task's.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.config import DecodingConfig
from regard.data.parallel import Vocabulary
from regard.data.sentences import split_to_fit
from regard.data.tokenizers import Tokenizer
from regard.decoding.batches import run_in_batches
from regard.decoding.ensemble import Ensemble
from regard.decoding.protocol import Decoder
from regard.decoding.result import Decoded, Hypothesis
from regard.decoding.rules import Banned, ForcedPrefix, Rule
from regard.decoding.search import decode
from regard.errors import UsageError
from regard.evaluation.alignment import Link, align_words
from regard.parts.taps import recording


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


class Translator:
    """Translates with one model or an ensemble, under the rules of one call.

    max_length: the longest source in tokens; banned: texts whose tokens are not written; seed: of sampling.
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
        self.model_limit = min((limit for limit in own_limits if limit), default=sys.maxsize)
        self.source_limit = min(self.model_limit, max_length) - 1  # the end token needs a place too
        target = vocabulary.target
        # What no training target holds must not be written either.
        self.rules: list[Rule] = [
            Banned((target.pad_id, target.start_id, *(id for text in banned for id in target.encode(text))))
        ]
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
        prefixes: the beginning of each translation, empty where it is free.
        """
        if prefixes and len(prefixes) != len(texts):
            raise UsageError(
                f"There are {len(texts):,} lines and {len(prefixes):,} beginnings for their translations.",
                "Give one for each line, empty where the translation is free.",
            )
        parts = [self._fitting(text) for text in texts]
        lines = [part for own in parts for part in own]
        # Of a line in several parts, only the first has the beginning.
        begun = [
            self.vocabulary.target.encode(prefix if n == 0 else "")
            for prefix, own in zip(prefixes, parts, strict=False)
            for n in range(len(own))
        ]
        sources = [[*ids, self.vocabulary.source.end_id] for ids in self.vocabulary.source.encode_batch(lines)]
        with torch.inference_mode():
            decoded = run_in_batches(
                [len(ids) for ids in sources],
                lambda numbers: self._decode(numbers, sources, begun),
                batch_size=self.decoding.batch_size,
                progress=progress,
            )
            found = [
                self._candidates(line, ids, one, align=align)
                for line, ids, one in zip(lines, sources, decoded, strict=True)
            ]
        results, taken = [], 0
        for text, own in zip(texts, parts, strict=True):
            results.append(_joined(text, own, found[taken : taken + len(own)]))
            taken += len(own)
        return results

    def _fitting(self, text: str) -> list[str]:
        """The parts of a line that the model can take: none for an empty one."""
        if not text.strip():
            return []
        return split_to_fit(text, lambda part: len(self.vocabulary.source.encode(part)) <= self.source_limit)

    def _decode(self, numbers: list[int], all_sources: list[list[int]], prefixes: list[list[int]]) -> list[Decoded]:
        """Decode the encoded lines of these numbers, by which sampling is seeded."""
        sources = [all_sources[number] for number in numbers]
        lengths = torch.tensor([len(ids) for ids in sources], device=self.device)
        width, pad = max(map(len, sources)), self.vocabulary.source.pad_id
        ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids in sources], device=self.device)
        inputs: Any = (ids, lengths) if len(self.models) == 1 else [(ids, lengths)] * len(self.models)
        limits = torch.full_like(lengths, self.decoding.max_length) if self.decoding.max_length else lengths * 2 + 10
        begun: list[Rule] = [ForcedPrefix([prefixes[number] for number in numbers])] if prefixes else []
        return decode(
            self.decoder,
            self.decoder.start(inputs),
            self.decoding,
            start_id=self.vocabulary.target.start_id,
            end_id=self.vocabulary.target.end_id,
            limits=limits.clamp(max=self.model_limit),
            rules=[*begun, *self.rules],
            seed=self.seed,
            keys=numbers,
        )

    def _candidates(self, line: str, source: list[int], decoded: Decoded, *, align: bool) -> tuple[Candidate, ...]:
        target = self.vocabulary.target
        return tuple(
            Candidate(
                text=target.decode(one.ids),
                score=one.score,
                tokens=tuple(target.piece_text(id) for id in one.ids),
                log_probs=one.log_probs,
                alignment=tuple(self._align(line, source, one)) if align else (),
            )
            for one in decoded.hypotheses
        )

    def _align(self, line: str, source: list[int], hypothesis: Hypothesis) -> list[Link]:
        """Which source word each target word was read from, by the first model."""
        if not hypothesis.ids:
            return []
        weights = cross_attention(self.models[0], self.vocabulary, source, hypothesis.ids)
        return align_words(
            weights[: len(hypothesis.ids)],
            source_words=[*self.vocabulary.source.words(line), None],
            target_words=_words_of_ids(self.vocabulary.target, hypothesis.ids),
        )


def cross_attention(
    model: Any, vocabulary: Vocabulary, source: Sequence[int], target: Sequence[int]
) -> np.ndarray[Any, Any]:
    """The weights (T, S) of the model's cross-attention over the source while it writes the target and its end.

    Averaged over the heads of the layer that the model names: the one before the last shows alignment best
    (Garg et al. 2019, "Jointly Learning to Align and Translate").
    """
    device = next(model.parameters()).device
    ids = torch.tensor([list(source)], device=device)
    read = torch.tensor([[vocabulary.target.start_id, *target]], device=device)
    with recording(model, model.alignment_tap) as record, torch.inference_mode():
        model.states(ids, torch.tensor([ids.shape[1]], device=device), read)
    weights: np.ndarray[Any, Any] = record[model.alignment_tap][0].mean(0).float().cpu().numpy()
    return weights


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


def _words_of_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int | None]:
    """Which word of the decoded text each id belongs to; by decoding growing beginnings, so that any ids will do.

    White space alone belongs to the word before it; None where there is no word.
    """
    counts = [len(tokenizer.decode(ids[:end]).split()) for end in range(1, len(ids) + 1)]
    # The first bytes of a character may look like a word, until all of them turn out to be a space.
    return [min(max(1, count), counts[-1]) - 1 if counts[-1] else None for count in counts]
