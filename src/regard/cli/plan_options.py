"""The options of `regard plan`: what is trained, what a step reads, what computes, and what connects it."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from regard.cli.options import MOST_VOCABULARY
from regard.cli.plan_view import TERA
from regard.cli.run_file import assignments
from regard.config import ModelTable, default_config, override
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.training.devices import DeviceOptions
    from regard.training.interconnect import InterconnectOptions
    from regard.training.planned_batch import BatchOptions

STEP = Group("Step", sort_key=10)
DEVICES = Group("Devices", sort_key=20)
CLUSTER = Group("Many devices", sort_key=30)
MOST = {
    **dict.fromkeys(("tokens", "source_tokens", "target_tokens", "steps"), 10**9),
    "vocab_size": MOST_VOCABULARY,
    "length": 10**6,
    "images": 10**6,
    "image_size": 4096,
    "peak": 10**6,
    "processes": 1024,
    "per_node": 1024,
}
WITH_PAPER = ("length", "utilisation", "measure", "up_to")  # what may be given with --paper


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is trained, and how long."""

    task: Annotated[str, Parameter(help="one of the model's tasks (its first)")] = ""
    vocab_size: Annotated[int | None, Parameter(help="tokens in the vocabulary (8000)")] = None
    set: Annotated[
        tuple[str, ...], Parameter(metavar="KEY=VALUE", help="a field of the model: model.d_model=256; repeatable")
    ] = ()
    steps: Annotated[int | None, Parameter(help="number of updates (10000)")] = None
    optimizer: Annotated[str, Parameter(help="muon or adamw (the task's usual)")] = ""

    def table(self, model: str) -> ModelTable:
        """The preset with the fields that are set."""
        from regard.models.presets import find_preset

        changes = assignments(self.set)
        for key in changes:
            if not key.startswith("model."):
                raise UsageError(f"--set {key} is not a field of the model.", "Set one, such as model.d_model=256.")
        config = default_config(self.task or find_preset(model).tasks[0])
        return override(dataclasses.replace(config, model=ModelTable(preset=model)), changes).model


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """What a step reads."""

    tokens: Annotated[
        int | None, Parameter(group=STEP, help="tokens per step: of text, or of each side of pairs (4096)")
    ] = None
    source_tokens: Annotated[int | None, Parameter(group=STEP, help="of pairs, source tokens per step")] = None
    target_tokens: Annotated[int | None, Parameter(group=STEP, help="of pairs, target tokens per step")] = None
    length: Annotated[
        int,
        Parameter(
            group=STEP,
            help="tokens per sequence, of pairs in the source (30 for a sentence to translate, a language model's "
            "context, 128 for other texts, 12 for a caption)",
        ),
    ] = 0
    images: Annotated[
        int | None, Parameter(group=STEP, help="images per step (128; of caption 32, each with 5 captions)")
    ] = None
    image_size: Annotated[
        int,
        Parameter(
            group=STEP,
            help="pixels per edge of an image (14 patches of a ViT, 32 for a ResNet with a small stem or a ConvNet, 224 "
            "with a large one, 96 for captions)",
        ),
    ] = 0
    per_device: Annotated[
        bool, Parameter(group=STEP, help="tokens and images are those of each device, not of all together")
    ] = False

    def batch(self) -> "BatchOptions":
        """The batch that is asked for."""
        from regard.training.planned_batch import BatchOptions

        return BatchOptions(
            tokens=read_tokens(self.tokens, self.source_tokens, self.target_tokens),
            length=self.length,
            images=self.images,
            image_size=self.image_size,
            per_device=self.per_device,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HardwareOptions:
    """What computes."""

    devices: Annotated[
        str,
        Parameter(
            group=DEVICES,
            metavar="[N x]NAME",
            help="8xP100, A100, RTX4090 …; without it this machine, whose peak is measured in a second",
        ),
    ] = ""
    precision: Annotated[
        str, Parameter(group=DEVICES, help="fp32 or bf16; auto is bf16 where a device has it, on a CPU fp32 (auto)")
    ] = ""
    peak: Annotated[
        float | None,
        Parameter(group=DEVICES, metavar="TFLOPS", help="peak TFLOP/s of one device, instead of the built-in table's"),
    ] = None
    utilisation: Annotated[
        float | None, Parameter(group=DEVICES, help="share of the peak that training reaches (0.35)")
    ] = None
    processes: Annotated[
        int | None,
        Parameter(
            group=DEVICES, help="of this machine, how many share its cores, as train --processes starts them (1)"
        ),
    ] = None
    measure: Annotated[
        bool,
        Parameter(
            group=DEVICES, help="also time a few real steps on this machine; with --processes in several at once"
        ),
    ] = False

    def chosen(self) -> "DeviceOptions":
        """The devices that are asked for."""
        from regard.training.devices import THIS, DeviceOptions

        peak = check_peak(self.peak) * TERA
        return DeviceOptions(
            name=self.devices or THIS,
            precision=self.precision or "auto",
            peak=peak,
            processes=1 if self.processes is None else self.processes,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """What connects devices, and how they share a model."""

    per_node: Annotated[
        int | None, Parameter(group=CLUSTER, help="devices in each node (as many as fill it, up to 8)")
    ] = None
    link: Annotated[
        str,
        Parameter(
            group=CLUSTER,
            metavar="NAME",
            help="inside a node: NVLINK3, PCIE4 …, or figures in one direction of a device, 300GB/s@3us (what is usual for "
            "the device)",
        ),
    ] = ""
    network: Annotated[
        str,
        Parameter(
            group=CLUSTER,
            metavar="[N x]NAME",
            help="between nodes, with N adapters in each: 8xIB-HDR, ETH-100 …, or figures of one, 25GB/s@10us",
        ),
    ] = ""
    shard: Annotated[
        bool,
        Parameter(
            group=CLUSTER,
            help="the time is that of weights, gradients and optimizer shared out over the devices (FSDP); else each has "
            "them all. Both are shown",
        ),
    ] = False
    up_to: Annotated[
        int | None,
        Parameter(
            group=CLUSTER,
            metavar="DEVICES",
            help="also tables up to so many devices, each time twice as many: the same batch for all, and as much for each",
        ),
    ] = None

    def chosen(self) -> "InterconnectOptions":
        """The interconnect that is asked for."""
        from regard.training.interconnect import InterconnectOptions

        return InterconnectOptions(per_node=self.per_node or 0, link=self.link, network=self.network)


def read_tokens(tokens: int | None, source: int | None, target: int | None) -> int | tuple[int, int] | None:
    """Return the tokens of a step: one number, or those of source and target; None where none is given."""
    if source is None and target is None:
        return tokens
    if tokens is not None:
        raise UsageError(
            "--tokens is for both sides, --source-tokens and --target-tokens for one each.", "Give one or the other."
        )
    if source is None or target is None:
        missing = "--source-tokens" if source is None else "--target-tokens"
        raise UsageError(f"Pairs have two sides, but {missing} is missing.", f"Give {missing}, or --tokens for both.")
    return source, target


def check_peak(peak: float | None) -> float:
    """Return a peak in TFLOP/s, 0 where none is given; refuse a device that computes nothing, or backwards."""
    if peak is None:
        return 0.0
    if not 0 < peak < float("inf"):
        raise UsageError(f"--peak must be a number of TFLOP/s above 0, not {peak:g}.", "A P100 has 9.5.")
    return peak
