"""Running text, from files to encoded corpora: read, held out, tokenised, stored once.

The stored stream of tokens is what a language model reads: the end token stands in front of every document and behind
the last, so that it ends one and begins the next. Every pass streams: what grows with the corpus lies on the disk.

A vocabulary that puts a space in front of each text reads a document line by line: a space takes the place of the line's
end, and words are the tokens that they are in sentences.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from regard.config import DataConfig, TokenizerConfig
from regard.data.documents.rows import Piece, passages
from regard.data.formats.registry import ending_of
from regard.data.pairs.check import content_hash
from regard.data.pipeline.bad_rows import (
    TAIL,
    Faults,
    LeftOut,
    Progress,
    TextFacts,
    allowed_share,
    good_pieces,
    look_through,
    text_column,
)
from regard.data.pipeline.cache import cached
from regard.data.pipeline.corpus import Corpus, CorpusWriter
from regard.data.pipeline.validation_split import is_held_out
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import SPACED
from regard.data.text.vocabulary import check_specials, tokenizer_for
from regard.errors import ConfigError, DataError

CHUNK = 64  # passages tokenised together
LONG = 1000  # characters: shorter lines and records are not cut in two
_VERSION = "3"  # of what the cache keeps; raise it when that or the way files are read changes


@dataclass(frozen=True, kw_only=True)
class TextData:
    """Training and validation text, encoded, and what was seen on the way."""

    tokenizer: Tokenizer
    train: Corpus
    valid: Corpus
    facts: TextFacts
    hashes: Mapping[str, str]  # the content of each file

    def held_out(self) -> str:
        """Say what of the training files is held out for validation; nothing where other files were given."""
        if self.facts.tail >= 0:
            return f"the last {TAIL:.0%} of the text, held out"
        if self.facts.limit >= 0:
            return f"{self.valid.facts['n_documents']:,} of {self.facts.n_documents:,} documents, held out"
        return ""

    def left_out(self, valid: Sequence[str]) -> list[str]:
        """Say which lines were bad, also of the validation files, if any were given."""
        sentences = self.facts.left_out.sentences()
        if valid:
            of_validation = LeftOut.of(self.valid.facts, valid)
            sentences += [f"of validation, {sentence}" for sentence in of_validation.sentences()]
        return sentences


def prepare_text(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    given: Tokenizer | None,
    progress: Progress,
    running: bool = True,
    specials: Sequence[str] = (),
) -> TextData:
    """Read, hold out, learn the vocabulary (unless one is given), encode or find the encoded corpora.

    running:   for models that write text as it stands. Else the vocabulary is learned as if from sentences, which a model
               will meet in other tasks, and one that was is taken as well.
    specials:  tokens that are needed beside the four of every vocabulary
    """
    if not data.train:
        raise DataError("There is nothing to train on.", "Give the training files with --train.")
    if given is not None:
        check_specials(given, specials)
    hashes = {file: content_hash(file) for file in dict.fromkeys((*data.train, *data.valid))}
    contents = {file: content + ending_of(file) for file, content in hashes.items()}
    facts = look_through(data, contents, progress)
    training = _Side(data, facts, held_out=False)
    if given is None:
        progress("learning the vocabulary", 0)
        spaced = not running and tokenizer.kind in SPACED
        given = tokenizer_for(
            tokenizer,
            lambda: (text for passage in training() for text in _texts(passage.text, spaced=spaced)),
            running=running,
            specials=specials,
        )
    if running and given.spaced:
        raise ConfigError(
            "The vocabulary puts a space in front of each text: it was learned from sentences, not from running text.",
            "Take that of a language model, or let a new one be learned.",
        )
    sides = repr((data.on_bad, facts.limit, facts.tail))
    train = _encoded(("training", sides), training, data.train, data, given, progress)
    if data.valid:
        valid = text_corpus(data.valid, data, given, share=allowed_share(data.on_bad), progress=progress)
    else:
        valid = _encoded(("held out", sides), _Side(data, facts, held_out=True), data.train, data, given, progress)
    for name, corpus in (("training", train), ("validation", valid)):
        if corpus.facts["n_tokens"] < corpus.facts["n_documents"] + 2:
            raise DataError(f"No text is left for {name}.", "Give more text, or give validation files with --valid.")
    return TextData(tokenizer=given, train=train, valid=valid, facts=facts, hashes=hashes)


def text_corpus(
    files: Sequence[str], data: DataConfig, tokenizer: Tokenizer, *, share: float, progress: Progress
) -> Corpus:
    """Return all good text of some files, encoded; DataError if more than a share of its lines is bad.

    `LeftOut.of` reads from its facts which lines were bad.
    """
    faults = Faults()
    return _encoded(
        ("whole", repr(share)),
        lambda: whole_text(files, data, share=share, faults=faults),
        files,
        data,
        tokenizer,
        progress,
        faults=faults,
    )


def whole_text(
    files: Sequence[str], data: DataConfig, *, share: float, faults: Faults | None = None
) -> Iterator[Piece]:
    """Yield the passages of all good text; DataError at the end if more than a share of the lines is bad."""
    return passages(good_pieces(files, data, share=share, faults=faults))


def _encoded(
    key: tuple[str, ...],
    text: Callable[[], Iterable[Piece]],
    files: Sequence[str],
    data: DataConfig,
    tokenizer: Tokenizer,
    progress: Progress,
    *,
    faults: Faults | None = None,
) -> Corpus:
    """Return encoded text from the cache, or encode it; `key` says what the files' contents and the settings do not.

    faults: what reading the text fills, if that is to be remembered with it
    """
    contents = [content_hash(file) + ending_of(file) for file in files]
    vocabulary = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    settings = repr((text_column(data), data.separator))

    def encode(writer: CorpusWriter) -> dict[str, object]:
        counts = _encode(writer, text(), files, tokenizer, progress)
        return counts if faults is None else {**counts, **faults.as_facts(files)}

    return cached(("text", _VERSION, *key, settings, vocabulary, *contents), encode)


def _encode(
    writer: CorpusWriter, text: Iterable[Piece], files: Sequence[str], tokenizer: Tokenizer, progress: Progress
) -> dict[str, object]:
    """Write the tokens of all passages with their places, the end token between documents; return counts."""
    writer.add_ids("ids", vocab_size=tokenizer.vocab_size)
    writer.add_numbers("file")
    writer.add_numbers("line")
    # Numbers, not names: the same text may lie elsewhere when the cache is used again.
    numbers = {file: number for number, file in enumerate(files)}
    n_tokens = n_bytes = n_documents = n_unknown = file = line = 0
    waiting = iter(text)
    while chunk := list(islice(waiting, CHUNK)):
        for passage, ids in zip(chunk, _encode_passages([one.text for one in chunk], tokenizer), strict=True):
            file, line = numbers[passage.file], passage.line
            begins = passage.begins or n_tokens == 0
            row = [tokenizer.end_id, *ids] if begins else ids
            writer.append(ids=row, file=file, line=line)
            n_tokens += len(row)
            n_documents += begins
            n_bytes += len(passage.text.encode())
            n_unknown += ids.count(tokenizer.unknown_id)
        progress("encoding", line)
    if n_tokens:
        writer.append(ids=[tokenizer.end_id], file=file, line=line)
        n_tokens += 1
    return {"n_tokens": n_tokens, "n_bytes": n_bytes, "n_documents": n_documents, "n_unknown": n_unknown}


def _encode_passages(passages: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Encode each passage, as many texts as `_texts` finds in it."""
    texts = [_texts(passage, spaced=tokenizer.spaced) for passage in passages]
    encoded = iter(tokenizer.encode_batch([text for own in texts for text in own]))
    return [[id for ids in islice(encoded, len(own)) for id in ids] for own in texts]


