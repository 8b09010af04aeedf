"""What a run says of texts and images: their classes, tags or numbers, or what was hidden in them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from regard.config import DecodingConfig
from regard.errors import UsageError
from regard.tasks.denoising.fill_mask import Filled
from regard.tasks.denoising.masked_lm import MaskedLMTask
from regard.tasks.denoising.span_corruption import DenoisingTask
from regard.tasks.images.caption_generation import Described
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.images.image_classification import ImageClassificationTask
from regard.tasks.labelling.classification import ClassificationTask, Classified
from regard.tasks.labelling.regression import Measured, RegressionTask
from regard.tasks.labelling.tagging import TaggedText, TaggingTask

if TYPE_CHECKING:
    from regard.api.run import Run

Prediction = Classified | TaggedText | Measured | Filled | Described


def predict(
    run: "Run",
    inputs: Any,
    *,
    texts_b: Sequence[str],
    top: int,
    decoding: DecodingConfig,
    seed: int,
    progress: Callable[[int], None] | None,
) -> Sequence[Prediction]:
    """See `Run.predict`."""
    check_predicts(run)
    task, model = run.task, run.model
    check_list(inputs)
    texts_b = texts_b if any(texts_b) else ()
    if texts_b and not isinstance(task, ClassificationTask | RegressionTask):
        raise UsageError(
            f"A second text is for runs of the tasks classify and regress, and {run.reference} is one of {task.spec.name}.",
            "Leave it out.",
        )
    match task:
        case ClassificationTask() | RegressionTask():
            return task.predict(model, inputs, texts_b, progress=progress)
        case TaggingTask() | ImageClassificationTask():
            return task.predict(model, inputs, progress=progress)
        case CaptioningTask():
            return task.predict(model, inputs, decoding, seed=seed, progress=progress)
        case MaskedLMTask():
            return task.fill(model, inputs, top=top, progress=progress)
        case DenoisingTask():
            return task.fill(model, inputs, progress=progress)
    raise AssertionError(task.spec.name)


def check_predicts(run: "Run") -> None:
    """Refuse a run of a task that has another command."""
    if not isinstance(
        run.task,
        ClassificationTask
        | RegressionTask
        | TaggingTask
        | MaskedLMTask
        | DenoisingTask
        | ImageClassificationTask
        | CaptioningTask,
    ):
        raise UsageError(
            f"{run.reference} was trained for the task '{run.task.spec.name}': it has nothing to predict.",
            f"Use it with: regard {run.task.spec.verb} {run.reference}",
        )


def check_list(texts: Any) -> None:
    """Refuse one text where a list of them is expected: its characters would be taken for texts."""
    if isinstance(texts, str):
        raise UsageError("A list of texts, or of files, was expected, and one came.", "Write it in brackets: [text].")
