"""The text that the benchmarks run on: Multi30k and tinyshakespeare where they are, else the built-in corpus."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rounds import BUILD, REPOSITORY, tell

from regard.config import RunConfig, from_tables
from regard.demo.corpus import corpus

MULTI30K = REPOSITORY.parent / "shared" / "data" / "multi30k"
SHAKESPEARE = REPOSITORY.parent / "shared" / "data" / "tinyshakespeare" / "input.txt"
SIZES = {"train": 29_000, "valid": 1_014, "test": 1_000}
_STEMS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


@dataclass(frozen=True)
class Text:
    """Source and target file of each part."""

    name: str
    train: tuple[str, str]
    valid: tuple[str, str]
    test: tuple[str, str]

    def test_sentences(self, n: int) -> list[str]:
        """The first n source sentences of the test set."""
        return Path(self.test[0]).read_text(encoding="utf-8").split("\n")[:n]


def find_text(folder: Path) -> Text:
    """Return Multi30k from `folder`; where it is not, write the built-in corpus to files, and say so."""
    files = {part: tuple(str(folder / f"{stem}.{side}") for side in ("en", "de")) for part, stem in _STEMS.items()}
    name = "Multi30k"
    if not all(Path(file).exists() for pair in files.values() for file in pair):
        tell(f"There is no Multi30k in {folder}: the built-in corpus takes its place.")
        name, files = "the built-in corpus", {part: _write_built_in(part, n) for part, n in SIZES.items()}
    return Text(name, *((pair[0], pair[1]) for pair in files.values()))


def find_running_text(file: Path) -> str:
    """Return a text file; where it is not, the English half of the built-in corpus, and say so."""
    if file.exists():
        return str(file)
    tell(f"There is no {file}: the built-in corpus takes its place.")
    return _write_built_in("train", SIZES["train"])[0]


# The network of transformer-tiny's size that the peers can build too: that of the paper, but for the order of its norms.
PEERS_NETWORK = {"norm": "layer", "positions": "sinusoidal", "feed_forward": "plain", "activation": "relu"}


def run_config(text: Text, *, threads: int, **tables: dict[str, Any]) -> RunConfig:
    """A run of `transformer-tiny`'s size as Multi30k's recipe has it; `tables` are further ones of the run file."""
    given: dict[str, dict[str, Any]] = {
        "data": {"train": list(text.train), "valid": list(text.valid)},
        "tokenizer": {"vocab_size": 8000},
        "model": {"preset": "transformer-tiny", **PEERS_NETWORK},
        "runtime": {"device": "cpu", "threads": threads},
    }
    merged = {name: {**given.get(name, {}), **tables.get(name, {})} for name in given | tables}
    return from_tables({"task": "translate", **merged}, origin="benchmark")


def _write_built_in(part: str, n: int) -> tuple[str, str]:
    folder = BUILD / "built-in"
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / f"{part}.en", folder / f"{part}.de"
    sentences = corpus(part, n)
    files[0].write_text("".join(f"{one.source}\n" for one in sentences), encoding="utf-8")
    files[1].write_text("".join(f"{one.target}\n" for one in sentences), encoding="utf-8")
    return str(files[0]), str(files[1])
