"""`regard plan`: what a training run will take, before anything is trained."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from regard.cli.options import MOST_VOCABULARY, JsonFlag, check_number, flag, given, named
from regard.cli.plan_view import TERA, as_json, show
from regard.cli.run_file import assignments
from regard.cli.terminal import busy, print_json
from regard.config import ModelTable, default_config, override
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.training.devices import DeviceOptions
    from regard.training.plan import Plan
    from regard.training.planned_batch import BatchOptions

STEP = Group("Step", sort_key=10)
DEVICES = Group("Devices", sort_key=20)
MOST = {
    **dict.fromkeys(("tokens", "source_tokens", "target_tokens", "steps"), 10**9),
    "vocab_size": MOST_VOCABULARY,
    "length": 10**6,
    "images": 10**6,
    "image_size": 4096,
    "peak": 10**6,
}
WITH_PAPER = ("length", "utilisation", "measure")  # what may be given with --paper


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

    def batch(self) -> "BatchOptions":
        """The batch that is asked for."""
        from regard.training.planned_batch import BatchOptions

        return BatchOptions(
            tokens=read_tokens(self.tokens, self.source_tokens, self.target_tokens),
            length=self.length,
            images=self.images,
            image_size=self.image_size,
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
    measure: Annotated[bool, Parameter(group=DEVICES, help="also time a few real steps on this machine")] = False

    def chosen(self) -> "DeviceOptions":
        """The devices that are asked for."""
        from regard.training.devices import THIS, DeviceOptions

        peak = check_peak(self.peak) * TERA
        return DeviceOptions(name=self.devices or THIS, precision=self.precision or "auto", peak=peak)


def plan(
    model: Annotated[str, Parameter(help="a model of `regard models`, such as transformer-base")],
    /,
    *,
    run: RunOptions | None = None,
    step: StepOptions | None = None,
    hardware: HardwareOptions | None = None,
    paper: Annotated[
        bool, Parameter(help="transformer-base or transformer-big as the paper trained it, beside what it published")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Estimate what a training run takes: parameters, memory by kind, FLOPs, and time on given devices.

    Nothing is trained and no memory is allocated: the network is counted by its shapes. FLOPs are those of matrix products
    and convolutions, forward and backward, a multiply-add being two. Time is FLOPs / (devices × peak × utilisation).
    """
    run, step, hardware = run or RunOptions(), step or StepOptions(), hardware or HardwareOptions()
    for name, value in given(named(run, step, hardware)).items():
        if name in MOST:
            check_number(flag(name), value, least=None, most=MOST[name])
    if paper:
        refuse_with_paper(run, step, hardware)
    with busy("counting"):
        found = make_plan(model, run, step, hardware, paper=paper)
    measured = None
    if hardware.measure:
        with busy("measuring"):
            from regard.runtime import keep_freed_memory
            from regard.training import step_timing

            keep_freed_memory()
            measured = step_timing.measure(found)
    if json:
        print_json(as_json(found, measured, paper=paper))
    else:
        show(found, measured, paper=paper)


def make_plan(model: str, run: RunOptions, step: StepOptions, hardware: HardwareOptions, *, paper: bool) -> "Plan":
    """Plan what is asked for, or what the paper trained."""
    from regard.training import plan as planning

    share = planning.UTILISATION if hardware.utilisation is None else hardware.utilisation
    if paper:
        return planning.paper_plan(model, length=step.length, utilisation=share)
    batch, devices = step.batch(), hardware.chosen()
    return planning.plan(
        run.table(model),
        task=run.task,
        vocab_size=run.vocab_size,
        batch=batch,
        steps=planning.STEPS if run.steps is None else run.steps,
        devices=devices,
        utilisation=share,
    )


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


def refuse_with_paper(*groups: object) -> None:
    """Refuse what the paper has decided."""
    for name, value in given(named(*groups)).items():
        if name not in WITH_PAPER and value:
            raise UsageError(
                f"--paper uses the paper's own settings, which conflicts with {flag(name)}.",
                "Leave one of the two out; --length and --utilisation may be given with --paper.",
            )
