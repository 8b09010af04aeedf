"""Preprocessing of images: decoded, fitted to one shape, normalised by channel; and what a run keeps of that.

Kept as images.json in the vocabulary folder. A run that captions has no classes there, and a tokenizer beside it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.config import DataConfig, ModelTable
from regard.data.images.decoding import BadImageError, ImageShape, Pixels, pixels_of, read_image
from regard.data.images.storage import ImageSet
from regard.errors import DataError, UsageError
from regard.models.presets import decided_by_data, find_preset
from regard.regular_files import MEGABYTE
from regard.runs.disk import as_json, write_atomically
from regard.runs.json_files import read_json

FILE = "images.json"
MOST_FILE = 256 * MEGABYTE

ImageInput = str | os.PathLike[str] | npt.NDArray[Any]  # a file, or an array (H, W) or (H, W, C)


@dataclass(frozen=True, kw_only=True)
class ImageTable:
    """What images become, and how their pixels are normalised, channel by channel.

    mean, deviation:  of the training pixels from 0 to 1, which are learned as (pixel - mean) / deviation
    labels:           classes in the order of their numbers, with their `counts` in training
    longest:          tokens of the longest caption in training
    """

    shape: ImageShape
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    longest: int = 0

    @classmethod
    def load(cls, vocabulary: Path) -> "ImageTable":
        """Read what `save` wrote."""
        path = vocabulary / FILE
        try:
            kept = read_json(path, most=MOST_FILE)
            table = cls(
                shape=ImageShape(int(kept["size"]), int(kept["channels"])),
                mean=tuple(map(float, kept["mean"])),
                deviation=tuple(map(float, kept["deviation"])),
                labels=tuple(map(str, kept["labels"])),
                counts=tuple(map(int, kept["counts"])),
                longest=int(kept["longest"]),
            )
            n_channels = table.shape.channels
            if len(table.counts) != len(table.labels) or not len(table.mean) == len(table.deviation) == n_channels:
                raise ValueError("its values do not belong together")
            return table
        except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
            problem = f"{path}: not what a run keeps of its images: {type(error).__name__}, {error}."
            raise DataError(problem, "Put back the file that the run was trained with.") from None

    @classmethod
    def find(cls, vocabulary: Path | None) -> "ImageTable | None":
        """Read what `save` wrote, if it is there: what is given may hold a tokenizer alone."""
        return cls.load(vocabulary) if vocabulary is not None and (vocabulary / FILE).is_file() else None

    def save(self, vocabulary: Path) -> None:
        """Write it into a run's vocabulary folder."""
        vocabulary.mkdir(parents=True, exist_ok=True)
        kept: dict[str, Any] = {"size": self.shape.size, "channels": self.shape.channels, **vars(self)}
        del kept["shape"]
        write_atomically(vocabulary / FILE, as_json(kept, indent=1) + b"\n")

    def with_shape(self, data: DataConfig) -> DataConfig:
        """Return settings that name the size and the colours which a run began with, whatever would be chosen now."""
        return replace(data, image_size=self.shape.size, channels=self.shape.channels)

    def model_fields(self, model: ModelTable, **sizes: int) -> dict[str, int | str]:
        """The fields of a model's config that the data decides: a convolution asks for no size of images."""
        decided = {"n_channels": self.shape.channels, "image_size": self.shape.size, **sizes}
        asked = decided_by_data(find_preset(model.preset))
        return {name: size for name, size in decided.items() if name in asked}

    def decode(self, image: ImageInput) -> Pixels:
        """Return the pixels of a file or an array as a run reads them, (size, size, channels)."""
        if isinstance(image, np.ndarray):
            return pixels_of(image, self.shape)
        if not isinstance(image, str | os.PathLike):
            raise UsageError(
                f"An image is the name of a file or an array, not {type(image).__name__}.",
                "An array of it is numpy.asarray(image).",
            )
        if Path(image).is_dir():
            raise UsageError(f"{os.fspath(image)} is a folder.", "Name its images: FOLDER/*.jpg")
        return read_image(image, self.shape)

    def normalise(self, images: Pixels | Tensor) -> Tensor:
        """Return bytes (B, H, W, C) as a model reads them: (x / 255 - mean) / deviation, float32, (B, C, H, W)."""
        pixels = torch.as_tensor(images).permute(0, 3, 1, 2)
        scale = torch.tensor(self.deviation, dtype=torch.float64).reciprocal()
        shift = -torch.tensor(self.mean, dtype=torch.float64) * scale
        by_channel = (1, -1, 1, 1)
        scale, shift = ((scale / 255).float().view(by_channel), shift.float().view(by_channel))
        return torch.addcmul(shift.to(pixels.device), pixels.contiguous().float(), scale.to(pixels.device))

    @property
    def pixels(self) -> str:
        """What a report says of the images' form."""
        colours = "grey" if self.shape.channels == 1 else "in colours"
        return f"{self.shape.size} × {self.shape.size} pixels, {colours}"


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodedImage:
    """An image to predict something of: what it is called, and its pixels, or the problem for which there are none."""

    name: str
    pixels: Pixels | None = None
    problem: str = ""


def decode_inputs(images: Sequence[ImageInput], table: ImageTable, *, skip_unreadable: bool) -> list[DecodedImage]:
    """Decode images, in their order. The first that cannot be read is an error, unless such are to be skipped."""
    decoded = []
    for number, image in enumerate(images):
        name = os.fspath(image) if isinstance(image, str | os.PathLike) else f"array {number}"
        try:
            decoded.append(DecodedImage(name=name, pixels=table.decode(image)))
        except BadImageError as error:
            if not skip_unreadable:
                raise
            decoded.append(DecodedImage(name=name, problem=error.problem))
    return decoded


def image_notes(images: ImageSet, left_out: Sequence[str]) -> tuple[str, ...]:
    """What a reader of scores should know of the images that were scored."""
    fitted = [f"{images.fitted}."] if images.fitted else []
    damaged = [f"Damaged: {sentence}" for sentence in images.corpus.rebuilt]
    return (*fitted, *(f"Left out: {sentence}." for sentence in left_out), *damaged)


def split_to_score(split: str) -> tuple[str, bool]:
    """The split of a test set that is meant, and whether it was asked for: else it is `test`; empty for all of it."""
    return ("", False) if split == "all" else (split or "test", bool(split))
