"""From images to captions: searched for as translations are; and attention maps, where in the image each word was read.

The loss and the scores are the task's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.parts.taps import recording
from regard.tasks.generation import Generator, Output, in_batches, longest_output
from regard.tasks.images.image_examples import ReadsImages
from regard.tasks.offers import alignment_tap
from regard.tasks.options import Count, GenerationOptions
from regard.tasks.results import Result, one_line
from regard.tasks.translation.alignment import words_of_ids


@dataclass(frozen=True, kw_only=True)
class CaptionOptions(GenerationOptions):
    """How a captioner is used.

    metrics, tokenize, lowercase:  how captions are scored: see `regard.evaluation.generated_text`
    skip_unreadable:               of an image that cannot be read, return a result that names the problem; else it is an
                                   error
    """

    metrics: tuple[str, ...] = ("bleu", "chrf")
    tokenize: str = "13a"
    lowercase: bool = False
    skip_unreadable: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class Caption(Result):
    """The captions of an image, best first; or the problem for which it could not be read."""

    image: str
    outputs: tuple[Output, ...] = ()
    problem: str = ""

    @property
    def text(self) -> str:
        """The best caption."""
        return self.outputs[0].text if self.outputs else ""

    def lines(self, *, top: int = 0) -> list[str]:
        name, several = one_line(self.image), len(self.outputs) > 1
        return [
            "\t".join([name, *([f"{output.score:.4f}"] if several else []), one_line(output.text)])
            for output in self.outputs
        ]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        if self.problem:
            return {"image": self.image, "problem": self.problem}
        return {"image": self.image, "caption": self.text, "score": self.outputs[0].score}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        if self.problem:
            return {"image": self.image, "problem": self.problem}
        candidates = [output.to_json() for output in self.outputs]
        return {"image": self.image, "caption": self.text, "candidates": candidates}


def generate_captions(
    generator: Generator,
    images: ReadsImages,
    names: Sequence[str],
    *,
    normalise: Callable[[Tensor], Tensor],
    max_length: int,
    progress: Count | None = None,
) -> list[Caption]:
    """Write captions for the first images, as many as there are names, in their order.

    normalise:   from bytes (B, H, W, C) to what the model reads
    max_length:  the most tokens before the end of a caption, unless the search settings name another number
    """
    limit = caption_limit(generator, max_length)

    def write(numbers: list[int]) -> list[Caption]:
        """Write the captions of a batch; sampling is seeded by their numbers."""
        read = normalise(torch.from_numpy(images.images(numbers)).to(generator.device))
        limits = torch.full((len(numbers),), limit, device=generator.device)
        decoded = generator.decode(read, limits, keys=numbers)
        return [
            Caption(image=names[number], outputs=tuple(map(generator.output, own.hypotheses)))
            for number, own in zip(numbers, decoded, strict=True)
        ]

    return in_batches(
        [1] * len(names),
        write,
        batch_size=generator.decoding.batch_size,
        name=lambda number: f"The caption of {names[number]}",
        progress=progress,
    )


def caption_limit(generator: Generator, max_length: int) -> int:
    """The most tokens of a caption, the end token counted; `max_length` as for `generate_captions`."""
    return min(generator.decoding.max_length or 1 + max_length, longest_output([generator.decoder]))


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMaps:
    """Where a model attended while it wrote each word, or in each layer: weights (words, rows, columns)."""

    words: tuple[str, ...]
    weights: npt.NDArray[np.float32]


def attention_maps(model: Any, tokenizer: Tokenizer, image: Tensor, ids: Sequence[int]) -> AttentionMaps:
    """Return where a model attends to in an image (C, H, W) while it writes the tokens of a caption, word by word.

    Averaged over the heads of the layer that the model names, and over the tokens of a word.
    """
    name = alignment_tap(model)
    if name is None:
        raise UsageError("The model has no attention over the image.", "Choose one with model.attention, and train it.")
    target = torch.tensor([[tokenizer.start_id, *ids]], device=image.device)
    with recording(model, name) as record, torch.inference_mode():
        model.states(image[None], target)
    weights = torch.cat(record.calls(name), dim=2)[0].mean(0)[: len(ids)].float().cpu()  # (T, P)
    words = tokenizer.decode(ids).split()
    word_of_id = words_of_ids(tokenizer, ids)
    maps = [
        weights[[position for position, word in enumerate(word_of_id) if word == number]].mean(0)
        for number in range(len(words))
    ]
    grids = torch.stack(maps).numpy() if maps else np.zeros((0, 0), np.float32)
    return AttentionMaps(words=tuple(words), weights=grids.reshape(len(words), *model.grid))
