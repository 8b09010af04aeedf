"""The plan of a training run, before anything is trained: parameters, memory by kind, FLOPs, time on given devices.

How FLOPs and memory are counted is in `cost.py`, what devices can do in `devices.py`. Prints nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import nn

from regard.config import ModelTable, default_config
from regard.errors import UsageError, did_you_mean
from regard.models.model_config import ModelConfig
from regard.models.presets import Preset, find_preset, model_config
from regard.tasks.spec import TaskSpec, find_spec
from regard.training import paper
from regard.training.batch_shape import AnyBatchShape
from regard.training.cost import activation_bytes, meta_model, training_flops
from regard.training.devices import DeviceOptions, Devices, find_devices
from regard.training.optimizer import count_state
from regard.training.planned_batch import CHANNELS, BatchOptions, batch_shape, image_size, require_positive

# The share of a device's peak that training keeps busy. Of the paper's two models, whose times are known, 0.35 puts both
# within 25 %: alone, they would ask for 0.29 (base) and 0.42 (big).
UTILISATION = 0.35
VOCAB_SIZE = 8000
STEPS = 10_000
CLASSES = 1000  # of images, as ImageNet has them
_FLOAT = 4  # bytes: weights, gradients and moments are fp32 in every precision


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
    tokens:     per step: of the source and of the target, of a text, or of captions; none where there is no text
    parts:      parameters by the part of the model they belong to; what several parts share counts in the first
    """

    model: str
    config: ModelConfig
    task: str
    vocab_size: int
    tokens: tuple[int, ...]
    batch: AnyBatchShape
    steps: int
    devices: Devices
    utilisation: float
    parameters: int
    parts: Mapping[str, int]
    optimizer: str
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
    batch: BatchOptions | None = None,
    steps: int = STEPS,
    devices: DeviceOptions | Devices | None = None,
    utilisation: float = UTILISATION,
    optimizer: str = "",
) -> Plan:
    """Plan the training of a preset, or of one with other fields.

    task:       one that the model is for; empty for its first
    vocab_size: None for 8,000 tokens
    batch:      what a step shall read, None for what is usual
    devices:    what computes, None for this machine
    optimizer:  muon or adamw; empty for what the task is trained with
    """
    table = ModelTable(preset=model) if isinstance(model, str) else model
    preset, options = find_preset(table.preset), batch or BatchOptions()
    spec = _spec(preset, task)
    options.check(preset.name, spec)
    if vocab_size is not None and not spec.reads_text:
        raise UsageError(f"{preset.name} reads and writes no tokens.", "Leave the vocabulary size out.")
    vocab_size = VOCAB_SIZE if vocab_size is None else vocab_size
    require_positive("The vocabulary size", vocab_size)
    require_positive("The number of steps", steps)
    if not 0 < utilisation <= 1:
        raise UsageError(f"Utilisation must be above 0 and at most 1, not {utilisation:g}.", f"Usual is {UTILISATION}.")
    size = image_size(preset, table, options.image_size) if spec.reads_images else 0
    config = model_config(table, origin="model", **_sizes(preset, table, spec, vocab_size, size))
    network = meta_model(config)
    shape, tokens = batch_shape(network, config, options, model=preset.name, spec=spec, size=size)
    found = devices if isinstance(devices, Devices) else find_devices(devices or DeviceOptions())
    parts = parameters_by_part(network)
    optimizer = optimizer or default_config(spec.name).training.optimizer
    return Plan(
        model=preset.name,
        config=config,
        task=spec.name,
        vocab_size=vocab_size if spec.reads_text else 0,
        tokens=tokens,
        batch=shape,
        steps=steps,
        devices=found,
        utilisation=utilisation,
        parameters=sum(parts.values()),
        parts=parts,
        optimizer=optimizer,
        memory=needed_memory(network, shape, found, optimizer=optimizer),
        flops_per_step=round(training_flops(network, shape)),
    )


def paper_plan(model: str, *, length: int = 0, utilisation: float = UTILISATION) -> Plan:
    """Plan what the paper trained: transformer-base or transformer-big, on its tokens, steps and devices."""
    if model not in paper.RUNS:
        find_preset(model)
        raise UsageError(f"The paper did not train {model}.", f"It trained {' and '.join(paper.RUNS)}.")
    return plan(
        model,
        vocab_size=paper.VOCAB_SIZE,
        batch=BatchOptions(tokens=paper.TOKENS, length=length or paper.LENGTH),
        steps=paper.RUNS[model].steps,
        devices=DeviceOptions(name=paper.DEVICES, precision=paper.PRECISION),
        utilisation=utilisation,
        optimizer="adamw",
    )


def needed_memory(network: nn.Module, batch: AnyBatchShape, devices: Devices, *, optimizer: str) -> Memory:
    """Count what each device must hold for a step of this network."""
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    share = batch.with_examples(batch.n_examples / devices.n_devices)
    activations = activation_bytes(network, share, on_cpu=devices.on_cpu, precision=devices.precision)
    return Memory(
        weights=_FLOAT * n_parameters,
        gradients=_FLOAT * n_parameters,
        optimizer=_FLOAT * count_state(network, optimizer),
        activations=round(activations),
    )


def parameters_by_part(network: nn.Module) -> dict[str, int]:
    """Count the parameters of each part of a model, in their order."""
    counts: dict[str, int] = {}
    for name, parameter in network.named_parameters():
        part = name.partition(".")[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


def _spec(preset: Preset, task: str) -> TaskSpec:
    if task and task not in preset.tasks:
        raise UsageError(f"{preset.name} does not support the task '{task}'.", did_you_mean(task, preset.tasks))
    return find_spec(task or preset.tasks[0])


def _sizes(preset: Preset, table: ModelTable, spec: TaskSpec, vocab_size: int, image_size: int) -> dict[str, Any]:
    """The fields that the data would decide."""
    names = {field.name for field in fields(preset.config)}
    if table.fields.get("n_features"):
        vocab_size = 0  # vectors have no vocabulary
    sizes: dict[str, Any] = {name: vocab_size for name in ("vocab", "source_vocab", "target_vocab") if name in names}
    if "head" in names and spec.head:
        sizes["head"], sizes["n_outputs"] = spec.head, spec.n_outputs
    if spec.reads_images:
        of_images = {"n_channels": CHANNELS, "n_outputs": CLASSES, "image_size": image_size}
        sizes |= {name: size for name, size in of_images.items() if name in names}
    # What somebody has set stays, such as the number of classes.
    return {name: size for name, size in sizes.items() if name not in table.fields}
