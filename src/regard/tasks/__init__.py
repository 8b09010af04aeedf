"""One job, one file: what an example is, the loss, the prediction, the score."""

from regard.errors import UsageError, did_you_mean
from regard.tasks.denoising.masked_lm import Mask
from regard.tasks.denoising.span_corruption import Denoise
from regard.tasks.images.captioning import Caption
from regard.tasks.images.image_classification import Image
from regard.tasks.labelling.classification import Classify
from regard.tasks.labelling.regression import Regress
from regard.tasks.labelling.tagging import Tag
from regard.tasks.language_model.task import Language
from regard.tasks.task import Task
from regard.tasks.translation.task import Translate

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Translate, Language, Mask, Denoise, Classify, Tag, Regress, Image, Caption)
}


def find_task(name: str) -> type[Task]:
    """Return the task of this name."""
    if name not in TASKS:
        raise UsageError(f"There is no task '{name}'.", did_you_mean(name, TASKS))
    return TASKS[name]
