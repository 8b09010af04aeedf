"""Labelled images, and those that cannot be used: left out, counted by reason, and too many of them refused.

The place of an image is the file or folder that a person named, its root, and a member of it: "/cat/1.jpg" of a folder,
":17" of a file of many images, which count from 0 as in numpy.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from regard.data.images.decoding import ImageShape, Pixels
from regard.data.pairs.check import N_EXAMPLES
from regard.errors import DataError

# A file in a class folder that does not claim to be an image: skipped and told, but nothing is wrong with the data.
OTHER = "no image by its name"


def place_of(root: str, member: str) -> str:
    """Return a place as people write it: FILE, or FILE:INDEX."""
    return root.rstrip("/") + member


@dataclass(frozen=True, slots=True, eq=False)
class LabelledImage:
    """An image (size, size, channels), its label, its place, and whether it had to be scaled or cut."""

    pixels: Pixels
    label: str
    root: str
    member: str
    fitted: bool

    @property
    def place(self) -> str:
        return place_of(self.root, self.member)


@dataclass(frozen=True, slots=True)
class BadImage:
    """An image that cannot be used. `reason` is a fixed phrase, so that equal reasons can be counted."""

    root: str
    member: str
    reason: str

    @property
    def place(self) -> str:
        return place_of(self.root, self.member)


class ImageSource(Protocol):
    """Where labelled images come from: a folder, or a file of many images."""

    @property
    def root(self) -> str:
        """What a person named."""
        ...

    def images(self, shape: ImageShape) -> Iterator[LabelledImage | BadImage]:
        """Yield all images in a fixed order, in that shape."""
        ...

    def own_shape(self) -> ImageShape:
        """Return the shape that suits the images best, without decoding any."""
        ...

    def class_folders(self) -> list[tuple[str, str]]:
        """Return the label and the member of each class folder; none where classes have no folders."""
        ...

    def fingerprint(self) -> str:
        """Return a hash of everything that the images, their labels and their members depend on."""
        ...


@dataclass
class ImageFaults:
    """Counts good images, and bad ones by reason, with the places of each, the root by its number.

    By number, as the same images may lie elsewhere when the cache is used again. Of files that do not claim to be images
    only the first are remembered.
    """

    roots: Sequence[str]
    n_good: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, bad: BadImage) -> None:
        """Take note of a bad image."""
        self.reasons[bad.reason] += 1
        examples = self.examples.setdefault(bad.reason, [])
        if bad.reason != OTHER or len(examples) < N_EXAMPLES:
            examples.append((self.roots.index(bad.root), bad.member))

    def as_facts(self) -> dict[str, Any]:
        """Return what `of` reads, as JSON."""
        return {"n_good": self.n_good, "reasons": dict(self.reasons.most_common()), "examples": self.examples}

    @classmethod
    def of(cls, facts: Mapping[str, Any], roots: Sequence[str]) -> "ImageFaults":
        """Read what `as_facts` wrote, of these roots."""
        return cls(roots, facts["n_good"], Counter(facts["reasons"]), dict(facts["examples"]))

    def sentences(self) -> list[str]:
        """Say how many were left out and why, with two examples: a sentence a reason."""
        said = []
        for reason, count in self.reasons.items():
            noun = "file" if reason == OTHER else "bad image"
            places = "; ".join(self._places(reason)[:2])
            said.append(f"{count:,} {noun}{'s' if count > 1 else ''}, {reason}: {places}")
        return said

    def enforce(self, share: float) -> None:
        """Refuse images of which more than a share is bad, or none good."""
        bad = {reason: count for reason, count in self.reasons.most_common() if reason != OTHER}
        n_bad = sum(bad.values())
        if not self.n_good and not n_bad:
            raise DataError(
                f"{', '.join(self.roots)}: no image was found.",
                "Check that it is the right one: a folder with a folder of images for each class, or a file of images.",
            )
        if self.n_good and n_bad <= share * (n_bad + self.n_good):
            return
        counts = ", ".join(f"{count:,} {reason}" for reason, count in bad.items())
        first = "; ".join(f"{self._places(reason)[0]} ({reason})" for reason in list(bad)[:3])
        fix = "Fix or remove them"
        raise DataError(
            f"{n_bad:,} of {n_bad + self.n_good:,} images are bad (at most {share:.0%} may be): {counts}. First: {first}.",
            f"{fix}, or leave the bad images out with --on-bad keep-going." if self.n_good else f"{fix}.",
        )

    def by_place(self) -> dict[str, str]:
        """Return the reason for each bad image by its place."""
        return {place: reason for reason in self.examples if reason != OTHER for place in self._places(reason)}

    def _places(self, reason: str) -> list[str]:
        return [place_of(self.roots[root], member) for root, member in self.examples[reason]]
