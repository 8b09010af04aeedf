"""Images as the rows of a corpus: decoded once, then read through memory maps, some at a time.

Its columns:

    image    bytes, (size, size, channels) row by row        member   text, the place within its root
    file     the number of the root                          label    the number of the label in the corpus's own order
    hash     of the pixels, by which images are held out
    sum_0 …  the sum of each channel's pixels                squares_0 …  and of their squares
"""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.formats.image_arrays import OTHER, ImageSource, LabelledImage
from regard.data.formats.rows import Bad, place_of
from regard.data.images.decoding import ImageShape, Pixels
from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.cache import cached
from regard.data.pipeline.corpus import BYTES, NUMBER, TEXT, Corpus, CorpusWriter
from regard.data.pipeline.source import Progress
from regard.data.pipeline.validation_split import ValidationSplit

Numbers = npt.NDArray[np.int64]

LEAST_DEVIATION = 1 / 255  # of a channel, so that one of a single colour can be divided by it


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageSet:
    """Images of a corpus: which of its rows they are, and the number of each one's class, both (N,)."""

    corpus: Corpus
    roots: tuple[str, ...]  # to which the numbers in the column `file` point
    rows: Numbers
    classes: Numbers

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> ImageShape:
        return ImageShape(*self.corpus.facts["shape"])

    def select(self, chosen: npt.NDArray[np.bool_] | Numbers) -> "ImageSet":
        """Return some of these images: those of a mask (N,), or of numbers."""
        return replace(self, rows=self.rows[chosen], classes=self.classes[chosen])

    def images(self, indices: npt.ArrayLike) -> Pixels:
        """Return some images, (B, size, size, channels)."""
        pixels = self.corpus.ragged["image"].values.reshape(-1, *self.shape.dimensions)
        return np.asarray(pixels[self.rows[np.asarray(indices)]], np.uint8)

    def places(self, indices: npt.ArrayLike) -> list[str]:
        """Return where some images come from: FILE, or FILE:INDEX."""
        rows = self.rows[np.asarray(indices)].tolist()
        files, members = self.corpus.numbers["file"], self.corpus.ragged["member"]
        return [place_of(self.roots[files[row]], members.text(row)) for row in rows]

    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the mean and the standard deviation of each channel, of pixels from 0 to 1."""
        n_pixels = len(self) * self.shape.size**2
        means, deviations = [], []
        for channel in range(self.shape.channels):
            total, squares = (
                int(self.corpus.numbers[f"{name}_{channel}"][self.rows].sum()) for name in ("sum", "squares")
            )
            mean = total / n_pixels
            variance = (squares * n_pixels - total * total) / n_pixels**2  # of whole numbers: nothing is cancelled
            means.append(mean / 255)
            deviations.append(max(variance**0.5 / 255, LEAST_DEVIATION))
        return tuple(means), tuple(deviations)

    def content_hashes(self) -> Numbers:
        """Return a hash of the pixels of each image, (N,)."""
        return self.corpus.numbers["hash"][self.rows]

    def held_out(self, wanted: int) -> tuple[npt.NDArray[np.bool_], list[int]]:
        """Say of each image whether it is held out for validation, (N,): so many, 0 for what suits; equal ones together.

        Return also the classes of which none is held out, as none would be left.
        """
        examples = list(zip(map(str, self.content_hashes().tolist()), map(str, self.classes.tolist()), strict=True))
        validation_split = ValidationSplit(wanted, noun="image", source="content")
        for key, label in examples:
            validation_split.add(key, [label])
        found = validation_split.held_out()
        return np.array([found.holds(key, [label]) for key, label in examples], np.bool_), sorted(map(int, found.kept))

    @property
    def fitted(self) -> str:
        """Say how many images of the same files and folders had another size, and what became of them; "" if none had."""
        if not (count := self.corpus.facts["n_fitted"]):
            return ""
        had = f"{count:,} of {len(self.corpus):,} images have another size"
        return f"{had}: the shorter side is scaled to {self.shape.size:,} pixels, and the centre kept"

    @property
    def bad_images(self) -> BadRows:
        """Which images of the same files and folders could not be used."""
        return BadRows.from_facts(self.corpus.facts["bad"], self.roots)

    def left_out(self) -> list[str]:
        """Say which images were bad, and which files do not claim to be images."""
        others = BadRows.from_facts(self.corpus.facts["others"], self.roots)
        return [*self.bad_images.sentences(), *others.sentences("file")]

    @property
    def empty_folders(self) -> list[str]:
        """The class folders in which no image could be read."""
        return [place_of(self.roots[root], member) for root, member in self.corpus.facts["empty"]]

    @property
    def hashes(self) -> dict[str, str]:
        """A hash of what was read of each root."""
        found: dict[str, str] = {}
        for root, fingerprint in self.corpus.facts["fingerprints"]:
            found[self.roots[root]] = found.get(self.roots[root], "") + fingerprint
        return {root: hashlib.sha256(all_of.encode()).hexdigest() for root, all_of in found.items()}


def stored_images(sources: Sequence[ImageSource], shape: ImageShape, progress: Progress) -> ImageSet:
    """Return the images of some sources from the cache, or decode and store them; labels in the corpus's own order."""
    roots = tuple(dict.fromkeys(source.root for source in sources))
    progress("looking at the images", 0)
    fingerprints = [(roots.index(source.root), source.fingerprint()) for source in sources]
    key = ("images", repr(shape), repr(fingerprints))

    def store(writer: CorpusWriter) -> dict[str, Any]:
        return {"fingerprints": fingerprints, **_store(writer, sources, roots, shape, progress)}

    corpus = cached(key, store)
    return ImageSet(
        corpus=corpus, roots=roots, rows=np.arange(len(corpus), dtype=np.int64), classes=corpus.numbers["label"]
    )


