"""The dataset of labelled examples: surveyed, split, tokenised and stored once, as two corpora of ids and labels.

A class or a number for each text, or a tag for each of its words; and the same for vectors instead of text.
Which columns a corpus has stands in `storage.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.config import DataConfig, TokenizerConfig
from regard.data.labelled.rows import find_columns
from regard.data.labelled.source import LabelledSource, TagSource, TextSource, VectorSource
from regard.data.labelled.storage import LabelEncoding, TagEncoding, TextEncoding, VectorEncoding, cut_sentence
from regard.data.labelled.vectors import are_vectors
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.dataset import Dataset, Notes
from regard.data.pipeline.encoding import encode_all, encode_dataset
from regard.data.pipeline.label_set import label_notes, sorted_labels
from regard.data.pipeline.source import Progress, require_training_files
from regard.data.pipeline.survey import Survey, survey
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.vocabulary import case_notes, fitted_tokenizer, given_tokenizer, learned_tokenizer
from regard.errors import ConfigError, DataError, UsageError, did_you_mean

KINDS = ("class", "number", "tags")  # of labels: one of several, a number, a tag for each word


@dataclass(frozen=True, kw_only=True)
class LabelledDataset(Dataset[Corpus]):
    """Training and validation examples, and what is to be predicted of them."""

    tokenizer: Tokenizer | None  # None for vectors
    labels: tuple[str, ...]  # classes or tags; none for numbers
    counts: Mapping[str, int]  # of each label in training
    mean: float  # of the training numbers; else 0
    deviation: float  # likewise; else 1
    n_features: int  # of vectors; 0 for text


def prepare_labelled(
    data: DataConfig,
    tokenizer_config: TokenizerConfig,
    *,
    kind: str,
    given: Tokenizer | None,
    labels: tuple[str, ...] | None,
    progress: Progress,
) -> LabelledDataset:
    """Survey, split, learn the vocabulary (unless one is given), encode or find the encoded corpora.

    labels: those that are known already, as from another run; None takes them from the training files
    """
    require_training_files(data)
    vectors = are_vectors((*data.train, *data.valid), tokenizer_config)
    if given is None and not vectors:
        given = given_tokenizer(tokenizer_config)  # before the files are read, so that a wrong one is known at once
    source_class, encoding_class = _classes(kind, data, vectors)
    splits = ("train",) if data.valid else ("train", "valid")
    source = source_class(files=data.train, data=data, kind=kind, splits=splits)
    valid_source = source_class(files=data.valid, data=data, kind=kind, splits=("valid",)) if data.valid else None
    found = survey(source, progress)

    def texts() -> Iterator[str]:
        return (text for one in source.training(found.held_out) for text in one.texts)

    tokenizer = None
    if not vectors and given is not None:
        tokenizer = fitted_tokenizer(tokenizer_config, given, lambda: ((text,) for text in texts()))
    elif not vectors:
        tokenizer = learned_tokenizer(tokenizer_config, texts, progress, only_read=kind != "tags")
    known = labels if labels is not None and kind != "number" else sorted_labels(found.counts)
    encoding = encoding_class(
        kind=kind, labels=known, max_length=data.max_length, trained=labels is None, tokenizer=tokenizer
    )
    dataset = encode_dataset(source, valid_source, found, encoding, progress)
    train = dataset.train
    _refuse_other_width(train, dataset.valid, data.valid)
    mean, deviation = _spread(train, data) if kind == "number" else (0.0, 1.0)
    counts = label_counts(train, known)
    of_case = case_notes(tokenizer_config, {"": tokenizer}) if tokenizer is not None else ()
    return LabelledDataset(
        **{**vars(dataset), "notes": (*of_case, *_notes(source, found, counts, dataset))},
        tokenizer=tokenizer,
        labels=known,
        counts=counts,
        mean=mean,
        deviation=deviation,
        n_features=train.facts["n_features"],
    )


def encode_labelled(
    files: Sequence[str],
    data: DataConfig,
    tokenizer: Tokenizer | None,
    *,
    kind: str,
    labels: tuple[str, ...],
    split: str = "",
    progress: Progress,
) -> Corpus:
    """Return all good examples of some files with a vocabulary (None for vectors) and labels that are known, to be scored.

    `bad_rows_of` reads from its facts which rows were bad, `cut_sentence` which were cut.
    """
    source_class, encoding_class = _classes(kind, data, tokenizer is None)
    encoding = encoding_class(kind=kind, labels=labels, max_length=data.max_length, trained=False, tokenizer=tokenizer)
    source = source_class(files=tuple(files), data=data, kind=kind, splits=(split,) if split else ())
    return encode_all(source, encoding, progress)


def _classes(kind: str, data: DataConfig, vectors: bool) -> tuple[type[LabelledSource[Any]], type[LabelEncoding[Any]]]:
    """Return how examples of a kind are read, and how they are encoded."""
    if kind not in KINDS:
        raise UsageError(f"There are no labelled data of the kind '{kind}'.", did_you_mean(kind, KINDS))
    if vectors:
        return VectorSource, VectorEncoding
    if kind != "tags":
        return TextSource, TextEncoding
    if data.split_column:
        raise ConfigError(
            "data.split_column names a column of a table, and tagged words come in files of their own.",
            "Leave --split-column out, and give validation files with --valid.",
        )
    return TagSource, TagEncoding


def label_counts(corpus: Corpus, labels: Sequence[str]) -> dict[str, int]:
    """Return how often each label occurs in a corpus."""
    if not labels:
        return {}
    numbers = corpus.ragged["tags"].values if "tags" in corpus.ragged else corpus.numbers["label"]
    return dict(zip(labels, np.bincount(numbers, minlength=len(labels)).tolist(), strict=True))


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


def _notes(source: LabelledSource[Any], found: Survey, counts: Mapping[str, int], dataset: Dataset[Corpus]) -> Notes:
    data, notes = source.data, list[tuple[str, str]]()
    if isinstance(source, TextSource):
        columns = find_columns(data.train[0], data)
        notes.append(("columns", columns.sentence()))
        if columns.idle_split:
            idle = f"all rows are learned from; --split-column {columns.idle_split} would keep its splits apart"
            notes.append(("note", idle))
    if data.split_column and found.holds_out:
        notes.append(("held out", f"no row of '{data.split_column}' is of validation"))
    labelled = source.tagged.removesuffix("s") if source.kind == "tags" else ""
    notes += label_notes("example", found.held_out.kept, counts, labelled=labelled)
    notes += dataset.notes
    of_training, of_validation = (dataset.train, dataset.train_files), (dataset.valid, dataset.valid_files)
    if leak := _leak(dataset.train, *of_validation):
        notes.append(("leak", leak))
    for name, (corpus, files) in (("", of_training), ("of validation, ", of_validation)):
        if cut := cut_sentence(corpus, files, data.max_length):
            notes.append(("cut", name + cut))
    return tuple(notes)


def _leak(train: Corpus, valid: Corpus, files: Sequence[str]) -> str:
    """Say how many validation examples a model cannot tell from training ones, and where the first stands; "" for none."""
    rows: dict[tuple[bytes, ...], list[int]] = {}
    for row in range(len(valid)):
        rows.setdefault(_inputs(valid, row), []).append(row)
    known = {own for row in range(len(train)) if (own := _inputs(train, row)) in rows}
    found = sorted(row for own in known for row in rows[own])
    if not found:
        return ""
    file, line = (int(valid.numbers[name][found[0]]) for name in ("file", "line"))
    count = f"{len(found):,} of {len(valid):,} validation examples"
    return f"{count} are read as training examples are, first {files[file]}:{line}"


def _inputs(corpus: Corpus, row: int) -> tuple[bytes, ...]:
    """Return what a model reads of an example: a text, both texts of a pair, or vectors."""
    return tuple(corpus.ragged[name][row].tobytes() for name in ("ids", "ids_b", "vectors") if name in corpus.ragged)
