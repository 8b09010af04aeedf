"""Batches of labelled images: as bytes, which are normalised where the model is.

Whatever is random about images is drawn when a batch is learned from, not when it is read: what reads ahead of the
updates draws nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.images.decoding import Pixels
from regard.data.images.storage import ImageSet
from regard.tasks.task import Indices


class ReadsImages(Protocol):
    """Whatever hands out pixels by number, (B, size, size, channels)."""

    def __len__(self) -> int: ...

    def images(self, indices: npt.ArrayLike, /) -> Pixels: ...


@dataclass(frozen=True)
class ImageBatch:
    """images: bytes (B, H, W, C) on the device; labels: (B,), where the processor is."""

    images: Tensor
    labels: Tensor


class BatchedImages:
    """Images in batches of nearly equal size: a last one of a few images would bend a batch norm's statistics."""

    def __init__(self, images: ImageSet, *, batch_images: int, seed: int) -> None:
        self.images = images
        self.batch_images = batch_images
        self.seed = seed

    def __len__(self) -> int:
        return len(self.images)

    def order(self, epoch: int) -> list[Indices]:
        return shuffled(len(self), self.batch_images, seed=self.seed, epoch=epoch)

    def fixed_order(self) -> list[Indices]:
        return in_order(len(self), self.batch_images)

    def size(self, indices: Indices) -> int:
        return len(indices)

    def places(self, indices: Indices) -> list[str]:
        return self.images.places(indices)


class ImageExamples(BatchedImages):
    """Labelled images."""

    def batch(self, indices: Indices, device: torch.device) -> ImageBatch:
        images = torch.from_numpy(self.images.images(indices)).to(device, non_blocking=True)
        return ImageBatch(images, torch.from_numpy(self.images.classes[indices]))


def shuffled(n: int, size: int, *, seed: int, epoch: int) -> list[Indices]:
    """Return the batches of an epoch, at random: a function of the arguments alone."""
    return _parts(np.random.default_rng([seed, epoch]).permutation(n), size)


def in_order(n: int, size: int) -> list[Indices]:
    """Return the batches of all examples as they come."""
    return _parts(np.arange(n), size)


def _parts(order: Indices, size: int) -> list[Indices]:
    """Cut an order into as few parts of at most `size` as there can be, none larger than another by more than one."""
    return np.array_split(order, -(-len(order) // size)) if len(order) else []


class ImageList:
    """Images in memory, as those that somebody names."""

    def __init__(self, images: Sequence[Pixels]) -> None:
        self.kept = images

    def __len__(self) -> int:
        return len(self.kept)

    def images(self, indices: npt.ArrayLike, /) -> Pixels:
        return np.stack([self.kept[index] for index in np.asarray(indices).tolist()])
