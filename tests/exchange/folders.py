"""Folders of the transformers package with something changed, and what is said about them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.exchange.huggingface import read_folder


def changed(folder: Path, target: Path, **settings: Any) -> Path:
    """A copy of a folder whose config says something else; ... for nothing."""
    shutil.copytree(folder, target)
    config = {**json.loads((folder / "config.json").read_text()), **settings}
    kept = {key: value for key, value in config.items() if value is not ...}
    (target / "config.json").write_text(json.dumps(kept))
    return target


def refusal(folder: Path, **options: Any) -> str:
    with pytest.raises(RegardError) as caught:
        read_folder(folder, **options).weights()
    return (
        str(caught.value).replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "").replace(str(folder), "FOLDER")
    )
