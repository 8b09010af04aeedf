"""What a run over images keeps of its data: its classes, the size and the colours of what it reads, and their scale.

Kept as images.json in the vocabulary folder. A run that captions has no classes there, and a tokenizer beside it.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.config import DataConfig
from regard.data.images.decoding import ImageShape
from regard.errors import DataError
from regard.runs.disk import as_json, write_atomically

FILE = "images.json"


@dataclass(frozen=True, kw_only=True)
class ImageTable:
    """What images become, and how their pixels are scaled, channel by channel.

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
            kept = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                shape=ImageShape(int(kept["size"]), int(kept["channels"])),
                mean=tuple(map(float, kept["mean"])),
                deviation=tuple(map(float, kept["deviation"])),
                labels=tuple(map(str, kept["labels"])),
                counts=tuple(map(int, kept["counts"])),
                longest=int(kept["longest"]),
            )
        except (OSError, ValueError, LookupError, TypeError) as error:
            problem = f"{path}: not what a run keeps of its images: {type(error).__name__}, {error}."
            raise DataError(problem, "Put back the file that the run was trained with.") from None

    @classmethod
    def find(cls, vocabulary: Path | None) -> "ImageTable | None":
        """Read what `save` wrote, if it is there: what is given may hold a tokenizer alone."""
        return cls.load(vocabulary) if vocabulary is not None and (vocabulary / FILE).is_file() else None

    def kept(self, data: DataConfig) -> DataConfig:
        """Return settings that name the size and the colours which a run began with, whatever would be chosen now."""
        return replace(data, image_size=self.shape.size, channels=self.shape.channels)

    def save(self, vocabulary: Path) -> None:
        """Write it into a run's vocabulary folder."""
        kept: dict[str, Any] = {
            "size": self.shape.size,
            "channels": self.shape.channels,
            "mean": self.mean,
            "deviation": self.deviation,
            "labels": self.labels,
            "counts": self.counts,
            "longest": self.longest,
        }
        write_atomically(vocabulary / FILE, as_json(kept, indent=1) + b"\n")

    @property
    def pixels(self) -> str:
        """What a report says of the images' form."""
        colours = "grey" if self.shape.channels == 1 else "in colours"
        return f"{self.shape.size} × {self.shape.size} pixels, {colours}"
