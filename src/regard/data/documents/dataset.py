"""The dataset of documents: surveyed, split, tokenised and stored once, as two streams of tokens.

A stored stream is what a language model reads: the end token stands in front of every document and behind the last, so
that it ends one and begins the next. A vocabulary that has something in front of every text has it behind that.

A vocabulary that puts a space in front of each text reads a document line by line: a space takes the place of the line's
end, and words are the tokens that they are in sentences.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from typing import Any

from regard.config import DataConfig, TokenizerConfig
from regard.data.documents.rows import Piece, passages, read_documents
from regard.data.formats.rows import Bad
from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.dataset import Dataset, refuse_empty
from regard.data.pipeline.encoding import Encoding, encode_all, encode_dataset
from regard.data.pipeline.source import Progress, Source, require_training_files
from regard.data.pipeline.survey import survey
from regard.data.pipeline.validation_split import HeldOut, ValidationSplit
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import SPACED
from regard.data.text.vocabulary import case_notes, check_specials, fitted_tokenizer, given_tokenizer, learned_tokenizer
from regard.errors import ConfigError

FEW = 100  # below so many documents it is not documents that are held out, but the end of the text
# Of long documents fewer are enough, but not fewer than FEW: the loss of a token deviates by some 3 nats, so that its mean
# over a million characters, or 250,000 tokens, is known to 0.01. All of them are read at every validation.
ENOUGH_CHARACTERS = 1_000_000
TAIL = 0.1  # of the text
LONG = 1000  # characters: shorter lines and records are not cut in two


@dataclass(frozen=True, kw_only=True)
class DocumentSource(Source[Piece]):
    """Files of running text; its examples are passages of documents."""

    noun = "line"
    unit = "document"
    held_out_by = "beginning"
    chunk = 64

    def read(self) -> Iterator[Piece | Bad]:
        return read_documents(self.files, column=self.data.text, separator=self.data.separator)

    def good(self, bad_rows: BadRows | None = None) -> Iterator[Piece]:
        return passages(super().good(bad_rows))

    def settings(self) -> tuple[object, ...]:
        return self.data.text, self.data.separator

    def key(self, example: Piece) -> str | None:
        """The beginning stands for a document: equal ones are on one side."""
        return example.text if example.begins else None

    def counts(self, example: Piece) -> Mapping[str, int]:
        return {"documents": int(example.begins), "characters": len(example.text)}

    def hold_out(self, validation_split: ValidationSplit, counts: Mapping[str, int]) -> HeldOut:
        if counts["documents"] >= FEW or self.data.valid_size:
            enough = ceil(ENOUGH_CHARACTERS * counts["documents"] / max(1, counts["characters"]))
            return validation_split.held_out(enough=max(FEW, enough))
        return HeldOut(tail=int((1 - TAIL) * counts["characters"]))

    def divided(self, held_out: HeldOut) -> Iterator[tuple[str, Piece]]:
        split = "train"
        pieces = super().good()
        for passage in passages(_cut_at(held_out.tail, pieces) if held_out.tail >= 0 else pieces):
            if held_out.tail >= 0:
                split = "valid" if passage.behind else "train"
            elif passage.begins:
                split = "valid" if held_out.holds(passage.text) else "train"
            yield split, passage


def _cut_at(tail: int, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield pieces, the one in which a character stands as two, and say of each whether it is behind it."""
    place = 0
    for piece in pieces:
        cut = _cut(piece.text, tail - place)
        place += len(piece.text)
        if cut > 0:
            yield replace(piece, text=piece.text[:cut])
        if cut < len(piece.text):
            yield replace(piece, text=piece.text[cut:], begins=piece.begins and cut == 0, behind=True)


def _cut(text: str, wanted: int) -> int:
    """Where to cut a piece that is wanted up to a place: there, if it is long; but at the end of a line or word near by."""
    if wanted <= 0 or wanted >= len(text) or len(text) < LONG:
        return 0 if wanted <= 0 else len(text)
    for end in ("\n", " "):
        place = text.find(end, wanted, wanted + LONG)
        if place >= 0:
            return place + 1
    return wanted