def _store(
    writer: CorpusWriter,
    sources: Sequence[ImageSource],
    roots: Sequence[str],
    shape: ImageShape,
    progress: Progress,
) -> dict[str, Any]:
    """Decode all images into a corpus; return the facts to keep with it."""
    statistics = [f"{name}_{channel}" for channel in range(shape.channels) for name in ("sum", "squares")]
    writer.add(image=BYTES, member=TEXT, **dict.fromkeys(("file", "label", "hash", *statistics), NUMBER))
    # Every bad image is remembered, as whoever names it must know of it; of files that are none, only the first.
    bad, others = BadRows("image", n_examples=math.inf), BadRows("file")
    labels, n_fitted = Counter[str](), 0
    numbers: dict[str, int] = {}
    for source in sources:
        for image in source.images(shape):
            if isinstance(image, Bad):
                (others if image.reason == OTHER else bad).add(image)
                continue
            bad.n_good += 1
            labels[image.label] += 1
            n_fitted += image.fitted
            number = numbers.setdefault(image.label, len(numbers))
            writer.append(**_row(image, file=roots.index(image.root), label=number))
            if bad.n_good % 1000 == 0:
                progress("decoding", bad.n_good)
    empty = [
        (roots.index(source.root), member)
        for source in sources
        for label, member in source.class_folders()
        if not labels[label]
    ]
    facts = {"shape": (shape.size, shape.channels), "labels": dict(labels), "empty": empty, "n_fitted": n_fitted}
    return {**facts, "bad": bad.to_facts(roots), "others": others.to_facts(roots)}


def _row(image: LabelledImage, *, file: int, label: int) -> dict[str, Any]:
    content = image.pixels.tobytes()
    digest = hashlib.blake2b(content, digest_size=8).digest()
    row = {
        "image": content,
        "member": image.member,
        "file": file,
        "label": label,
        "hash": int.from_bytes(digest, "little", signed=True),
    }
    # Matrix products are the quickest sums, and of whole numbers below 2**53 exact.
    plain = image.pixels.reshape(-1, image.pixels.shape[-1]).astype(np.float64)
    totals, squares = np.ones(len(plain)) @ plain, (plain.T @ plain).diagonal()
    for channel in range(plain.shape[1]):
        row |= {f"sum_{channel}": int(totals[channel]), f"squares_{channel}": int(squares[channel])}
    return row
