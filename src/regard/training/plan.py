"""What a training run will take before anything is trained: parameters, memory by kind, arithmetic, time on given devices.

How arithmetic and memory are counted is in `cost.py`, what devices can do in `devices.py`. Prints nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import nn

from regard.config import CorruptionConfig, ModelTable, default_config
from regard.data.images.decoding import ImageShape
from regard.errors import UsageError, did_you_mean
from regard.models.model_config import ModelConfig
from regard.models.presets import Preset, find_preset, model_config, usual_image_size
from regard.training import paper
from regard.training.cost import IMAGES, PAIRS, AnyLoad, ImageLoad, Load, kept_bytes, shapes, training_flops
from regard.training.devices import THIS, Devices, find_devices

# The share of a device's peak that training keeps busy. Of the paper's two models, whose times are known, 0.35 puts both
# within 25 %: alone, they would ask for 0.29 (base) and 0.42 (big).
UTILISATION = 0.35
VOCAB_SIZE = 8000
TOKENS = 4096  # as training.batch_tokens has it
STEPS = 10_000
PAIR_LENGTH = paper.LENGTH
TEXT_LENGTH = 128  # of what is classified, tagged or masked; a language model reads as much as it can
# Of images: ImageNet's classes, and as many captions as Flickr8k has.
CLASSES = 1000
CHANNELS = 3
CAPTIONS = 5
CAPTION_LENGTH = 12
_FLOAT = 4  # bytes: weights, gradients and moments are fp32 in every precision
_MOMENTS = 2  # AdamW's averages of the gradient and of its square
# What a task asks of an encoder's head, and of how many outputs it consists where only the data would tell.
_HEADS: Mapping[str, tuple[str, int]] = {
    "mask": ("words", 0),
    "classify": ("sequence", 2),
    "tag": ("tokens", 2),
    "regress": ("sequence", 1),
}


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on each device, by kind. Each holds all weights, gradients and moments, and its share of the batch.

    activations: what the backward pass needs of the forward pass (in bf16 the weights' copies in it, too)
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was asked, and what it will take.

    vocab_size: 0 where there is no text
    tokens:     in a step: of the source and of the target, of a text, or of captions; none where there is no text
    parts:      parameters by the part of the model they belong to; what several parts share counts in the first
    """

    model: str
    config: ModelConfig
    task: str
    vocab_size: int
    tokens: tuple[int, ...]
    load: AnyLoad
    steps: int
    devices: Devices
    utilisation: float
    parameters: int
    parts: Mapping[str, int]
    memory: Memory
    flops_per_step: int

    @property
    def flops(self) -> int:
        """The arithmetic of the whole run."""
        return self.flops_per_step * self.steps

    @property
    def seconds_per_step(self) -> float:
        return self.flops_per_step / (self.devices.n_devices * self.devices.peak * self.utilisation)

    @property
    def seconds(self) -> float:
        """The whole run on the devices."""
        return self.seconds_per_step * self.steps


