"""The cache of corpora: built once, found again, never in anybody's way."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from regard.data.pipeline.cache import CACHE_VERSION, cache_folder, cached, cached_together
from regard.data.pipeline.corpus import NUMBER, CorpusWriter
from regard.errors import DataError

LINES = [1, 3, 2**40]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert cache_folder() == Path("/a")
    monkeypatch.delenv("REGARD_CACHE")
    assert cache_folder() == Path("/b/regard")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/c/.cache/regard")


class Builder:
    """Fills a corpus and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, writer: CorpusWriter) -> dict[str, int]:
        self.calls += 1
        writer.add(line=NUMBER)
        for line in LINES:
            writer.append(line=line)
        return {"skipped": 2}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    return tmp_path


def test_the_cache_builds_once_for_each_key(cache: Path) -> None:
    build = Builder()
    for _ in range(2):
        corpus = cached(["ab", "c"], build)
        assert corpus.numbers["line"].tolist() == LINES
        assert corpus.facts == {"skipped": 2}
        assert corpus.folder.parent.parent == cache
    assert build.calls == 1
    cached(["a", "bc"], build)
    assert build.calls == 2


def test_a_damaged_entry_is_built_anew(cache: Path) -> None:
    build = Builder()
    folder = cached(["key"], build).folder
    assert cached(["key"], build).rebuilt == []
    os.truncate(folder / "line.values", 8)
    again = cached(["key"], build)
    assert again.numbers["line"].tolist() == LINES
    reason = "not a whole corpus: line.values has 8 bytes, expected 24 bytes."
    assert again.rebuilt == [f"in the cache, {folder}: {reason} It was built anew."]
    (folder / "index.json").unlink()
    assert cached(["key"], build).numbers["line"].tolist() == LINES
    values = bytearray((folder / "line.values").read_bytes())
    values[0] ^= 1
    (folder / "line.values").write_bytes(values)
    assert cached(["key"], build).numbers["line"].tolist() == LINES
    assert build.calls == 4
    assert cached(["key"], build).rebuilt == []


def test_two_builders_at_once(cache: Path) -> None:
    fast = Builder()

    def slow(writer: CorpusWriter) -> None:
        cached(["key"], fast)
        writer.add(line=NUMBER)

    corpus = cached(["key"], slow)
    assert corpus.numbers["line"].tolist() == LINES
    assert [path.name for path in corpus.folder.parent.iterdir()] == [corpus.folder.name]


def test_what_killed_builders_left_is_removed_at_once(cache: Path) -> None:
    left = cache / "corpora" / ".killed-0.building"
    left.mkdir(parents=True)
    (left / "line.values").touch()
    with CorpusWriter(cache / "corpora" / "busy"):
        folder = cached(["key"], Builder()).folder
        assert [path.name.startswith(".busy-") for path in folder.parent.glob(".*")] == [True]
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, "busy"}


def test_a_builder_makes_its_folder_again_if_it_was_taken_for_abandoned(cache: Path) -> None:
    lock, taken = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        if not taken:
            taken.extend((cache / "corpora").glob(".*"))
            shutil.rmtree(taken[0])
        lock(descriptor, operation)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", late)
        assert cached(["key"], Builder()).numbers["line"].tolist() == LINES
    assert taken


def test_without_locks_what_killed_builders_left_is_removed_after_a_day(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for name, age in (("old", 25), ("busy", 25), ("new", 23)):
        left = cache / "corpora" / f".{name}-0.building"
        left.mkdir(parents=True)
        (left / "line.values").touch()
        then = time.time() - age * 3600
        os.utime(left / "line.values", None if name == "busy" else (then, then))
        os.utime(left, (then, then))
    folder = cached(["key"], Builder()).folder
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, ".busy-0.building", ".new-0.building"}


def test_a_file_that_another_process_takes_away_meanwhile(cache: Path) -> None:
    left = cache / "corpora" / ".key-0.building"
    left.mkdir(parents=True)
    (left / "line.values").symlink_to(left / "gone")  # as if it went between being listed and being looked at
    assert cached(["key"], Builder()).folder.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_entry_that_may_not_be_read_stays(cache: Path) -> None:
    folder = cached(["key"], Builder()).folder
    (folder / "line.values").chmod(0)
    with pytest.raises(DataError, match="cannot be read"):
        cached(["key"], Builder())
    assert folder.exists()


def test_corpora_that_are_built_together(cache: Path) -> None:
    built: list[list[str]] = []

    def build(writers: Mapping[str, CorpusWriter]) -> dict[str, dict[str, str]]:
        built.append(list(writers))
        for writer in writers.values():
            writer.add(line=NUMBER)
            writer.append(line=len(built))
        return {name: {"name": name} for name in writers}

    keys = {"train": ["a", "train"], "valid": ["a", "valid"]}
    first = cached_together(keys, build)
    assert {name: corpus.facts["name"] for name, corpus in first.items()} == {"train": "train", "valid": "valid"}
    again = cached_together(keys, build)
    assert [corpus.folder for corpus in again.values()] == [corpus.folder for corpus in first.values()]
    assert len(built) == 1
    shutil.rmtree(first["valid"].folder)
    again = cached_together(keys, build)
    assert built == [["train", "valid"]] * 2
    # What was there stays: somebody may have mapped it.
    assert [corpus.numbers["line"].tolist() for corpus in again.values()] == [[1], [2]]


def test_another_version_of_what_is_kept_is_another_entry(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()
    cached(["a"], build)
    monkeypatch.setattr("regard.data.pipeline.cache.CACHE_VERSION", CACHE_VERSION + "x")
    cached(["a"], build)
    assert build.calls == 2
