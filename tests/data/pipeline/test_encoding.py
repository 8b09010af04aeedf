"""Examples as rows of stored corpora: two splits in one pass, what is counted, what is left out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig
from regard.data.formats.rows import Bad, Row, read_lines
from regard.data.pipeline.encoding import (
    NUMBER,
    TEXT,
    Encoding,
    bad_rows_of,
    encode_all,
    encode_dataset,
    long_rows_of,
    too_long,
)
from regard.data.pipeline.source import Source
from regard.data.pipeline.survey import survey
from regard.errors import DataError


class Lines(Source[Row]):
    """Lines of text, of which empty ones are bad."""

    noun = "line"

    def read(self) -> Iterator[Row | Bad]:
        for file in self.files:
            for number, line in enumerate(read_lines(file), start=1):
                assert isinstance(line, str)
                yield Row(file, number, {"text": line}) if line else Bad(file, number, "empty", "")

    def settings(self) -> tuple[object, ...]:
        return ()

    def key(self, example: Row) -> str:
        return example.fields["text"]


@dataclass(frozen=True)
class Characters(Encoding[Row]):
    """The code of each character; of more than three the line is left out. The last row holds a zero."""

    counted = ("n_characters",)

    def settings(self) -> tuple[object, ...]:
        return ("characters",)

    def columns(self) -> Mapping[str, int | str]:
        return {"ids": 256, "text": TEXT, "length": NUMBER}

    def encode(self, examples: Sequence[Row], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        for row in examples:
            text = row.fields["text"]
            counts["n_characters"] += len(text)
            ids = [ord(character) for character in text]
            yield too_long(row, 3, text) if len(text) > 3 else {"ids": ids, "text": text, "length": len(text)}

    def last(self, counts: Counter[str]) -> Mapping[str, Any] | None:
        return {"ids": [0], "text": "", "length": 0} if counts["n_characters"] else None


def quiet(what: str, done: int) -> None:
    pass


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))


def source(path: Path, lines: Sequence[str], **settings: Any) -> Lines:
    path.write_text("".join(line + "\n" for line in lines))
    return Lines(files=(str(path),), data=DataConfig(**settings))


def test_both_splits_are_written_with_their_places(tmp_path: Path) -> None:
    own = source(tmp_path / "a.txt", [f"{number:03}" for number in range(200)], valid_size=20)
    found = survey(own, quiet)
    data = encode_dataset(own, None, found, Characters(), quiet)
    assert (len(data.train), len(data.valid)) == (181, 21)  # with the last row of each
    for corpus in (data.train, data.valid):
        ids, lines = corpus.ragged["ids"], corpus.numbers["line"].tolist()
        *texts, last = ["".join(map(chr, ids[row].tolist())) for row in range(len(corpus))]
        assert texts == [f"{line - 1:03}" for line in lines[:-1]]
        assert (last, lines[-1]) == ("\0", lines[-2])
        assert lines == sorted(lines)
    assert "text" not in data.train.ragged
    assert data.valid.ragged["text"].text(0) == f"{data.valid.numbers['line'][0] - 1:03}"
    assert data.train.facts["n_characters"] + data.valid.facts["n_characters"] == 600


def test_what_is_too_long_is_left_out_and_judged(tmp_path: Path) -> None:
    lines = [*(f"{number:03}" for number in range(200)), "long"]
    own = source(tmp_path / "a.txt", lines, valid_size=20)
    data = encode_dataset(own, None, survey(own, quiet), Characters(), quiet)
    of_each = [long_rows_of(corpus, own.files) for corpus in (data.train, data.valid)]
    assert sum(one.n_bad for one in of_each) == 1
    assert [text.removeprefix("of validation, ") for _, text in data.notes] == [
        f"1 bad line, longer than 3 tokens: {tmp_path}/a.txt:201 'long'"
    ]
    many = source(tmp_path / "b.txt", [*lines, *["longer"] * 9], valid=(str(tmp_path / "a.txt"),))
    valid = source(tmp_path / "a.txt", lines)
    with pytest.raises(
        DataError, match=r"10 of 210 lines are bad \(4\.8%, at most 1% may be\): 10 longer than 3 tokens"
    ):
        encode_dataset(many, valid, survey(many, quiet), Characters(), quiet)


def test_all_of_a_source_with_what_was_bad(tmp_path: Path) -> None:
    own = source(tmp_path / "a.txt", ["abc", "", "de"], on_bad="keep-going")
    corpus = encode_all(own, Characters(), quiet)
    assert corpus.ragged["text"].text(1) == "de"
    assert bad_rows_of(corpus, own.files).sentences() == [f"1 bad line, empty: {tmp_path}/a.txt:2"]


def test_a_split_without_examples(tmp_path: Path) -> None:
    own = source(tmp_path / "a.txt", ["abc", "def"], valid=(str(tmp_path / "b.txt"),), on_bad="keep-going")
    valid = source(tmp_path / "b.txt", ["longer"])

    class Silent(Characters):
        def last(self, counts: Counter[str]) -> None:
            return None

    with pytest.raises(DataError) as caught:
        encode_dataset(own, valid, survey(own, quiet), Silent(), quiet)
    assert caught.value.problem == "No line is left for validation."
