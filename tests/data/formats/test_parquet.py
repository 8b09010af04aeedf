"""Parquet."""

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from regard.data.formats import parquet
from regard.data.formats.parquet import read_parquet
from regard.data.formats.rows import Bad, Row
from regard.errors import DataError, MissingExtraError


def write(file: Path, columns: dict[str, Any]) -> str:
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return str(file)


def test_columns_of_text_are_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    english = pyarrow.array(["one", "two", "three", "four", "five"], pyarrow.large_string())
    german = pyarrow.array(["eins", "zwei", None, "vier", "fünf"]).dictionary_encode()
    file = write(tmp_path / "a.parquet", {"id": [1, 2, 3, 4, 5], "en": english, "de": german})
    assert list(read_parquet(file)) == [
        Row(file, 1, {"en": "one", "de": "eins"}),
        Row(file, 2, {"en": "two", "de": "zwei"}),
        Row(file, 3, {"en": "three", "de": ""}),
        Row(file, 4, {"en": "four", "de": "vier"}),
        Row(file, 5, {"en": "five", "de": "fünf"}),
    ]


def test_the_translation_of_hugging_face_is_unpacked_and_gzip(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.parquet", {"id": ["0", "1"], "translation": [{"en": "Yes", "de": "Ja"}, None]})
    file = tmp_path / "b.parquet.gz"
    file.write_bytes(gzip.compress(Path(plain).read_bytes()))
    assert list(read_parquet(str(file))) == [
        Row(str(file), 1, {"en": "Yes", "de": "Ja"}),
        Row(str(file), 2, {"en": "", "de": ""}),
    ]


def test_bad_texts(tmp_path: Path) -> None:
    raw = pyarrow.array([b"M\xfcnchen", b"a\0b", b"good"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 3, raw.buffers())
    file = write(tmp_path / "a.parquet", {"de": text})
    assert list(read_parquet(file)) == [
        Bad(file, 1, "not UTF-8", "M\\xfcnchen"),
        Bad(file, 2, "NUL byte", "a\\x00b"),
        Row(file, 3, {"de": "good"}),
    ]


def test_what_is_no_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"one\ttwo\n" * 10)
    with pytest.raises(DataError) as caught:
        list(read_parquet(str(file)))
    assert caught.value.problem.startswith(f"{file}: not a whole Parquet file (Parquet magic bytes not found")
    assert caught.value.remedy == "Write or copy it again."


def test_damaged_pages(tmp_path: Path) -> None:
    file = Path(write(tmp_path / "a.parquet", {"en": [f"number {number}" for number in range(500)]}))
    content = bytearray(file.read_bytes())
    content[40:80] = b"\xff" * 40
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(read_parquet(str(file)))
    assert caught.value.problem.startswith(f"{file}: not a whole Parquet file (")
    assert caught.value.remedy == "Write or copy it again."


def test_a_fault_of_the_disk_is_not_a_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "a.parquet", {"en": ["one"]})

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(parquet, "_texts", fail)
    with pytest.raises(OSError, match="Input/output error"):
        list(read_parquet(file))


def test_columns_that_hold_no_text_are_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", {"en": [b"Yes"], "id": [7]})
    with pytest.raises(DataError) as caught:
        list(read_parquet(file))
    assert caught.value.problem == f"{file}: no column holds text, for there is: en (binary), id (int64)."
    assert caught.value.remedy == "Write the sentences as strings."


def test_a_wanted_column_that_holds_no_text_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", {"en": ["Yes"], "DE": [b"Ja"], "de-AT": ["Ja"]})
    assert list(read_parquet(file, ("en", "de-AT"))) == [Row(file, 1, {"en": "Yes", "de-AT": "Ja"})]
    with pytest.raises(DataError) as caught:
        list(read_parquet(file, ("en", "de")))
    assert caught.value.problem == f"{file}: the column 'DE' holds binary, not text."
    assert caught.value.remedy == "Write the sentences as strings."


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        list(read_parquet(str(tmp_path / "a.parquet")))
    assert caught.value.problem == "Reading Parquet files needs the package 'pyarrow', which is not installed."
    assert caught.value.remedy == "Install it with: pip install 'regard[formats]'"


def test_numbers_and_booleans_may_be_texts_too(tmp_path: Path) -> None:
    columns = {"text": ["a", "b"], "n": [1, None], "x": [0.5, float("nan")], "yes": [True, False], "many": [[1], []]}
    file = write(tmp_path / "a.parquet", columns)
    assert list(read_parquet(file, ["n"], scalars=True)) == [
        Row(file, 1, {"text": "a", "n": "1", "x": "0.5", "yes": "true"}),
        Row(file, 2, {"text": "b", "n": "", "x": "nan", "yes": "false"}),
    ]
    with pytest.raises(DataError, match="the column 'many' holds list"):
        list(read_parquet(file, ["many"], scalars=True))


def test_rows_of_long_texts_are_decoded_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    texts_of = parquet._texts

    def counted(pyarrow: Any, batch: Any, scalars: bool) -> dict[str, list[bytes | None]]:
        counts.append(batch.num_rows)
        return texts_of(pyarrow, batch, scalars)

    monkeypatch.setattr(parquet, "_texts", counted)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 1 << 20)
    repeated, distinct = ["x" * 100_000] * 40, [f"{number:0100000}" for number in range(40)]
    for texts in (repeated, distinct):
        file = write(tmp_path / "a.parquet", {"n": range(40), "en": texts, "de": ["y"] * 40})
        rows = list(read_parquet(file, scalars=True))
        assert rows == [Row(file, n + 1, {"n": str(n), "en": text, "de": "y"}) for n, text in enumerate(texts)]
        assert max(counts) <= 10
        nested = write(tmp_path / "b.parquet", {"translation": [{"en": text} for text in texts]})
        assert [row.fields["en"] for row in read_parquet(nested) if isinstance(row, Row)] == texts
        assert max(counts) <= 10


def test_a_file_that_unfolds_to_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "UNFOLDED_BYTES", 1 << 20)
    table = pyarrow.table({"en": ["x" * 100_000 + str(number) for number in range(100)]})
    file = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(table, file, compression="zstd", use_dictionary=False, write_statistics=False)
    with pytest.raises(DataError) as caught:
        list(read_parquet(str(file)))
    assert re.fullmatch(
        f"{file}: its {file.stat().st_size:,} bytes unfold to 10,[0-9,]+ and more\\.", caught.value.problem
    )
    assert caught.value.remedy == (
        "Check where the file comes from; if that is right, write it again without compression."
    )


def test_so_is_one_whose_rows_repeat_a_long_text_of_the_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "UNFOLDED_BYTES", 1 << 20)
    file = write(tmp_path / "a.parquet", {"en": ["x" * 100_000] * 2000})
    with pytest.raises(DataError, match=r"bytes unfold to [0-9,]+ and more"):
        list(read_parquet(file))
