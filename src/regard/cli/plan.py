"""`regard plan`: what a training run will take, before anything is trained."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from regard.cli.options import JsonFlag
from regard.cli.run_file import assignments
from regard.cli.terminal import busy, duration, print_facts, print_json, print_lines, print_table, results, size
from regard.config import ModelTable, default_config, override
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.training.batch_shape import AnyBatchShape
    from regard.training.plan import Plan
    from regard.training.step_timing import Measurement

STEP = Group("A step", sort_key=10)
DEVICES = Group("Devices", sort_key=20)
TERA = 1e12


def plan(
    model: Annotated[str, Parameter(help="a model of `regard models`, such as transformer-base")],
    /,
    *,
    task: Annotated[str, Parameter(help="one of the model's tasks (its first)")] = "",
    vocab_size: Annotated[int | None, Parameter(help="tokens in the vocabulary (8000)")] = None,
    sets: Annotated[
        tuple[str, ...],
        Parameter(name="--set", metavar="KEY=VALUE", help="a field of the model: model.d_model=256; repeatable"),
    ] = (),
    steps: Annotated[int | None, Parameter(help="updates in all (10000)")] = None,
    tokens: Annotated[
        int | None, Parameter(group=STEP, help="tokens in a step: of text, or of each side of pairs (4096)")
    ] = None,
    source_tokens: Annotated[int | None, Parameter(group=STEP, help="of pairs, tokens of the source in a step")] = None,
    target_tokens: Annotated[int | None, Parameter(group=STEP, help="of pairs, tokens of the target in a step")] = None,
    length: Annotated[
        int,
        Parameter(
            group=STEP,
            help="tokens in a sequence, of pairs in the source (30 for a sentence to translate, a language model's "
            "context, 128 for other texts, 12 for a caption)",
        ),
    ] = 0,
    images: Annotated[
        int | None,
        Parameter(group=STEP, help="images in a step (128; of caption 32, each with 5 captions)"),
    ] = None,
    image_size: Annotated[
        int,
        Parameter(
            group=STEP,
            help="pixels of an image's edge (14 patches of a ViT, 32 for a ResNet with a small stem or a ConvNet, 224 with "
            "a large one, 96 for captions)",
        ),
    ] = 0,
    devices: Annotated[
        str,
        Parameter(
            group=DEVICES,
            metavar="[N x]NAME",
            help="what computes: 8xP100, A100, RTX4090 …; without it this machine, whose peak is measured in a second",
        ),
    ] = "",
    precision: Annotated[
        str, Parameter(group=DEVICES, help="fp32 or bf16; auto takes bf16 where a device has it, on a CPU fp32 (auto)")
    ] = "",
    peak: Annotated[
        float | None,
        Parameter(group=DEVICES, metavar="TFLOPS", help="TFLOP/s of one device, instead of what the table has"),
    ] = None,
    utilisation: Annotated[
        float | None, Parameter(group=DEVICES, help="share of the peak that training keeps busy (0.35)")
    ] = None,
    measure: Annotated[bool, Parameter(group=DEVICES, help="time a few real steps on this machine, too")] = False,
    paper: Annotated[
        bool, Parameter(help="transformer-base or transformer-big as the paper trained it, beside what it published")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Say what a training run will take: parameters, memory by kind, arithmetic, and time on given devices.

    Nothing is trained and no memory is taken: the network is counted by its shapes. FLOPs are those of its matrix products
    and convolutions, forward and backward, a multiply-add being two. The time is FLOPs / (devices × peak × utilisation).
    """
    if paper:
        chosen = {"task": task, "vocab-size": vocab_size, "set": sets, "steps": steps, "tokens": tokens}
        sides = {"source-tokens": source_tokens, "target-tokens": target_tokens}
        of_images = {"images": images, "image-size": image_size}
        refuse_with_paper({**chosen, **sides, **of_images, "devices": devices, "precision": precision, "peak": peak})
    of_step = read_tokens(tokens, source_tokens, target_tokens)
    flops_per_second = flops_of(peak)
    with busy("counting"):
        from regard.runtime import keep_freed_memory
        from regard.training import plan as planning
        from regard.training.devices import THIS, DeviceOptions
        from regard.training.planned_batch import BatchOptions

        if measure:
            keep_freed_memory()
        share = planning.UTILISATION if utilisation is None else utilisation
        if paper:
            found = planning.paper_plan(model, length=length, utilisation=share)
        else:
            found = planning.plan(
                table(model, task, sets),
                task=task,
                vocab_size=vocab_size,
                batch=BatchOptions(tokens=of_step, length=length, images=images, image_size=image_size),
                steps=planning.STEPS if steps is None else steps,
                devices=DeviceOptions(
                    name=devices or THIS, precision=precision or "auto", peak=flops_per_second or 0.0
                ),
                utilisation=share,
            )
    measured = None
    if measure:
        with busy("measuring"):
            from regard.training import step_timing

            measured = step_timing.measure(found)
    if json:
        print_json(as_json(found, measured, paper=paper))
    else:
        show(found, measured, paper=paper)


