"""Rows: what every reader yields, and how bytes become lines.

A line ends at the byte `\\n` and nowhere else: U+2028, U+0085 or a form feed may stand inside a sentence, and
`str.splitlines` would tear it there, so that two aligned files run apart.
"""

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from regard.data.formats.files import DAMAGE, damaged, empty, open_file
from regard.errors import DataError

# A line beyond this is no sentence and no record, but a file without line ends. It must not fill the memory.
MAX_LINE_BYTES = 1 << 24
EXCERPT_CHARACTERS = 60
NOT_UTF_8 = "not UTF-8"


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file: its texts by name. Lines count from 1.

    original: the line as it was written, where the texts do not say all of it
    """

    file: str
    line: int
    fields: dict[str, str]
    original: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that cannot be used. `reason` is a fixed phrase, so that equal reasons can be counted.

    line: its line; or the member of a folder or of a file of arrays, as "/cat/1.jpg" or ":17"
    row:  what could be read of it
    """

    file: str
    line: int | str
    reason: str
    excerpt: str = ""
    row: Row | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> str:
        """Where it stands, as people write it: FILE:LINE, FILE:INDEX, or the path of a file in a folder."""
        return place_of(self.file, self.line if isinstance(self.line, str) else f":{self.line}")


# A reader takes a file and the names of the columns that are wanted (none: whatever there is).
Reader = Callable[[str, Sequence[str]], Iterator[Row | Bad]]


def place_of(file: str, member: str) -> str:
    """Return where a member of a file or folder stands, as people write it."""
    return file.rstrip("/") + member


def byte_lines(file: str) -> Iterator[bytes]:
    """Yield each line without its end (`\\n` or `\\r\\n`) and without the file's byte order mark.

    Of a line beyond `MAX_LINE_BYTES` only the beginning comes, one byte too long, so that `decode` refuses it.
    """
    with open_file(file) as stream:
        number = 0
        try:
            while raw := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    raw = without_mark(file, raw)
                if raw.endswith(b"\n"):
                    raw = raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]
                elif len(raw) > MAX_LINE_BYTES:
                    _skip_line(stream)
                yield raw
        except DAMAGE:
            raise damaged(file, line=number) from None
    if number == 0:
        raise empty(file)


def decode(raw: bytes) -> tuple[str, str]:
    """Return the text of a line and what is wrong with it; the second is "" for a good line."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # A line cut at the limit may end within a character: that is not what is wrong with it.
        reason = "line too long" if len(raw) > MAX_LINE_BYTES else NOT_UTF_8
        return raw.decode(errors="backslashreplace"), reason
    if len(raw) > MAX_LINE_BYTES:
        return text, "line too long"
    return text, "NUL byte" if "\0" in text else ""


def holds_utf_8(file: str) -> bool:
    """Tell whether a line of a file has characters beyond ASCII, and is UTF-8."""
    return any(not raw.isascii() and not decode(raw)[1] for raw in byte_lines(file))


def read_lines(file: str) -> Iterator[str | Bad]:
    """Yield the text of each line, or why it has none."""
    for number, raw in enumerate(byte_lines(file), start=1):
        text, reason = decode(raw)
        yield Bad(file, number, reason, excerpt(text)) if reason else text


def excerpt(text: str, *, characters: int = EXCERPT_CHARACTERS) -> str:
    """Return the beginning of a text, safe to show: control characters are escaped, so that no terminal obeys them."""
    beginning = text[:characters] + ("…" if len(text) > characters else "")
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in beginning
    )


def without_mark(file: str, raw: bytes) -> bytes:
    """Return the first line of a file without its byte order mark."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{file}: UTF-8 was expected, its first bytes say UTF-16.", "Save it as UTF-8.")
    return raw.removeprefix(codecs.BOM_UTF8)


def _skip_line(stream: BinaryIO) -> None:
    while (part := stream.readline(MAX_LINE_BYTES)) and not part.endswith(b"\n"):
        pass
