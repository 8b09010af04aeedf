"""Learning-rate schedules as pure functions of the step: warm-up, then decay; nothing to save, nothing to restore."""

import math
from collections.abc import Callable

from regard.config import TrainingConfig
from regard.errors import ConfigError


def inverse_sqrt(step: int, *, warmup: int, total: int) -> float:
    """Linear warm-up to 1, then inverse square root decay, 1 / √step (Vaswani et al. 2017, 5.3). Needs no end."""
    warmup = max(1, warmup)
    return min(step / warmup, math.sqrt(warmup / max(1, step)))


def cosine(step: int, *, warmup: int, total: int) -> float:
    """Linear warm-up to 1, then cosine decay, which would reach 0 just after `total`."""
    if step < warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * _decayed(step, warmup, total)))


def linear(step: int, *, warmup: int, total: int) -> float:
    """Linear warm-up to 1, then linear decay, which would reach 0 just after `total`."""
    if step < warmup:
        return step / warmup
    return 1 - _decayed(step, warmup, total)


def _decayed(step: int, warmup: int, total: int) -> float:
    """The share of the way from `warmup` to the end. The end is one step later than `total`: the last update counts.

    Epochs may turn out longer than `total` says; what comes after it is learned at its rate, and not at none.
    """
    return (min(step, max(total, warmup)) - warmup) / max(1, total + 1 - warmup)


def constant(step: int, *, warmup: int, total: int) -> float:
    """Linear warm-up to 1, then constant."""
    return min(1.0, step / max(1, warmup))


SCHEDULES: dict[str, Callable[..., float]] = {
    "inverse-sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}
_DECAYING = ("cosine", "linear")


def learning_rate(step: int, config: TrainingConfig, *, total: int) -> float:
    """Return the rate of update number `step`, counted from 1; `total` is the last one's number, 0 if nobody knows."""
    return config.learning_rate * SCHEDULES[config.schedule](step, warmup=config.warmup, total=total)


def check_schedule(config: TrainingConfig) -> None:
    """Refuse a schedule that needs an end where none is given, and one that is not chosen yet."""
    if config.schedule not in SCHEDULES:
        raise ConfigError(
            f"training.schedule is '{config.schedule}', and a run needs the one that was chosen for it.",
            f"Write one of {', '.join(SCHEDULES)}.",
        )
    if config.schedule in _DECAYING and not (config.steps or config.epochs):
        raise ConfigError(
            f"The schedule '{config.schedule}' decays to zero at the end, and no end is given in steps or epochs.",
            "Give --steps or --epochs, or choose another: --set training.schedule=constant",
        )
