"""The corpus on disk: what was written is read, in bounded memory, whole or not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.pipeline import corpus as corpus_module
from regard.data.pipeline.corpus import BYTES, NUMBER, TEXT, Corpus, CorpusWriter
from regard.errors import DataError

ROWS = [([5, 6, 7], "A dog", 1), ([], "", 3), ([65_535], "naß\u2028", 2**40)]
UNWRITABLE = "\nFree some space, or let REGARD_CACHE name a folder on another disk."
DAMAGED = "\nRemove the folder and encode the text again."


def fill(writer: CorpusWriter, rows: list[tuple[list[int], str, int]] = ROWS) -> None:
    writer.add(source=65_536, source_text=TEXT, line=NUMBER)
    for ids, text, line in rows:
        writer.append(source=ids, source_text=text, line=line)


def write(folder: Path, rows: list[tuple[list[int], str, int]] = ROWS) -> Corpus:
    with CorpusWriter(folder) as writer:
        fill(writer, rows)
    return Corpus.open(folder)


def check(corpus: Corpus, rows: list[tuple[list[int], str, int]]) -> None:
    assert len(corpus) == len(rows)
    source, texts = corpus.ragged["source"], corpus.ragged["source_text"]
    assert [source[i].tolist() for i in range(len(source))] == [ids for ids, _, _ in rows]
    assert source.lengths.tolist() == [len(ids) for ids, _, _ in rows]
    assert [texts.text(i) for i in range(len(texts))] == [text for _, text, _ in rows]
    assert corpus.numbers["line"].tolist() == [line for _, _, line in rows]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a")
    check(corpus, ROWS)
    source = corpus.ragged["source"]
    assert source.values.dtype == np.uint16
    assert source[-1].tolist() == [65_535]
    assert [row.tolist() for row in source.take(np.array([2, 0]))] == [[65_535], [5, 6, 7]]
    with pytest.raises(IndexError):
        source[3]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    rows = [bytes(range(256)), b"", b"\xff\x00" * 50_000]
    with CorpusWriter(tmp_path / "a") as writer:
        writer.add(image=BYTES)
        for row in rows:
            writer.append(image=row)
    images = Corpus.open(tmp_path / "a").ragged["image"]
    assert images.values.dtype == np.uint8
    assert [images[row].tobytes() for row in range(len(images))] == rows


def test_a_corpus_without_rows(tmp_path: Path) -> None:
    check(write(tmp_path / "a", []), [])


id_lists = st.lists(st.integers(0, 65_535), max_size=9)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@settings(max_examples=20, deadline=None)
@given(rows=st.lists(st.tuples(id_lists, texts, st.integers(-(2**63), 2**63 - 1))), buffer=st.integers(1, 9))
def test_any_rows_through_small_buffers(
    rows: list[tuple[list[int], str, int]], buffer: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_BUFFER", buffer)
        check(write(tmp_path_factory.mktemp("corpus") / "a", rows), rows)


def test_rows_reach_the_disk_before_the_end(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "a") as writer:
        writer.add(source=10)
        for _ in range(3_000):
            writer.append(source=np.ones(100, dtype=np.int64))
        (values,) = tmp_path.glob(".a-*.building/source.values")
        assert values.stat().st_size >= 2 * (300_000 - 2 * corpus_module._BUFFER)
    assert Corpus.open(tmp_path / "a").ragged["source"].values.sum() == 300_000


def test_ids_take_as_many_bytes_as_the_vocabulary_needs(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "a") as writer:
        writer.add(small=65_536, large=65_537)
        writer.append(small=[65_535], large=[65_536])
    columns = Corpus.open(tmp_path / "a").ragged
    assert (columns["small"].values.dtype, columns["large"].values.dtype) == (np.uint16, np.uint32)
    assert columns["large"][0].tolist() == [65_536]
    with pytest.raises(OverflowError), CorpusWriter(tmp_path / "b") as writer:
        writer.add(small=65_536)
        writer.append(small=[65_536])


def test_files_are_raw_little_endian_integers(tmp_path: Path) -> None:
    write(tmp_path / "a")
    assert (tmp_path / "a" / "source.values").read_bytes() == bytes([5, 0, 6, 0, 7, 0, 255, 255])
    offsets = b"".join(n.to_bytes(8, "little") for n in (0, 3, 3, 4))
    assert (tmp_path / "a" / "source.offsets").read_bytes() == offsets


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), CorpusWriter(tmp_path / "a") as writer:
        fill(writer)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_whoever_comes_second_discards_its_own(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "a") as slow:
        fill(slow, [])
        write(tmp_path / "a")
    check(Corpus.open(tmp_path / "a"), ROWS)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_columns_are_the_same_in_every_row(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "a") as writer:
        writer.add(line=NUMBER)
        with pytest.raises(ValueError, match=r"^a row needs the columns \['line'\], not \['lines'\]$"):
            writer.append(lines=1)
        with pytest.raises(ValueError, match="'line' comes twice"):
            writer.add(line=TEXT)
        writer.append(line=1)
        with pytest.raises(ValueError, match="after the first row"):
            writer.add(text=TEXT)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "a"
    with pytest.raises(DataError) as caught, CorpusWriter(folder):
        pass
    assert str(caught.value) == f"{folder}: the corpus could not be written: Not a directory." + UNWRITABLE


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError) as caught:
        write(tmp_path / "a")
    assert caught.value.problem.endswith(": the corpus could not be written: No space left on device.")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_when_files_are_closed_too(tmp_path: Path) -> None:
    # In a child, since the limit on the size of files holds for the whole process.
    program = f"""
import resource, signal
from pathlib import Path
from regard.data.pipeline.corpus import NUMBER, CorpusWriter
from regard.errors import DataError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with CorpusWriter(Path({str(tmp_path)!r}) / "a") as writer:
        writer.add(line=NUMBER)
        for number in range(300):
            writer.append(line=number)
except DataError as error:
    print(error.problem)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith(": the corpus could not be written: File too large.\n")
    assert list(tmp_path.iterdir()) == []


def change_index(folder: Path, **changes: Any) -> None:
    path = folder / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_damage_is_found_on_opening(tmp_path: Path) -> None:
    folder = tmp_path / "a"

    def problem() -> str:
        with pytest.raises(DataError) as caught:
            Corpus.open(folder)
        start, end = f"{folder}: not a whole corpus: ", "." + DAMAGED
        assert str(caught.value).startswith(start)
        assert str(caught.value).endswith(end)
        return str(caught.value)[len(start) : -len(end)]

    assert problem().startswith("index.json cannot be read (")
    write(folder)
    os.truncate(folder / "source.values", 6)
    assert problem() == "source.values has 6 bytes, expected 8 bytes"
    (folder / "source.values").unlink()
    assert problem() == "source.values is missing, expected 8 bytes"
    (folder / "source.values").write_bytes(bytes(8))
    assert problem() == "source.values has changed since it was written"
    change_index(folder, facts={"limit": 17})
    assert problem() == "index.json has changed since it was written"
    change_index(folder, format=1)
    assert problem() == "it is of format 1, not 2"
    for content in ("", "[]", "{}", '{"format": 2, "rows": "x", "columns": {}}', "[" * 20_000):
        (folder / "index.json").write_text(content)
        assert problem().startswith("index.json cannot be read (")
