"""Batches of captions: so many images, each with all its captions, so that an image is read once for all of them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.captions.storage import CaptionSet
from regard.data.images.decoding import Pixels
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.batches import pad
from regard.tasks.images.image_examples import BatchedImages
from regard.tasks.task import Indices


@dataclass(frozen=True)
class CaptionBatch:
    """images: bytes (I, H, W, C); target: ids (B, 1 + T) from the start token, padded behind, of `lengths` (B,) and an end.

    image_of: (B,), which image each caption belongs to.
    """

    images: Tensor
    target: Tensor
    lengths: Tensor
    image_of: Tensor

    def teacher_forced(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens (B, T) that a model reads, those that it is to predict, and the mask (B, T) without padding."""
        read, written = self.target[:, :-1], self.target[:, 1:]
        return read, written, torch.arange(written.shape[1], device=written.device) < self.lengths[:, None]


class CaptionExamples(BatchedImages):
    """Images with their captions; an example is an image."""

    def __init__(self, captions: CaptionSet, tokenizer: Tokenizer, *, batch_images: int, seed: int) -> None:
        super().__init__(captions.image_set, batch_images=batch_images, seed=seed)
        self.captions = captions
        self.tokenizer = tokenizer

    def batch(self, indices: Indices, device: torch.device) -> CaptionBatch:
        rows = [self.captions.rows_of(image) for image in indices.tolist()]
        captions = [self.captions.ids[row] for own in rows for row in own]
        image_of = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
        lengths = np.array([len(ids) + 1 for ids in captions], np.int64)  # the end token counted
        tokenizer = self.tokenizer
        target = pad(captions, tokenizer.pad_id, start=tokenizer.start_id, end=tokenizer.end_id)
        images = self.images.images(indices)
        return CaptionBatch(*(torch.from_numpy(array).to(device) for array in (images, target, lengths, image_of)))

    def inputs(self, indices: Indices) -> list[Pixels]:
        """Some images, as they are given to be captioned."""
        return list(self.images.images(indices))

    def references(self, indices: Indices | int) -> list[list[str]]:
        """Return the captions of some images, or of the first so many, as lists of references: the first of each image, …

        Of an image with fewer captions than another, the last one stands again, which changes no score.
        """
        wanted = np.arange(indices) if isinstance(indices, int) else indices
        own = [self.captions.captions_of(image) for image in wanted.tolist()]
        most = max(map(len, own), default=0)
        return [[captions[min(number, len(captions) - 1)] for captions in own] for number in range(most)]
