"""From a prompt to its continuation: searched for or drawn, token by token as it is written.

One `Continuer` serves one call: its model, its search settings and its rules. The loss and the scores are the task's.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.engine.generation_engine import GenerationEngine
from regard.decoding.prompt import Prompt
from regard.decoding.protocol import Decoder
from regard.decoding.result import Decoded, Hypothesis
from regard.decoding.sampling import COLD
from regard.decoding.search import WatchedSearch, can_stream
from regard.decoding.sliding_context import Sliding
from regard.errors import UsageError
from regard.tasks.generation import Generator, Output, in_batches
from regard.tasks.offers import context_length, device_of
from regard.tasks.options import Count, GenerationOptions
from regard.tasks.results import Result, one_line

MAX_LENGTH = 256  # tokens written where nobody says how many


@dataclass(frozen=True, kw_only=True, repr=False)
class Continuation(Result):
    """A prompt, what of it the vocabulary does not know, and its continuations, the likeliest first."""

    prompt: str
    unknown: tuple[str, ...]
    outputs: tuple[Output, ...]

    @property
    def text(self) -> str:
        """The first continuation, without the prompt."""
        return self.outputs[0].text

    def lines(self, *, top: int = 0) -> list[str]:
        return [one_line(self.prompt + output.text) for output in self.outputs]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"prompt": self.prompt, "text": self.text}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        return {"prompt": self.prompt, "unknown": self.unknown, "continuations": list(map(_to_json, self.outputs))}


def _to_json(output: Output) -> dict[str, Any]:
    tokens = [
        {"text": text, "id": id, "probability": math.exp(log_prob)}
        for text, id, log_prob in zip(output.tokens, output.ids, output.log_probs, strict=False)
    ]
    # The end token has a probability too, and no text.
    end = {"end_probability": math.exp(output.log_probs[-1])} if output.finished else {}
    return {"text": output.text, "finished": output.finished, **end, "tokens": tokens}


def has_choice(decoding: DecodingConfig) -> bool:
    """Whether a prompt may be gone on from in several ways, and not only by the likeliest token each time."""
    if decoding.sample:
        return not (0 <= decoding.temperature < COLD or decoding.top_k == 1)
    return decoding.beam > 1


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The ids of a prompt behind what stands in front of every text; an empty one is what begins a document."""
    ids = tokenizer.encode(prompt)
    return [*tokenizer.prefix, *ids] if ids else list(tokenizer.opening)


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


