"""What labelled files hold and what is wrong with them: counted before anything is learned, and remembered.

Bad rows are left out and counted; too many of them stop. One class alone, or as many as there are rows, is an error.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from regard.config import DataConfig
from regard.data.formats import Bad
from regard.data.formats.rows import excerpt
from regard.data.labelled.encoding import number_of
from regard.data.labelled.rows import NoRowError, read_labelled
from regard.data.labelled.tags import read_tagged
from regard.data.labelled.vectors import read_labelled_vectors
from regard.data.pairs.index import sentence_hash
from regard.data.pipeline.bad_rows import Faults, LeftOut, Progress, allowed_share
from regard.data.pipeline.cache import cached
from regard.data.pipeline.validation_split import ValidationSplit, is_held_out
from regard.errors import DataError

MANY = 100  # classes; so many or more are suspicious if most examples have one of their own
_VERSION = "3"  # of what the cache keeps; raise it when that or the way files are read changes


class Example(Protocol):
    """What labelled texts, tagged sentences and labelled vectors have in common."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def key(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Source:
    """Files of labelled examples, and how they are read; their good examples can be iterated as often as needed.

    kind:     of labels: class, number or tags
    vectors:  whether the examples are vectors, not texts
    split:    which rows are meant, where a column says it: train, valid or test; "" for all
    n_beside: good examples elsewhere in the same files, which count where the share of bad ones is judged
    """

    files: tuple[str, ...]
    data: DataConfig
    kind: str
    vectors: bool
    split: str = ""
    n_beside: int = 0

    def examples(self, faults: Faults | None = None) -> Iterator[Example]:
        """Yield the good examples; DataError at the end if too large a share is bad. `faults` takes note of these."""
        share = allowed_share(self.data.on_bad)
        faults = faults or Faults()
        faults.noun = "sentences" if self.kind == "tags" else "rows"
        faults.n_good = self.n_beside
        for row in self._rows():
            if isinstance(row, Bad):
                faults.add(row)
            else:
                faults.n_good += 1
                yield row
        faults.enforce(share, self.files)

    def settings(self) -> str:
        """Everything beside the files' contents on which the examples depend."""
        data = self.data
        columns = data.text, data.text_b, data.label, data.split_column
        return repr((self.kind, self.vectors, self.split, self.n_beside, columns, data.on_bad))

    def contents(self, hashes: Mapping[str, str]) -> list[str]:
        """What the files hold, by the hashes of their contents and the ends of their names, which say how they are read."""
        return [hashes[file] + "".join(Path(file).suffixes[-2:]).lower() for file in self.files]

    def _rows(self) -> Iterator[Example | Bad]:
        rows: Iterator[Example | Bad]
        if self.kind == "tags":
            rows = read_tagged(self.files, self.data)
        elif self.vectors:
            rows = read_labelled_vectors(self.files, self.data, split=self.split)
        else:
            rows = read_labelled(self.files, self.data, split=self.split)
        return map(_measured, rows) if self.kind == "number" else rows


def _measured(row: Example | Bad) -> Example | Bad:
    """Return an example whose label is a number, or why it is none."""
    if not isinstance(row, Bad):
        try:
            number_of(row.labels[0])
        except ValueError as reason:
            return Bad(row.file, row.line, str(reason), excerpt(row.labels[0]))
    return row


@dataclass(frozen=True, kw_only=True)
class LabelFacts:
    """What the training files hold, and what of it is held out for validation."""

    n_examples: int
    labels: Mapping[str, int]  # how often each occurs; none for numbers
    left_out: LeftOut
    limit: int  # the largest hash of an example that is held out; -1 for none
    kept: frozenset[str]  # labels whose examples would all be held out: they stay in training
    has_valid: bool  # whether the column of splits has rows of validation

    def is_held_out(self, example: Example) -> bool:
        """Say whether an example of the training files is held out for validation."""
        if self.limit < 0:
            return False
        return is_held_out(example.key, self.limit) and self.kept.isdisjoint(example.labels)


def look_through(source: Source, hashes: Mapping[str, str], progress: Progress) -> LabelFacts:
    """Read the training files for what they hold, or remember what was found in the same contents before."""
    valid_size = None if source.data.valid else source.data.valid_size
    key = ("labels", _VERSION, source.settings(), repr(valid_size), *source.contents(hashes))
    found = dict(cached(key, lambda writer: _look_through(source, progress)).facts)
    counts = found.pop("counts")
    return LabelFacts(
        n_examples=counts["n_examples"],
        labels=counts["labels"],
        left_out=LeftOut.of(found, source.files),
        limit=counts["limit"],
        kept=frozenset(counts["kept"]),
        has_valid=counts["has_valid"],
    )


def _look_through(source: Source, progress: Progress) -> dict[str, object]:
    """Read the training files once; return what `look_through` remembers, as JSON."""
    faults, validation_split = Faults(), ValidationSplit(source.data.valid_size, noun="examples", source="text")
    labels: Counter[str] = Counter()
    largest: dict[str, int] = {}  # the largest hash of an example with each label
    n_examples = 0
    for example in source.examples(faults):
        n_examples += 1
        own = set() if source.kind == "number" else set(example.labels)
        if own:
            labels.update(example.labels)
        if not source.data.valid:
            validation_split.add(example.key)
            hash = sentence_hash(example.key)
            largest |= {label: max(largest.get(label, -1), hash) for label in own}
        if n_examples % 1000 == 0:
            progress("reading", n_examples)
    _refuse_useless(source, labels, n_examples)
    has_valid = not source.data.valid and _has_valid(source)
    limit = -1 if source.data.valid or has_valid else validation_split.limit()
    kept = sorted(label for label, hash in largest.items() if hash <= limit)
    counts = {"n_examples": n_examples, "labels": dict(labels), "limit": limit, "kept": kept, "has_valid": has_valid}
    return {"counts": counts, **faults.as_facts(source.files)}


def _has_valid(source: Source) -> bool:
    """Say whether the column of splits has rows of validation, good or bad."""
    if not source.split:
        return False
    try:
        next(replace(source, split="valid", n_beside=1).examples(), None)
    except NoRowError:
        return False
    return True


def _refuse_useless(source: Source, labels: Mapping[str, int], n_examples: int) -> None:
    """Refuse labels from which nothing can be learned."""
    what = {"class": ("examples", "label"), "tags": ("words", "tag")}.get(source.kind)
    if what is None:
        return
    if len(labels) == 1:
        [only] = labels
        raise DataError(
            f"{', '.join(source.files)}: all {what[0]} have the {what[1]} '{only}'.",
            "Give examples of two classes at least, or say which column is the label with --label.",
        )
    if len(labels) >= MANY and 2 * len(labels) > sum(labels.values()):
        raise DataError(
            f"{', '.join(source.files)}: {len(labels):,} different labels in {n_examples:,} examples, "
            f"such as '{excerpt(next(iter(labels)))}'.",
            "Say which column is the label with --label; numbers are learned by `regard train regress`.",
        )


def sorted_labels(labels: Mapping[str, int]) -> tuple[str, ...]:
    """Return labels in order: as numbers where all are whole numbers, else as texts."""
    if all(label.isdecimal() for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))