def plan(
    model: str | ModelTable,
    *,
    task: str = "",
    vocab_size: int | None = None,
    tokens: int | tuple[int, int] | None = None,
    length: int = 0,
    images: int | None = None,
    image_size: int = 0,
    steps: int = STEPS,
    devices: str | Devices = THIS,
    precision: str = "auto",
    peak: float = 0.0,
    utilisation: float = UTILISATION,
) -> Plan:
    """Plan the training of a preset, or of one with other fields.

    task:       one that the model is for; empty for its first
    vocab_size: None for 8,000 tokens
    tokens:     in a step: of text, or (source, target); for translation one number is that of each side; None for 4,096
    length:     of a sequence, of pairs that of the source; 0 chooses: 30 for a sentence to translate, a language model's
                context, 128 for other texts, 12 for each of the five captions of an image
    images:     in a step, of a task that reads some; None for as many as training.batch_images of the task
    image_size: pixels to an edge; 0 chooses what suits the model
    devices, precision, peak: see `find_devices`; ready Devices bring their own precision and peak
    """
    table = ModelTable(preset=model) if isinstance(model, str) else model
    preset = find_preset(table.preset)
    task = _checked_task(preset, task)
    _refuse_foreign(
        preset.name, task, vocab_size=vocab_size, tokens=tokens, length=length, images=images, image_size=image_size
    )
    vocab_size = VOCAB_SIZE if vocab_size is None else vocab_size
    _refuse_none("vocabulary", "token", vocab_size)
    _refuse_none("run", "step", steps)
    if not 0 < utilisation <= 1:
        raise UsageError(f"A utilisation lies above 0 and up to 1, not at {utilisation:g}.", f"Usual is {UTILISATION}.")
    if length < 0:
        raise UsageError(f"A sequence has at least 1 token, not {length}.", "Give a larger length, or 0 to choose.")
    size = _image_size(preset, table, image_size) if task in IMAGES else 0
    config = model_config(table, origin="model", **_sizes(preset, table, task, vocab_size, size))
    network = shapes(config)
    counts: tuple[int, ...]
    load: AnyLoad
    if task in IMAGES:
        load = _image_load(config, task, images, size, length)
        counts = (round(load.n_images) * load.n_captions * load.caption_length,) if load.n_captions else ()
    else:
        counts = _counts(preset, task, TOKENS if tokens is None else tokens)
        _refuse_none("step", "token", min(counts))
        usual = PAIR_LENGTH if task == "translate" else getattr(config, "context", TEXT_LENGTH)
        load = _load(network, counts, length, usual=usual)
    found = find_devices(devices, precision=precision, peak=peak) if isinstance(devices, str) else devices
    parts = parameters_by_part(network)
    return Plan(
        model=preset.name,
        config=config,
        task=task,
        vocab_size=0 if task == "image" else vocab_size,
        tokens=counts,
        load=load,
        steps=steps,
        devices=found,
        utilisation=utilisation,
        parameters=sum(parts.values()),
        parts=parts,
        memory=needed_memory(network, task, load, found),
        flops_per_step=round(training_flops(network, task, load)),
    )


def paper_plan(model: str, *, length: int = paper.LENGTH, utilisation: float = UTILISATION) -> Plan:
    """Plan what the paper trained: transformer-base or transformer-big, on its tokens, steps and devices."""
    if model not in paper.RUNS:
        find_preset(model)
        raise UsageError(f"The paper did not train {model}.", f"It trained {' and '.join(paper.RUNS)}.")
    return plan(
        model,
        vocab_size=paper.VOCAB_SIZE,
        tokens=paper.TOKENS,
        length=length,
        steps=paper.RUNS[model].steps,
        devices=paper.DEVICES,
        precision=paper.PRECISION,
        utilisation=utilisation,
    )


def needed_memory(network: nn.Module, task: str, load: AnyLoad, devices: Devices) -> Memory:
    """Count what each device must hold for a step of this network."""
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    share = load.of(load.n_examples / devices.n_devices)
    kept = kept_bytes(network, task, share, on_cpu=devices.on_cpu, precision=devices.precision)
    return Memory(
        weights=_FLOAT * n_parameters,
        gradients=_FLOAT * n_parameters,
        optimizer=_MOMENTS * _FLOAT * n_parameters,
        activations=round(kept),
    )


