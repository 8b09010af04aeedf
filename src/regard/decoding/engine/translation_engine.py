"""A translator of CTranslate2: an encoder reads the source, a decoder writes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from regard.config import DecodingConfig
from regard.decoding.engine.search_engine import BATCH_TOKENS, LONGEST_INPUT, Ids, SearchEngine
from regard.decoding.result import Attention, Decoded

SHORTLIST_BATCH_TOKENS = 256  # the sentences of a batch share their shortlists: few of them, or it is no short one
VOCABULARY_MAP = "vmap.txt"  # as the library calls the file of a shortlist


@dataclass(frozen=True, kw_only=True)
class SourceSentence:
    """One input of a translator: its ids with all special tokens, what the output begins with, and its longest length.

    limit: the most tokens that are written behind the start token, the end token counted
    """

    source: Ids
    prefix: Ids
    limit: int


class _Written(NamedTuple):
    """What the library has written of a sentence: by output its ids, its score, and perhaps its attention."""

    outputs: Sequence[Ids]
    scores: Sequence[float]
    attention: Sequence[Attention] | None


class TranslationEngine(SearchEngine):
    """A translator: an encoder reads the source, a decoder writes."""

    library_class = "Translator"

    @cached_property
    def has_shortlist(self) -> bool:
        """Whether only those target tokens are written that the source tokens of a batch may become, or a prefix has."""
        return (self.folder / VOCABULARY_MAP).is_file()

    def translate(
        self,
        sentences: Sequence[SourceSentence],
        *,
        start: Ids,
        config: DecodingConfig,
        with_log_probs: bool,
        with_attention: bool = False,
    ) -> Iterator[tuple[int, Decoded | None]]:
        """Search for the outputs of sentences; None where our own search must: a limit was passed, or a token forbidden.

        Each comes with its number as soon as it is done, long ones first: who makes something of it does so while the
        workers go on. Log-probabilities that are read back come when all are done.

        start:           what a target begins with behind the start token, before a prefix of its own
        with_attention:  also tell the weights of each output's tokens over the source, of the layer that shows alignments
        """
        has_prefix = bool(start) or any(one.prefix for one in sentences)
        # The library's scores are without a prefix, and with what it has banned taken out of the sum.
        with_log_probs |= has_prefix or config.no_repeat_ngram > 0 or config.min_length > 0
        # The library begins with the longest, too.
        order = sorted(range(len(sentences)), key=lambda number: -len(sentences[number].source))
        ordered = [sentences[number] for number in order]
        waiting = self.open(len(sentences)).translate_batch(
            [[self.source_names[id] for id in one.source] for one in ordered],
            [self._named((*start, *one.prefix)) for one in ordered] if has_prefix else None,
            max_batch_size=self._batch_size(ordered, alone=with_attention and config.beam > 1),
            batch_type="tokens",
            beam_size=config.beam,
            num_hypotheses=config.n_best,
            length_penalty=config.length_penalty,
            no_repeat_ngram_size=config.no_repeat_ngram,
            repetition_penalty=config.repetition_penalty,
            max_input_length=LONGEST_INPUT,
            max_decoding_length=max(one.limit + len(start) for one in sentences),
            min_decoding_length=len(start) + config.min_length if config.min_length else 0,
            return_end_token=True,
            return_scores=True,
            return_attention=with_attention,
            use_vmap=self.has_shortlist,
            asynchronous=True,
        )
        done: Iterable[tuple[int, _Written]] = (
            (number, self._written(one.result(), start, with_attention=with_attention))
            for number, one in zip(order, waiting, strict=True)
        )
        log_probs: Mapping[int, list[list[float]]] = {}
        if with_log_probs:
            done = list(done)
            good = {
                number: one.outputs for number, one in done if self._may_write(one.outputs, sentences[number].limit)
            }
            log_probs = self._log_probs(sentences, good, start)
        for number, one in done:
            decoded = None
            if self._may_write(one.outputs, sentences[number].limit):
                own = log_probs.get(number)
                decoded = self._decoded(one.outputs, one.scores, config, log_probs=own, attention=one.attention)
            yield number, decoded

    def _written(self, found: Any, start: Ids, *, with_attention: bool) -> "_Written":
        """What the library has written of a sentence, behind what all targets begin with."""
        return _Written(
            [[self.ids[name] for name in names][len(start) :] for names in found.hypotheses],
            found.scores,
            [np.array(rows)[len(start) :] for rows in found.attention] if with_attention else None,
        )

    def _batch_size(self, sentences: Sequence[SourceSentence], *, alone: bool) -> int:
        """Tokens of a batch; `alone`: one that only one sentence fits in.

        From a beam of several sentences the library gives the first token of each the weights of another sentence.
        """
        if alone:
            return 1
        most = SHORTLIST_BATCH_TOKENS if self.has_shortlist else BATCH_TOKENS
        return self._batch_tokens([len(one.source) for one in sentences], most=most)

    def _log_probs(
        self, sentences: Sequence[SourceSentence], outputs: Mapping[int, Sequence[Ids]], start: Ids
    ) -> Mapping[int, list[list[float]]]:
        """By sentence, the log-probabilities of all tokens of its outputs, end tokens among them, read back in one pass."""
        rows = [(number, ids) for number, own in outputs.items() for ids in own]
        targets = [[*start, *(ids[:-1] if ids[-1:] == [self.end_id] else ids)] for _, ids in rows]
        scores = self.score([sentences[number].source for number, _ in rows], targets)
        log_probs: dict[int, list[list[float]]] = {number: [] for number in outputs}
        for (number, ids), own in zip(rows, scores, strict=True):
            log_probs[number].append(own[len(start) : len(start) + len(ids)])
        return log_probs

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of targets, and of the end token behind them."""
        found = self.open(len(sources)).score_batch(
            [[self.source_names[id] for id in ids] for ids in sources],
            [self._named(ids) for ids in targets],
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
            max_input_length=LONGEST_INPUT,
        )
        return [list(one.log_probs) for one in found]
