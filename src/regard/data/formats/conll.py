"""CoNLL: tagged words, a word a line with its tag, in columns, and a blank line behind each sentence.

Columns are parted by tabs where a file's first line has one, else by spaces. The word is the first and the tag the last
of them; in CoNLL-U (a name that ends in .conllu) they are the second, `form`, and the fourth, `upos`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import DataConfig
from regard.data.formats.columns import asked_column, plain
from regard.data.formats.files import check_files
from regard.data.formats.rows import Bad, excerpt, read_lines
from regard.errors import DataError

MAX_WORDS = 50_000  # a sentence beyond this is a file without blank lines
CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_WORDS = ("word", "words", "token", "tokens", "form")
_TAGS = ("tag", "tags", "label", "labels", "pos", "upos", "xpos", "ner", "nertag", "nertags", "postag")
_NO_WORD = re.compile(
    r"[0-9]+[-.][0-9]+"
)  # CoNLL-U: a range of words written as one (1-2), a word that is not written (1.1)


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence, a tag for each (none at all where none is asked for), and where it begins.

    lines: the line of each word
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    file: str
    line: int
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)
    split: ClassVar[str] = ""  # such files have none

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tags

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def key(self) -> str:
        """The sentence as text; what decides whether it is held out."""
        return " ".join(self.words)


def read_tagged(files: Sequence[str], data: DataConfig, *, labelled: bool = True) -> Iterator[Tagged | Bad]:
    """Yield the sentences of files in their order; one with a bad line is left out, and that line comes instead.

    `data.text` and `data.label` name the columns of words and tags: numbers from 1, or names where a file has such.
    labelled: whether tags are wanted
    """
    names = check_files(files, "Name one or more files of words and tags in columns.")
    return (sentence for file in names for sentence in _Sentences(file, data, labelled))


@dataclass
class _Layout:
    """How the lines of a file are read: what parts the columns, how many there are, which are wanted."""

    separator: str  # a tab, or a space, of which there may be several
    n_columns: int
    word: int
    tag: int  # -1 where none is wanted
    is_conllu: bool


@dataclass
class _Sentences:
    """The sentences of one file."""

    file: str
    data: DataConfig
    labelled: bool
    layout: _Layout | None = None
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    fault: Bad | None = None
    seen: set[str] = field(default_factory=set)  # tags

    def __iter__(self) -> Iterator[Tagged | Bad]:
        for number, line in enumerate(read_lines(self.file), start=1):
            if isinstance(line, Bad):
                self.fault = self.fault or line
            elif not line.strip() or line.startswith("-DOCSTART-"):
                yield from self._finish()
            else:
                self._add(number, line)
        yield from self._finish()

    def _finish(self) -> Iterator[Tagged | Bad]:
        if self.fault is not None:
            yield self.fault
        elif self.words:
            self.seen.update(self.tags)
            yield Tagged(tuple(self.words), tuple(self.tags), self.file, self.lines[0], tuple(self.lines))
        self.words, self.tags, self.lines, self.fault = [], [], [], None

    def _add(self, number: int, line: str) -> None:
        """Take the word and the tag of a line, or note what is wrong with it."""
        if line[0] == "#" and self._is_comment(line):
            return
        if self.layout is None:
            self.layout, is_header = _layout(self.file, number, line, self.data, self.labelled)
            if is_header:
                return
        layout = self.layout
        cells = _cells(line, layout.separator)
        if len(cells) != layout.n_columns:
            columns = f"{layout.n_columns} column{'' if layout.n_columns == 1 else 's'}"
            self._note(number, f"{columns} expected, {len(cells)} found", line)
            return
        if layout.is_conllu and _NO_WORD.fullmatch(cells[0]):
            return
        word, tag = cells[layout.word].strip(), cells[layout.tag].strip() if layout.tag >= 0 else ""
        if not word or (layout.tag >= 0 and not tag):
            self._note(number, "empty tag" if word else "empty word", line)
            return
        self.lines.append(number)
        self.words.append(word)
        if layout.tag >= 0:
            self.tags.append(tag)
        if len(self.words) > MAX_WORDS:
            raise DataError(
                f"{self.file}:{self.lines[0]}: a sentence of more than {MAX_WORDS:,} words begins here.",
                "Put a blank line behind each sentence.",
            )

    def _note(self, number: int, reason: str, line: str) -> None:
        self.fault = self.fault or Bad(self.file, number, reason, excerpt(line))

    def _is_comment(self, line: str) -> bool:
        """Tell whether a line that begins with # is a comment.

        In text from the web # may be a word: then its tag is one that came before.
        """
        if is_conllu(self.file):
            return True
        if not line.startswith("# ") or "\t" in line:
            return False
        if self.layout is None or self.layout.separator == "\t":
            return True
        cells = _cells(line, " ")
        if len(cells) != self.layout.n_columns:
            return True
        known = self.seen.union(self.tags)
        return not self.words and self.layout.tag >= 0 and cells[self.layout.tag] not in known


def _cells(line: str, separator: str) -> list[str]:
    # Not str.split(): a space that does not break, as in 10 000, belongs to its word.
    return line.split("\t") if separator == "\t" else [cell for cell in line.split(" ") if cell]


def is_conllu(file: str) -> bool:
    """Tell by its name whether a file is CoNLL-U."""
    return file.lower().removesuffix(".gz").endswith(".conllu")


def _layout(file: str, number: int, line: str, data: DataConfig, labelled: bool) -> tuple[_Layout, bool]:
    """Return how a file is read that begins with such a line, and whether that line is a header."""
    conllu = is_conllu(file)
    separator = "\t" if "\t" in line or conllu else " "
    cells = _cells(line, separator)
    if conllu and len(cells) != len(CONLLU):
        raise DataError(
            f"{file}:{number}: CoNLL-U has {len(CONLLU)} columns parted by tabs, and {len(cells)} came.",
            "Fix the file, or give it another name, such as words.conll.",
        )
    names = [plain(cell) for cell in cells]
    asked = [plain(name) for name in (data.text, data.label) if name and not name.isdecimal()]
    is_header = not conllu and (
        (names[0] in _WORDS and names[-1] in _TAGS) or (bool(asked) and all(name in names for name in asked))
    )
    numbered = [str(column) for column in range(1, len(cells) + 1)]
    counts = Counter(cells)
    named = [cell if counts[cell] == 1 else number for cell, number in zip(cells, numbered, strict=True)]
    fields = dict(zip(CONLLU if conllu else named if is_header else numbered, cells, strict=True))
    columns = list(fields)
    place = f"{file}:{number}"
    word = columns.index(asked_column(place, data.text, fields) or columns[1 if conllu else 0])
    tag = -1
    if labelled:
        tag = columns.index(asked_column(place, data.label, fields) or columns[3 if conllu else -1])
        if word == tag:
            raise _no_tag(file, number, word, len(cells))
    return _Layout(separator, len(cells), word, tag, conllu), is_header


def _no_tag(file: str, number: int, word: int, n_columns: int) -> DataError:
    if n_columns == 1:
        return DataError(
            f"{file}:{number}: a word and its tag were expected, one column came.",
            "Write a line for each word: the word, a tab, its tag.",
        )
    return DataError(
        f"{file}:{number}: the words and the tags cannot both be column {word + 1}.",
        "Name two columns with --text and --label.",
    )
