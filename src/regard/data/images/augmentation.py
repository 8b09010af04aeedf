"""Data augmentation: images changed at random, so that no epoch shows the same: crop, horizontal flip, cutout, mixup.

Each is a function of a batch (B, C, H, W) and a generator, and works on the whole batch at once. Images are normalised
first: then 0, with which gaps are filled, is the mean colour. Knows no model and no file.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError


def crop(images: Tensor, generator: torch.Generator, *, padding: int) -> Tensor:
    """Move each image by up to `padding` pixels in any direction; what comes in is 0 (He et al. 2016, 4.2)."""
    B, _, H, W = images.shape
    padded = F.pad(images, (padding, padding, padding, padding))
    windows = padded.unfold(2, H, 1).unfold(3, W, 1)  # (B, C, rows to begin in, columns to begin in, H, W), a view
    rows, columns = torch.randint(0, 2 * padding + 1, (2, B), generator=generator).to(images.device)
    return windows[torch.arange(B, device=images.device), :, rows, columns]


def flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror every second image, by chance, left to right."""
    chosen = torch.rand(len(images), generator=generator).to(images.device) < 0.5
    return torch.where(chosen[:, None, None, None], images.flip(-1), images)


def cutout(images: Tensor, generator: torch.Generator, *, size: int) -> Tensor:
    """Put 0 into a square of each image, the centre of which may be any pixel (DeVries and Taylor 2017, 3.2)."""
    B, _, H, W = images.shape
    drawn = torch.rand(2, B, generator=generator)
    inside = []
    for centres, length in zip(drawn, (H, W), strict=True):
        first = (centres * length).long() - size // 2
        distance = torch.arange(length) - first[:, None]  # (B, length)
        inside.append((distance >= 0) & (distance < size))
    hidden = inside[0][:, None, :, None] & inside[1][:, None, None, :]  # (B, 1, H, W)
    return images.masked_fill(hidden.to(images.device), 0)


def mixup(
    images: Tensor, labels: Tensor, generator: torch.Generator, *, alpha: float, n_classes: int
) -> tuple[Tensor, Tensor]:
    """Mix each image with another of the batch, and their classes likewise (Zhang et al. 2018, section 2).

    labels (B,); the share of the first of two is drawn from Beta(alpha, alpha) for each pair.
    Returns the images and the share of each class, (B, n_classes).
    """
    B = len(images)
    partners = torch.randperm(B, generator=generator).to(images.device)
    # torch's own Beta takes no generator.
    seed = int(torch.randint(0, 2**62, (), generator=generator))
    drawn = np.random.default_rng(seed).beta(alpha, alpha, B).astype(np.float32)
    share = torch.from_numpy(drawn).to(images.device)
    by_image = share[:, None, None, None]
    targets = F.one_hot(labels, n_classes).float()
    by_class = share.to(targets.device)[:, None]
    mixed = torch.lerp(images[partners], images, by_image)
    return mixed, torch.lerp(targets[partners.to(targets.device)], targets, by_class)


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """What is done to the images of a batch, in this order; 0 leaves it out.

    crop:    by how many pixels an image is moved at most
    mirror:  whether images are mirrored, which letters and digits do not bear
    cutout:  the side of the square that is cut out
    mixup:   alpha of the distribution of shares
    """

    crop: int = 0
    mirror: bool = False
    cutout: int = 0
    mixup: float = 0.0

    def __post_init__(self) -> None:
        for name in ("crop", "cutout", "mixup"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ConfigError(f"Augmentation by {name} cannot be {value}.", "Give 0 or more.")

    def __call__(self, images: Tensor, labels: Tensor, *, n_classes: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return normalised images (B, C, H, W) changed, and their labels (B,), or shares (B, n_classes) after mixup.

        What is drawn is a function of the seed and of the sizes alone.
        """
        generator = torch.Generator().manual_seed(seed)
        images = self._changed(images, generator)
        if self.mixup:
            return mixup(images, labels, generator, alpha=self.mixup, n_classes=n_classes)
        return images, labels

    def changed(self, images: Tensor, *, seed: int) -> Tensor:
        """Return normalised images (B, C, H, W) that have no labels changed, each by itself."""
        return self._changed(images, torch.Generator().manual_seed(seed))

    def _changed(self, images: Tensor, generator: torch.Generator) -> Tensor:
        self.refuse_small(*images.shape[2:])
        if self.crop:
            images = crop(images, generator, padding=self.crop)
        if self.mirror:
            images = flip(images, generator)
        if self.cutout:
            images = cutout(images, generator, size=self.cutout)
        return images

    @property
    def changes(self) -> bool:
        """Whether anything is done at all."""
        return self != Augmentation()

    def refuse_small(self, height: int, width: int) -> None:
        """Refuse images of which nothing would be left."""
        for name, value in (("crop", self.crop), ("cutout", self.cutout)):
            if value >= min(height, width):
                raise ConfigError(
                    f"Augmentation by {name} {value} leaves nothing of images of {height} × {width} pixels.",
                    f"Give less than {min(height, width)}.",
                )

    def __str__(self) -> str:
        told = {
            f"moved by up to {self.crop} pixels": self.crop,
            "every second one mirrored": self.mirror,
            f"a square of {self.cutout} pixels cut out": self.cutout,
            f"mixed with another by Beta({self.mixup:g}, {self.mixup:g})": self.mixup,
        }
        return ", ".join(text for text, done in told.items() if done) or "none"