def _texts(passage: str, *, spaced: bool) -> list[str]:
    """What of a passage is encoded as one text: all of it; or each line, where a space in front sets lines apart."""
    return [line for line in passage.split("\n") if line.strip()] if spaced else [passage]


@dataclass(frozen=True)
class _Side:
    """The passages of the training files that are held out, or the others; read anew at each call."""

    data: DataConfig
    facts: TextFacts
    held_out: bool

    def __call__(self) -> Iterator[Piece]:
        pieces = good_pieces(self.data.train, self.data, share=allowed_share(self.data.on_bad))
        if self.facts.tail >= 0:
            yield from passages(self._behind_or_before(pieces))
            return
        inside = False
        for passage in passages(pieces):
            if passage.begins:
                inside = is_held_out(passage.text, self.facts.limit)
            if inside == self.held_out:
                yield passage

    def _behind_or_before(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield the pieces behind the place from which on the text is held out, or those before it."""
        place = 0
        for piece in pieces:
            cut = _cut(piece.text, self.facts.tail - place)
            place += len(piece.text)
            text = piece.text[cut:] if self.held_out else piece.text[:cut]
            if text:
                yield replace(piece, text=text, begins=piece.begins and (cut == 0 or not self.held_out))


def _cut(text: str, wanted: int) -> int:
    """Where to cut a piece that is wanted up to a place: there, if it is long; but at the end of a line or word near by."""
    if wanted <= 0 or wanted >= len(text) or len(text) < LONG:
        return 0 if wanted <= 0 else len(text)
    for end in ("\n", " "):
        place = text.find(end, wanted, wanted + LONG)
        if place >= 0:
            return place + 1
    return wanted