class Continuer:
    """Goes on from prompts, under the rules of one call."""

    def __init__(self, tokenizer: Tokenizer, model: Any, decoding: DecodingConfig, options: GenerationOptions) -> None:
        self.tokenizer = tokenizer
        self.decoding = decoding
        self.device = device_of(model)
        self.context = context_length(model)
        decoder: Decoder[Any] = model if self.context is None else Sliding(model, self.context, self.device)
        # What no training text holds must not be written either.
        never = tokenizer.unwritten(unknown=True)
        self.generator = Generator(tokenizer, decoder, decoding, options, network=model, never=never)
        self.options = options

    def unsupported(self, rows: Sequence[Sequence[int]], *, alone: bool) -> str:
        """Why another engine cannot go on from these ids, alone in their call or not, as our own search does."""
        engine: GenerationEngine = self.options.engine
        limit = self.decoding.max_length or MAX_LENGTH
        if self.context is not None and max(map(len, rows), default=0) + limit > self.context:
            return "a text beyond the model's context"
        options = self.options
        return engine.unsupported(self.decoding, banned=bool(options.banned), alone=alone, log_probs=options.log_probs)

    def generate(self, prompts: Sequence[str], *, progress: Count | None = None) -> list[Continuation]:
        """Go on from each prompt; an empty one begins a document."""
        if self.decoding.n_best > 1 and not has_choice(self.decoding):
            raise UsageError(
                f"{self.decoding.n_best} texts for each prompt are asked for, and without chance they would all be equal.",
                "Ask for one, draw at random with a temperature above 0 and no top_k of 1, or search with a beam of 2 or "
                "more.",
            )
        begun = [self._encode(prompt) for prompt in prompts]
        alone = len(prompts) == 1 and self.options.n_before is None
        found = in_batches(
            [len(row) for row in begun],
            lambda numbers: self.continuations([begun[number] for number in numbers], numbers, alone=alone),
            batch_size=self.decoding.batch_size,
            name=lambda number: f"The text behind '{excerpt(prompts[number])}'",
            progress=progress,
        )
        return [
            Continuation(prompt=prompt, unknown=tuple(self.tokenizer.unknown(prompt)), outputs=own)
            for prompt, own in zip(prompts, found, strict=True)
        ]

    def continuations(
        self, rows: Sequence[Sequence[int]], numbers: Sequence[int] | None = None, *, alone: bool = False
    ) -> list[tuple[Output, ...]]:
        """Go on from ids, of which each row has at least one; sampling is seeded by the rows' numbers."""
        keys = range(len(rows)) if numbers is None else list(numbers)
        decoded = self._by_engine(rows, alone=alone)
        if left := [place for place, one in enumerate(decoded) if one is None]:
            own = [rows[place] for place in left]
            searched = self.generator.decode(
                len(own), self._limits(own), prompt=self._prompt(own), keys=[keys[place] for place in left]
            )
            for place, one in zip(left, searched, strict=True):
                decoded[place] = one
        return [
            tuple(self._output(begun, one) for one in found.hypotheses)
            for begun, found in zip(rows, decoded, strict=True)
            if found is not None
        ]

    def _by_engine(self, rows: Sequence[Sequence[int]], *, alone: bool) -> list[Decoded | None]:
        """What another engine makes of each row; None for what our own search is to do, as all without one."""
        engine, options = self.options.engine, self.options
        if not isinstance(engine, GenerationEngine) or self.unsupported(rows, alone=alone):
            return [None] * len(rows)
        return engine.generate(
            rows,
            limit=self.decoding.max_length or MAX_LENGTH,
            config=self.decoding,
            seed=options.seed,
            with_log_probs=options.log_probs,
        )

    def stream(self, prompt: str) -> Iterator[str]:
        """Go on from one prompt, once, and yield the text as it is written, in pieces of whole characters."""
        if not can_stream(self.decoding):
            raise UsageError("A beam search cannot show its text before its end.", "Sample, or set the beam to 1.")
        return self._stream(self._encode(prompt))  # what is wrong with a prompt is told at once

    def watch(self, prompt: str, beginning: Sequence[int]) -> WatchedSearch:
        """Search for what follows a prompt, behind a given beginning of it, and keep what happens at each step."""
        begun = self._encode(prompt)
        limit = int(self._limits([begun])[0])
        return self.generator.watch(1, limit, beginning, prompt=self._prompt([begun]))

    def continuation(self, prompt: str, decoded: Decoded) -> Continuation:
        """What is told of hypotheses that follow a prompt."""
        outputs = tuple(self._output(self._encode(prompt), one) for one in decoded.hypotheses)
        return Continuation(prompt=prompt, unknown=tuple(self.tokenizer.unknown(prompt)), outputs=outputs)

    def _stream(self, begun: list[int]) -> Iterator[str]:
        growth = TextGrowth(self.tokenizer, begun)
        for token in self._tokens(begun):
            if token != self.tokenizer.end_id and (text := growth.add(token)):
                yield text
        if rest := growth.rest():
            yield rest

    def _tokens(self, begun: list[int]) -> Iterator[int]:
        """The tokens that follow, one by one, by another engine if it can."""
        engine = self.options.engine
        if isinstance(engine, GenerationEngine) and not self.unsupported([begun], alone=True):
            limit = self.decoding.max_length or MAX_LENGTH
            return engine.stream(begun, limit=limit, config=self.decoding, seed=self.options.seed)
        return self.generator.stream(1, self._limits([begun]), prompt=self._prompt([begun]))

    def _encode(self, prompt: str) -> list[int]:
        """The ids of a prompt."""
        ids = prompt_ids(self.tokenizer, prompt)
        if self.context is not None and len(ids) > self.context:
            raise UsageError(
                f"The prompt '{excerpt(prompt)}' has {len(ids):,} tokens, and the model reads at most {self.context:,}.",
                "Shorten it: what it begins with would be forgotten anyway.",
            )
        return ids

    def _prompt(self, rows: Sequence[Sequence[int]]) -> Prompt:
        return Prompt.of(rows, self.device, start_id=self.tokenizer.opening[0])

    def _limits(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.full((len(rows),), self.decoding.max_length or MAX_LENGTH, device=self.device)

    def _output(self, begun: Sequence[int], hypothesis: Hypothesis) -> Output:
        before = list(begun[-_MEMORY:])
        text = self.tokenizer.decode([*before, *hypothesis.ids])[len(self.tokenizer.decode(before)) :]
        return self.generator.output(hypothesis, text=text)