def table(model: str, task: str, sets: Sequence[str]) -> ModelTable:
    """Return the preset with the fields that were set."""
    from regard.models.presets import find_preset

    given = assignments(sets)
    for key in given:
        if not key.startswith("model."):
            raise UsageError(f"--set {key} is not about the model.", "Set fields of it, such as model.d_model=256.")
    config = dataclasses.replace(default_config(task or find_preset(model).tasks[0]), model=ModelTable(preset=model))
    return override(config, given).model


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
        raise UsageError(f"Pairs have two sides, and {missing} is not given.", f"Give {missing}, or --tokens for both.")
    return source, target


def flops_of(peak: float | None) -> float | None:
    """Return a peak of TFLOP/s in FLOP/s, if one is given; refuse a device that computes nothing, or backwards."""
    if peak is None:
        return None
    if not 0 < peak < float("inf"):
        raise UsageError(f"--peak is a number of TFLOP/s above 0, not {peak:g}.", "A P100 has 9.5.")
    return peak * TERA


def refuse_with_paper(options: Mapping[str, object]) -> None:
    """Refuse what the paper has decided."""
    for name, value in options.items():
        if value:
            raise UsageError(
                f"--paper takes the paper's own setting, --{name} another one.",
                "Leave one of the two out; --length and --utilisation may be given with --paper.",
            )


def show(plan: "Plan", measured: "Measurement | None", *, paper: bool) -> None:
    """Show a plan to people."""
    print_facts(rows(plan), results())
    print_lines([""])
    memory = plan.memory
    kinds = {**dataclasses.asdict(memory), "total": memory.total}
    heading = "memory" if plan.devices.n_devices == 1 else "memory of each device"
    print_table(
        [heading, "", "share"], [[kind, size(count), f"{count / memory.total:.0%}"] for kind, count in kinds.items()]
    )
    for more in (paper_rows(plan) if paper else [], measured_rows(plan, measured) if measured else []):
        if more:
            print_lines([""])
            print_facts(more, results())


def rows(plan: "Plan") -> list[tuple[str, str]]:
    """What is planned, as labels and texts."""
    devices = plan.devices
    parts = ", ".join(f"{part.replace('_', ' ')} {count:,}" for part, count in plan.parts.items())
    each = " each" if devices.n_devices > 1 else ""
    return [
        ("model", f"{plan.model} for {plan.task}, {sizes(plan)}"),
        ("parameters", f"{plan.parameters:,}: {parts}"),
        ("a step", reading(plan)),
        ("arithmetic", f"{power(plan.flops_per_step)} FLOPs a step, {power(plan.flops)} in {plan.steps:,} steps"),
        ("devices", f"{devices.label}, {flops(devices.peak)}{each} in {devices.precision} ({devices.source})"),
        (
            "time",
            f"{span(plan.seconds)}, {seconds(plan.seconds_per_step)} a step, at {plan.utilisation:.0%} of the peak",
        ),
    ]


def sizes(plan: "Plan") -> str:
    """What the data decides of a model."""
    n_features = getattr(plan.config, "n_features", 0)
    if n_features:
        return f"vectors of {n_features:,} numbers"
    if not plan.vocab_size:
        return f"{getattr(plan.config, 'n_outputs', 0):,} classes"
    return f"vocabulary of {plan.vocab_size:,} tokens"


def reading(plan: "Plan") -> str:
    """What a step reads."""
    from regard.training.batch_shape import ImageBatchShape

    shape = plan.batch
    if isinstance(shape, ImageBatchShape):
        captions = f", each with {shape.n_captions} captions of {shape.caption_length:,} tokens" if plan.tokens else ""
        return batch_text(shape) + captions
    if len(plan.tokens) == 1:
        return f"{plan.tokens[0]:,} tokens, in sequences of {shape.length:,}"
    source, target = plan.tokens
    of_target = "" if source == target else f" and {shape.target_length:.3g}"
    return f"{source:,} source and {target:,} target tokens, in sentences of {shape.length:,}{of_target}"


def batch_text(shape: "AnyBatchShape") -> str:
    """How many examples there are, of which size."""
    from regard.training.batch_shape import ImageBatchShape

    several = "s" if shape.n_examples > 1 else ""
    if isinstance(shape, ImageBatchShape):
        return f"{shape.n_images:,.0f} image{several} of {shape.size:,} × {shape.size:,} pixels"
    return f"{shape.n_sequences:,.0f} sequence{several} of {shape.length:,} tokens"


