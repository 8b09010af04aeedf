"""CTranslate2 as a search engine: ids in, hypotheses out, on a CPU several times as fast as our own search.

It knows a model folder and a name for each id, and no text. What it cannot do as our own search does it, it refuses
(`unsupported`) or leaves to it, sentence by sentence (None in the place of hypotheses). Of an encoder-only model it gives
the states, in place of the network.

- Its beam search ends by another rule than ours: as soon as there are as many finished hypotheses as the beam is wide,
  whatever could still come.
- What it bans (repeated n-grams, an end before the minimum length) it takes out of the sum of all probabilities, which we
  do not: the likeliest token stays the same, the ranks of a beam's hypotheses do not.
- A repetition penalty changes the log-probabilities of an output's tokens, and read back they are without it. Behind a
  prompt that it has read at once, the library forgets the prompt's tokens, which count for us.
- A sequence of tokens that it suppresses is suppressed inside of words too, where a banned word is none.
- It samples one text at a time: its draws depend on the texts beside a text, and on all that were drawn before.
"""

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.penalties import LengthPower
from regard.decoding.result import Decoded, hypothesis
from regard.decoding.sampling import COLD

BATCH_TOKENS = 2048  # source tokens of a batch; sorted by length, so that little of it is padding
SHORTLIST_BATCH_TOKENS = 256  # the sentences of a batch share their shortlists: few of them, or it is no short one
PADDED = (
    1.1  # times the tokens of sentences that are sorted by length, roughly, are what a batch takes with its padding
)
VOCABULARY_MAP = "vmap.txt"  # as the library calls the file of a shortlist
LONGEST_INPUT = 0  # none is cut: who asks has seen to it

Ids = Sequence[int]
Progress = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """How it computes: many inputs as so many batches at a time, each by so many threads; one input by threads alone."""

    workers: int = 1
    threads: int = 1
    threads_for_one: int = 1

    def of(self, n_inputs: int) -> tuple[int, int]:
        """Workers and threads for so many inputs."""
        if n_inputs == 1 and self.threads_for_one != self.threads:
            return 1, self.threads_for_one
        return self.workers, self.threads


@dataclass(frozen=True, kw_only=True)
class SourceSentence:
    """One input of a translator: its ids with all special tokens, what the output begins with, and its longest length.

    limit: the most tokens that are written behind the start token, the end token counted
    """

    source: Ids
    prefix: Ids
    limit: int


class Engine:
    """What all kinds share: the folder, and instances of the library opened when first asked for.

    name: as signatures of scores have it: the library, its version, its type
    """

    library_class: str
    compared: str  # what of it is compared with the network's before it is trusted

    def __init__(self, folder: Path, *, settings: EngineSettings) -> None:
        self.folder = folder
        self.name = folder.name.rpartition("-")[0]
        self.settings = settings
        self._opened: dict[tuple[int, int], Any] = {}
        # Its threads let go of what they call in Python before that ends: later they would abort the process.
        weakref.finalize(self, self._opened.clear)

    def open(self, n_inputs: int) -> Any:
        """The library's own object for so many inputs."""
        settings = self.settings.of(n_inputs)
        if settings not in self._opened:
            self._opened[settings] = self._new(*settings)
        return self._opened[settings]

    def _new(self, workers: int, threads: int) -> Any:
        import ctranslate2

        with _kept_threads():
            make = getattr(ctranslate2, self.library_class)
            return make(str(self.folder), device="cpu", inter_threads=workers, intra_threads=threads)


