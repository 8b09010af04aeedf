"""Learning-rate schedules as pure functions of the step: warm-up, then decay; nothing to save, nothing to restore.

They follow the budget that a run is given: its last update is known from steps or epochs, or projected from the time that
updates have taken so far, where minutes end the run.
"""

import math
from collections.abc import Callable

from regard.config import TrainingConfig


def inverse_sqrt(step: int, *, warmup: float, total: float) -> float:
    """Linear warm-up to 1, then inverse square root decay, 1 / √step (Vaswani et al. 2017, 5.3)."""
    warmup = max(1.0, warmup)
    return min(step / warmup, math.sqrt(warmup / max(1, step)))


def cosine(step: int, *, warmup: float, total: float) -> float:
    """Linear warm-up to 1, then cosine decay, which would reach 0 just after `total`."""
    if step < warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * _decayed(step, warmup, total)))


def linear(step: int, *, warmup: float, total: float) -> float:
    """Linear warm-up to 1, then linear decay, which would reach 0 just after `total`."""
    if step < warmup:
        return step / warmup
    return 1 - _decayed(step, warmup, total)


def _decayed(step: int, warmup: float, total: float) -> float:
    """The share of the way from `warmup` to the end. The end is one step later than `total`: the last update counts.

    Epochs may turn out longer than `total` says; what comes after it is learned at its rate, and not at none.
    """
    return (min(step, max(total, warmup)) - warmup) / max(1, total + 1 - warmup)


def constant(step: int, *, warmup: float, total: float) -> float:
    """Linear warm-up to 1, then constant."""
    return min(1.0, step / max(1.0, warmup))


SCHEDULES: dict[str, Callable[..., float]] = {
    "inverse-sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}


def scheduled_share(step: int, config: TrainingConfig, *, total: float) -> float:
    """Return what update number `step`, counted from 1, has of the peak rate; `total` is the number of the last one."""
    return SCHEDULES[config.schedule](step, warmup=warmup_steps(config, total=total), total=total)


def warmup_steps(config: TrainingConfig, *, total: float) -> float:
    """The updates of the warm-up; below 1 it is given as a share of all."""
    return config.warmup if config.warmup >= 1 or not config.warmup else config.warmup * total


def projected_total(total: int, *, minutes: float, step: int, seconds: float) -> float:
    """The number of the last update as far as is known before update number `step`, `seconds` after the first.

    total:    by steps or epochs; 0: no limit
    minutes:  after which a run ends; 0: no limit. Before the first update nobody knows how many fit, so it has no rate.
    """
    limit = total or math.inf
    if not minutes:
        return limit
    return min(limit, max(step, (step - 1) * 60 * minutes / seconds)) if seconds else limit
