"""Names of checkpoints and their files, and which checkpoints a run has.

Reads names only and loads no tensor library: whoever lists runs need not wait for one.
"""

import re
from pathlib import Path
from typing import Literal

from regard.regular_files import MEGABYTE
from regard.runs.folder import RunFolder

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
EMA = "ema.safetensors"
STATE = "state.json"
MANIFEST = "manifest.json"
MOST_STATE = 64 * MEGABYTE  # of a state or a manifest, which has the hash of each of many files

Kind = Literal["step", "average"]
# A checkpoint that is being replaced stands aside under this ending, and counts as long as there is no other.
REPLACED = ".old"
NAME = re.compile(rf"(step|average)-([0-9]{{8,}})({re.escape(REPLACED)})?")


def find(run: RunFolder, *, kind: Kind = "step") -> dict[int, Path]:
    """Map the steps that have a checkpoint to its folder, oldest first. Nothing is verified."""
    found: dict[int, Path] = {}
    # In this order a folder that stands aside comes after the one that replaces it, and does not count.
    for path in sorted(run.checkpoints.glob(f"{kind}-*")):
        match = NAME.fullmatch(path.name)
        if match and path.is_dir() and not path.is_symlink():
            found.setdefault(int(match[2]), path)
    return dict(sorted(found.items()))
