"""Files that come out again with what a run says of each row: tables, columns of words, sequences of vectors."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from regard.cli.options import changed
from regard.cli.predict import is_long, json_line, tell_long
from regard.cli.prediction_view import as_cells, as_lines, column_names
from regard.cli.terminal import Waiting
from regard.cli.translate import CHUNK
from regard.config import DataConfig
from regard.data.formats.conll import Tagged, is_conllu, read_tagged
from regard.data.formats.registry import row_writer
from regard.data.formats.rows import Bad, byte_lines, decode
from regard.data.labelled.rows import read_labelled
from regard.data.labelled.vectors import read_labelled_vectors
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.api import Prediction, Run

NOTHING = "_"  # in the place of a tag, where a line of CoNLL-U is no word
NO_HEADER = ("#", "-DOCSTART-")  # how lines begin that may stand in front of the first word


class Placed(Protocol):
    """Whatever stands on a line."""

    @property
    def line(self) -> int: ...


Row = TypeVar("Row", bound=Placed)


def predict_file(
    loaded: "Run", file: str, *, text: str, text_b: str, top: int, json: bool, progress: Waiting
) -> Iterator[list[str]]:
    """Yield the lines of a file with what is said of each row, some at a time."""
    data = changed(dataclasses.replace(loaded.config.data, split_column=""), text=text, text_b=text_b)
    if loaded.task.tokenizer is None:
        return _vectors(loaded, file, data, top=top, json=json, progress=progress)
    if loaded.config.task == "tag":
        return _columns(loaded, file, data, json=json, progress=progress)
    return _table(loaded, file, data, top=top, json=json, progress=progress)


def _table(
    loaded: "Run", file: str, data: DataConfig, *, top: int, json: bool, progress: Waiting
) -> Iterator[list[str]]:
    names = column_names(loaded.config.task, top=top)
    table = row_writer(file, names, columns=(data.text, data.text_b, data.label))
    rows = read_labelled([file], data, labelled=False)
    heading = table.heading()  # written with the first rows: of a file that is refused, nothing comes out
    n_rows = 0
    for answers in answered(loaded, rows, lambda row: row.text, lambda row: row.text_b, progress=progress):
        n_rows += len(answers)
        if json:
            yield [json_line(row.line, (row.text, row.text_b), one, top=top) for row, one in answers]
            continue
        written = [table.line(row.row, as_cells(one, top=top)) for row, one in answers]
        yield [*heading, *written]
        heading = []
    if not n_rows:
        raise DataError(f"{file}: there is no row in it.", "Check the step that wrote it.")


def _columns(loaded: "Run", file: str, data: DataConfig, *, json: bool, progress: Waiting) -> Iterator[list[str]]:
    lines = ColumnLines(file)
    rows = read_tagged([file], data, labelled=False)
    for answers in answered(loaded, rows, lambda row: row.words, progress=progress):
        if json:
            yield [json_line(row.line, (row.key, ""), one, top=0) for row, one in answers]
        else:
            yield lines.with_tags(tags_by_line(answers))
    if not json:
        yield lines.rest()


def _vectors(
    loaded: "Run", file: str, data: DataConfig, *, top: int, json: bool, progress: Waiting
) -> Iterator[list[str]]:
    rows = read_labelled_vectors([file], data, labelled=False)
    for answers in answered(loaded, rows, lambda row: row.vectors, progress=progress):
        if json:
            yield [json_line(row.line, (row.name, ""), one, top=top) for row, one in answers]
        else:
            yield [f"{row.name}\t{line}" for row, one in answers for line in as_lines(one, top=top)]


def answered(
    loaded: "Run",
    rows: Iterable[Row | Bad],
    text: Callable[[Row], Any],
    text_b: Callable[[Row], str] = lambda row: "",
    *,
    progress: Waiting,
) -> "Iterator[list[tuple[Row, Prediction]]]":
    """Yield rows with what is said of their texts, so many at a time; at the end, tell which were too long."""
    done = 0
    long: list[int] = []
    for chunk in in_chunks(rows):
        found = loaded.predict(
            [text(row) for row in chunk],
            texts_b=[text_b(row) for row in chunk],
            progress=progress.after(done),
        )
        answers = list(zip(chunk, found, strict=True))
        long += [row.line for row, one in answers if is_long(one)]
        yield answers
        done += len(chunk)
    tell_long(loaded, long)


def in_chunks(rows: Iterable[Row | Bad]) -> Iterator[list[Row]]:
    """Yield rows, so many at a time; a bad one is an error: each that comes in goes out."""
    waiting = iter(rows)
    while chunk := list(islice(waiting, CHUNK)):
        for row in chunk:
            if isinstance(row, Bad):
                excerpt = f" ('{row.excerpt}')" if row.excerpt else ""
                raise DataError(
                    f"{row.file}:{row.line}: {row.reason}{excerpt}.",
                    "Fix that row, or leave it out: what comes in goes out with a prediction.",
                )
        yield [row for row in chunk if not isinstance(row, Bad)]


class ColumnLines:
    """The lines of words in columns, each written again with its tag as a further column."""

    def __init__(self, file: str) -> None:
        self.is_conllu = is_conllu(file)
        self._lines = enumerate((decode(raw)[0] for raw in byte_lines(file)), start=1)
        self._begun = False

    def with_tags(self, tags: Mapping[int, str]) -> list[str]:
        """The lines up to the last that has a tag here."""
        written = []
        last = max(tags)
        for number, line in self._lines:
            written.append(self._line(line, tags.get(number)))
            self._begun = self._begun or number in tags
            if number == last:
                break
        return written

    def rest(self) -> list[str]:
        """The lines behind the last tag."""
        return [self._line(line, None) for _, line in self._lines]

    def _line(self, line: str, tag: str | None) -> str:
        """A line with its tag. One that has none, but columns as the others, keeps their number."""
        if tag is None and self.is_conllu and line[:1].isdigit():
            tag = NOTHING
        elif tag is None and not self._begun and line.strip() and not line.startswith(NO_HEADER):
            tag = "prediction"
        if tag is None:
            return line
        separator = " " if " " in line.strip() and "\t" not in line else "\t"
        return f"{line}{separator}{tag}"


def tags_by_line(answers: "Iterable[tuple[Tagged, Prediction]]") -> dict[int, str]:
    """The tag of each word by the word's line."""
    from regard.tasks.labelling.tagging import TaggedText

    return {
        line: tag
        for row, one in answers
        if isinstance(one, TaggedText)
        for line, tag in zip(row.lines, one.tags, strict=True)
    }
