"""Captions as the rows of a stored corpus, beside the corpus of their images, in which each image stands once.

Its columns:

    ids      the tokens, without special ones          text   the caption
    image    the row of its image in that corpus       file   the number of the table       line   the row's line in it
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.captions.rows import Captioned
from regard.data.formats.rows import Bad
from regard.data.images.storage import ImageSet, Numbers
from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.corpus import NUMBER, TEXT, Corpus, Ragged
from regard.data.pipeline.encoding import Encoding, long_rows_of, too_long
from regard.data.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionSet:
    """Captions (N of them) and the images that they belong to, each of which has one at least."""

    corpus: Corpus
    files: tuple[str, ...]  # to which the numbers in the column `file` point
    image_set: ImageSet
    image_of: Numbers  # (N,), the number of each caption's image in `image_set`
    bad_rows: BadRows  # of the same tables

    @classmethod
    def of(cls, corpus: Corpus, images: ImageSet, files: tuple[str, ...], bad_rows: BadRows) -> "CaptionSet":
        """Join captions and the images of which they name rows."""
        rows, image_of = np.unique(corpus.numbers["image"], return_inverse=True)
        image_set = images.select(rows)
        return cls(
            corpus=corpus, files=files, image_set=image_set, image_of=image_of.astype(np.int64), bad_rows=bad_rows
        )

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def ids(self) -> Ragged:
        """The tokens of each caption, without special ones."""
        return self.corpus.ragged["ids"]

    def captions_of(self, image: int) -> list[str]:
        """Return all captions of an image, as they were written, in the order of their rows."""
        return [self.corpus.ragged["text"].text(row) for row in self.rows_of(image)]

    def rows_of(self, image: int) -> list[int]:
        """Return which captions are of an image."""
        begin, end = np.searchsorted(self.image_of, (image, image + 1), sorter=self._by_image)
        rows: list[int] = self._by_image[begin:end].tolist()
        return rows

    @property
    def too_long(self) -> BadRows:
        """Which captions have too many tokens."""
        return long_rows_of(self.corpus, self.files)

    def left_out(self) -> list[str]:
        """Say which rows of the same tables were left out."""
        return [*self.bad_rows.sentences(), *self.too_long.sentences()]

    @cached_property
    def _by_image(self) -> npt.NDArray[np.intp]:
        """The captions in the order of their images."""
        return np.argsort(self.image_of, kind="stable")


@dataclass(frozen=True)
class CaptionEncoding(Encoding[Captioned]):
    """Captions as ids, with the rows of their images; one with too many tokens is left out."""

    tokenizer: Tokenizer
    max_length: int

    def settings(self) -> tuple[object, ...]:
        return self.tokenizer.fingerprint(), self.max_length

    def columns(self) -> Mapping[str, int | str]:
        return {"ids": self.tokenizer.vocab_size, "text": TEXT, "image": NUMBER}

    def encode(self, examples: Sequence[Captioned], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        all_ids = self.tokenizer.encode_batch([caption.text for caption in examples])
        for caption, ids in zip(examples, all_ids, strict=True):
            if len(ids) > self.max_length:
                yield too_long(caption, self.max_length, caption.text)
            else:
                yield {"ids": ids, "text": caption.text, "image": caption.image_row}
