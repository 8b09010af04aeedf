"""A translator of CTranslate2: an encoder reads the source, a decoder writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.config import DecodingConfig
from regard.decoding.engine.library import Progress, results
from regard.decoding.engine.search_engine import BATCH_TOKENS, LONGEST_INPUT, Ids, SearchEngine
from regard.decoding.result import Decoded

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
        progress: Progress | None = None,
    ) -> list[Decoded | None]:
        """Search for the outputs of sentences; None where our own search must: a limit was passed, or a token forbidden.

        start:           what a target begins with behind the start token, before a prefix of its own
        with_attention:  also tell the weights of each output's tokens over the source, of the layer that shows alignments
        progress:        called with how many are done
        """
        has_prefix = bool(start) or any(one.prefix for one in sentences)
        # The library's scores are without a prefix, and with what it has banned taken out of the sum.
        with_log_probs |= has_prefix or config.no_repeat_ngram > 0 or config.min_length > 0
        waiting = self.open(len(sentences)).translate_batch(
            [[self.source_names[id] for id in one.source] for one in sentences],
            [self._named((*start, *one.prefix)) for one in sentences] if has_prefix else None,
            max_batch_size=self._batch_size(sentences, alone=with_attention and config.beam > 1),
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
        found = results(waiting, progress)
        written = [[[self.ids[name] for name in names][len(start) :] for names in one.hypotheses] for one in found]
        good = [number for number, sentence in enumerate(sentences) if self._may_write(written[number], sentence.limit)]
        log_probs = self._log_probs(sentences, written, good, start) if with_log_probs else {}
        decoded: list[Decoded | None] = [None] * len(sentences)
        for number in good:
            own = found[number]
            attention = [np.array(rows)[len(start) :] for rows in own.attention] if with_attention else None
            decoded[number] = self._decoded(
                written[number], own.scores, config, log_probs=log_probs.get(number), attention=attention
            )
        return decoded

    def _batch_size(self, sentences: Sequence[SourceSentence], *, alone: bool) -> int:
        """Tokens of a batch; `alone`: one that only one sentence fits in.

        From a beam of several sentences the library gives the first token of each the weights of another sentence.
        """
        if alone:
            return 1
        most = SHORTLIST_BATCH_TOKENS if self.has_shortlist else BATCH_TOKENS
        return self._batch_tokens([len(one.source) for one in sentences], most=most)

    def _log_probs(
        self, sentences: Sequence[SourceSentence], written: Sequence[Sequence[list[int]]], numbers: Ids, start: Ids
    ) -> dict[int, list[list[float]]]:
        """By sentence, the log-probabilities of all tokens of its outputs, end tokens among them, read back in one pass."""
        rows = [(number, ids) for number in numbers for ids in written[number]]
        targets = [[*start, *(ids[:-1] if ids[-1:] == [self.end_id] else ids)] for _, ids in rows]
        scores = self.score([sentences[number].source for number, _ in rows], targets)
        log_probs: dict[int, list[list[float]]] = {number: [] for number in numbers}
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
