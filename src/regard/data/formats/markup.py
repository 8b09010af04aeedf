"""XML, streamed and safe: the ground under TMX and XLIFF.

expat is driven directly: it tells the line of each element, keeps nothing of what it has read, and fetches nothing. The
declaration of an entity is refused, since a few lines of them expand to gigabytes; a DOCTYPE as such is harmless.
XML states its own encoding, so that UTF-16 is read here, and every encoding of single bytes.
"""

import re
from collections.abc import Iterator
from xml.parsers import expat

from regard.data.formats.columns import folded
from regard.data.formats.files import CHUNK_BYTES, DAMAGE, damaged, open_file
from regard.data.formats.rows import Row, excerpt
from regard.errors import DataError

XML_LANG = "http://www.w3.org/XML/1998/namespace lang"
# Elements whose content is the code of the original document, not text (TMX 1.4, XLIFF 1.2).
NATIVE_CODE = frozenset({"bpt", "ept", "it", "ph", "ut"})
# Codes that stand alone: a line break, a picture, a placeholder. They part words, as in Hello<ph/>World. Codes that come
# in twos do not: they are the style of the text between them, as of the 2 in CO<bpt/>2<ept/>.
LONE_CODE = frozenset({"it", "ph", "ut", "x"})
UNKNOWN_ENCODING = expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]
MAX_LANGUAGES = 1000  # of a file: more of them are no codes of languages
_MARK = "\0"  # where a code stood alone; no XML can hold it
_PARTING = re.compile(rf"(?<=[\w.,:;!?]){_MARK}+(?=\w)")
_LINE_BREAK = re.compile(r"[ \t\r\n]*\n[ \t\r\n]*")


class Units:
    """The elements of a file as they pass by; a format overrides `start` and `end` and puts its rows into `rows`."""

    root = ""
    format = ""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: list[Row] = []
        self.open: list[str] = []  # the names of the open elements, the innermost last
        self._text: list[str] | None = None  # what was read of the text that is being collected
        self._codes = 0  # how many elements with native code are open
        self._spellings: dict[str, str] = {}  # how the file first spelt each language

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """Note that an element begins; `open` ends with its parent."""
        raise NotImplementedError

    def end(self, name: str) -> None:
        """Note that an element has ended; `open` ends with its parent."""
        raise NotImplementedError

    def begin_text(self) -> None:
        """Collect the text from here on, without codes."""
        self._text = []

    def end_text(self) -> str:
        """Return the text since `begin_text`. Space around it and line breaks inside are the layout of the file."""
        text = "".join(self._text or ())
        self._text = None
        if "\n" in text:
            text = _LINE_BREAK.sub(" ", text)
        if _MARK in text:
            text = _PARTING.sub(" ", text).replace(_MARK, "")
        return text.strip()

    def language(self, code: str) -> str:
        """Return a language as the file spelt it first: en-US and EN-US are one."""
        spelling = self._spellings.setdefault(folded(code), code)
        if len(self._spellings) > MAX_LANGUAGES:
            raise DataError(
                f"{self.file}: more than {MAX_LANGUAGES:,} languages are in it, such as '{excerpt(code, characters=20)}'.",
                "Check the step that wrote it: a language is a code such as en or pt-BR.",
            )
        return spelling

    def element_starts(self, name: str, attributes: dict[str, str], line: int) -> None:
        """Take an element from the parser."""
        name = name.rpartition(" ")[2]  # without its namespace
        if not self.open and name != self.root:
            raise DataError(
                f"{self.file}: {self.format} begins with <{self.root}>, this file with <{name}>.",
                "Check the file's ending.",
            )
        if name in LONE_CODE:
            self.characters(_MARK)
        self._codes += name in NATIVE_CODE
        self.start(name, attributes, line)
        self.open.append(name)

    def element_ends(self, name: str) -> None:
        """Take the end of an element from the parser."""
        self.open.pop()
        name = name.rpartition(" ")[2]
        self._codes -= name in NATIVE_CODE
        self.end(name)

    def characters(self, text: str) -> None:
        """Take text from the parser."""
        if self._text is not None and not self._codes:
            self._text.append(text)


def read_units(units: Units) -> Iterator[Row]:
    """Yield the rows of the file of `units`, in constant memory."""
    file = units.file
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: units.element_starts(
        name, attributes, parser.CurrentLineNumber
    )
    parser.EndElementHandler = units.element_ends
    parser.CharacterDataHandler = units.characters

    def refuse_declaration(name: str, *_: object) -> None:
        raise DataError(
            f"{file}:{parser.CurrentLineNumber}: the entity '{name}' is declared; entities are not expanded.",
            "Write the file again without a DTD of its own.",
        )

    def refuse_entity(name: str, _: bool) -> None:
        raise DataError(
            f"{file}:{parser.CurrentLineNumber}: the entity &{name}; is not defined.", "Write the character itself."
        )

    encodings: list[str | None] = []  # what the XML declaration says, once it is read
    parser.XmlDeclHandler = lambda version, encoding, standalone: encodings.append(encoding)
    parser.EntityDeclHandler = refuse_declaration
    parser.SkippedEntityHandler = refuse_entity
    with open_file(file) as stream:
        final = False
        while not final:
            try:
                chunk = stream.read(CHUNK_BYTES)
            except DAMAGE:
                raise damaged(file, line=parser.CurrentLineNumber) from None
            final = not chunk
            try:
                parser.Parse(chunk, final)
            except expat.ExpatError as error:
                if error.code == UNKNOWN_ENCODING:
                    raise _foreign(file, encodings) from None
                problem = f"{file}:{error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})."
                raise DataError(problem, "Export the file again, or repair that line.") from None
            except (ValueError, LookupError):
                # Python looks for the encodings that expat does not know, and raises these before the first element.
                if units.open:
                    raise
                raise _foreign(file, encodings) from None
            yield from units.rows
            units.rows.clear()


def _foreign(file: str, encodings: list[str | None]) -> DataError:
    named = excerpt(str(encodings[-1]), characters=20)
    return DataError(f"{file}:1: XML in the encoding {named} cannot be read.", "Convert it to UTF-8.")
