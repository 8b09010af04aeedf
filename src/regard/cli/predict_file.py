"""What `regard predict --data` prints: a table, a CoNLL file or sequences of vectors, each row with its prediction."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from regard.cli import lines
from regard.cli.lines import Predictor, Shown, Truncations
from regard.cli.options import given
from regard.cli.terminal import note
from regard.config import DataConfig, changed
from regard.data.formats.conll import Tagged, is_conllu, read_tagged
from regard.data.formats.registry import row_writer
from regard.data.formats.rows import Bad, byte_lines, decode
from regard.data.formats.writing import RowWriter
from regard.data.labelled.rows import Labelled, read_labelled
from regard.data.labelled.vectors import read_labelled_vectors
from regard.data.pipeline.bad_rows import BadRows
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


def predict_file(
    predict: Predictor, show: Shown, file: str, *, text: str, text_b: str, on_bad: str
) -> Iterator[list[str]]:
    """Yield the lines of a file with the prediction for each row, some at a time; a bad row has none, but its line."""
    settings = {"split_column": "", **given({"text": text, "text_b": text_b, "on_bad": on_bad})}
    data = changed(predict.run.config.data, settings, origin="regard predict")
    if predict.run.task.tokenizer is None:
        return _vectors(predict, show, file, data)
    return (_words if predict.run.spec.reads == "words" else _table)(predict, show, file, data)


def _table(predict: Predictor, show: Shown, file: str, data: DataConfig) -> Iterator[list[str]]:
    """A table: its rows as they are, with further columns."""
    writer: RowWriter | None = None
    waiting: list[tuple[Labelled, Result] | Bad] = []  # such as bad rows before the first good one
    rows = Rows(file, data.on_bad, "row", lambda: read_labelled([file], data, labelled=False))
    for found in predicted(predict, rows, lambda row: row.text, lambda row: row.text_b):
        if show.json:
            yield _json_lines(show, found, lambda row: _facts(row.line, row.text, row.text_b))
            continue
        waiting += found
        if writer is None:  # only a prediction tells which columns are added
            good = next((one for _, one in _good(waiting)), None)
            if good is None:
                continue
            writer = row_writer(file, list(good.cells(top=show.top)), columns=(data.text, data.text_b, data.label))
            yield writer.heading()
        yield [
            writer.bad(one)
            if isinstance(one, Bad)
            else writer.line(one[0].row, list(one[1].cells(top=show.top).values()))
            for one in waiting
        ]
        waiting = []


def _words(predict: Predictor, show: Shown, file: str, data: DataConfig) -> Iterator[list[str]]:
    """A CoNLL file: its lines as they are, with the tag as a further column."""
    written = ColumnLines(file)
    rows = Rows(file, data.on_bad, "sentence", lambda: read_tagged([file], data, labelled=False))
    for found in predicted(predict, rows, lambda row: row.words):
        if show.json:
            yield _json_lines(show, found, lambda row: _facts(row.line, row.key))
        else:
            yield written.with_tags(tags_by_line(_good(found)), [one.line for one in found if isinstance(one, Bad)])
    if not show.json:
        yield written.rest()


def _vectors(predict: Predictor, show: Shown, file: str, data: DataConfig) -> Iterator[list[str]]:
    """Sequences of vectors: their names, each with its prediction; of tags, the number of each vector and its tag."""
    read = partial(read_labelled_vectors, [file], data, labelled=False, tagged=predict.run.spec.head == "tokens")
    rows = Rows(file, data.on_bad, "sequence", read)
    for found in predicted(predict, rows, lambda row: row.vectors):
        if show.json:
            yield _json_lines(show, found, lambda row: _facts(row.line, row.name))
        else:
            yield [f"{row.name}\t{line}" for row, one in _good(found) for line in show(one)]


def _facts(line: int, text: str, text_b: str = "") -> dict[str, Any]:
    """What is known of an input, for JSON."""
    return {"line": line, "text": text} | ({"text_b": text_b} if text_b else {})


def _good(found: "Iterable[tuple[Row, Result] | Bad]") -> "Iterator[tuple[Row, Result]]":
    return (one for one in found if not isinstance(one, Bad))


def _json_lines(
    show: Shown, found: "Iterable[tuple[Row, Result] | Bad]", facts: Callable[[Row], dict[str, Any]]
) -> list[str]:
    """An object for each row; that of a bad one says what is wrong with it."""
    lines = []
    for one in found:
        lines += (
            show(None, line=one.line, problem=one.reason) if isinstance(one, Bad) else show(one[1], **facts(one[0]))
        )
    return lines


@dataclasses.dataclass(frozen=True)
class Rows(Generic[Row]):
    """The rows of a file, which can be read again and again; `noun` is what one is called."""

    file: str
    on_bad: str
    noun: str
    read: Callable[[], Iterator[Row | Bad]]

    def survey(self) -> BadRows:
        """Read them once: which are bad is known before the first is predicted, and too many are refused."""
        bad_rows = BadRows(self.noun)
        for _ in bad_rows.good(self.read()):
            pass
        if not bad_rows.n_read:
            raise DataError(f"{self.file} has no {self.noun}s.", "Check the step that wrote it.")
        bad_rows.enforce(self.on_bad, [self.file], instead="predict the others")
        return bad_rows


def predicted(
    predict: Predictor,
    rows: Rows[Row],
    text: Callable[[Row], Any],
    text_b: Callable[[Row], str] = lambda row: "",
) -> "Iterator[list[tuple[Row, Result] | Bad]]":
    """Yield rows with their predictions, so many at a time; at the end, tell which are bad and which were too long."""
    from regard.api.process_pool import Chunk

    def chunks() -> Iterator[Chunk]:
        waiting = iter(rows.read())
        while chunk := list(islice(waiting, lines.CHUNK)):
            good = [row for row in chunk if not isinstance(row, Bad)]
            texts_b = tuple(map(text_b, good))
            fields = {"texts_b": texts_b} if any(texts_b) else {}
            yield Chunk(inputs=list(map(text, good)), fields=fields, context=chunk)

    bad_rows = rows.survey()
    truncations = Truncations()
    for chunk, answers in predict(chunks()):
        results = iter(answers)
        found: list[tuple[Row, Result] | Bad] = [
            row if isinstance(row, Bad) else (row, next(results)) for row in chunk.context
        ]
        for row, one in _good(found):
            truncations.add(row.line, one.truncation)
        yield found
    for sentence in bad_rows.sentences():
        note(f"without a prediction: {sentence}")
    truncations.tell()


class ColumnLines:
    """The lines of a CoNLL file, each written again with its tag as a further column."""

    def __init__(self, file: str) -> None:
        self.is_conllu = is_conllu(file)
        self._lines = enumerate((decode(raw)[0] for raw in byte_lines(file)), start=1)
        self._begun = False

    def with_tags(self, tags: Mapping[int, str], bad: Sequence[int | str]) -> list[str]:
        """The lines up to the last sentence that has tags here, or is bad for one of its lines: that has no tags."""
        written: list[str] = []
        last = max([*tags, *map(int, bad)], default=0)
        number = 0
        while number < last and (sentence := self._sentence()):
            is_bad = any(number in bad for number, _ in sentence)
            for number, line in sentence:
                untagged = NOTHING if is_bad and line.strip() and not line.startswith(NO_HEADER) else None
                written.append(self._line(line, tags.get(number, untagged)))
                self._begun = self._begun or number in tags or is_bad
        return written

    def _sentence(self) -> list[tuple[int, str]]:
        """The lines up to the next blank one."""
        sentence = []
        for number, line in self._lines:
            sentence.append((number, line))
            if not line.strip() or line.startswith("-DOCSTART-"):
                break
        return sentence

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
