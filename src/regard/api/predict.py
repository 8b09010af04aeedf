"""What a run says of texts and images: their classes, tags or numbers, or what was hidden in them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from regard.config import DecodingConfig
from regard.errors import UsageError
from regard.tasks.denoising.fill_mask import Filled
from regard.tasks.denoising.masked_lm import Mask
from regard.tasks.denoising.span_corruption import Denoise
from regard.tasks.images.caption_generation import Described
from regard.tasks.images.captioning import Caption
from regard.tasks.images.image_classification import Image
from regard.tasks.labelling.classification import Classified, Classify
from regard.tasks.labelling.regression import Measured, Regress
from regard.tasks.labelling.tagging import Tag, TaggedText

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
    if texts_b and not isinstance(task, Classify | Regress):
        raise UsageError(
            f"A second text is for runs of the tasks classify and regress, and {run.reference} is one of {task.name}.",
            "Leave it out.",
        )
    match task:
        case Classify() | Regress():
            return task.predict(model, inputs, texts_b, progress=progress)
        case Tag() | Image():
            return task.predict(model, inputs, progress=progress)
        case Caption():
            return task.predict(model, inputs, decoding, seed=seed, progress=progress)
        case Mask():
            return task.fill(model, inputs, top=top, progress=progress)
        case Denoise():
            return task.fill(model, inputs, progress=progress)
    raise AssertionError(task.name)


def check_predicts(run: "Run") -> None:
    """Refuse a run of a task that has another command."""
    if not isinstance(run.task, Classify | Regress | Tag | Mask | Denoise | Image | Caption):
        raise UsageError(
            f"{run.reference} was trained for the task '{run.task.name}': it has nothing to predict.",
            f"Use it with: regard {run.task.verb} {run.reference}",
        )


def check_list(texts: Any) -> None:
    """Refuse one text where a list of them is expected: its characters would be taken for texts."""
    if isinstance(texts, str):
        raise UsageError("A list of texts, or of files, was expected, and one came.", "Write it in brackets: [text].")