@dataclass(frozen=True)
class DocumentEncoding(Encoding[Piece]):
    """Passages as ids, the end token between documents."""

    tokenizer: Tokenizer

    counted = ("n_tokens", "n_bytes", "n_documents", "n_unknown", "n_changed")

    def settings(self) -> tuple[object, ...]:
        return (self.tokenizer.fingerprint(),)

    def columns(self) -> Mapping[str, int | str]:
        return {"ids": self.tokenizer.vocab_size}

    def encode(self, examples: Sequence[Piece], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        texts = [_texts(passage.text, spaced=self.tokenizer.reads_lines) for passage in examples]
        first = 0 if counts["n_tokens"] else 1  # the very first passage begins a document, whatever is said of it
        begin = [passage.begins or place < first for place, passage in enumerate(examples)]
        encoded = iter(_encoded(self.tokenizer, texts, begin))
        for passage, own, begins in zip(examples, texts, begin, strict=True):
            ids = [id for text_ids in islice(encoded, len(own)) for id in text_ids]
            row = [*self.tokenizer.boundary, *ids] if begins else ids
            counts.update(
                n_tokens=len(row),
                n_bytes=len(passage.text.encode()),
                n_documents=begins,
                n_unknown=ids.count(self.tokenizer.unknown_id),
                n_changed=self.tokenizer.changes(passage.text),
            )
            yield {"ids": row}

    def last(self, counts: Counter[str]) -> Mapping[str, Any] | None:
        if not counts["n_tokens"]:
            return None
        counts["n_tokens"] += 1
        return {"ids": [self.tokenizer.end_id]}


@dataclass(frozen=True, kw_only=True)
class DocumentDataset(Dataset[Corpus]):
    """Training and validation text.

    held_out: what of the training files is held out for validation, in words; "" where other files were given
    """

    tokenizer: Tokenizer
    held_out: str


def prepare_documents(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    given: Tokenizer | None,
    progress: Progress,
    running: bool = True,
    specials: Sequence[str] = (),
) -> DocumentDataset:
    """Survey, split, learn the vocabulary (unless one is given), encode or find the encoded corpora.

    running:   for models that write text as it stands. Else the vocabulary is learned as if from sentences, which a model
               will meet in other tasks, and one that was is taken as well.
    specials:  tokens that are needed beside the four of every vocabulary
    """
    require_training_files(data)
    given = given or given_tokenizer(tokenizer)  # before the files are read, so that a wrong one is known at once
    if given is not None:
        check_specials(given, specials)
    source = DocumentSource(files=data.train, data=data)
    valid_source = DocumentSource(files=data.valid, data=data) if data.valid else None
    found = survey(source, progress)

    def texts(spaced: bool = not running and tokenizer.kind in SPACED) -> Iterator[str]:
        training = source.training(found.held_out)
        return (text for passage in training for text in _texts(passage.text, spaced=spaced))

    if given is None:
        given = learned_tokenizer(tokenizer, texts, progress, running=running, specials=specials)
    else:
        given = fitted_tokenizer(tokenizer, given, lambda: ((text,) for text in texts(spaced=False)))
    if running and given.reads_lines:
        raise ConfigError(
            "The vocabulary puts a space in front of each text: it was learned from sentences, not from running text.",
            "Take that of a language model, or let a new one be learned.",
        )
    dataset = encode_dataset(source, valid_source, found, DocumentEncoding(given), progress)
    for name, facts in (("training", dataset.train.facts), ("validation", dataset.valid.facts)):
        refuse_empty(max(0, facts["n_tokens"] - facts["n_documents"] - 1), name, "text")
    n_held_out = dataset.valid.facts["n_documents"] if found.holds_out else 0
    held_out = f"{n_held_out:,} of {found.counts['documents']:,} documents, held out" if n_held_out else ""
    if found.held_out.tail >= 0:
        held_out = f"the last {TAIL:.0%} of the text, held out"
    notes = (*case_notes(tokenizer, {"": given}), *dataset.notes)
    changed = {**vars(dataset), "n_held_out": n_held_out, "notes": notes}
    return DocumentDataset(**changed, tokenizer=given, held_out=held_out)


def encode_documents(files: Sequence[str], data: DataConfig, tokenizer: Tokenizer, *, progress: Progress) -> Corpus:
    """Return all good text of some files, encoded, to be scored; `bad_rows_of` reads which lines were bad."""
    return encode_all(DocumentSource(files=tuple(files), data=data), DocumentEncoding(tokenizer), progress)


def _encoded(tokenizer: Tokenizer, texts: Sequence[Sequence[str]], begin: Sequence[bool]) -> Iterator[list[int]]:
    """Encode the texts of passages; where a passage goes on, an imported vocabulary puts no space in front of it."""
    if tokenizer.continuing is tokenizer:
        yield from tokenizer.encode_batch([text for own in texts for text in own])
        return
    for own, begins in zip(texts, begin, strict=True):
        yield from (tokenizer if begins else tokenizer.continuing).encode_batch(own)


def _texts(passage: str, *, spaced: bool) -> list[str]:
    """What of a passage is encoded as one text: all of it; or each line, where a space in front sets lines apart."""
    return [line for line in passage.split("\n") if line.strip()] if spaced else [passage]
