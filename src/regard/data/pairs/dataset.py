"""The dataset of sentence pairs: surveyed, split by source sentence, tokenised and stored once, as two corpora of ids."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import DataConfig, TokenizerConfig
from regard.data.formats.rows import Bad, excerpt
from regard.data.pairs.rows import Pair, read_pairs
from regard.data.pipeline.corpus import TEXT, Corpus
from regard.data.pipeline.dataset import Dataset
from regard.data.pipeline.encoding import Encoding, encode_dataset, too_long
from regard.data.pipeline.source import Progress, Source, require_training_files
from regard.data.pipeline.survey import survey
from regard.data.pipeline.validation_split import HeldOut
from regard.data.text.tokenizer import SHARED, SOURCE, TARGET, Tokenizer
from regard.data.text.vocabulary import case_notes, fitted_tokenizer, given_tokenizer, learned_tokenizer

MAX_CHARACTERS = 5000
# The ratio of lengths says nothing about short sentences: "Ja." may be "Yes, of course I will."
RATIO_FROM_CHARACTERS = 40


@dataclass(frozen=True, kw_only=True)
class PairSource(Source[Pair]):
    """Files of sentence pairs; those of one source sentence fall on one side of the split.

    max_characters: a pair with a longer side is bad, as is one with a side too many times as long as the other
    """

    noun = "pair"
    held_out_by = "source"

    max_characters: int = MAX_CHARACTERS

    def read(self) -> Iterator[Pair | Bad]:
        return map(self._judged, read_pairs(self.files, source=self.data.source, target=self.data.target))

    def settings(self) -> tuple[object, ...]:
        return self.data.source, self.data.target, self.data.max_ratio, self.max_characters

    def key(self, example: Pair) -> str:
        return example.source

    def _judged(self, pair: Pair | Bad) -> Pair | Bad:
        if isinstance(pair, Bad):
            return pair
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        if longer > self.max_characters:
            return Bad(pair.file, pair.line, "too long", excerpt(pair.source))
        if longer >= RATIO_FROM_CHARACTERS and longer > self.data.max_ratio * shorter:
            return Bad(pair.file, pair.line, "lengths too different", excerpt(pair.source))
        return pair


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizers of both sides; one and the same if the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        return self.source is self.target

    @property
    def sides(self) -> dict[str, Tokenizer]:
        """The tokenizer of each side, or one for both."""
        return {"": self.source} if self.shared else {"source": self.source, "target": self.target}

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
        """Return the hashes of the files' texts."""
        return " ".join(tokenizer.fingerprint() for tokenizer in self._files().values())

    def _files(self) -> dict[str, Tokenizer]:
        return {SHARED: self.source} if self.shared else {SOURCE: self.source, TARGET: self.target}


@dataclass(frozen=True)
class PairEncoding(Encoding[Pair]):
    """Pairs as the ids of both sides; one with too many tokens is left out."""

    vocabulary: Vocabulary
    max_length: int

    def settings(self) -> tuple[object, ...]:
        return self.vocabulary.fingerprint(), self.max_length

    def columns(self) -> Mapping[str, int | str]:
        ids = {"source": self.vocabulary.source.vocab_size, "target": self.vocabulary.target.vocab_size}
        return {**ids, "source_text": TEXT, "target_text": TEXT}

    def encode(self, examples: Sequence[Pair], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        sources = self.vocabulary.source.encode_batch([pair.source for pair in examples])
        targets = self.vocabulary.target.encode_batch([pair.target for pair in examples])
        for pair, source, target in zip(examples, sources, targets, strict=True):
            if max(len(source), len(target)) > self.max_length:
                yield too_long(pair, self.max_length, pair.source)
            else:
                yield {"source": source, "target": target, "source_text": pair.source, "target_text": pair.target}


@dataclass(frozen=True, kw_only=True)
class PairDataset(Dataset[Corpus]):
    """Training and validation pairs."""

    vocabulary: Vocabulary


def prepare_pairs(
    data: DataConfig, tokenizer: TokenizerConfig, *, vocabulary: Vocabulary | None, progress: Progress
) -> PairDataset:
    """Survey, split, learn the vocabulary (unless one is given), encode or find the encoded corpora."""
    require_training_files(data)
    if vocabulary is None and (given := given_tokenizer(tokenizer)) is not None:
        vocabulary = Vocabulary(given, given)  # before the files are read, so that a wrong one is known at once
    source = PairSource(files=data.train, data=data)
    valid_source = PairSource(files=data.valid, data=data) if data.valid else None
    found = survey(source, progress)
    vocabulary = _vocabulary(vocabulary, source, found.held_out, tokenizer, progress)
    dataset = encode_dataset(source, valid_source, found, PairEncoding(vocabulary, data.max_length), progress)
    notes = (*case_notes(tokenizer, vocabulary.sides), *dataset.notes)
    return PairDataset(**{**vars(dataset), "notes": notes}, vocabulary=vocabulary)


def _vocabulary(
    given: Vocabulary | None, source: PairSource, held_out: HeldOut, config: TokenizerConfig, progress: Progress
) -> Vocabulary:
    """Return the vocabulary that is given, with the case that the text has, or learn one."""

    def made(given: Tokenizer | None, *sides: str) -> Tokenizer:
        def by_side() -> Iterator[tuple[str, ...]]:
            return (tuple(getattr(pair, side) for side in sides) for pair in source.training(held_out))

        def texts() -> Iterator[str]:
            return (text for texts in by_side() for text in texts)

        if given is not None:
            return fitted_tokenizer(config, given, by_side)
        return learned_tokenizer(config, texts, progress, sides=by_side)

    before = (None, None) if given is None else (given.source, given.target)
    if config.shared if given is None else given.shared:
        shared = made(before[0], "source", "target")
        return Vocabulary(shared, shared)
    return Vocabulary(made(before[0], "source"), made(before[1], "target"))
