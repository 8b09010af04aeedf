"""Parallel text, from files to two encoded corpora: screened, held out, tokenised, stored once.

Every pass streams: what grows with the corpus lies on the disk, and is mapped from there.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.config import DataConfig, TokenizerConfig
from regard.data.formats import Bad, Pair, read_pairs
from regard.data.formats.registry import ending_of
from regard.data.pairs.check import BAD_SHARE, ScreeningReport, content_hash, screen
from regard.data.pipeline.cache import cached
from regard.data.pipeline.corpus import Corpus, CorpusWriter
from regard.data.pipeline.validation_split import ValidationSplit, is_held_out
from regard.data.text.tokenizer import SHARED, SOURCE, TARGET, Tokenizer
from regard.data.text.vocabulary import given_tokenizer, tokenizer_for
from regard.errors import DataError

CHUNK = 4096  # pairs tokenised together
_VERSION = "3"  # of what the cache keeps; raise it when that, the screening or the way files are read changes
Progress = Callable[[str, int], None]  # what is done, and how many pairs so far


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizers of both sides; one and the same if the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        return self.source is self.target

    def save(self, folder: Path) -> None:
        """Write one file, or one of each side."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, tokenizer in self._files().items():
            tokenizer.save(folder / name)

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """Read what `save` wrote."""
        if (folder / SHARED).exists():
            shared = Tokenizer.load(folder / SHARED)
            return cls(shared, shared)
        return cls(Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET))

    def fingerprint(self) -> str:
        """Return a hash of the files' text."""
        text = "".join(tokenizer.to_json() for tokenizer in self._files().values())
        return hashlib.sha256(text.encode()).hexdigest()

    def _files(self) -> dict[str, Tokenizer]:
        return {SHARED: self.source} if self.shared else {SOURCE: self.source, TARGET: self.target}


@dataclass(frozen=True, kw_only=True)
class ParallelData:
    """Training and validation pairs, encoded, and what was seen on the way."""

    vocabulary: Vocabulary
    train: Corpus
    valid: Corpus
    screening: ScreeningReport
    n_held_out: int  # 0 where validation files were given
    hashes: Mapping[str, str]  # the content of each file


def prepare_parallel(
    data: DataConfig, tokenizer: TokenizerConfig, *, vocabulary: Vocabulary | None, progress: Progress
) -> ParallelData:
    """Read, screen, hold out, learn the vocabulary (unless one is given), encode or find the encoded corpora."""
    if not data.train:
        raise DataError("There is nothing to train on.", "Give the training files with --train.")
    if vocabulary is None and (given := given_tokenizer(tokenizer)) is not None:
        vocabulary = Vocabulary(given, given)  # before the corpus is read, so that a wrong file is known at once
    hashes = {file: content_hash(file) for file in dict.fromkeys((*data.train, *data.valid))}
    contents = {file: content + ending_of(file) for file, content in hashes.items()}
    screening, limit = _screen_once(data, contents, progress)
    training = _Pairs(data, files=data.train, keep=lambda source: not is_held_out(source, limit))
    if vocabulary is None:
        vocabulary = _learn_vocabulary(training, tokenizer, progress)
    key = (
        _VERSION,
        vocabulary.fingerprint(),
        repr((data.source, data.target, data.max_length, data.max_ratio, data.on_bad, limit)),
    )
    train = cached(
        ("training pairs", *key, *(contents[file] for file in data.train)),
        lambda writer: _encode(writer, training, vocabulary, data, progress, texts=False),
    )
    _refuse_too_many_long(train, data)
    if data.valid:
        validation = _Pairs(data, files=data.valid, keep=lambda source: True)
    else:
        validation = _Pairs(data, files=data.train, keep=lambda source: is_held_out(source, limit))
    valid = cached(
        ("validation pairs", *key, *(contents[file] for file in validation.files)),
        lambda writer: _encode(writer, validation, vocabulary, data, progress, texts=True),
    )
    for name, corpus in (("training", train), ("validation", valid)):
        if not len(corpus):
            raise DataError(f"No pair is left for {name}.", "Give more text, or give validation files with --valid.")
    n_held_out = 0 if data.valid else len(valid)
    return ParallelData(
        vocabulary=vocabulary, train=train, valid=valid, screening=screening, n_held_out=n_held_out, hashes=hashes
    )


def _screen_once(data: DataConfig, contents: Mapping[str, str], progress: Progress) -> tuple[ScreeningReport, int]:
    """Read the training files for what is wrong with them, or remember what was found in the same contents before.

    Return also the largest hash of a source that is held out, -1 for none.
    """
    valid_size = None if data.valid else data.valid_size
    settings = repr((data.source, data.target, data.max_ratio, data.on_bad, valid_size))
    key = ("screening", _VERSION, settings, *(contents[file] for file in data.train))
    found = cached(key, lambda writer: _screen_all(data, progress)).facts
    examples = {
        reason: tuple(Bad(data.train[file], line, reason, excerpt) for file, line, excerpt in bad)
        for reason, bad in found["examples"].items()
    }
    report = ScreeningReport(
        n_read=found["n_read"], n_good=found["n_good"], reasons=found["reasons"], examples=examples
    )
    return report, found["limit"]


