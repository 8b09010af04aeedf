"""What `regard predict --data` prints: a table, a CoNLL file or sequences of vectors, each row with its prediction."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from regard.cli import lines
from regard.cli.lines import Predictor, Shown, Truncations
from regard.cli.options import given
from regard.config import DataConfig
from regard.data.formats.conll import Tagged, is_conllu, read_tagged
from regard.data.formats.registry import row_writer
from regard.data.formats.rows import Bad, byte_lines, decode
from regard.data.formats.writing import RowWriter
from regard.data.labelled.rows import read_labelled
from regard.data.labelled.vectors import read_labelled_vectors
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.tasks.results import Result

NOTHING = "_"  # in the place of a tag, where a line of CoNLL-U is no word
NO_HEADER = ("#", "-DOCSTART-")  # how lines begin that may stand in front of the first word


class Placed(Protocol):
    """Whatever stands on a line."""

    @property
    def line(self) -> int: ...


Row = TypeVar("Row", bound=Placed)


def predict_file(predict: Predictor, show: Shown, file: str, *, text: str, text_b: str) -> Iterator[list[str]]:
    """Yield the lines of a file with the prediction for each row, some at a time."""
    own = dataclasses.replace(predict.run.config.data, split_column="")
    data = dataclasses.replace(own, **given({"text": text, "text_b": text_b}))
    if predict.run.task.tokenizer is None:
        return _vectors(predict, show, file, data)
    return (_words if predict.run.spec.reads == "words" else _table)(predict, show, file, data)


def _table(predict: Predictor, show: Shown, file: str, data: DataConfig) -> Iterator[list[str]]:
    """A table: its rows as they are, with further columns."""
    writer: RowWriter | None = None
    rows = read_labelled([file], data, labelled=False)
    for found in predicted(predict, file, rows, lambda row: row.text, lambda row: row.text_b):
        if show.json:
            yield [line for row, one in found for line in show(one, **_facts(row.line, row.text, row.text_b))]
            continue
        cells = [one.cells(top=show.top) for _, one in found]
        heading: list[str] = []
        if writer is None:  # only now is it known which columns are added
            writer = row_writer(file, list(cells[0]), columns=(data.text, data.text_b, data.label))
            heading = writer.heading()
        yield heading + [writer.line(row.row, list(own.values())) for (row, _), own in zip(found, cells, strict=True)]


def _words(predict: Predictor, show: Shown, file: str, data: DataConfig) -> Iterator[list[str]]:
    """A CoNLL file: its lines as they are, with the tag as a further column."""
    written = ColumnLines(file)
    for found in predicted(predict, file, read_tagged([file], data, labelled=False), lambda row: row.words):
        if show.json:
            yield [line for row, one in found for line in show(one, **_facts(row.line, row.key))]
        else:
            yield written.with_tags(tags_by_line(found))
    if not show.json:
        yield written.rest()


def _vectors(predict: Predictor, show: Shown, file: str, data: DataConfig) -> Iterator[list[str]]:
    """Sequences of vectors: their names, each with its prediction."""
    rows = read_labelled_vectors([file], data, labelled=False)
    for found in predicted(predict, file, rows, lambda row: row.vectors):
        yield [
            line if show.json else f"{row.name}\t{line}"
            for row, one in found
            for line in show(one, **_facts(row.line, row.name))
        ]


def _facts(line: int, text: str, text_b: str = "") -> dict[str, Any]:
    """What is known of an input, for JSON."""
    return {"line": line, "text": text} | ({"text_b": text_b} if text_b else {})


def predicted(
    predict: Predictor,
    file: str,
    rows: Iterable[Row | Bad],
    text: Callable[[Row], Any],
    text_b: Callable[[Row], str] = lambda row: "",
) -> "Iterator[list[tuple[Row, Result]]]":
    """Yield rows with their predictions, so many at a time; at the end, tell which were too long."""
    truncations = Truncations()
    n_rows = 0
    for chunk in in_chunks(rows):
        texts_b = tuple(map(text_b, chunk))
        results = predict([text(row) for row in chunk], **({"texts_b": texts_b} if any(texts_b) else {}))
        found = list(zip(chunk, results, strict=True))
        for row, one in found:
            truncations.add(row.line, one.truncation)
        yield found
        n_rows += len(found)
    if not n_rows:
        raise DataError(f"{file} has no rows.", "Check the step that wrote it.")
    truncations.tell()


def in_chunks(rows: Iterable[Row | Bad]) -> Iterator[list[Row]]:
    """Yield rows, so many at a time; a bad one is an error: every row gets a prediction."""
    waiting = iter(rows)
    while chunk := list(islice(waiting, lines.CHUNK)):
        for row in chunk:
            if isinstance(row, Bad):
                excerpt = f" ('{row.excerpt}')" if row.excerpt else ""
                raise DataError(
                    f"{row.file}:{row.line}: {row.reason}{excerpt}.",
                    "Fix that row, or remove it: every row gets a prediction.",
                )
        yield [row for row in chunk if not isinstance(row, Bad)]


class ColumnLines:
    """The lines of a CoNLL file, each written again with its tag as a further column."""

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
        """The lines after the last tag."""
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


def tags_by_line(found: "Iterable[tuple[Tagged, Result]]") -> dict[int, str]:
    """The tag of each word by the word's line."""
    tags = ((row.lines, one.to_json()["tags"]) for row, one in found)
    return {line: tag for numbers, own in tags for line, tag in zip(numbers, own, strict=True)}
