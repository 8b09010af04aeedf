"""One job, one folder: what an example is, the loss, the prediction, the score. The table of all tasks is `spec.py`."""

import importlib
from typing import TYPE_CHECKING

from regard.tasks.spec import find_spec

if TYPE_CHECKING:
    from regard.tasks.task import Task


def find_task(name: str) -> "type[Task]":
    """Return the class of the task of this name; its file, and torch with it, is loaded now."""
    module, _, own = find_spec(name).home.partition(":")
    found: type[Task] = getattr(importlib.import_module(module), own)
    return found
