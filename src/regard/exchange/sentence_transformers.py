"""What the sentence-transformers package keeps beside a network: how the states of a text become its vector."""

from pathlib import Path

from regard.errors import DataError
from regard.exchange.tensor_files import find_file, read_table
from regard.exchange.their_config import TheirConfig

POOLING_FILE = "1_Pooling/config.json"
_MODE = "pooling_mode_"


def find_pooling(folder: Path) -> str:
    """Return how a sentence encoder pools: mean; "" where the folder says nothing about it."""
    path = find_file(folder, POOLING_FILE)
    if path is None:
        return ""
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
    return "mean"