class SearchEngine(Engine):
    """What both kinds that search share: the names of tokens, and which of them are never written.

    never:  what must not be written; rows that no token has are added to it
    """

    compared = "log-probabilities"
    samples = False  # whether it draws a text that is alone
    counts_prompts = True  # whether what the output begins with is counted by rules on repetition

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        source_names: Sequence[str] | None = None,
        end_id: int,
        never: Ids,
        n_tokens: int,
        settings: EngineSettings,
    ) -> None:
        super().__init__(folder, settings=settings)
        self.names = names
        self.source_names = source_names or names
        self.ids = {name: id for id, name in enumerate(names)}
        self.end_id = end_id
        self.never = {*never, *range(n_tokens, len(names))}

    def unsupported(
        self,
        config: DecodingConfig,
        *,
        banned: bool = False,
        n_models: int = 1,
        alone: bool = False,
        log_probs: bool = False,
    ) -> str:
        """What of a search it cannot do as ours does; empty for nothing.

        alone:      whether one text is asked for
        log_probs:  whether the log-probability of each token is asked for
        """
        if n_models > 1:
            return "an ensemble"
        if config.sample and not (self.samples and alone and config.n_best == 1):
            return "sampling of several texts, each from a seed of its own" if self.samples else "sampling"
        if config.n_best > config.beam and not config.sample:
            return "more hypotheses than the beam is wide"
        greedy = config.beam == 1 and not config.sample
        if config.min_length and not greedy:
            return "a minimum length, but in greedy search"
        if config.no_repeat_ngram and not (greedy and self.counts_prompts):
            return "no repeated n-gram" + ", but in greedy search" * self.counts_prompts
        if config.repetition_penalty != 1 and (log_probs or not self.counts_prompts):
            return "a repetition penalty" + " with log-probabilities or a prefix" * self.counts_prompts
        return "banned words" if banned else ""

    def _named(self, ids: Ids) -> list[str]:
        """Ids as the names that the library knows."""
        return [self.names[id] for id in ids]

    def _batch_tokens(self, lengths: Sequence[int], *, most: int = BATCH_TOKENS) -> int:
        """Tokens of a batch of inputs, padding counted: few enough that every worker has one."""
        workers, _ = self.settings.of(len(lengths))
        return min(most, math.ceil(PADDED * sum(lengths) / workers))

    def _may_write(self, outputs: Sequence[Ids], limit: int) -> bool:
        """Whether our own search could have written these outputs of an input, too."""
        return all(len(ids) <= limit and self.never.isdisjoint(ids) for ids in outputs)

    def _decoded(
        self,
        outputs: Sequence[Ids],
        scores: Sequence[float],
        log_probs: Sequence[Sequence[float]] | None,
        config: DecodingConfig,
    ) -> Decoded:
        """The hypotheses of an input, best first: scored by their log-probabilities, or else as the library did."""
        if log_probs is None:
            found = [
                hypothesis(ids or [self.end_id], (), score=score, end_id=self.end_id)
                for ids, score in zip(outputs, scores, strict=True)
            ]
        else:
            penalty = LengthPower(config.length_penalty)
            found = [
                hypothesis(ids, own, score=penalty.score(sum(own), length=max(1, len(ids))), end_id=self.end_id)
                for ids, own in zip(outputs, log_probs, strict=True)
            ]
        return Decoded(tuple(sorted(found, key=lambda one: -one.score)))


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
        progress: Progress | None = None,
    ) -> list[Decoded | None]:
        """Search for the outputs of sentences; None where our own search must: a limit was passed, or a token forbidden.

        start:     what a target begins with behind the start token, before a prefix of its own
        progress:  called with how many are done
        """
        prefixes = [[*start, *one.prefix] for one in sentences]
        most = SHORTLIST_BATCH_TOKENS if self.has_shortlist else BATCH_TOKENS
        # The library's scores are without a prefix, and with what it has banned taken out of the sum.
        with_log_probs |= any(prefixes) or config.no_repeat_ngram > 0 or config.min_length > 0
        waiting = self.open(len(sentences)).translate_batch(
            [[self.source_names[id] for id in one.source] for one in sentences],
            [self._named(prefix) for prefix in prefixes] if any(prefixes) else None,
            max_batch_size=self._batch_tokens([len(one.source) for one in sentences], most=most),
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
            use_vmap=self.has_shortlist,
            asynchronous=True,
        )
        found = _results(waiting, progress)
        written = [[[self.ids[name] for name in names][len(start) :] for names in one.hypotheses] for one in found]
        good = [number for number, sentence in enumerate(sentences) if self._may_write(written[number], sentence.limit)]
        log_probs = self._log_probs(sentences, written, good, start) if with_log_probs else {}
        decoded: list[Decoded | None] = [None] * len(sentences)
        for number in good:
            decoded[number] = self._decoded(written[number], found[number].scores, log_probs.get(number), config)
        return decoded

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


