"""Patch embedding, from an image to a sequence of vectors: square patches, a class token before them, learned positions.

"An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021, 3.1). A patch's pixels go through one linear layer, which is a
convolution as wide as its stride.
"""

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.convolution import check_image_size, check_images
from regard.parts.dropout import Dropout
from regard.parts.linear import Linear
from regard.parts.positions import Learned
from regard.parts.taps import tap


def cut_patches(images: Tensor, size: int) -> Tensor:
    """(B, C, H, W) to (B, P, C · size²): row by row from the top left; inside a patch channel, row, column."""
    n_images, n_channels, height, width = images.shape
    grid = images.reshape(n_images, n_channels, height // size, size, width // size, size)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(n_images, -1, n_channels * size * size)


def check_patches(image_size: int, patch_size: int) -> None:
    """Refuse patches that do not fill an image of so many pixels to the edge."""
    if image_size % patch_size:
        fitting = [size for size in range(1, image_size + 1) if image_size % size == 0]
        raise ConfigError(
            f"Images of {image_size} × {image_size} pixels cannot be cut into patches of {patch_size} × {patch_size}.",
            f"Choose model.patch_size among {', '.join(map(str, fitting))}, or scale the images.",
        )


class PatchEmbedding(nn.Module):
    """A class token and the patches of an image, with their positions."""

    def __init__(self, n_channels: int, image_size: int, patch_size: int, d_model: int, *, dropout: float) -> None:
        super().__init__()
        check_patches(image_size, patch_size)
        self.n_channels = n_channels
        self.image_size = image_size
        self.patch_size = patch_size
        self.n_patches = (image_size // patch_size) ** 2
        self.patches = Linear(n_channels * patch_size**2, d_model)
        self.class_token = nn.Parameter(torch.empty(1, d_model))
        self.positions = Learned(d_model, limit=1 + self.n_patches)
        self.dropout = Dropout(dropout)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to (B, 1 + P, D), the class token first."""
        check_images(images, self.n_channels)
        check_image_size(images, self.image_size)
        patches = tap(self, "patches", self.patches(cut_patches(images, self.patch_size)))  # (B, P, D)
        x = torch.cat([self.class_token.expand(len(images), 1, -1), patches], dim=1)
        x = x + tap(self, "positions", self.positions(torch.arange(x.shape[1], device=x.device)))
        embedded: Tensor = self.dropout(tap(self, "sum", x))
        return embedded