def _screen_all(data: DataConfig, progress: Progress) -> dict[str, object]:
    """Read the training files once; return what `_screen_once` remembers as JSON, files by their number."""
    screening = screen(
        read_pairs(data.train, source=data.source, target=data.target), max_ratio=data.max_ratio, on_bad=data.on_bad
    )
    validation_split = ValidationSplit(data.valid_size)
    for count, pair in enumerate(screening, start=1):
        if not data.valid:
            validation_split.add(pair.source)
        if count % CHUNK == 0:
            progress("reading", count)
    report = screening.report
    examples = {
        reason: [(data.train.index(one.file), one.line, one.excerpt) for one in bad]
        for reason, bad in report.examples.items()
    }
    limit = -1 if data.valid else validation_split.limit()
    return {
        "n_read": report.n_read,
        "n_good": report.n_good,
        "reasons": report.reasons,
        "examples": examples,
        "limit": limit,
    }


@dataclass
class _Pairs:
    """The good pairs of some files, to be iterated as often as needed; `n_bad` is known after the first time."""

    data: DataConfig
    files: tuple[str, ...]
    keep: Callable[[str], bool]
    n_bad: int = 0

    def __iter__(self) -> Iterator[Pair]:
        pairs = read_pairs(self.files, source=self.data.source, target=self.data.target)
        screening = screen(pairs, max_ratio=self.data.max_ratio, on_bad=self.data.on_bad)
        for pair in screening:
            if self.keep(pair.source):
                yield pair
        self.n_bad = screening.report.n_bad

    def texts(self, *, source: bool, target: bool) -> Iterator[str]:
        """Yield the sentences of one side or both."""
        for pair in self:
            if source:
                yield pair.source
            if target:
                yield pair.target


def _learn_vocabulary(pairs: _Pairs, config: TokenizerConfig, progress: Progress) -> Vocabulary:
    def tokenizer(*, source: bool, target: bool) -> Tokenizer:
        progress("learning the vocabulary", 0)
        return tokenizer_for(config, lambda: pairs.texts(source=source, target=target))

    if config.shared:
        shared = tokenizer(source=True, target=True)
        return Vocabulary(shared, shared)
    return Vocabulary(tokenizer(source=True, target=False), tokenizer(source=False, target=True))


def _encode(
    writer: CorpusWriter,
    pairs: _Pairs,
    vocabulary: Vocabulary,
    data: DataConfig,
    progress: Progress,
    *,
    texts: bool,
) -> dict[str, object]:
    """Write the pairs' ids, places and (for validation) texts; pairs of too many tokens are left out and counted."""
    writer.add_ids("source", vocab_size=vocabulary.source.vocab_size)
    writer.add_ids("target", vocab_size=vocabulary.target.vocab_size)
    writer.add_numbers("file")
    writer.add_numbers("line")
    if texts:
        writer.add_text("source_text")
        writer.add_text("target_text")
    # Numbers, not names: the same text may lie elsewhere when the cache is used again.
    files = {file: number for number, file in enumerate(pairs.files)}
    n_long, first_long, done = 0, (0, 0), 0
    waiting = iter(pairs)
    while chunk := list(islice(waiting, CHUNK)):
        sources = vocabulary.source.encode_batch([pair.source for pair in chunk])
        targets = vocabulary.target.encode_batch([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            if max(len(source), len(target)) > data.max_length:
                first_long = first_long if n_long else (files[pair.file], pair.line)
                n_long += 1
                continue
            text = {"source_text": pair.source, "target_text": pair.target} if texts else {}
            writer.append(source=source, target=target, file=files[pair.file], line=pair.line, **text)
        done += len(chunk)
        progress("encoding", done)
    return {"n_bad": pairs.n_bad, "n_long": n_long, "first_long": first_long}


def _refuse_too_many_long(corpus: Corpus, data: DataConfig) -> None:
    n_long = corpus.facts["n_long"]
    total = len(corpus) + n_long
    file, line = corpus.facts["first_long"]
    if data.on_bad == "stop" and n_long > BAD_SHARE * total:
        raise DataError(
            f"{n_long:,} of {total:,} pairs are longer than {data.max_length} tokens, the first at "
            f"{data.train[file]}:{line}; at most {BAD_SHARE:.0%} may be.",
            "Raise data.max_length, split the text into sentences, or use --on-bad keep-going.",
        )
