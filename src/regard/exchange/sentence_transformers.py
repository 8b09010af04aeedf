"""What the sentence-transformers package keeps beside a network: how the states of a text become its vector."""

from pathlib import Path

from regard.errors import DataError
from regard.exchange.tensor_files import find_file, read_list, read_table
from regard.exchange.their_config import TheirConfig

MODULES_FILE, POOLING_FILE = "modules.json", "1_Pooling/config.json"
# What a sentence encoder may be made of: cosines do not ask how long a vector is.
_MODULES = ("Transformer", "Pooling", "Normalize")
_MODE = "pooling_mode_"


def check_pooling(folder: Path) -> None:
    """Refuse a sentence encoder whose vectors are not the mean of its states; a folder may say nothing about it."""
    _check_modules(folder)
    path = find_file(folder, POOLING_FILE)
    if path is None:
        return
    config = TheirConfig(read_table(path), str(path))
    modes = [key for key in config.values if key.startswith(_MODE) and config.flag(key, False)]
    if "pooling_mode" in config.values:  # a single word in newer files
        modes = [f"{_MODE}{config.text('pooling_mode')}_tokens"]
    if modes != [f"{_MODE}mean_tokens"]:
        named = ", ".join(mode.removeprefix(_MODE) for mode in modes) or "nothing"
        raise DataError(
            f"{path}: pooling by {named[:100]} has no counterpart in regard (only mean_tokens has).",
            "Choose a sentence encoder that takes the mean of its states.",
        )


def _check_modules(folder: Path) -> None:
    """Refuse layers behind the pooling."""
    path = find_file(folder, MODULES_FILE)
    for module in [] if path is None else read_list(path):
        kind = str(module.get("type")) if isinstance(module, dict) else str(module)
        if kind.rpartition(".")[2] not in _MODULES:
            raise DataError(
                f"{path}: a module {kind[:100]} has no counterpart in regard.",
                "Choose a sentence encoder that ends with the mean of its states.",
            )