def parameters_by_part(network: nn.Module) -> dict[str, int]:
    """Count the parameters of each part of a model, in their order."""
    counts: dict[str, int] = {}
    for name, parameter in network.named_parameters():
        part = name.partition(".")[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


def _checked_task(preset: Preset, task: str) -> str:
    if task and task not in preset.tasks:
        raise UsageError(f"{preset.name} is no model for the task '{task}'.", did_you_mean(task, preset.tasks))
    return task or preset.tasks[0]


def _refuse_foreign(
    name: str,
    task: str,
    *,
    vocab_size: int | None,
    tokens: int | tuple[int, int] | None,
    length: int,
    images: int | None,
    image_size: int,
) -> None:
    """Refuse a number of what a task does not read or write."""
    reads_images, has_text = task in IMAGES, task != "image"
    no_images, no_text = f"{name} reads text, not images.", f"{name} reads and writes no tokens."
    no_step = f"A step of {name} is so many images, not so many tokens."
    for is_foreign, problem, remedy in (
        (images is not None and not reads_images, no_images, "Give the number of tokens in a step."),
        (image_size and not reads_images, no_images, "Leave the size of images out."),
        (tokens is not None and reads_images, no_step, "Give the number of images."),
        (length and not has_text, no_text, "Leave the length out."),
        (vocab_size is not None and not has_text, no_text, "Leave the vocabulary out."),
    ):
        if is_foreign:
            raise UsageError(problem, remedy)


def _refuse_none(what: str, unit: str, count: int) -> None:
    if count < 1:
        raise UsageError(f"A {what} has at least 1 {unit}, not {count:,}.", "Give a larger number.")


def _image_size(preset: Preset, table: ModelTable, given: int) -> int:
    """The pixels to an edge: as given, or what suits the model."""
    chosen = {**preset.fields, **table.fields}
    of_model = chosen.get("image_size", given)
    if given and of_model != given:
        raise UsageError(
            f"The model reads images of {of_model} × {of_model} pixels, not of {given} × {given}.",
            "Give one size of images.",
        )
    return given or usual_image_size(table)


def _sizes(preset: Preset, table: ModelTable, task: str, vocab_size: int, image_size: int) -> dict[str, Any]:
    """The fields that the data would decide."""
    names = {field.name for field in fields(preset.config)}
    if table.fields.get("n_features"):
        vocab_size = 0  # vectors have no vocabulary
    sizes: dict[str, Any] = {name: vocab_size for name in ("vocab", "source_vocab", "target_vocab") if name in names}
    if "head" in names and task in _HEADS:
        sizes["head"], sizes["n_outputs"] = _HEADS[task]
    if task in IMAGES:
        of_images = {"n_channels": CHANNELS, "n_outputs": CLASSES, "image_size": image_size}
        sizes |= {name: size for name, size in of_images.items() if name in names}
    # What somebody has set stays, such as the number of classes.
    return {name: size for name, size in sizes.items() if name not in table.fields}


def _counts(preset: Preset, task: str, tokens: int | tuple[int, int]) -> tuple[int, ...]:
    """The tokens of each side of a step: of source and target, or of a text alone."""
    if not isinstance(tokens, int):
        if task not in PAIRS:
            raise UsageError(f"{preset.name} reads text, not pairs of source and target.", "Give one number of tokens.")
        return tokens
    if task == "translate":
        return tokens, tokens
    if task == "denoise":  # a mark takes the place of each hidden span, and stands before it in the target
        corruption = CorruptionConfig()
        hidden = corruption.rate * tokens
        marks = hidden / corruption.span
        return round(tokens - hidden + marks), round(hidden + marks)
    return (tokens,)


def _image_load(config: ModelConfig, task: str, images: int | None, size: int, length: int) -> ImageLoad:
    """How many images a step has, of which size; those to be described with their captions."""
    n_images = default_config(task).training.batch_images if images is None else images
    _refuse_none("step", "image", n_images)
    # A model made for one size of images has it as a field, which somebody may have set.
    shape = ImageShape(getattr(config, "image_size", size), getattr(config, "n_channels", CHANNELS))
    pixels = ImageLoad(n_images=n_images, size=shape.size)
    if task == "image":
        return pixels
    return replace(pixels, n_captions=CAPTIONS, caption_length=length or CAPTION_LENGTH)


def _load(network: nn.Module, tokens: tuple[int, ...], length: int, *, usual: int) -> Load:
    """How many sequences a step has, of which lengths; the mean target is as much longer as there are more tokens of it."""
    limit: int | None = getattr(network, "max_length", None)
    chosen = length or min(usual, tokens[0], limit or usual)
    target_length = chosen * tokens[1] / tokens[0] if len(tokens) == 2 else 0.0
    longest = max(chosen, target_length)
    if limit is not None and longest > limit:
        raise UsageError(
            f"A sequence of {longest:,.0f} tokens is longer than the {limit:,} positions of the model.",
            "Give a smaller length, or the model more positions.",
        )
    if chosen > tokens[0] or 0 < target_length < 1:
        raise UsageError(
            f"A step of {' and '.join(f'{one:,}' for one in tokens)} tokens holds no sequence of {chosen:,}.",
            "Give more tokens, or a smaller length.",
        )
    return Load(n_sequences=tokens[0] / chosen, length=chosen, target_length=target_length)
