"""The plan of a training run, before anything is trained: parameters, memory by kind, FLOPs, time on given devices.

How FLOPs and memory are counted is in `cost.py`, what devices can do in `devices.py`, how long many of them take for a
step in `step_model.py`. Prints nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from torch import nn

from regard.config import ModelTable, default_config
from regard.errors import UsageError, did_you_mean
from regard.models.model_config import ModelConfig
from regard.models.presets import Preset, find_preset, model_config
from regard.tasks.spec import TaskSpec, find_spec
from regard.training import paper
from regard.training.batch_shape import AnyBatchShape
from regard.training.cost import (
    Activations,
    count_activations,
    count_kernels,
    meta_model,
    muon_flops,
    training_flops,
)
from regard.training.devices import DeviceOptions, Devices, find_devices
from regard.training.interconnect import Interconnect, InterconnectOptions, find_interconnect
from regard.training.optimizer import count_state, hidden_matrices
from regard.training.planned_batch import CHANNELS, BatchOptions, batch_shape, image_size, require_positive
from regard.training.step_model import FLOAT, StepTime, Work, count_units, gathered_width, step_time

# The share of a device's peak that training keeps busy. Of the paper's two models, whose times are known, 0.35 puts both
# within 25 %: alone, they would ask for 0.29 (base) and 0.42 (big).
UTILISATION = 0.35
VOCAB_SIZE = 8000
STEPS = 10_000
OPTIMIZERS = ("muon", "adamw")
CLASSES = 1000  # of images, as ImageNet has them


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on each device, by kind. Replicated, each holds all weights, gradients and moments, and its share of the batch.

    activations: what the backward pass needs of the forward pass (in bf16 the weights' copies in it, too)
    gathered:    sharded, the weights of two blocks at a time, the one in use and the next, and the gradients of one
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    gathered: int = 0

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations + self.gathered


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What each device holds and how long a step takes, replicated (each device has the whole model) or sharded."""

    memory: Memory
    time: StepTime


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was asked, and what it will take.

    vocab_size: 0 where there is no text
    tokens:     per step: of the source and of the target, of a text, or of captions; none where there is no text
    parts:      parameters by the part of the model they belong to; what several parts share counts in the first
    sharded:    whether weights, gradients and moments are shared out over the devices
    """

    model: str
    config: ModelConfig
    task: str
    vocab_size: int
    tokens: tuple[int, ...]
    batch: AnyBatchShape
    steps: int
    devices: Devices
    interconnect: Interconnect
    sharded: bool
    utilisation: float
    parameters: int
    parts: Mapping[str, int]
    optimizer: str
    work: Work
    activations: Activations

    @cached_property
    def replicated_layout(self) -> Layout:
        """Each device has the whole model."""
        return Layout(memory=needed_memory(self.work, self.activations, self.devices), time=self._time(sharded=False))

    @cached_property
    def sharded_layout(self) -> Layout:
        """Each device has its share of weights, gradients and moments."""
        memory = needed_memory(self.work, self.activations, self.devices, sharded=True)
        return Layout(memory=memory, time=self._time(sharded=True))

    @property
    def layout(self) -> Layout:
        """The one that is asked for."""
        return self.sharded_layout if self.sharded else self.replicated_layout

    @property
    def memory(self) -> Memory:
        return self.layout.memory

    @property
    def flops_per_step(self) -> int:
        return round(self.work.flops)

    @property
    def flops(self) -> int:
        """The arithmetic of the whole run."""
        return self.flops_per_step * self.steps

    @property
    def seconds_per_step(self) -> float:
        return self.layout.time.seconds

    @property
    def seconds(self) -> float:
        """The whole run on the devices."""
        return self.seconds_per_step * self.steps

    def fits(self, layout: Layout) -> bool:
        """Whether a device has the memory; of one whose memory nobody knows it is assumed."""
        return not self.devices.memory or layout.memory.total <= self.devices.memory

    def on(self, n_devices: int, *, times: float = 1.0) -> "Plan":
        """The same on so many devices, with a step of so many times the examples."""
        work = replace(self.work, flops=times * self.work.flops, n_examples=times * self.work.n_examples)
        return replace(
            self,
            tokens=tuple(round(times * count) for count in self.tokens),
            batch=self.batch.with_examples(work.n_examples),
            devices=replace(self.devices, n_devices=n_devices),
            interconnect=self.interconnect.with_devices(n_devices),
            work=work,
        )

    def _time(self, *, sharded: bool) -> StepTime:
        return step_time(self.work, self.devices, self.interconnect, utilisation=self.utilisation, sharded=sharded)


def plan(
    model: str | ModelTable,
    *,
    task: str = "",
    vocab_size: int | None = None,
    batch: BatchOptions | None = None,
    steps: int = STEPS,
    devices: DeviceOptions | Devices | None = None,
    interconnect: InterconnectOptions | None = None,
    sharded: bool = False,
    utilisation: float = UTILISATION,
    optimizer: str = "",
) -> Plan:
    """Plan the training of a preset, or of one with other fields.

    task:       one that the model is for; empty for its first
    vocab_size: None for 8,000 tokens
    batch:      what a step shall read, None for what is usual
    devices:    what computes, None for this machine
    interconnect:  what connects the devices, None for what is usual for them
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
    found = devices if isinstance(devices, Devices) else find_devices(devices or DeviceOptions())
    if options.per_device:
        options = options.times(found.n_devices, spec)
    shape, tokens = batch_shape(network, config, options, model=preset.name, spec=spec, size=size)
    _refuse_fewer_examples(shape, found.n_devices)
    if sharded and found.n_devices == 1:
        raise UsageError(
            "Weights are sharded over several devices, and there is one.", "Give more, or leave --shard out."
        )
    parts = parameters_by_part(network)
    optimizer = _optimizer(optimizer, spec)
    return Plan(
        model=preset.name,
        config=config,
        task=spec.name,
        vocab_size=vocab_size if spec.reads_text else 0,
        tokens=tokens,
        batch=shape,
        steps=steps,
        devices=found,
        interconnect=find_interconnect(interconnect or InterconnectOptions(), found),
        sharded=sharded,
        utilisation=utilisation,
        parameters=sum(parts.values()),
        parts=parts,
        optimizer=optimizer,
        work=count_work(network, shape, optimizer=optimizer),
        activations=count_activations(network, shape, on_cpu=found.on_cpu, precision=found.precision),
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


def count_work(network: nn.Module, batch: AnyBatchShape, *, optimizer: str) -> Work:
    """Count what a step of this network does."""
    return Work(
        flops=training_flops(network, batch),
        n_examples=batch.n_examples,
        kernels=count_kernels(network, batch),
        units=count_units(network),
        state=count_state(network, optimizer),
        update_flops=muon_flops(hidden_matrices(network)) if optimizer == "muon" else 0.0,
    )


def needed_memory(work: Work, activations: Activations, devices: Devices, *, sharded: bool = False) -> Memory:
    """Count what each device must hold for its share of a step."""
    n_devices = devices.n_devices if sharded else 1
    kept = activations.of(work.n_examples / devices.n_devices)
    gathered = 0
    if sharded:
        width = gathered_width(devices.precision)
        # Copies of the weights in bf16, which are kept for any number of examples, are freed with their block.
        kept -= min(max(0.0, activations.fixed), width * work.parameters) if width < FLOAT else 0
        gathered = (2 * width + FLOAT) * max(work.units)
    return Memory(
        weights=FLOAT * work.parameters // n_devices,
        gradients=FLOAT * work.parameters // n_devices,
        optimizer=FLOAT * work.state // n_devices,
        activations=round(kept),
        gathered=gathered,
    )


def _refuse_fewer_examples(batch: AnyBatchShape, n_devices: int) -> None:
    if batch.n_examples < n_devices > 1:
        raise UsageError(
            f"A step of {batch} is fewer than one for each of {n_devices:,} devices.",
            "Give a larger batch (--per-device takes it as that of each device), or fewer devices.",
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


def _optimizer(name: str, spec: TaskSpec) -> str:
    if name and name not in OPTIMIZERS:
        raise UsageError(
            f"The optimizer must be {' or '.join(OPTIMIZERS)}, not '{name}'.", did_you_mean(name, OPTIMIZERS)
        )
    return name or default_config(spec.name).training.optimizer


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
