"""Batch shapes: what one training step reads, in numbers. Of sequences, or of images with or without captions."""

from collections.abc import Sequence
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

    def reading(self, tokens: Sequence[int]) -> str:
        """What a step of so many tokens reads: of text, or of source and target."""
        if len(tokens) == 1:
            return f"{tokens[0]:,} tokens, in sequences of {self.length:,}"
        source, target = tokens
        of_target = "" if source == target else f" and {self.target_length:.3g}"
        return f"{source:,} source and {target:,} target tokens, in sentences of {self.length:,}{of_target}"

    def to_json(self) -> dict[str, float]:
        """All facts as data that `json.dumps` takes."""
        return {"sequences": self.n_sequences, "length": self.length}

    def __str__(self) -> str:
        return f"{self.n_sequences:,.0f} sequence{'s' * (self.n_sequences > 1)} of {self.length:,} tokens"


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

    def reading(self, tokens: Sequence[int]) -> str:
        """What a step reads."""
        captions = f", each with {self.n_captions} captions of {self.caption_length:,} tokens" if tokens else ""
        return f"{self}{captions}"

    def to_json(self) -> dict[str, float]:
        """All facts as data that `json.dumps` takes."""
        captions = {"captions": self.n_captions, "length": self.caption_length} if self.n_captions else {}
        return {"images": self.n_images, "image_size": self.size, **captions}

    def __str__(self) -> str:
        return f"{self.n_images:,.0f} image{'s' * (self.n_images > 1)} of {self.size:,} × {self.size:,} pixels"


AnyBatchShape = BatchShape | ImageBatchShape