def paper_rows(plan: "Plan") -> list[tuple[str, str]]:
    """Our figures beside those of the paper."""
    from regard.training.batch_shape import BatchShape
    from regard.training.paper import RUNS

    assert isinstance(plan.batch, BatchShape)  # it is about translation
    run, devices = RUNS[plan.model], plan.devices
    ratio = plan.seconds / run.seconds
    occupied = run.seconds * devices.n_devices * devices.peak
    assumed = f"{plan.batch.length} tokens are our assumption"
    product = f"{span(run.seconds)} × {devices.n_devices} devices × {flops(devices.peak)}"
    return [
        ("the paper", f"Vaswani et al. 2017, which does not say how long sentences are: {assumed}"),
        ("its time", f"{span(run.seconds)} (section 5.2); ours is {ratio:.2f} of it"),
        ("its FLOPs", f"{power(run.device_flops)} (table 2), which is {product} = {power(occupied)}:"),
        ("", f"all that the devices could do in that time; the arithmetic is {plan.flops / occupied:.0%} of it"),
    ]


def measured_rows(plan: "Plan", measured: "Measurement") -> list[tuple[str, str]]:
    """What was measured here, and what follows for the whole run."""
    devices = measured.devices
    took = f"{seconds(measured.gradient_seconds)}, of a tiny batch {seconds(measured.tiny_seconds)}"
    reached = f"{measured.utilisation(plan):.0%} of the peak of {flops(devices.peak)} in {devices.precision}"
    return [
        (
            "measured",
            f"here, the gradients of {batch_text(measured.batch)} took {took}, an update {seconds(measured.update_seconds)}",
        ),
        ("time here", f"{span(measured.seconds(plan))}, by these {seconds(measured.seconds_per_step(plan))} a step"),
        ("reached", f"{flops(measured.flops_per_second(plan))}, {reached} ({devices.source})"),
    ]


def as_json(plan: "Plan", measured: "Measurement | None", *, paper: bool) -> dict[str, Any]:
    """A plan for programs: bytes, FLOPs, seconds."""
    facts: dict[str, Any] = {
        "model": plan.model,
        "task": plan.task,
        "vocab_size": plan.vocab_size,
        "config": dataclasses.asdict(plan.config),
        "parameters": plan.parameters,
        "parts": dict(plan.parts),
        "tokens": plan.tokens,
        **shape_as_json(plan.batch),
        "steps": plan.steps,
        "memory": {**dataclasses.asdict(plan.memory), "total": plan.memory.total},
        "flops_per_step": plan.flops_per_step,
        "flops": plan.flops,
        "devices": dataclasses.asdict(plan.devices),
        "utilisation": plan.utilisation,
        "seconds_per_step": plan.seconds_per_step,
        "seconds": plan.seconds,
    }
    if paper:
        from regard.training.paper import RUNS

        run = RUNS[plan.model]
        ratio = plan.seconds / run.seconds
        facts["paper"] = {"seconds": run.seconds, "ratio": ratio, "device_flops": run.device_flops}
    if measured is not None:
        facts["measured"] = {
            "devices": dataclasses.asdict(measured.devices),
            **shape_as_json(measured.batch),
            "flops": measured.flops,
            "gradient_seconds": measured.gradient_seconds,
            "tiny_flops": measured.tiny_flops,
            "tiny_seconds": measured.tiny_seconds,
            "update_seconds": measured.update_seconds,
            "flops_per_second": measured.flops_per_second(plan),
            "utilisation": measured.utilisation(plan),
            "seconds_per_step": measured.seconds_per_step(plan),
            "seconds": measured.seconds(plan),
        }
    return facts


def shape_as_json(shape: "AnyBatchShape") -> dict[str, Any]:
    """What a step reads, for programs."""
    from regard.training.batch_shape import ImageBatchShape

    if not isinstance(shape, ImageBatchShape):
        return {"sequences": shape.n_sequences, "length": shape.length}
    captions = {"captions": shape.n_captions, "length": shape.caption_length} if shape.n_captions else {}
    return {"images": shape.n_images, "image_size": shape.size, **captions}


def power(number: float) -> str:
    """Write a large number by its first digits: 9.53e17."""
    return f"{number:.3g}".replace("e+", "e")


def flops(a_second: float) -> str:
    """Write a speed as people say it: 142 GFLOP/s, 9.5 TFLOP/s."""
    unit, divisor = ("TFLOP/s", TERA) if a_second >= TERA else ("GFLOP/s", 1e9)
    return f"{a_second / divisor:.3g} {unit}"


def seconds(number: float) -> str:
    """Write the time of a step: 0.036 s."""
    return f"{number:.2g} s" if number < 10 else duration(number)


def span(number: float) -> str:
    """Write the time of a run, days with a decimal."""
    return duration(number) if number < 48 * 3600 else f"{number / 86400:,.1f} days"
