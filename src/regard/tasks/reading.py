"""A reading: one input as a model reads it, and what it wrote, such that the pass can be repeated and looked into.

What an input becomes, and what was written of it, is each task's own (`reading`). The inspector asks for nothing else:
who stands at each position, one forward pass over all of it, and the same once more by cached decoding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.text.tokenizer import Tokenizer
from regard.decoding.prompt import Prompt
from regard.decoding.result import Decoded
from regard.decoding.rules import Rule
from regard.decoding.search import WatchedSearch
from regard.tasks.generation import Generator
from regard.tasks.results import Result

Span = tuple[int, int]
START, END = "(start)", "(end)"  # as labels of the tokens


@dataclass(frozen=True, kw_only=True)
class Positions:
    """What stands at the positions of an axis: the tokens of a text, or the patches of an image.

    name:    of the axis: source, target, token, vector or patch
    labels:  each as people read it
    ids:     of tokens; none for patches and vectors
    text:    what the tokens are of
    spans:   where each token stands in the text; an empty span for what is not in it, as special tokens
    words:   which word of the text each token belongs to; None for special tokens
    grid:    rows and columns of patches, which are the last of the positions, row by row
    """

    name: str
    labels: tuple[str, ...]
    ids: tuple[int, ...] = ()
    text: str = ""
    spans: tuple[Span, ...] = ()
    words: tuple[int | None, ...] = ()
    grid: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """One input of a model, in a batch of its own.

    forward:  one pass over all of it, to the logits
    places:   what stands at the positions of a part of the model, by the beginning of its path; the first that fits
    memory:   what a decoder attends to, where it attends to something else than itself
    writes:   the token that is written at each position of a decoder, and
    n_given:  how many of the first of them were given, not written: a prompt
    cached:   the logits (N, V) of the same by cached decoding, in pieces that end at N given positions; None where nothing
              is decoded
    watch:    the beam search for an output, watched, behind a given beginning of it; None where nothing is decoded
    result:   what the task makes of hypotheses that such a search found
    beginning:  what of the output was forced
    outputs:  what the numbers of the logits stand for
    causal:   whether no position of the last axis sees a later one
    image:    the pixels (H, W, C) that were read
    """

    forward: Callable[[], Tensor]
    places: tuple[tuple[str, Positions], ...]
    outputs: Callable[[int], str]
    memory: Positions | None = None
    writes: tuple[int, ...] = ()
    n_given: int = 0
    cached: Callable[[Sequence[int]], Tensor] | None = None
    watch: Callable[[Sequence[int]], WatchedSearch] | None = None
    result: Callable[[Decoded], Result] | None = None
    beginning: tuple[int, ...] = ()
    causal: bool = False
    image: npt.NDArray[np.uint8] | None = field(default=None, repr=False)

    @property
    def own(self) -> Positions:
        """The positions of the logits: of a decoder, what it reads."""
        return self.places[-1][1]

    def at(self, path: str) -> Positions:
        """What stands at the positions of a part of the model."""
        return next(positions for start, positions in self.places if path.startswith(start))

    def written(self, position: int) -> str:
        """What is written at a position, as people read it; empty where nothing is."""
        return self.outputs(self.writes[position]) if position < len(self.writes) else ""


def token_label(tokenizer: Tokenizer, id: int) -> str:
    """A token as people read it; its number where the model has more outputs than the vocabulary tokens."""
    if id >= tokenizer.n_tokens:
        return f"#{id}"
    return {tokenizer.start_id: START, tokenizer.end_id: END}.get(id) or tokenizer.piece_text(id)


def read_positions(tokenizer: Tokenizer, ids: Sequence[int], text: str, *, name: str) -> Positions:
    """The positions of ids of which those of a text are a part, between special tokens; else they have no spans."""
    [(own, spans)] = tokenizer.spans_batch([text])
    words = tokenizer.words(text)
    begin = _place(ids, own)
    if begin is None:
        return Positions(name=name, labels=tuple(token_label(tokenizer, id) for id in ids), ids=tuple(ids), text=text)
    behind = len(ids) - begin - len(own)
    nothing: tuple[Span, ...] = ((0, 0),)
    return Positions(
        name=name,
        labels=tuple(token_label(tokenizer, id) for id in ids),
        ids=tuple(ids),
        text=text,
        spans=(*nothing * begin, *spans, *nothing * behind),
        words=(*(None,) * begin, *(word if word >= 0 else None for word in words), *(None,) * behind),
    )


def _place(ids: Sequence[int], own: Sequence[int]) -> int | None:
    """Where the ids of a text begin among others."""
    places = range(len(ids) - len(own) + 1)
    return next((place for place in places if list(ids[place : place + len(own)]) == list(own)), None)


def written_positions(
    tokenizer: Tokenizer, ids: Sequence[int], *, name: str, n_before: int = 0, words: Sequence[int | None] = ()
) -> Positions:
    """The positions of ids that a model wrote, behind `n_before` special ones; spans are those in the text they decode to.

    The bytes of a character may be spread over several tokens: the last of them has it.
    """
    ends = [len(tokenizer.decode(ids[n_before : end + 1]).rstrip("�")) for end in range(n_before, len(ids))]
    ends = [max(ends[: place + 1]) for place in range(len(ends))]
    spans = [*((0, 0),) * n_before, *zip([0, *ends][: len(ends)], ends, strict=True)]
    return Positions(
        name=name,
        labels=tuple(token_label(tokenizer, id) for id in ids),
        ids=tuple(ids),
        text=tokenizer.decode(ids[n_before:]),
        spans=tuple(spans),
        words=(*(None,) * n_before, *words) if words else (),
    )


def patch_positions(grid: tuple[int, int], *, with_class: bool = False) -> Positions:
    """The positions of an image's patches, row by row; a class token in front of them, if there is one."""
    rows, columns = grid
    patches = tuple(f"{row},{column}" for row in range(rows) for column in range(columns))
    return Positions(name="patch", labels=("(class)", *patches) if with_class else patches, grid=grid)


