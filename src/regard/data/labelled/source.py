"""Labelled examples as sources: texts, tagged sentences and vectors, held out so that no class is lost to training."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from regard.data.formats.conll import Tagged, read_tagged
from regard.data.formats.rows import Bad, excerpt
from regard.data.formats.splits import no_row_of_split
from regard.data.labelled.encoding import number_of
from regard.data.labelled.rows import Labelled, read_labelled
from regard.data.labelled.vectors import LabelledVectors, read_labelled_vectors
from regard.data.pipeline.source import Placed, Source
from regard.errors import DataError

MANY = 100  # classes; so many or more are suspicious if most examples have one of their own


class LabelledExample(Placed, Protocol):
    """What labelled texts, tagged sentences and labelled vectors have in common."""

    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def key(self) -> str: ...
    @property
    def split(self) -> str: ...


One = TypeVar("One", bound=LabelledExample)


@dataclass(frozen=True, kw_only=True)
class LabelledSource(Source[One]):
    """Files of labelled examples.

    kind:    of labels: class, number or tags
    splits:  of which examples are meant, where a column says it; none for all
    """

    chunk = 1024
    tagged: ClassVar = "words"  # what has tags

    kind: str
    splits: tuple[str, ...] = ()

    @abstractmethod
    def rows(self) -> Iterator[One | Bad]:
        """Yield all rows in their order, whatever their labels are."""

    def read(self) -> Iterator[One | Bad]:
        return map(_measured, self.rows()) if self.kind == "number" else self.rows()

    def settings(self) -> tuple[object, ...]:
        columns = self.data.text, self.data.text_b, self.data.label, self.data.split_column
        return self.kind, self.splits, columns

    def key(self, example: One) -> str:
        return example.key

    def labels(self, example: One) -> Iterable[str]:
        return () if self.kind == "number" else set(example.labels)

    def split(self, example: One) -> str:
        return example.split

    def counts(self, example: One) -> Mapping[str, int]:
        """Count the labels of training."""
        return {} if self.kind == "number" or example.split == "valid" else Counter(example.labels)

    def check(self, splits: Mapping[str, int], counts: Mapping[str, int]) -> None:
        """Refuse files without training examples, and labels from which nothing can be learned."""
        files = ", ".join(self.files)
        if self.data.split_column and not splits["train"]:
            raise no_row_of_split(self.files, self.data.split_column, "train")
        if len(counts) == 1:
            [only] = counts
            what = (self.tagged, "tag") if self.kind == "tags" else ("examples", "label")
            raise DataError(
                f"{files}: all {what[0]} have the {what[1]} '{only}'.",
                "Give examples of two classes at least, or say which column is the label with --label.",
            )
        if len(counts) >= MANY and 2 * len(counts) > sum(counts.values()):
            n_examples = sum(count for split, count in splits.items() if split != "valid")
            raise DataError(
                f"{files}: {len(counts):,} different labels in {n_examples:,} examples, "
                f"such as '{excerpt(next(iter(counts)))}'.",
                "Say which column is the label with --label; numbers are learned by `regard train regress`.",
            )


class TextSource(LabelledSource[Labelled]):
    """Tables of texts."""

    noun = "row"

    def rows(self) -> Iterator[Labelled | Bad]:
        return read_labelled(self.files, self.data, splits=self.splits)


class TagSource(LabelledSource[Tagged]):
    """Files of words and tags in columns."""

    noun = "sentence"

    def rows(self) -> Iterator[Tagged | Bad]:
        return read_tagged(self.files, self.data)


class VectorSource(LabelledSource[LabelledVectors]):
    """Files of sequences of vectors."""

    noun = "sequence"
    held_out_by = "content"
    tagged = "vectors"

    def rows(self) -> Iterator[LabelledVectors | Bad]:
        return read_labelled_vectors(self.files, self.data, splits=self.splits, tagged=self.kind == "tags")


def _measured(row: One | Bad) -> One | Bad:
    """Return an example whose label is a number, or why it is none."""
    if not isinstance(row, Bad):
        try:
            number_of(row.labels[0])
        except ValueError as reason:
            return Bad(row.file, row.line, str(reason), excerpt(row.labels[0]))
    return row