class GenerationEngine(SearchEngine):
    """A language model: a decoder goes on from a prompt."""

    library_class = "Generator"
    samples = True
    counts_prompts = False
    _has_drawn = False

    def generate(
        self, prompts: Sequence[Ids], *, limit: int, config: DecodingConfig, seed: int = 1, with_log_probs: bool
    ) -> list[Decoded | None]:
        """Go on from prompts by at most so many tokens; None where our own search must."""
        if config.sample:
            [prompt] = prompts
            drawn = list(self.stream(prompt, limit=limit, config=config, seed=seed))
            own = self.score([[*prompt, *drawn]])[0][len(prompt) - 1 :]
            return [self._decoded([drawn], [sum(own)], [own], config)]
        with_log_probs |= config.min_length > 0  # else the library's scores are with the end taken out of the sum
        library = self.open(len(prompts))
        waiting: list[Any] = [None] * len(prompts)
        # Prompts of one length go together: behind the shortest of several, the library would write the others' rest.
        for length in sorted({*map(len, prompts)}):
            numbers = [number for number, prompt in enumerate(prompts) if len(prompt) == length]
            together = library.generate_batch(
                [self._named(prompts[number]) for number in numbers],
                max_batch_size=self._batch_tokens([length] * len(numbers)),
                batch_type="tokens",
                beam_size=config.beam,
                num_hypotheses=config.n_best,
                length_penalty=config.length_penalty,
                max_length=limit,
                min_length=config.min_length,
                include_prompt_in_result=False,
                return_end_token=True,
                return_scores=True,
                asynchronous=True,
            )
            for number, one in zip(numbers, together, strict=True):
                waiting[number] = one
        decoded: list[Decoded | None] = []
        for prompt, one in zip(prompts, _results(waiting), strict=True):
            outputs = one.sequences_ids
            if not self._may_write(outputs, limit):
                decoded.append(None)
                continue
            read = self.score([[*prompt, *ids] for ids in outputs]) if with_log_probs else None
            log_probs = read and [own[len(prompt) - 1 :] for own in read]
            decoded.append(self._decoded(outputs, one.scores, log_probs, config))
        return decoded

    def stream(self, prompt: Ids, *, limit: int, config: DecodingConfig, seed: int = 1) -> Iterator[int]:
        """Go on from one prompt, by the likeliest token each time or by one that is drawn, and yield each when written."""
        drawing: dict[str, Any] = {}
        library = self.open(1)
        if config.sample and config.temperature >= COLD:
            library = self._seeded(seed)
            drawing = {
                "sampling_temperature": config.temperature,
                "sampling_topk": config.top_k,
                "sampling_topp": config.top_p,
            }
        never = [[self.names[id]] for id in sorted(self.never)]
        steps = library.generate_tokens(
            self._named(prompt), max_length=limit, min_length=config.min_length, suppress_sequences=never, **drawing
        )
        for step in steps:
            yield step.token_id

    def _seeded(self, seed: int) -> Any:
        """The library's object whose threads have drawn nothing: one draws from the seed that is set when it first does."""
        import ctranslate2

        ctranslate2.set_random_seed(int(numpy.random.SeedSequence((seed, 0, 0)).generate_state(1)[0]) >> 1)
        library = self._new(*self.settings.of(1)) if self._has_drawn else self.open(1)
        self._has_drawn = True
        return library

    def score(self, rows: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of rows but the first."""
        found = self.open(len(rows)).score_batch([self._named(ids) for ids in rows], max_input_length=LONGEST_INPUT)
        return [list(one.log_probs) for one in found]


class EncodingEngine(Engine):
    """An encoder-only model: it reads, and writes nothing.

    max_length: the most tokens that its positions reach, special tokens counted
    """

    library_class = "Encoder"
    compared = "states"

    def __init__(self, folder: Path, *, max_length: int, settings: EngineSettings) -> None:
        super().__init__(folder, settings=settings)
        self.max_length = max_length

    def encode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, T), padded behind, of (B,) lengths, to the last states (B, T, D); those of padding mean nothing."""
        library = self.open(len(ids))
        workers, _ = self.settings.of(len(ids))
        parts = ids.int().chunk(workers), lengths.int().chunk(workers)
        if len(parts[0]) == 1:
            return _states(library, ids.int(), lengths.int())
        with ThreadPoolExecutor(workers) as pool:  # the library's workers each wait for a thread of Python's that asks
            return torch.cat(list(pool.map(partial(_states, library), *parts)))


def _states(library: Any, ids: Tensor, lengths: Tensor) -> Tensor:
    """The last states (B, T, D) of ids (B, T)."""
    from ctranslate2 import DataType, StorageView

    found = library.forward_batch(*(StorageView.from_array(given.contiguous().numpy()) for given in (ids, lengths)))
    return torch.from_numpy(numpy.array(found.last_hidden_state.to(DataType.float32)))


def _results(waiting: Sequence[Any], progress: Progress | None = None) -> list[Any]:
    """What the library's workers give, in the order of the inputs."""
    found = []
    for one in waiting:
        found.append(one.result())
        if progress is not None:
            progress(len(found))
    return found


@contextmanager
def _kept_threads() -> Iterator[None]:
    """Keep torch's number of threads, which the library would set to its own."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
