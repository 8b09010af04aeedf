"""The report of a run before its first step: the choices made, the data, the model, expected time and disk space."""

from regard.cli.terminal import duration, size
from regard.config import TrainingConfig
from regard.evaluation.metrics import find_metric
from regard.runtime import has_bf16_products
from regard.training.events import Report

LONG = 600  # seconds of a run that is worth a thought


def report_rows(report: Report) -> list[tuple[str, str]]:
    """Return the report as labels and texts."""
    config = report.config
    model = config.model.preset or "a custom network"
    return [
        ("run", f"{report.run}{f', from step {report.step:,}' if report.step else ''}"),
        ("model", f"{model}, {report.n_parameters:,} parameters"),
        *report.facts,
        ("learning", learning(config.training, report.batch_unit)),
        ("end", end(config.training)),
        ("machine", machine(report)),
        ("time", time_needed(report)),
        ("disk", disk_needed(report)),
    ]


def learning(training: TrainingConfig, unit: str) -> str:
    """How fast is learned, and from how much at once, in its unit."""
    size = training.batch_images if unit == "images" else training.batch_tokens
    batch = f"{size:,} {unit} per batch"
    if training.accumulate > 1:
        batch += f", {training.accumulate} batches per update"
    warmup = f"{training.warmup:,.0f}" if training.warmup >= 1 else f"{training.warmup:.3g} of the run"
    muon = f", Muon {training.muon_learning_rate:g}" if training.optimizer == "muon" else ""
    rate = f"learning rate {training.learning_rate:g}{muon} ({training.schedule}, warm-up {warmup})"
    smoothing = f", label smoothing {training.label_smoothing:g}" if training.label_smoothing else ""
    return f"{batch}, {rate}{smoothing}"


def end(training: TrainingConfig) -> str:
    """What ends the run."""
    ends = []
    if training.steps:
        ends.append(f"{training.steps:,} step{'s' * (training.steps != 1)}")
    if training.epochs:
        wait = f" (and {training.min_steps:,} steps)" if training.min_steps else ""
        ends.append(f"{training.epochs:,} epoch{'s' * (training.epochs != 1)}{wait}")
    if training.minutes:
        ends.append(f"{training.minutes:g} minutes")
    if training.patience:
        ends.append(f"{training.patience} validations without a better {find_metric(training.best_by).label}")
    return f"after {' or '.join(ends)}{', whichever comes first' if len(ends) > 1 else ''}"


def machine(report: Report) -> str:
    """What computes."""
    found = report.machine
    threads = f", {found.threads} thread{'s' if found.threads > 1 else ''}" if found.device.type == "cpu" else ""
    return f"{found.device}, {found.precision}{threads}, seed {report.config.seed}{faster(report)}"


def faster(report: Report) -> str:
    """What would make a long run on a CPU shorter."""
    found = report.machine
    seconds = (report.total_steps - report.step) * report.seconds_per_step or 60 * report.config.training.minutes
    if found.device.type != "cpu" or found.precision != "fp32" or seconds < LONG or not has_bf16_products():
        return ""
    return "; this processor has bf16: --set runtime.precision=bf16 may be half as fast again"


def time_needed(report: Report) -> str:
    """How long the run will take, by the time of one step."""
    speed = f"{report.seconds_per_step:.2g} s per step"
    minutes = report.config.training.minutes
    limit = max(0.0, 60 * minutes - report.seconds) if minutes else None
    if report.total_steps:
        needed = (report.total_steps - report.step) * report.seconds_per_step
        if limit is None or needed < limit:
            return f"about {duration(needed)} and the validations ({speed})"
    return f"{duration(limit or 0)}, validations included ({speed})"


def disk_needed(report: Report) -> str:
    """How much the checkpoints will take at most.

    Those that are kept, the best, the one that is being written; then those that will be averaged, which may be older
    than what is kept where saves come between validations, and the average.
    """
    training = report.config.training
    kept = training.keep + 2 + (training.average + 1 if training.average else 0)
    total, each = size(kept * report.checkpoint_bytes), size(report.checkpoint_bytes)
    return f"up to {total} ({kept} checkpoints of {each})"
