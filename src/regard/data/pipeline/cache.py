"""The cache: where surveys and encoded corpora are kept between runs, under a hash of everything that they depend on."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.pipeline.corpus import BUILDING, Corpus, CorpusWriter, DamagedError

CACHE_VERSION = "6"  # of all that is kept; raise it when that changes, or the way in which files are read
_DAY = 24 * 3600.0


def cache_folder() -> Path:
    """Return where encoded corpora are kept: $REGARD_CACHE, else $XDG_CACHE_HOME/regard, else ~/.cache/regard."""
    if own := os.environ.get("REGARD_CACHE"):
        return Path(own)
    common = os.environ.get("XDG_CACHE_HOME")
    return (Path(common) if common else Path.home() / ".cache") / "regard"


def cached(key: Sequence[str], build: Callable[[CorpusWriter], Mapping[str, Any]]) -> Corpus:
    """Return the corpus of a key from the cache, built on first use.

    The key says everything that the corpus depends on: fingerprints of files and of the vocabulary, settings.
    `build` fills a writer, and returns facts to keep (a JSON object). A damaged entry is built anew, and says so.
    Two processes may build at once: the folder of the first to finish serves both.
    """
    return cached_together({"": key}, lambda writers: {"": build(writers[""])})[""]


def cached_together(
    keys: Mapping[str, Sequence[str]], build: Callable[[Mapping[str, CorpusWriter]], Mapping[str, Mapping[str, Any]]]
) -> dict[str, Corpus]:
    """Return several corpora that are built in one go, as `cached` does one; all are by their names."""
    folders = {name: cache_folder() / "corpora" / _digest(key) for name, key in keys.items()}
    damage = ""
    try:
        if all(folder.exists() for folder in folders.values()):
            return {name: Corpus.open(folder) for name, folder in folders.items()}
    except DamagedError as error:
        damage = error.problem
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
    _remove_abandoned(cache_folder() / "corpora")
    with ExitStack() as stack:
        writers = {name: stack.enter_context(CorpusWriter(folder)) for name, folder in folders.items()}
        for name, facts in build(writers).items():
            writers[name].facts = facts
    return {name: replace(Corpus.open(folder), damage=damage) for name, folder in folders.items()}


def _digest(key: Sequence[str]) -> str:
    # Lengths keep apart the keys ("ab", "c") and ("a", "bc").
    text = "".join(f"{len(part)}:{part}" for part in (CACHE_VERSION, *key))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left half built."""
    for left in folder.glob(f".*{BUILDING}"):
        # Another process may give it its final name, or remove it, at any moment.
        with suppress(FileNotFoundError):
            descriptor = os.open(left, os.O_RDONLY)
            try:
                if _is_abandoned(left, descriptor):
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)


def _is_abandoned(left: Path, descriptor: int) -> bool:
    """Whether nobody holds its lock; without locks, whether nothing was written to it for a day."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return max(path.stat().st_mtime for path in (left, *left.glob("*"))) < time.time() - _DAY
