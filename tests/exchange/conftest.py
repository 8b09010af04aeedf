"""Folders that the transformers package has written, each once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.exchange.their_networks import VARIANTS, transformers

Saved = Callable[[str], Path]


@pytest.fixture(autouse=True, scope="session")
def quiet() -> Iterator[None]:
    """Their package reports what it loads."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    yield
    transformers.utils.logging.set_verbosity_warning()


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """The folder of a variant, not to be changed."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("theirs") / "model"
            VARIANTS[name].network().save_pretrained(folders[name])
        return folders[name]

    return folder
