"""What people are told of a run before its first step: the choices made, the data, the model, expected time and disk."""

from regard.cli.terminal import duration, size
from regard.config import TrainingConfig
from regard.training.events import Report


def report_rows(report: Report) -> list[tuple[str, str]]:
    """Return the report as labels and texts."""
    config = report.config
    model = config.model.preset or "a network of your own"
    return [
        ("run", f"{report.run}{f', from step {report.step:,}' if report.step else ''}"),
        ("model", f"{model}, {report.n_parameters:,} parameters"),
        *report.facts,
        ("learning", learning(config.training)),
        ("end", end(config.training)),
        ("machine", machine(report)),
        ("time", time_needed(report)),
        ("disk", disk_needed(report)),
    ]


def learning(training: TrainingConfig) -> str:
    """How fast is learnt, and from how much at once."""
    batch = f"{training.batch_tokens:,} tokens a batch"
    if training.accumulate > 1:
        batch += f", {training.accumulate} batches an update"
    rate = f"learning rate {training.learning_rate:g} ({training.schedule}, warm-up {training.warmup:,})"
    return f"{batch}, {rate}, label smoothing {training.label_smoothing:g}"


def end(training: TrainingConfig) -> str:
    """What ends the run."""
    ends = []
    if training.steps:
        ends.append(f"{training.steps:,} steps")
    if training.epochs:
        ends.append(f"{training.epochs:,} epochs")
    if training.minutes:
        ends.append(f"{training.minutes:g} minutes")
    if training.patience:
        ends.append(f"{training.patience} validations without a better loss")
    return f"after {' or '.join(ends)}{', whichever comes first' if len(ends) > 1 else ''}"


def machine(report: Report) -> str:
    """What computes."""
    found = report.machine
    threads = f", {found.threads} thread{'s' if found.threads > 1 else ''}" if found.device.type == "cpu" else ""
    return f"{found.device}, {found.precision}{threads}, seed {report.config.seed}"


def time_needed(report: Report) -> str:
    """How long the run will take, by the time of one step."""
    pace = f"{report.seconds_a_step:.2g} s a step"
    minutes = report.config.training.minutes
    limit = max(0.0, 60 * minutes - report.seconds) if minutes else None
    if report.total_steps:
        needed = (report.total_steps - report.step) * report.seconds_a_step
        return f"about {duration(needed if limit is None else min(needed, limit))} and the validations ({pace})"
    return f"{duration(limit or 0)} and the validations ({pace})"


def disk_needed(report: Report) -> str:
    """How much the checkpoints will take: those that are kept, and the best."""
    kept = report.config.training.keep + 1
    total, each = size(kept * report.checkpoint_bytes), size(report.checkpoint_bytes)
    return f"up to {total} ({kept} checkpoints of {each})"
