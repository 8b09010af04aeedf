"""Where encoded corpora are kept between runs, each under a hash of everything it depends on."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.data.pipeline.corpus import BUILDING, Corpus, CorpusWriter, DamagedError

_DAY = 24 * 3600.0


def cache_folder() -> Path:
    """Return where encoded corpora are kept: $REGARD_CACHE, else $XDG_CACHE_HOME/regard, else ~/.cache/regard."""
    if own := os.environ.get("REGARD_CACHE"):
        return Path(own)
    common = os.environ.get("XDG_CACHE_HOME")
    return (Path(common) if common else Path.home() / ".cache") / "regard"


def cached(key_parts: Sequence[str], build: Callable[[CorpusWriter], Mapping[str, Any] | None]) -> Corpus:
    """Return the corpus of a key from the cache, built on first use.

    `key_parts` say everything that the corpus depends on: fingerprints of files and of the vocabulary, settings.
    `build` fills a writer, and returns facts to keep (a JSON object) or None. A damaged entry is built anew.
    Two processes may build at once: the folder of the first to finish serves both.
    """
    # Lengths keep apart the keys ("ab", "c") and ("a", "bc").
    key = hashlib.sha256("".join(f"{len(part)}:{part}" for part in key_parts).encode()).hexdigest()[:32]
    folder = cache_folder() / "corpora" / key
    if folder.exists():
        try:
            return Corpus.open(folder)
        except DamagedError:
            shutil.rmtree(folder, ignore_errors=True)
    _remove_abandoned(folder.parent)
    with CorpusWriter(folder) as writer:
        writer.facts = build(writer) or {}
    return Corpus.open(folder)


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left half built: nothing was written to it for a day."""
    for left in folder.glob(f".*{BUILDING}"):
        # Another process may give it its final name at any moment.
        with suppress(FileNotFoundError):
            if max(path.stat().st_mtime for path in (left, *left.glob("*"))) < time.time() - _DAY:
                shutil.rmtree(left, ignore_errors=True)
