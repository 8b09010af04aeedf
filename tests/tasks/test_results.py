"""Results show themselves: in a line, as a table, as CSV, as HTML; and nothing raises when a person looks around."""

import csv
import inspect
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.tasks.results import N_SHOWN, Result, Results, one_line


@dataclass(frozen=True, kw_only=True, repr=False)
class Word(Result):
    text: str

    def lines(self, *, top: int = 0) -> list[str]:
        return [one_line(self.text)]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"text": self.text, **{f"rank_{n}": n for n in range(1, top + 1)}}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        return {"text": self.text}


def test_a_result_is_a_line() -> None:
    assert repr(Word(text="dog")) == "Word(text='dog')"
    assert Word(text="dog").truncation == ""


def test_a_list_of_results_is_a_list() -> None:
    words = Results([Word(text="dog"), Word(text="cat")])
    assert words == [Word(text="dog"), Word(text="cat")]
    assert repr(words) == "[Word(text='dog'),\n Word(text='cat')]"
    many = Results([Word(text="dog")] * (N_SHOWN + 3))
    assert repr(many).count("dog") == N_SHOWN
    assert repr(many).endswith("… 3 more]")


def test_records_and_csv(tmp_path: Path) -> None:
    words = Results([Word(text='a "dog", or\ntwo'), Word(text="cat")])
    assert words.records(top=1) == [{"text": 'a "dog", or\ntwo', "rank_1": 1}, {"text": "cat", "rank_1": 1}]
    written = words.to_csv(tmp_path / "words.csv", top=1)
    assert (tmp_path / "words.csv").read_text(encoding="utf-8") == written
    assert list(csv.DictReader(io.StringIO(written))) == [
        {"text": 'a "dog", or\ntwo', "rank_1": "1"},
        {"text": "cat", "rank_1": "1"},
    ]


def test_html_escapes_what_it_shows() -> None:
    assert Word(text="<b>")._repr_html_() == "<table><tr><th>text</th></tr><tr><td>&lt;b&gt;</td></tr></table>"


def test_nothing_raises_when_looked_at() -> None:
    for one in (Word(text="dog"), Results([Word(text="dog")]), Results()):
        assert dir(one)
        assert inspect.getmembers(one)
        assert not hasattr(one, "nonsense")
        assert one._repr_html_().startswith("<table>")
