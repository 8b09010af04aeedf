"""Captions as the rows of a corpus: encoded once, beside the corpus of their images, in which each image stands once.

Its columns:

    ids      the tokens, without special ones          text   the caption
    image    the row of its image in that corpus       file   the number of the table       line   the row's line in it
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.captions.rows import Captioned
from regard.data.captions.survey import CaptionTables
from regard.data.formats import Bad
from regard.data.formats.rows import excerpt
from regard.data.images.decoding import ImageShape, Pixels
from regard.data.images.storage import ImageSet, Numbers
from regard.data.pipeline.bad_rows import Faults, LeftOut, Progress
from regard.data.pipeline.cache import cached
from regard.data.pipeline.corpus import Corpus, CorpusWriter, Ragged
from regard.data.text.tokenizer import Tokenizer

CHUNK = 4096  # captions tokenised together
_VERSION = "1"  # of what the cache keeps; raise it when that or the way tables are read changes


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionSet:
    """Captions (N of them) and the images that they belong to, each of which has one at least."""

    corpus: Corpus
    files: tuple[str, ...]  # to which the numbers in the column `file` point
    image_set: ImageSet
    image_of: Numbers  # (N,), the number of each caption's image in `image_set`
    rows_left_out: LeftOut  # of the same tables

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def ids(self) -> Ragged:
        """The tokens of each caption, without special ones."""
        return self.corpus.ragged["ids"]

    @property
    def n_images(self) -> int:
        return len(self.image_set)

    @property
    def shape(self) -> ImageShape:
        return self.image_set.shape

    def images(self, indices: npt.ArrayLike) -> Pixels:
        """Return some images by their numbers, (B, size, size, channels)."""
        return self.image_set.images(indices)

    def captions_of(self, image: int) -> list[str]:
        """Return all captions of an image, as they were written, in the order of their rows."""
        return [self.corpus.ragged["text"].text(row) for row in self.rows_of(image)]

    def rows_of(self, image: int) -> list[int]:
        """Return which captions are of an image."""
        begin, end = np.searchsorted(self.image_of, (image, image + 1), sorter=self._by_image)
        rows: list[int] = self._by_image[begin:end].tolist()
        return rows

    def places(self, indices: npt.ArrayLike) -> list[str]:
        """Return where some captions stand, as FILE:LINE."""
        rows = np.asarray(indices)
        files, lines = (self.corpus.numbers[name][rows].tolist() for name in ("file", "line"))
        return [f"{self.files[file]}:{line}" for file, line in zip(files, lines, strict=True)]

    @property
    def too_long(self) -> LeftOut:
        """Which captions have too many tokens."""
        return LeftOut.of(self.corpus.facts, self.files)

    @property
    def faults(self) -> LeftOut:
        """Which rows of the same tables were left out."""
        rows, long = self.rows_left_out, self.too_long
        return LeftOut(reasons={**rows.reasons, **long.reasons}, examples={**rows.examples, **long.examples})

    @cached_property
    def _by_image(self) -> npt.NDArray[np.intp]:
        """The captions in the order of their images."""
        return np.argsort(self.image_of, kind="stable")


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionSide:
    """Which captions are meant: those of a split of some tables whose image is kept; read anew at each call.

    rows:  where in `images` those that are kept stand, by their paths
    kept:  which these are, in words that tell them from others of the same images
    """

    tables: CaptionTables
    split: str
    images: ImageSet
    rows: Mapping[str, int]
    kept: str = "all"

    def captions(self) -> Iterator[tuple[Captioned, int]]:
        """Yield the captions, each with the row of its image."""
        for caption in self.tables.captions(self.split):
            row = self.rows.get(caption.image)
            if row is not None:
                yield caption, row

    def texts(self) -> Iterator[str]:
        return (caption.text for caption, _ in self.captions())

    def fingerprints(self) -> dict[str, str]:
        """Return a hash of the images of each table."""
        found = (fingerprint for _, fingerprint in self.images.corpus.facts["fingerprints"])
        return dict(zip(self.tables.sources(self.split), found, strict=True))

    def key(self) -> tuple[str, ...]:
        """Everything on which the captions and the rows of their images depend."""
        columns = [table.columns for table in self.tables.tables]
        images = self.images.corpus.facts
        settings = (columns, self.tables.splits, self.split, self.kept, images["shape"], images["fingerprints"])
        return repr(settings), *self.tables.contents()


def stored_captions(side: CaptionSide, tokenizer: Tokenizer, *, max_length: int, progress: Progress) -> CaptionSet:
    """Return the captions of a side from the cache, or encode and store them; longer ones are left out and counted."""
    vocabulary = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    corpus = cached(
        ("captions", _VERSION, str(max_length), vocabulary, *side.key()),
        lambda writer: _store(writer, side, tokenizer, max_length, progress),
    )
    rows, image_of = np.unique(corpus.numbers["image"], return_inverse=True)
    return CaptionSet(
        corpus=corpus,
        files=side.tables.files,
        image_set=replace(side.images, rows=side.images.rows[rows], classes=side.images.classes[rows]),
        image_of=image_of.astype(np.int64),
        rows_left_out=side.tables.left_out(),
    )


def _store(
    writer: CorpusWriter, side: CaptionSide, tokenizer: Tokenizer, max_length: int, progress: Progress
) -> dict[str, Any]:
    """Encode all captions into a corpus; return the facts to keep with it."""
    writer.add_ids("ids", vocab_size=tokenizer.vocab_size)
    writer.add_text("text")
    for name in ("image", "file", "line"):
        writer.add_numbers(name)
    # Numbers, not names: the same tables may lie elsewhere when the cache is used again.
    files = {file: number for number, file in enumerate(side.tables.files)}
    faults, waiting, done = Faults(), side.captions(), 0
    while chunk := list(islice(waiting, CHUNK)):
        all_ids = tokenizer.encode_batch([caption.text for caption, _ in chunk])
        for (caption, row), ids in zip(chunk, all_ids, strict=True):
            if len(ids) > max_length:
                reason = f"longer than {max_length:,} tokens"
                faults.add(Bad(caption.file, caption.line, reason, excerpt(caption.text)))
                continue
            place = {"file": files[caption.file], "line": caption.line}
            writer.append(ids=ids, text=caption.text, image=row, **place)
        done += len(chunk)
        progress("encoding", done)
    return faults.as_facts(side.tables.files)
