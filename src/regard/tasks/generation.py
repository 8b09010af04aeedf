"""Generation: one `Generator` over the search, and one class for what is generated: translations, captions, continuations.

A generator serves one call: a tokenizer, a decoder, the search settings and the rules. What is read first, and how long an
output may be, is each task's own.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import DecodingConfig
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.batches import run_in_batches
from regard.decoding.prompt import Prompt
from regard.decoding.protocol import Decoder
from regard.decoding.request import Request
from regard.decoding.result import DeadEndError, Decoded, Hypothesis
from regard.decoding.rules import Banned, ForcedPrefix, KnownTokens, Rule
from regard.decoding.search import WatchedSearch, decode, stream, watch
from regard.errors import UsageError
from regard.evaluation.alignment import Link
from regard.evaluation.alignment import as_json as links_to_json
from regard.tasks.banned_words import banning
from regard.tasks.offers import device_of, max_length
from regard.tasks.options import Count, GenerationOptions


@dataclass(frozen=True, kw_only=True)
class Output:
    """One generated text: its score, its tokens with their log-probabilities, and which words it was read from, if asked.

    finished: whether the model ended it; else the limit cut it off. The end token's log-probability is the last, then.
    """

    text: str
    score: float
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]
    finished: bool = True
    alignment: tuple[Link, ...] | None = None

    def written(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """All tokens that the model wrote: the end token too, if it ended the text."""
        return (*self.ids, tokenizer.end_id) if self.finished else self.ids

    def to_json(self) -> dict[str, Any]:
        """All that is known, as data that `json.dumps` takes."""
        facts = {name: getattr(self, name) for name in ("text", "score", "finished", "tokens", "log_probs")}
        return facts if self.alignment is None else {**facts, "alignment": links_to_json(self.alignment)}


class Generator:
    """Generates text with one model (or an ensemble, as a decoder), under the rules of one call.

    network:  the model, or one of the ensemble's
    never:    tokens that no training text holds, and so must not be written either; by default padding and start
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        decoder: Decoder[Any],
        decoding: DecodingConfig,
        options: GenerationOptions,
        *,
        network: nn.Module,
        never: Sequence[int] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.decoder = decoder
        self.decoding = decoding
        self.network = network
        self.never = never
        self.banned = options.banned
        self.seed = options.seed
        self.n_before = options.n_before or 0

    # What another engine that searches needs nothing of is made when our own search does.

    @cached_property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.network)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """What must not be written."""
        never = self.tokenizer.unwritten() if self.never is None else tuple(self.never)
        return Banned(never), KnownTokens(self.tokenizer.n_tokens), *banning(self.banned, self.tokenizer)

    def decode(
        self,
        inputs: Any,
        limits: Tensor,
        *,
        prompt: Prompt | None = None,
        rules: Sequence[Rule] = (),
        keys: Sequence[int] | None = None,
    ) -> list[Decoded]:
        """Search for the outputs of N inputs, as the decoder's `start` takes them.

        limits:  (N,), the most tokens of each, the end token counted
        prompt:  what each begins with; by default the start token
        rules:   beside those of the generator and of its settings
        keys:    a number per input that its random draws depend on
        """
        request = self._request(limits, prompt, rules, keys)
        return decode(self.decoder, self.decoder.start(inputs), request, self.decoding)

    def watch(
        self,
        inputs: Any,
        limit: int,
        beginning: Sequence[int],
        *,
        prompt: Prompt | None = None,
        rules: Sequence[Rule] = (),
    ) -> WatchedSearch:
        """Search for the outputs of one input and keep what happens at each step, behind a given beginning of the output."""
        refuse_beginning(beginning, n_tokens=self.tokenizer.n_tokens, limit=limit, end_id=self.tokenizer.end_id)
        limits = torch.tensor([limit], device=self.device)
        forced = [ForcedPrefix([list(beginning)])] if beginning else []
        request = self._request(limits, prompt, (*rules, *forced), [0])
        return watch(self.decoder, self.decoder.start(inputs), request, self.decoding)

    def stream(self, inputs: Any, limits: Tensor, *, prompt: Prompt | None = None) -> Iterator[int]:
        """Search for one output, and yield its tokens as they are written; greedy search and sampling only."""
        request = self._request(limits, prompt, (), [0])
        settings = replace(self.decoding, n_best=1)
        for written in stream(self.decoder, self.decoder.start(inputs), request, settings):
            yield from (one.token for one in written)

    def _request(
        self, limits: Tensor, prompt: Prompt | None, rules: Sequence[Rule], keys: Sequence[int] | None
    ) -> Request:
        return Request(
            prompt=self.tokenizer.start_id if prompt is None else prompt,
            end_id=self.tokenizer.end_id,
            limits=limits,
            rules=(*self.rules, *rules),
            seed=self.seed,
            keys=None if keys is None else [self.n_before + key for key in keys],
            # Limits that nobody asked for are generous, and most outputs end far before them.
            usual_share=1.0 if self.decoding.max_length else 0.5,
        )

    def target_prompt(self, n_inputs: int) -> Prompt | None:
        """What targets begin with that have something in front of every text, behind the start token; None for others."""
        start, prefix = self.tokenizer.start_id, self.tokenizer.prefix
        return Prompt.of([[start, *prefix]] * n_inputs, self.device, start_id=start) if prefix else None

    def output(self, hypothesis: Hypothesis, *, text: str | None = None) -> Output:
        """What is told of a hypothesis; `text` where it is not simply what its tokens decode to."""
        return Output(
            text=self.tokenizer.decode(hypothesis.ids) if text is None else text,
            score=hypothesis.score,
            ids=hypothesis.ids,
            tokens=tuple(map(self.tokenizer.piece_text, hypothesis.ids)),
            log_probs=hypothesis.log_probs,
            finished=hypothesis.finished,
        )


def refuse_beginning(beginning: Sequence[int], *, n_tokens: int, limit: int, end_id: int) -> None:
    """Refuse tokens that no output can begin with."""
    for id in beginning:
        if not 0 <= id < n_tokens:
            raise UsageError(
                f"There is no token {id} to begin with.", f"The vocabulary has the tokens 0 to {n_tokens - 1}."
            )
    if end_id in beginning[:-1]:
        raise UsageError(
            "Something is to follow the end token, which ends an output.", "Leave it out, or what follows it."
        )
    if len(beginning) > limit:
        raise UsageError(
            f"The output is to begin with {len(beginning):,} tokens, and has at most {limit:,}.",
            "Begin with fewer, or allow more: --max-length",
        )


def longest_output(models: Sequence[object]) -> int:
    """The most tokens that models can write: the start or the end token needs a position too."""
    limits = [limit for limit in map(max_length, models) if limit]
    return min(limits, default=sys.maxsize) - 1


def in_batches(
    lengths: Sequence[int],
    generate: Callable[[list[int]], list[Any]],
    *,
    batch_size: int,
    name: Callable[[int], str],
    progress: Count | None = None,
) -> list[Any]:
    """Generate for inputs of like lengths together, and return what comes of each in their order.

    generate:  from the numbers of some inputs to what is generated for each
    name:      what to call an input for which nothing can be written, in the error that says so
    """

    def run(numbers: list[int]) -> list[Any]:
        try:
            return generate(numbers)
        except DeadEndError as error:
            number = numbers[error.sentence]
            raise DeadEndError(sentence=number, position=error.position, name=name(number)) from None

    with torch.inference_mode():
        return run_in_batches(lengths, run, batch_size=batch_size, progress=progress)
