"""The batch of a planned training step: from tokens, lengths or images, as somebody asks for them, to its shape."""

from dataclasses import dataclass, replace

from torch import nn

from regard.config import CorruptionConfig, ModelTable, default_config
from regard.data.images.decoding import ImageShape
from regard.errors import UsageError
from regard.models.model_config import ModelConfig
from regard.models.presets import Preset, usual_image_size
from regard.tasks.spec import TaskSpec
from regard.training import paper
from regard.training.batch_shape import AnyBatchShape, BatchShape, ImageBatchShape

TOKENS = 4096  # as training.batch_tokens has it
PAIR_LENGTH = paper.LENGTH
TEXT_LENGTH = 128  # of what is classified, tagged or masked; a language model reads as much as it can
CHANNELS = 3
# As many captions as Flickr8k has.
CAPTIONS = 5
CAPTION_LENGTH = 12


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """What a training step shall read.

    tokens:     of text, or (source, target); for translation one number is that of each side; None for 4,096
    length:     of a sequence, of pairs that of the source; 0 chooses: 30 for a sentence to translate, a language model's
                context, 128 for other texts, 12 for each of the five captions of an image
    images:     of a task that reads some; None for as many as training.batch_images of the task
    image_size: pixels to an edge; 0 chooses what suits the model
    per_device: whether tokens and images are those of each device
    """

    tokens: int | tuple[int, int] | None = None
    length: int = 0
    images: int | None = None
    image_size: int = 0
    per_device: bool = False

    def times(self, n_devices: int, spec: TaskSpec) -> "BatchOptions":
        """The batch of a step on so many devices, each of which reads what is given here."""
        if spec.reads_images:
            images = default_config(spec.name).training.batch_images if self.images is None else self.images
            return replace(self, images=n_devices * images, per_device=False)
        tokens = TOKENS if self.tokens is None else self.tokens
        together = n_devices * tokens if isinstance(tokens, int) else (n_devices * tokens[0], n_devices * tokens[1])
        return replace(self, tokens=together, per_device=False)

    def check(self, model: str, spec: TaskSpec) -> None:
        """Refuse a number of what a task does not read or write, and a length below 0."""
        no_images = f"{model} reads text, not images."
        no_tokens = f"The batch size of {model} is a number of images, not of tokens."
        for is_foreign, problem, remedy in (
            (self.images is not None and not spec.reads_images, no_images, "Give the number of tokens per step."),
            (self.image_size and not spec.reads_images, no_images, "Leave the image size out."),
            (self.tokens is not None and spec.reads_images, no_tokens, "Give the number of images."),
            (self.length and not spec.reads_text, f"{model} reads and writes no tokens.", "Leave the length out."),
        ):
            if is_foreign:
                raise UsageError(problem, remedy)
        if self.length < 0:
            raise UsageError(
                f"The sequence length must be at least 1, not {self.length}.", "Give a larger one, or 0 to choose."
            )


def require_positive(what: str, count: int) -> None:
    """Refuse a count below 1."""
    if count < 1:
        raise UsageError(f"{what} must be at least 1, not {count:,}.", "Give a larger number.")


def image_size(preset: Preset, table: ModelTable, given: int) -> int:
    """The pixels to an edge: as given, or what suits the model."""
    of_model = {**preset.fields, **table.fields}.get("image_size", given)
    if given and of_model != given:
        raise UsageError(
            f"The model reads images of {of_model} × {of_model} pixels, not of {given} × {given}.",
            "Give one size of images.",
        )
    return given or usual_image_size(table)


def batch_shape(
    network: nn.Module, config: ModelConfig, options: BatchOptions, *, model: str, spec: TaskSpec, size: int
) -> tuple[AnyBatchShape, tuple[int, ...]]:
    """Return what a step reads, and its tokens: of source and target, of a text, or of captions; none without text.

    size: of images, in pixels to an edge
    """
    if spec.reads_images:
        images = _image_shape(config, options, spec=spec, size=size)
        return images, (
            round(images.n_images) * images.n_captions * images.caption_length,
        ) if images.n_captions else ()
    tokens = _tokens(TOKENS if options.tokens is None else options.tokens, config, model=model, spec=spec)
    require_positive("The number of tokens per step", min(tokens))
    usual = PAIR_LENGTH if spec.reads == "pairs" else getattr(config, "context", TEXT_LENGTH)
    return _sequence_shape(network, tokens, options.length, usual=usual), tokens


def _tokens(tokens: int | tuple[int, int], config: ModelConfig, *, model: str, spec: TaskSpec) -> tuple[int, ...]:
    """The tokens of each side of a step: of source and target, or of a text alone."""
    two_sided = hasattr(config, "target_vocab")
    if not isinstance(tokens, int):
        if not two_sided:
            raise UsageError(f"{model} reads text, not pairs of source and target.", "Give one number of tokens.")
        return tokens
    if spec.reads == "pairs":
        return tokens, tokens
    if two_sided:  # span corruption: a mark takes the place of each hidden span, and stands before it in the target
        corruption = CorruptionConfig()
        hidden = corruption.rate * tokens
        marks = hidden / corruption.span
        return round(tokens - hidden + marks), round(hidden + marks)
    return (tokens,)


def _image_shape(config: ModelConfig, options: BatchOptions, *, spec: TaskSpec, size: int) -> ImageBatchShape:
    """How many images a step has, of which size; those to be described with their captions."""
    n_images = default_config(spec.name).training.batch_images if options.images is None else options.images
    require_positive("The number of images per step", n_images)
    # A model made for one size of images has it as a field, which somebody may have set.
    shape = ImageShape(getattr(config, "image_size", size), getattr(config, "n_channels", CHANNELS))
    images = ImageBatchShape(n_images=n_images, size=shape.size)
    if not spec.reads_text:
        return images
    return replace(images, n_captions=CAPTIONS, caption_length=options.length or CAPTION_LENGTH)


def _sequence_shape(network: nn.Module, tokens: tuple[int, ...], length: int, *, usual: int) -> BatchShape:
    """How many sequences a step has, of which lengths; the mean target is as much longer as there are more tokens of it."""
    limit: int | None = getattr(network, "max_length", None)
    chosen = length or min(usual, tokens[0], limit or usual)
    target_length = chosen * tokens[1] / tokens[0] if len(tokens) == 2 else 0.0
    longest = max(chosen, target_length)
    if limit is not None and longest > limit:
        raise UsageError(
            f"A sequence of {longest:,.0f} tokens exceeds the model's max_length of {limit:,}.",
            "Give a smaller length, or the model more positions.",
        )
    if chosen > tokens[0] or 0 < target_length < 1:
        raise UsageError(
            f"A step of {' and '.join(f'{one:,}' for one in tokens)} tokens holds no sequence of {chosen:,}.",
            "Give more tokens, or a smaller length.",
        )
    return BatchShape(n_sequences=tokens[0] / chosen, length=chosen, target_length=target_length)
