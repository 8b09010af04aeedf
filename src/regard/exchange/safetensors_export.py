"""Export of weights and vocabulary alone: for people who write their own code, with ten lines of Python that load them."""

import dataclasses
import json
from pathlib import Path

from regard.exchange.exportable import Exportable
from regard.runs import tensors as tensor_file
from regard.runs.disk import as_json, write_synced

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"

_CODE = """import json
from pathlib import Path
from safetensors.torch import load_file

# What the network is, and which special tokens do what; then its weights, by the names that the modules have in regard.
config = json.loads(Path("config.json").read_text(encoding="utf-8"))
weights = load_file("model.safetensors")
weights |= {name: weights[first] for name, first in config["tied"].items()}  # names that share a tensor
print(len(weights), "tensors of a", config["network"])
"""
_TOKENS = """
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("{file}")
print(tokenizer.encode("A dog runs.", add_special_tokens=False).ids)
"""


def write_safetensors(folder: Path, given: Exportable) -> list[str]:
    """Write weights, config, vocabulary and a card with code into an empty folder."""
    tied = tensor_file.find_tied(given.weights)
    stored = {name: one for name, one in given.weights.items() if name not in tied}
    tensor_file.save(folder / WEIGHTS, stored, metadata={"format": "pt"})
    files, tokenizers = given.tokenizer_files, given.tokenizers.values()
    config = {
        "task": given.task,
        "network": type(given.config).__name__.removesuffix("Config"),
        "config": dataclasses.asdict(given.config),
        "tied": tied,
        "tokenizers": {file: json.loads(one.roles.to_json()) for file, one in zip(files, tokenizers, strict=True)},
        "labels": given.labels,
        "pooling": given.pooling,
        "normalised": given.normalised,
        "image": None if given.image is None else vars(given.image),
    }
    for file, text in files.items():
        write_synced(folder / file, text.encode())
    write_synced(folder / CONFIG, as_json(config, indent=2) + b"\n")
    code = _CODE + (_TOKENS.format(file=next(iter(files))) if files else "")
    write_synced(folder / CARD, f"{given.card}\n## Load it\n\n```python\n{code}```\n".encode())
    return []
