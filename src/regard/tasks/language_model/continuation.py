"""From a prompt to text that goes on from it: searched for or drawn, token by token as it is written.

One `Generator` serves one call: its model, its search settings and its rules. The loss and the scores are the task's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.batches import run_in_batches
from regard.decoding.prompt import Prompt
from regard.decoding.protocol import Decoder
from regard.decoding.request import Request
from regard.decoding.result import DeadEndError, Hypothesis
from regard.decoding.rules import Banned, Rule
from regard.decoding.sampling import COLD
from regard.decoding.search import can_stream, decode, stream
from regard.decoding.sliding_context import Sliding
from regard.errors import UsageError
from regard.tasks.banned_words import banning

MAX_LENGTH = 256  # tokens written where nobody says how many


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """What was written behind a prompt: the text, its tokens, and the log-probability of each.

    finished: whether the model ended it; else the limit cut it off. The end token's log-probability is the last, then.
    """

    text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finished: bool


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A prompt, what of it the vocabulary does not know, and its continuations, the likeliest first."""

    prompt: str
    unknown: tuple[str, ...]
    continuations: tuple[Continuation, ...]

    @property
    def text(self) -> str:
        """The first continuation, without the prompt."""
        return self.continuations[0].text


def has_choice(decoding: DecodingConfig) -> bool:
    """Whether a prompt may be gone on from in several ways, and not only by the likeliest token each time."""
    if decoding.sample:
        return not (0 <= decoding.temperature < COLD or decoding.top_k == 1)
    return decoding.beam > 1


class TextGrowth:
    """Turns tokens that come one by one into text, whole characters only: their bytes may be spread over several tokens."""

    def __init__(self, tokenizer: Tokenizer, begun: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._ids = list(begun[-_MEMORY:])  # what is decoded again and again; spaces depend on what stands before
        self._shown = len(tokenizer.decode(self._ids))

    def add(self, id: int) -> str:
        """Take one more token; return what text is certain now."""
        self._ids.append(id)
        text = self._tokenizer.decode(self._ids)
        if text.endswith("\ufffd"):  # perhaps the rest of a character follows
            return ""
        new = text[self._shown :]
        if len(self._ids) > 2 * _MEMORY:
            del self._ids[:-_MEMORY]
            text = self._tokenizer.decode(self._ids)
        self._shown = len(text)
        return new

    def rest(self) -> str:
        """Return what is left at the end: bytes that became no character, as U+FFFD."""
        return self._tokenizer.decode(self._ids)[self._shown :]


_MEMORY = 16  # tokens that an added one is decoded with; more than the bytes of a character


class Generator:
    """Goes on from prompts, under the rules of one call; banned: words that are not written; seed: of sampling."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        decoding: DecodingConfig,
        *,
        banned: Sequence[str] = (),
        seed: int = 1,
    ) -> None:
        self.tokenizer = tokenizer
        self.decoding = decoding
        self.device = next(model.parameters()).device
        self.context: int | None = getattr(model, "context", getattr(model, "max_length", None))
        self.decoder: Decoder[Any] = model if self.context is None else Sliding(model, self.context, self.device)
        # What no training text holds must not be written either.
        never = (tokenizer.pad_id, tokenizer.start_id, tokenizer.unknown_id)
        self.rules: list[Rule] = [Banned(never), *banning(banned, tokenizer)]
        self.seed = seed

    def generate(self, prompts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> list[Generation]:
        """Go on from each prompt; an empty one begins a document."""
        if self.decoding.n_best > 1 and not has_choice(self.decoding):
            raise UsageError(
                f"{self.decoding.n_best} texts for each prompt are asked for, and without chance they would all be equal.",
                "Ask for one, draw at random with a temperature above 0 and no top_k of 1, or search with a beam of 2 or "
                "more.",
            )
        begun = [self._encode(prompt) for prompt in prompts]
        lengths = [len(row) for row in begun]

        def run(numbers: list[int]) -> list[tuple[Continuation, ...]]:
            try:
                return self.continuations([begun[number] for number in numbers], numbers)
            except DeadEndError as error:
                number = numbers[error.sentence]
                name = f"The text behind '{excerpt(prompts[number])}'"
                raise DeadEndError(sentence=number, position=error.position, name=name) from None

        found = run_in_batches(lengths, run, batch_size=self.decoding.batch_size, progress=progress)
        return [
            Generation(prompt=prompt, unknown=tuple(self.tokenizer.unknown(prompt)), continuations=own)
            for prompt, own in zip(prompts, found, strict=True)
        ]

    def continuations(
        self, rows: Sequence[Sequence[int]], numbers: Sequence[int] | None = None
    ) -> list[tuple[Continuation, ...]]:
        """Go on from ids, of which each row has at least one; sampling is seeded by the rows' numbers."""
        request = self._request(rows, range(len(rows)) if numbers is None else numbers)
        decoded = decode(self.decoder, self.decoder.start(len(rows)), request, self.decoding)
        return [
            tuple(self._continuation(begun, one) for one in found.hypotheses)
            for begun, found in zip(rows, decoded, strict=True)
        ]

    def stream(self, prompt: str) -> Iterator[str]:
        """Go on from one prompt, once, and yield the text as it is written, in pieces of whole characters."""
        if not can_stream(self.decoding):
            raise UsageError("A beam search cannot show its text before its end.", "Sample, or set the beam to 1.")
        return self._stream(self._encode(prompt))  # what is wrong with a prompt is told at once

    def _stream(self, begun: list[int]) -> Iterator[str]:
        growth = TextGrowth(self.tokenizer, begun)
        settings = replace(self.decoding, n_best=1)
        for written in stream(self.decoder, self.decoder.start(1), self._request([begun], [0]), settings):
            for one in written:
                if one.token != self.tokenizer.end_id and (text := growth.add(one.token)):
                    yield text
        if rest := growth.rest():
            yield rest

    def _encode(self, prompt: str) -> list[int]:
        """The ids of a prompt; the end token alone, which begins a document, if it is empty."""
        ids = self.tokenizer.encode(prompt) or [self.tokenizer.end_id]
        if self.context is not None and len(ids) > self.context:
            raise UsageError(
                f"The prompt '{excerpt(prompt)}' has {len(ids):,} tokens, and the model reads at most {self.context:,}.",
                "Shorten it: what it begins with would be forgotten anyway.",
            )
        return ids

    def _request(self, rows: Sequence[Sequence[int]], numbers: Sequence[int]) -> Request:
        """What a search needs to know beside its settings; sampling is seeded by the prompts' numbers."""
        length = self.decoding.max_length or MAX_LENGTH
        return Request(
            prompt=Prompt.of(rows, self.device, start_id=self.tokenizer.end_id),
            end_id=self.tokenizer.end_id,
            limits=torch.full((len(rows),), length, device=self.device),
            rules=self.rules,
            seed=self.seed,
            keys=numbers,
        )

    def _continuation(self, begun: Sequence[int], hypothesis: Hypothesis) -> Continuation:
        growth = TextGrowth(self.tokenizer, begun)
        text = "".join([*(growth.add(id) for id in hypothesis.ids), growth.rest()])
        return Continuation(
            text=text,
            tokens=tuple(self.tokenizer.piece_text(id) for id in hypothesis.ids),
            ids=hypothesis.ids,
            log_probs=hypothesis.log_probs,
            finished=hypothesis.finished,
        )
