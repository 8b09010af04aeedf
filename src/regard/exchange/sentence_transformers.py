"""Sentence encoders of the sentence-transformers package: what it keeps beside a network, read and written.

text ── network ── states ── pooling: their mean, or the class token's ── [normalised to length 1] ── vector
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.exchange.tensor_files import find_file, read_list, read_table
from regard.exchange.their_config import TheirConfig
from regard.runs.disk import as_json, write_synced

MODULES_FILE, POOLING_FILE, LENGTH_FILE = "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
_PACKAGE = "sentence_transformers"
# What a sentence encoder may be made of, in this order, with the folder of each.
_MODULES = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
_MODE = "pooling_mode_"
_AROUND = 2  # special tokens, which their length counts
# By their word our pooling.
_POOLINGS = {"mean_tokens": "mean", "cls_token": "class"}


@dataclass(frozen=True, kw_only=True)
class SentenceEncoder:
    """How the states of a text become its vector.

    pooling:     mean of its states, or the state of the class token
    normalised:  whether a vector is divided by its length
    max_length:  the most tokens of a text, without the special ones around it; None for as many as there are positions
    """

    pooling: str = "mean"
    normalised: bool = False
    max_length: int | None = None


MEAN = SentenceEncoder()


def read_sentence_encoder(folder: Path) -> SentenceEncoder:
    """Read what a folder says of its vectors, which may be nothing; DataError for layers that none of ours has."""
    return SentenceEncoder(
        pooling=_read_pooling(folder), normalised="Normalize" in _read_modules(folder), max_length=_read_length(folder)
    )


def _read_pooling(folder: Path) -> str:
    path = find_file(folder, POOLING_FILE)
    if path is None:
        return "mean"
    config = TheirConfig(read_table(path), str(path))
    modes = [key.removeprefix(_MODE) for key in config.values if key.startswith(_MODE) and config.flag(key, False)]
    if "pooling_mode" in config.values:  # a single word in newer files
        word = config.text("pooling_mode")
        modes = ["cls_token" if word == "cls" else f"{word}_tokens"]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise DataError(
            f"{path}: pooling by {(', '.join(modes) or 'nothing')[:100]} has no counterpart in regard "
            f"(known here: {', '.join(_POOLINGS)}).",
            "Choose a sentence encoder that takes the mean of its states, or the class token's.",
        )
    return _POOLINGS[modes[0]]


def _read_modules(folder: Path) -> list[str]:
    """The kinds of modules; layers behind the pooling are refused, and modules of anybody else's code."""
    path = find_file(folder, MODULES_FILE)
    found = []
    for module in [] if path is None else read_list(path):
        kind = str(module.get("type")) if isinstance(module, dict) else str(module)
        package, _, _ = kind.partition(".")
        found.append(kind.rpartition(".")[2])
        if package != _PACKAGE or found[-1] not in _MODULES:
            raise DataError(
                f"{path}: a module {kind[:100]} has no counterpart in regard.",
                f"Choose a sentence encoder that is made of no more than {', '.join(_MODULES)}.",
            )
    return found


def _read_length(folder: Path) -> int | None:
    path = find_file(folder, LENGTH_FILE)
    if path is None:
        return None
    config = TheirConfig(read_table(path), str(path))
    config.must_be(False, "do_lower_case")  # the tokenizer lowers letters, if anything does
    length = config.count("max_seq_length", 0)
    return max(1, length - _AROUND) if length else None


def write_sentence_encoder(folder: Path, encoder: SentenceEncoder, *, d_model: int, n_positions: int) -> None:
    """Write the files with which `SentenceTransformer(folder)` gives the same vectors, of a network with such sizes."""
    kinds = [kind for kind in _MODULES if kind != "Normalize" or encoder.normalised]
    modules = [
        {"idx": number, "name": str(number), "path": _MODULES[kind], "type": f"{_PACKAGE}.models.{kind}"}
        for number, kind in enumerate(kinds)
    ]
    modes = {f"{_MODE}{word}": own == encoder.pooling for word, own in _POOLINGS.items()}
    longest = None if encoder.max_length is None else encoder.max_length + _AROUND
    if longest is not None and longest >= n_positions:
        longest = None
    files: dict[str, Any] = {
        MODULES_FILE: modules,
        POOLING_FILE: {"word_embedding_dimension": d_model, **modes},
        LENGTH_FILE: {"max_seq_length": longest, "do_lower_case": False},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_synced(folder / name, as_json(content, indent=2) + b"\n")
