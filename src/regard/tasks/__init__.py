"""One job, one file: what an example is, the loss, the prediction, the score."""

from regard.errors import UsageError, did_you_mean
from regard.tasks.language import Language
from regard.tasks.task import Task
from regard.tasks.translate import Translate

TASKS: dict[str, type[Task]] = {"translate": Translate, "language": Language}


def find_task(name: str) -> type[Task]:
    """Return the task of this name."""
    if name not in TASKS:
        raise UsageError(f"There is no task '{name}'.", did_you_mean(name, TASKS))
    return TASKS[name]
