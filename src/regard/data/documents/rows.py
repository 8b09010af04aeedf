"""Documents: running text as a stream, what a language model learns from.

A document is a text file; or, where a separator line is named, what stands between two of them; or one record of a table.
It may be larger than memory, and so it comes in pieces: a line with its end, some of a very long line, a record.
"""

import codecs
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from regard.data.formats.columns import TEXTS, called, find
from regard.data.formats.files import DAMAGE, check_files, damaged, open_file
from regard.data.formats.registry import TEXT, Fields, format_of, read_rows
from regard.data.formats.rows import Bad, decode, excerpt, without_mark
from regard.errors import DataError, did_you_mean

PART_BYTES = 1 << 16  # a line beyond this comes in pieces: a file may be one line
PASSAGE_CHARACTERS = 1 << 15  # about so many are tokenised at once


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of a document, and where it stands; `begins` where another document begins with it.

    behind: whether it stands behind the place from which on a text is held out
    """

    text: str
    file: str
    line: int
    begins: bool
    behind: bool = False


def read_documents(
    files: Sequence[str | os.PathLike[str]], *, column: str = "", separator: str = ""
) -> Iterator[Piece | Bad]:
    """Yield the pieces of all documents of `files`, in order.

    column:     which column, key or language holds the text, in files that have several
    separator:  a line that stands between two documents of a text file, and belongs to neither
    Missing and empty files are errors at once, not at the first piece.
    """
    names = check_files(files, "Name one or more text files.")
    return chain.from_iterable(
        _from_text(name, separator) if format_of(name) is TEXT else _from_records(name, column) for name in names
    )


def _from_text(file: str, separator: str) -> Iterator[Piece | Bad]:
    begins = True
    for number, raw in _raw_parts(file):
        text, reason = decode(raw)
        if reason:
            yield Bad(file, number, reason, excerpt(text))
        elif separator and text.strip() == separator.strip():
            begins = True
        else:
            yield Piece(text, file, number, begins)
            begins = False


def _raw_parts(file: str) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of each line, its end as \\n, with the line's number; a long one in pieces of whole characters."""
    with open_file(file) as stream:
        number, rest = 1, b""
        try:
            while raw := stream.readline(PART_BYTES):
                raw = rest + (without_mark(file, raw) if number == 1 and not rest else raw)
                rest = b""
                if raw.endswith(b"\n"):
                    yield number, raw[:-2] + b"\n" if raw.endswith(b"\r\n") else raw
                    number += 1
                else:
                    raw, rest = _whole_characters(raw)
                    if raw:
                        yield number, raw
        except DAMAGE:
            raise damaged(file, line=number - 1) from None
        if rest:
            yield number, rest


def _whole_characters(raw: bytes) -> tuple[bytes, bytes]:
    """Cut bytes before a character that is not whole, or a carriage return whose line feed may follow."""
    whole = codecs.getincrementaldecoder("utf-8")(errors="replace")
    whole.decode(raw)
    rest, _ = whole.getstate()
    if not rest and raw.endswith(b"\r"):
        rest = b"\r"
    return raw[: len(raw) - len(rest)], rest


def _from_records(file: str, column: str) -> Iterator[Piece | Bad]:
    """Yield each record's text as a document of its own; a unit without the wanted language is passed over."""
    fields = format_of(file).fields
    found = False
    only = ""  # the name of the text where every record so far has one field, and it is not called text
    seen: dict[str, None] = {}  # names of fields
    for row in read_rows(file, columns=(column or "text", "")):
        if isinstance(row, Bad):
            yield row
            continue
        names = list(row.fields)
        seen |= dict.fromkeys(names)
        name = find(file, column or "text", names)
        if name is None and not column and fields is Fields.COLUMNS:
            name = called(names, TEXTS) or None
        if only and name is not None:
            problem = f"{file}:{row.line}: this record has its text under '{name}', those before it under '{only}'."
            raise DataError(problem, "Name the column with --text.")
        if name is None and not column and len(names) == 1 and (names[0] == only or not found):
            name = only = names[0]
        if name is None and fields is Fields.COLUMNS:
            break  # no row has it
        text = row.fields[name] if name is not None else ""
        if text.strip():
            found = True
            yield Piece(text, file, row.line, True)
        elif fields is not Fields.LANGUAGES:
            yield Bad(file, row.line, "no text", excerpt(next(iter(row.fields.values()), "")))
    if not found:
        raise _no_column(file, column, list(seen))


def _no_column(file: str, wanted: str, names: list[str]) -> DataError:
    """Say that no text was found, and which names there are instead."""
    if wanted:
        return DataError(f"{file}: there is no text under '{wanted}'.", did_you_mean(wanted, names))
    return DataError(f"{file}: which of its columns is the text: {', '.join(names)}?", "Name it with --text.")


def passages(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join pieces of a document until there is enough to tokenise at once.

    They are cut between two lines that meet in a single line end: there, a tokenizer that looks at one passage sees the same
    words as one that looks at the whole document. Where no such place comes, passages are cut all the same.
    """
    waiting: list[Piece] = []
    size = 0
    for piece in pieces:
        full = size >= PASSAGE_CHARACTERS and (size >= 8 * PASSAGE_CHARACTERS or _meet_simply(waiting[-1], piece))
        apart = bool(waiting) and (piece.file, piece.behind) != (waiting[0].file, waiting[0].behind)
        if waiting and (piece.begins or full or apart):
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append(piece)
        size += len(piece.text)
    if waiting:
        yield _joined(waiting)


def _meet_simply(before: Piece, after: Piece) -> bool:
    body = before.text.removesuffix("\n")
    return body != before.text and not body[-1:].isspace() and body != "" and not after.text[:1].isspace()


def _joined(pieces: list[Piece]) -> Piece:
    first = pieces[0]
    return replace(first, text="".join(piece.text for piece in pieces))