def image_positions(model: object) -> Positions:
    """The positions of what reads an image: patches behind a class token, or none where convolutions slide over it."""
    grid: tuple[int, int] | None = getattr(model, "grid", None)
    return Positions(name="place", labels=()) if grid is None else patch_positions(grid, with_class=True)


@torch.inference_mode()
def step_by_step(model: Any, inputs: Any, ids: Sequence[int], device: torch.device, ends: Sequence[int]) -> Tensor:
    """The logits (N, V) at N positions of some tokens, which are read piece by piece, behind the KV cache of those before.

    ends: the positions at which pieces end, in order; of all positions, each token is read alone
    """
    state, found = model.start(inputs), []
    for begin, end in pairwise((-1, *ends)):
        logits, state = model.step(state, torch.tensor([ids[begin + 1 : end + 1]], device=device))
        found.append(logits[0])
    return torch.stack(found)


def decoder_reading(
    model: Any,
    generator: Generator,
    written: Sequence[int],
    *,
    forward: Callable[[Tensor], Tensor],
    inputs: Any,
    limit: int,
    result: Callable[[Decoded], Result],
    source: tuple[tuple[str, Positions], ...],
    memory: Positions,
    searched: Any = None,
    rules: Sequence[Rule] = (),
    words: Sequence[int | None] = (),
    image: npt.NDArray[np.uint8] | None = None,
) -> Reading:
    """The reading of a decoder that wrote tokens, the end token among them, from a memory.

    forward:        from target ids (1, T), as a decoder reads them, to logits
    inputs, limit:  as the decoder's `start` takes them, and the most tokens of an output
    searched:       the same inputs as the generator's decoder takes them, where that is another than the model: an ensemble
    result:         what the task makes of hypotheses
    source:         the places of what the memory is made of
    words:          which word each written token belongs to
    """
    tokenizer, device = generator.tokenizer, generator.device
    begun: list[int] = [tokenizer.start_id, *tokenizer.prefix]
    reads = [*begun, *written[:-1]]
    target = torch.tensor([reads], device=device)
    own = written_positions(tokenizer, reads, name="target", n_before=len(begun), words=words[: len(written) - 1])
    prompt: Prompt | None = generator.target_prompt(1)
    return Reading(
        forward=lambda: forward(target),
        places=(*source, ("", own)),
        outputs=partial(token_label, tokenizer),
        memory=memory,
        writes=(*tokenizer.prefix, *written),
        n_given=len(tokenizer.prefix),
        cached=lambda ends: step_by_step(model, inputs, reads, device, ends),
        watch=lambda beginning: generator.watch(
            inputs if searched is None else searched, limit, beginning, prompt=prompt, rules=rules
        ),
        result=result,
        causal=True,
        image=image,
    )
