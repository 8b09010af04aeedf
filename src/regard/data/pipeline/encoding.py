"""Encoding: examples in chunks become the rows of stored corpora, under a key of all that they depend on.

Training and validation of the same files are encoded in one pass: a file is parsed once for both.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Generic

from regard.data.formats.rows import Bad, excerpt
from regard.data.pipeline.bad_rows import TOO_LONG, BadRows
from regard.data.pipeline.cache import cached_together
from regard.data.pipeline.corpus import NUMBER, TEXT, Corpus, CorpusWriter
from regard.data.pipeline.dataset import Dataset, left_out, rebuilt, refuse_empty
from regard.data.pipeline.source import Example, Placed, Progress, Source
from regard.data.pipeline.survey import Survey


class Encoding(ABC, Generic[Example]):
    """How the examples of a kind become rows."""

    counted: ClassVar[tuple[str, ...]] = ()  # what is added up, and kept as facts of a corpus

    @abstractmethod
    def settings(self) -> tuple[object, ...]:
        """Return all on which the rows depend beside the examples, such as a fingerprint of the vocabulary."""

    @abstractmethod
    def columns(self) -> Mapping[str, int | str]:
        """Return the columns beside `file` and `line`, as a writer takes them; texts are stored for validation alone."""

    @abstractmethod
    def encode(self, examples: Sequence[Example], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        """Return the row of each example, or why it is left out; `counts` are those of the corpus so far."""

    def last(self, counts: Counter[str]) -> Mapping[str, Any] | None:
        """Return a row behind those of all examples, if there is to be one."""
        return None


def too_long(example: Placed, max_length: int, text: str) -> Bad:
    """Return that an example has too many tokens."""
    return Bad(example.file, example.line, f"{TOO_LONG} {max_length:,} tokens", excerpt(text))


class _SplitWriter(Generic[Example]):
    """Writes the examples of one split."""

    def __init__(
        self, writer: CorpusWriter, source: Source[Example], encoding: Encoding[Example], *, texts: bool
    ) -> None:
        self.writer, self.source, self.encoding, self.texts = writer, source, encoding, texts
        # Numbers, not names: the same files may lie elsewhere when the cache is used again.
        self.files = {file: number for number, file in enumerate(source.files)}
        self.counts = Counter(dict.fromkeys(encoding.counted, 0))
        self.long = BadRows(source.noun)
        self.place: dict[str, int] = {}
        self.columns = {name: kind for name, kind in encoding.columns().items() if kind != TEXT or texts}
        writer.add(**self.columns, file=NUMBER, line=NUMBER)

    def add(self, examples: Sequence[Example]) -> None:
        rows = self.encoding.encode(examples, self.counts)
        for example, row in zip(examples, rows, strict=True):
            if isinstance(row, Bad):
                self.long.add(row)
                continue
            self.long.n_good += 1
            self.place = {"file": self.files[example.file], "line": example.line}
            self._append(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        self.writer.append(**{name: row[name] for name in self.columns}, **self.place)

    def facts(self) -> dict[str, Any]:
        if last := self.encoding.last(self.counts):
            self._append(last)
        return {**self.counts, "too_long": self.long.to_facts(self.source.files)}


def encode(
    source: Source[Example],
    examples: Callable[[], Iterable[tuple[str, Example]]],
    encoding: Encoding[Example],
    *,
    splits: Sequence[str],
    key: object = "",
    texts: bool = False,
    facts: Callable[[], dict[str, Any]] = dict,
    progress: Progress,
) -> dict[str, Corpus]:
    """Return the corpora of some splits from the cache, or encode the examples of each, which come with their splits.

    key:    what the examples depend on beside the source
    texts:  whether texts are stored of all splits, not only of validation
    facts:  what is kept with each, known once all examples were read
    """

    def build(writers: Mapping[str, CorpusWriter]) -> dict[str, dict[str, Any]]:
        opened = {
            split: _SplitWriter(writer, source, encoding, texts=texts or split == "valid")
            for split, writer in writers.items()
        }
        waiting, done = iter(examples()), 0
        while some := list(islice(waiting, source.chunk)):
            for split, own in opened.items():
                if chosen := [example for name, example in some if name == split]:
                    own.add(chosen)
            done += len(some)
            progress("encoding", done)
        return {split: {**own.facts(), **facts()} for split, own in opened.items()}

    common = repr((encoding.settings(), key, texts)), *source.cache_key()
    return cached_together({split: ("encoded", split, *common) for split in splits}, build)


def encode_all(source: Source[Example], encoding: Encoding[Example], progress: Progress) -> Corpus:
    """Return all good examples of a source with their texts; `bad_rows_of` reads from its facts which rows were bad."""
    bad_rows = BadRows(source.noun)

    def examples() -> Iterable[tuple[str, Example]]:
        return (("all", example) for example in source.good(bad_rows))

    def facts() -> dict[str, Any]:
        return {"bad_rows": bad_rows.to_facts(source.files)}

    return encode(source, examples, encoding, splits=["all"], texts=True, facts=facts, progress=progress)["all"]


def encode_dataset(
    source: Source[Example],
    valid_source: Source[Example] | None,
    found: Survey,
    encoding: Encoding[Example],
    progress: Progress,
) -> Dataset[Corpus]:
    """Encode the training split, and the validation split of other files, or else of the same."""
    held_out = found.held_out
    splits = ("train",) if valid_source else ("train", "valid")
    corpora = encode(source, lambda: source.divided(held_out), encoding, splits=splits, key=held_out, progress=progress)
    train = corpora["train"]
    valid = encode_all(valid_source, encoding, progress) if valid_source else corpora["valid"]
    long = long_rows_of(train, source.files)
    if long.reasons:
        long.enforce(source.data.on_bad, source.files)
    for name, corpus in (("training", train), ("validation", valid)):
        refuse_empty(len(corpus), name, source.unit or source.noun)
    valid_files = (valid_source or source).files
    of_validation = [bad_rows_of(valid, valid_files)] if valid_source else []
    return Dataset(
        train=train,
        valid=valid,
        train_files=source.files,
        valid_files=valid_files,
        n_held_out=len(valid) if found.holds_out else 0,
        notes=(
            *rebuilt(found.corpus, train, valid),
            *left_out([found.bad_rows, long], [*of_validation, long_rows_of(valid, valid_files)]),
        ),
        hashes={**source.hashes, **(valid_source.hashes if valid_source else {})},
    )


def bad_rows_of(corpus: Corpus, files: Sequence[str]) -> BadRows:
    """Return which rows were bad of the files that `encode_all` read."""
    return BadRows.from_facts(corpus.facts["bad_rows"], files)


def scored_notes(corpus: Corpus, files: Sequence[str]) -> list[str]:
    """Say what a reader of scores on a corpus of `encode_all` should know: what was left out, and what was damaged."""
    left_out = [f"Left out: {sentence}." for sentence in bad_rows_of(corpus, files).sentences()]
    return [*left_out, *(f"Damaged: {sentence}" for sentence in corpus.rebuilt)]


def long_rows_of(corpus: Corpus, files: Sequence[str]) -> BadRows:
    """Return which rows of the files that a corpus was made of were left out, as they have too many tokens."""
    return BadRows.from_facts(corpus.facts["too_long"], files)
