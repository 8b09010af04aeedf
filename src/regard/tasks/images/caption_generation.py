"""From images to captions: searched for as translations are, and where in the image each word was read from.

One `Writer` serves one call: its model, its search settings and its rules.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.batches import run_in_batches
from regard.decoding.request import Request
from regard.decoding.rules import Banned
from regard.decoding.search import decode
from regard.errors import UsageError
from regard.parts.taps import recording
from regard.tasks.images.image_examples import ReadsImages
from regard.tasks.translation.alignment import words_of_ids

Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class WrittenCaption:
    """One caption: its text, its score, and its tokens with the log-probability of each."""

    text: str
    score: float
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Described:
    """What was written of an image: captions, the best first."""

    candidates: tuple[WrittenCaption, ...]

    @property
    def text(self) -> str:
        """The best candidate."""
        return self.candidates[0].text


@dataclass(frozen=True, kw_only=True, eq=False)
class Looking:
    """Where a model looked while it wrote each word: weights (words, rows, columns), of which each map sums to 1."""

    words: tuple[str, ...]
    weights: Weights


class Writer:
    """Writes captions under the settings of one call.

    scaled:      from bytes (B, H, W, C) to what the model reads
    max_length:  the most tokens before the end of a caption, unless the settings name another number
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        decoding: DecodingConfig,
        *,
        scaled: Callable[[Tensor], Tensor],
        max_length: int,
        seed: int = 1,
    ) -> None:
        self.tokenizer = tokenizer
        self.model = model
        self.decoding = decoding
        self.scaled = scaled
        self.device = next(model.parameters()).device
        own = getattr(model, "max_length", None) or sys.maxsize
        self.limit = min(decoding.max_length or 1 + max_length, own - 1)  # and the end token
        self.seed = seed

    def write(self, images: ReadsImages, *, progress: Callable[[int], None] | None = None) -> list[Described]:
        """Write a caption for each image, in their order."""
        with torch.inference_mode():
            return run_in_batches(
                [1] * len(images),
                lambda numbers: self._write(images, numbers),
                batch_size=self.decoding.batch_size,
                progress=progress,
            )

    def _write(self, images: ReadsImages, numbers: list[int]) -> list[Described]:
        """Write the captions of a batch; sampling is seeded by their numbers."""
        read = self.scaled(torch.from_numpy(images.images(numbers)).to(self.device))
        request = Request(
            prompt=self.tokenizer.start_id,
            end_id=self.tokenizer.end_id,
            limits=torch.full((len(numbers),), self.limit, device=self.device),
            rules=[Banned((self.tokenizer.pad_id, self.tokenizer.start_id))],
            seed=self.seed,
            keys=numbers,
        )
        found = decode(self.model, self.model.start(read), request, self.decoding)
        return [
            Described(
                candidates=tuple(
                    WrittenCaption(
                        text=self.tokenizer.decode(one.ids),
                        score=one.score,
                        ids=tuple(one.ids),
                        tokens=tuple(self.tokenizer.piece_text(id) for id in one.ids),
                        log_probs=one.log_probs,
                    )
                    for one in own.hypotheses
                )
            )
            for own in found
        ]


def look(model: Any, tokenizer: Tokenizer, image: Tensor, ids: Sequence[int]) -> Looking:
    """Return where a model looks in an image (C, H, W) while it writes the tokens of a caption, word by word.

    Averaged over the heads of the layer that the model names, and over the tokens of a word.
    """
    name = getattr(model, "alignment_tap", None)
    if name is None:
        raise UsageError("The model has no attention over the image.", "Choose one with model.attention, and train it.")
    target = torch.tensor([[tokenizer.start_id, *ids]], device=image.device)
    with recording(model, name) as record, torch.inference_mode():
        model.states(image[None], target)
    weights = torch.cat(record.calls(name), dim=2)[0].mean(0)[: len(ids)].float().cpu()  # (T, places)
    words = tokenizer.decode(ids).split()
    of_word = words_of_ids(tokenizer, ids)
    maps = [
        weights[[place for place, word in enumerate(of_word) if word == number]].mean(0).reshape(*model.grid)
        for number in range(len(words))
    ]
    return Looking(words=tuple(words), weights=torch.stack(maps).numpy() if maps else np.zeros((0, *model.grid), "f4"))
