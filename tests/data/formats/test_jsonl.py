"""JSON Lines."""

import gzip
import json
from pathlib import Path

import pytest

from regard.data.formats.jsonl import read_jsonl
from regard.data.formats.rows import Bad, Row


def rows_of(file: Path, *lines: str, columns: tuple[str, ...] = ()) -> list[Row | Bad]:
    file.write_text("\n".join(lines) + "\n")
    return list(read_jsonl(str(file), columns))


def test_strings_are_fields_and_the_rest_is_not(tmp_path: Path) -> None:
    line = '{"id": 7, "en": "Hello\\u2028you", "de": "Hallo\\nDu", "tags": ["a"], "note": null}'
    file = tmp_path / "a.jsonl"
    assert rows_of(file, line) == [Row(str(file), 1, {"en": "Hello\u2028you", "de": "Hallo\nDu"})]


def test_the_translation_of_hugging_face_is_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"id": "0", "translation": {"en": "Yes", "de": "Ja"}}\n'))
    assert list(read_jsonl(str(file))) == [Row(str(file), 1, {"en": "Yes", "de": "Ja"})]


def test_a_column_called_translation_is_a_column(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.jsonl", '{"translation": "Ja", "text": "Yes"}')
    assert isinstance(row, Row)
    assert list(row.fields.items()) == [("translation", "Ja"), ("text", "Yes")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"en": "Yes", "de": ', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["Yes", "Ja"]', "not a JSON object"),
        ('{"en": "Yes", "de": 7}', "not a string"),
        ('{"en": null, "de": "Ja"}', "not a string"),
        ('{"en": "\\ud83d", "de": "Ja"}', "half a surrogate pair"),
        ("  ", "empty line"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "a.jsonl"
    good, bad = rows_of(file, '{"en": "Yes", "de": "Ja"}', line, columns=("en", "DE"))
    assert isinstance(good, Row)
    assert isinstance(bad, Bad)
    assert (bad.line, bad.reason) == (2, reason)
    assert bad.excerpt.startswith(line[:20])


def test_a_whole_surrogate_pair_is_a_character(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.jsonl", json.dumps({"en": "😀"}))
    assert isinstance(row, Row)
    assert row.fields == {"en": "😀"}


def test_numbers_and_booleans_may_be_texts_too(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    lines = ['{"a": 1, "b": 0.5, "c": true, "d": null, "e": "x", "f": [1]}', '{"a": NaN, "f": {}}']
    file.write_text("\n".join(lines) + "\n")
    assert list(read_jsonl(str(file), scalars=True)) == [
        Row(str(file), 1, {"a": "1", "b": "0.5", "c": "true", "d": "", "e": "x"}),
        Row(str(file), 2, {"a": "NaN"}),
    ]
    assert [row.reason for row in read_jsonl(str(file), ["f"], scalars=True) if isinstance(row, Bad)] == [
        "neither text nor number",
        "neither text nor number",
    ]
