"""Batch shapes: what one training step reads, in numbers. Of sequences, or of images with or without captions."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, kw_only=True)
class BatchShape:
    """So many sequences of one length; of pairs, the target's mean length beside it (else 0)."""

    n_sequences: float
    length: int
    target_length: float = 0.0

    @property
    def n_examples(self) -> float:
        """What the cost of a step is in proportion to."""
        return self.n_sequences

    def with_examples(self, n_examples: float) -> Self:
        """The same with so many sequences."""
        return replace(self, n_sequences=n_examples)


@dataclass(frozen=True, kw_only=True)
class ImageBatchShape:
    """So many images of size × size pixels; if captioned, each with so many captions of one length."""

    n_images: float
    size: int
    n_captions: int = 0
    caption_length: int = 0  # in tokens, the end token counted

    @property
    def n_examples(self) -> float:
        """What the cost of a step is in proportion to."""
        return self.n_images

    def with_examples(self, n_examples: float) -> Self:
        """The same with so many images."""
        return replace(self, n_images=n_examples)


AnyBatchShape = BatchShape | ImageBatchShape
