"""`regard plan`: what a training run will take, before anything is trained."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag, check_number, flag, given, named
from regard.cli.plan_options import MOST, WITH_PAPER, ClusterOptions, HardwareOptions, RunOptions, StepOptions
from regard.cli.plan_view import as_json, show
from regard.cli.scaling_view import scaling_as_json, show_scaling
from regard.cli.terminal import busy, print_json
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.training.plan import Plan
    from regard.training.scaling import ScaledPlan


def plan(
    model: Annotated[str, Parameter(help="a model of `regard models`, such as transformer-base")],
    /,
    *,
    run: RunOptions | None = None,
    step: StepOptions | None = None,
    hardware: HardwareOptions | None = None,
    cluster: ClusterOptions | None = None,
    paper: Annotated[
        bool, Parameter(help="transformer-base or transformer-big as the paper trained it, beside what it published")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Estimate what a training run takes: parameters, memory by kind, FLOPs, and time on given devices.

    Nothing is trained and no memory is allocated: the network is counted by its shapes. FLOPs are those of matrix products
    and convolutions, forward and backward, a multiply-add being two. Computing takes FLOPs / (devices × peak × utilisation);
    waiting for the slowest device, communication that computing does not hide, and the optimizer's update are added.
    """
    run, step, hardware = run or RunOptions(), step or StepOptions(), hardware or HardwareOptions()
    cluster = cluster or ClusterOptions()
    for name, value in given(named(run, step, hardware, cluster)).items():
        if name in MOST:
            check_number(flag(name), value, least=None, most=MOST[name])
    if paper:
        refuse_with_paper(run, step, hardware, cluster)
    with busy("counting"):
        found = make_plan(model, run, step, hardware, cluster, paper=paper)
    measured = None
    if hardware.measure:
        with busy("measuring"):
            from regard.runtime import keep_freed_memory
            from regard.training import step_timing

            keep_freed_memory()
            measured = step_timing.measure(found)
    scaled = scale(found, cluster.up_to)
    if json:
        print_json(as_json(found, measured, paper=paper) | scaling_as_json(scaled))
    else:
        show(found, measured, paper=paper)
        show_scaling(scaled)


def scale(plan: "Plan", up_to: int | None) -> "dict[str, list[ScaledPlan]]":
    """The plan on more devices, if that is asked for: by kind of scaling."""
    if up_to is None:
        return {}
    from regard.training.scaling import strong_scaling, weak_scaling

    return {"strong": strong_scaling(plan, up_to), "weak": weak_scaling(plan, up_to)}


def make_plan(
    model: str, run: RunOptions, step: StepOptions, hardware: HardwareOptions, cluster: ClusterOptions, *, paper: bool
) -> "Plan":
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
        interconnect=cluster.chosen(),
        sharded=cluster.shard,
        utilisation=share,
        optimizer=run.optimizer,
    )


def refuse_with_paper(*groups: object) -> None:
    """Refuse what the paper has decided."""
    for name, value in given(named(*groups)).items():
        if name not in WITH_PAPER and value:
            raise UsageError(
                f"--paper uses the paper's own settings, which conflicts with {flag(name)}.",
                "Leave one of the two out; --length and --utilisation may be given with --paper.",
            )
