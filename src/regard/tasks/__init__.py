"""One job, one file: what an example is, the loss, the prediction, the score."""

from regard.errors import UsageError, did_you_mean
from regard.tasks.caption import Caption
from regard.tasks.classify import Classify
from regard.tasks.denoise import Denoise
from regard.tasks.image import Image
from regard.tasks.language import Language
from regard.tasks.mask import Mask
from regard.tasks.regress import Regress
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.tasks.translate import Translate

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Translate, Language, Mask, Denoise, Classify, Tag, Regress, Image, Caption)
}


def find_task(name: str) -> type[Task]:
    """Return the task of this name."""
    if name not in TASKS:
        raise UsageError(f"There is no task '{name}'.", did_you_mean(name, TASKS))
    return TASKS[name]
