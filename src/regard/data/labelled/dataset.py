"""Labelled examples, from files to two encoded corpora: screened, held out, tokenised, stored once.

Labels are of three kinds: a class or a number for each text (or sequence of vectors), or a tag for each of its words.
Every pass streams: what grows with the corpus lies on the disk. Which columns a corpus has stands in `label_writing.py`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from regard.config import DataConfig, TokenizerConfig
from regard.data.formats.columns import listed
from regard.data.labelled.rows import find_columns
from regard.data.labelled.survey import Example, LabelFacts, Source, look_through, sorted_labels
from regard.data.labelled.vectors import are_vectors
from regard.data.labelled.writing import Encoding, LabelWriter, cut_sentence
from regard.data.pairs.check import content_hash
from regard.data.pipeline.bad_rows import Faults, LeftOut, Progress
from regard.data.pipeline.cache import cached
from regard.data.pipeline.corpus import Corpus, CorpusWriter
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.vocabulary import given_tokenizer, tokenizer_for
from regard.errors import ConfigError, DataError, UsageError, did_you_mean

KINDS = ("class", "number", "tags")  # of labels: one of several, a number, a tag for each word
N_NAMED = 5  # labels that a told decision lists
_VERSION = "3"  # of what the cache keeps; raise it when that or the way files are read changes


@dataclass(frozen=True, kw_only=True)
class LabelledData:
    """Training and validation examples, encoded, and what was seen on the way."""

    tokenizer: Tokenizer | None  # None for vectors
    train: Corpus
    valid: Corpus
    train_files: tuple[str, ...]  # to which the numbers in the column `file` of each corpus point
    valid_files: tuple[str, ...]
    labels: tuple[str, ...]  # classes or tags; none for numbers
    counts: Mapping[str, int]  # of each label in training
    mean: float  # of the training numbers; else 0
    deviation: float  # likewise; else 1
    n_features: int  # of vectors; 0 for text
    n_held_out: int  # 0 where there was validation data
    told: tuple[tuple[str, str], ...]  # decisions that a person should know of, label and text
    hashes: Mapping[str, str]  # the content of each file


def prepare_labelled(
    data: DataConfig,
    tokenizer_config: TokenizerConfig,
    *,
    kind: str,
    given: Tokenizer | None,
    labels: tuple[str, ...] | None,
    progress: Progress,
) -> LabelledData:
    """Read, screen, hold out, learn the vocabulary (unless one is given), encode or find the encoded corpora.

    kind:    of labels, one of KINDS
    labels:  those that are known already, as from another run; None takes them from the training files
    """
    if not data.train:
        raise DataError("There is nothing to train on.", "Give the training files with --train.")
    vectors = are_vectors((*data.train, *data.valid), tokenizer_config)
    _check(kind, data, vectors)
    if given is None and not vectors:
        given = given_tokenizer(tokenizer_config)  # before the files are read, so that a wrong one is known at once
    hashes = {file: content_hash(file) for file in dict.fromkeys((*data.train, *data.valid))}
    source = Source(files=data.train, data=data, kind=kind, vectors=vectors, split="train" if data.split_column else "")
    facts = look_through(source, hashes, progress)
    training = _Side(source, facts, held_out=False)
    if given is None and not vectors:
        progress("learning the vocabulary", 0)
        given = tokenizer_for(tokenizer_config, training.texts)
    known = labels if labels is not None and kind != "number" else sorted_labels(facts.labels)
    encoding = Encoding(
        kind=kind,
        vectors=vectors,
        tokenizer=None if vectors else given,
        labels=known,
        max_length=data.max_length,
        trained=labels is None,
    )
    train = _encoded(training.key(), training, source, encoding, hashes, progress, keep_texts=False)
    valid = _validation(source, facts, encoding, hashes, progress)
    valid_files = data.valid or data.train
    for name, corpus in (("training", train), ("validation", valid)):
        if not len(corpus):
            raise DataError(
                f"No example is left for {name}.", "Give more examples, or give validation files with --valid."
            )
    _refuse_other_width(train, valid, valid_files)
    mean, deviation = _spread(train, data) if kind == "number" else (0.0, 1.0)
    counts = label_counts(train, known)
    return LabelledData(
        tokenizer=encoding.tokenizer,
        train=train,
        valid=valid,
        train_files=data.train,
        valid_files=valid_files,
        labels=known,
        counts=counts,
        mean=mean,
        deviation=deviation,
        n_features=train.facts["n_features"],
        n_held_out=0 if data.valid or facts.has_valid else len(valid),
        told=_told(source, facts, counts, (train, data.train), (valid, valid_files)),
        hashes=hashes,
    )


def _validation(
    source: Source, facts: LabelFacts, encoding: Encoding, hashes: Mapping[str, str], progress: Progress
) -> Corpus:
    """Return the examples of validation: of files that were given, of rows of that split, or held out."""
    data = source.data
    if not data.valid and not facts.has_valid:
        held_out = _Side(source, facts, held_out=True)
        return _encoded(held_out.key(), held_out, source, encoding, hashes, progress, keep_texts=True)
    split = "valid" if data.split_column else ""
    n_beside = 0 if data.valid else facts.n_examples
    return _screened(
        replace(source, files=data.valid or data.train, split=split, n_beside=n_beside), encoding, hashes, progress
    )


def encode_labelled(
    files: Sequence[str],
    data: DataConfig,
    tokenizer: Tokenizer | None,
    *,
    kind: str,
    labels: tuple[str, ...],
    split: str = "",
    vectors: bool = False,
    progress: Progress,
) -> Corpus:
    """Return all good examples of some files with a vocabulary and labels that are known, to be scored; texts are kept.

    `LeftOut.of` reads from its facts which rows were bad, `cut_sentence` which were cut.
    """
    _check(kind, data, vectors)
    source = Source(files=tuple(files), data=data, kind=kind, vectors=vectors, split=split)
    encoding = Encoding(
        kind=kind, vectors=vectors, tokenizer=tokenizer, labels=labels, max_length=data.max_length, trained=False
    )
    hashes = {file: content_hash(file) for file in dict.fromkeys(files)}
    return _screened(source, encoding, hashes, progress)


def label_counts(corpus: Corpus, labels: Sequence[str]) -> dict[str, int]:
    """Return how often each label occurs in a corpus."""
    if not labels:
        return {}
    numbers = corpus.ragged["tags"].values if "tags" in corpus.ragged else corpus.numbers["label"]
    return dict(zip(labels, np.bincount(numbers, minlength=len(labels)).tolist(), strict=True))


def _check(kind: str, data: DataConfig, vectors: bool) -> None:
    if kind not in KINDS:
        raise UsageError(f"There are no labelled data of the kind '{kind}'.", did_you_mean(kind, KINDS))
    if kind == "tags" and vectors:
        raise ConfigError("Words are tagged, and these files hold vectors.", "Give files of words and tags in columns.")
    if kind == "tags" and data.split_column:
        raise ConfigError(
            "data.split_column names a column of a table, and tagged words come in files of their own.",
            "Leave --split-column out, and give validation files with --valid.",
        )


@dataclass(frozen=True)
class _Side:
    """The examples of the training files that are held out, or the others; read anew at each call."""

    source: Source
    facts: LabelFacts
    held_out: bool

    def __call__(self) -> Iterator[Example]:
        return (one for one in self.source.examples() if self.facts.is_held_out(one) == self.held_out)

    def texts(self) -> Iterator[str]:
        return (text for one in self() for text in one.texts)

    def key(self) -> tuple[str, ...]:
        """What tells this side from the other in the cache."""
        return ("held out" if self.held_out else "training", repr((self.facts.limit, sorted(self.facts.kept))))


def _screened(source: Source, encoding: Encoding, hashes: Mapping[str, str], progress: Progress) -> Corpus:
    """Return all good examples of a source, encoded, with their texts; its facts say what was left out."""
    faults = Faults()
    examples = partial(source.examples, faults)
    return _encoded(("whole",), examples, source, encoding, hashes, progress, keep_texts=True, faults=faults)


def _encoded(
    key: tuple[str, ...],
    examples: Callable[[], Iterable[Example]],
    source: Source,
    encoding: Encoding,
    hashes: Mapping[str, str],
    progress: Progress,
    *,
    keep_texts: bool,
    faults: Faults | None = None,
) -> Corpus:
    """Return encoded examples from the cache, or encode them; `key` says what the source and the encoding do not.

    faults: what reading the examples fills, if that is to be remembered with them
    """
    vocabulary = encoding.tokenizer.to_json() if encoding.tokenizer is not None else ""
    fingerprint = hashlib.sha256(repr((vocabulary, encoding.labels)).encode()).hexdigest()
    settings = repr((encoding.max_length, keep_texts))

    def encode(writer: CorpusWriter) -> dict[str, object]:
        facts = LabelWriter(writer, encoding, source.files, keep_texts).write(examples(), progress)
        return facts if faults is None else {**facts, **faults.as_facts(source.files)}

    key_parts = ("labelled", _VERSION, *key, source.settings(), settings, fingerprint, *source.contents(hashes))
    return cached(key_parts, encode)


def _refuse_other_width(train: Corpus, valid: Corpus, files: Sequence[str]) -> None:
    expected, found = train.facts["n_features"], valid.facts["n_features"]
    if expected != found:
        raise DataError(
            f"{', '.join(files)}: vectors of {expected} features were expected, as in training, and {found} came.",
            "Give all files the same features.",
        )


def _spread(train: Corpus, data: DataConfig) -> tuple[float, float]:
    """Return the mean and the standard deviation of the training values."""
    values = train.numbers["value"].view(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = float(values.mean()), float(values.std())
    alike = values.min() == values.max()
    if alike or not np.isfinite([mean, deviation]).all():
        problem = f"all examples have the value {values[0]:g}" if alike else "the values are too large"
        raise DataError(f"{', '.join(data.train)}: {problem}.", "Say which column is the number with --label.")
    return mean, deviation


def _told(
    source: Source,
    facts: LabelFacts,
    counts: Mapping[str, int],
    train: tuple[Corpus, Sequence[str]],
    valid: tuple[Corpus, Sequence[str]],
) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of decisions that were taken."""
    data = source.data
    told: list[tuple[str, str]] = []
    if source.kind != "tags" and not source.vectors:
        columns = find_columns(data.train[0], data)
        told.append(("columns", columns.sentence()))
        if columns.idle_split:
            told.append(
                ("note", f"all rows are learned from; --split-column {columns.idle_split} would keep its splits apart")
            )
    if source.split and facts.limit >= 0:
        told.append(("held out", f"no row of '{data.split_column}' is of validation"))
    if facts.kept:
        told.append(("not held out", f"all examples of {_named(sorted(facts.kept))}, of which too few are there"))
    empty = [label for label, count in counts.items() if not count]
    if empty:
        told.append(("empty", f"no training example has the label {_named(empty)}"))
    told += [("left out", sentence) for sentence in facts.left_out.sentences()]
    if "reasons" in valid[0].facts:
        of_validation = LeftOut.of(valid[0].facts, valid[1]).sentences()
        told += [("left out", f"of validation, {sentence}") for sentence in of_validation]
    if leak := _leak(train[0], *valid):
        told.append(("leak", leak))
    for name, (corpus, files) in (("", train), ("of validation, ", valid)):
        if cut := cut_sentence(corpus, files, data.max_length):
            told.append(("cut", name + cut))
    return tuple(told)


def _leak(train: Corpus, valid: Corpus, files: Sequence[str]) -> str:
    """Say how many validation examples a model cannot tell from training ones, and where the first stands; "" for none."""
    column = next(name for name in ("ids", "vectors") if name in valid.ragged)
    rows: dict[bytes, list[int]] = {}
    for row in range(len(valid)):
        rows.setdefault(valid.ragged[column][row].tobytes(), []).append(row)
    known = {own for row in range(len(train)) if (own := train.ragged[column][row].tobytes()) in rows}
    found = sorted(row for own in known for row in rows[own])
    if not found:
        return ""
    file, line = (int(valid.numbers[name][found[0]]) for name in ("file", "line"))
    count = f"{len(found):,} of {len(valid):,} validation examples"
    return f"{count} are read as training examples are, first {files[file]}:{line}"


def _named(labels: Sequence[str]) -> str:
    shown = [f"'{label}'" for label in labels[:N_NAMED]]
    rest = len(labels) - len(shown)
    return listed([*shown, f"{rest:,} more"] if rest else shown)
