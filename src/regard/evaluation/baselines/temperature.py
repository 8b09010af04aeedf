"""Temperature: logits divided by one number, so that their probabilities are as sure as they are right (Guo et al. 2017)."""

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Array, Floats, Integers

_TRIED = np.geomspace(0.1, 10_000, 51)

_MOST = 2000  # examples that are looked at


def log_softmax(logits: Array) -> Array:
    """Logits (N, K) to log-probabilities."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    found: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def best_temperature(logits: Floats, gold: Integers) -> float:
    """The temperature at which logits (N, K) of examples that were not learned from have the lowest cross entropy."""
    if not len(gold):
        return 1.0
    step = -(-len(gold) // _MOST)
    logits, gold = logits[::step], gold[::step]
    rows = np.arange(len(gold))
    losses = [-log_softmax(logits / tried)[rows, gold].mean() for tried in _TRIED]
    return float(_TRIED[int(np.argmin(losses))])


def is_held_out(n: int) -> npt.NDArray[np.bool_]:
    """Which of n examples (N,) a temperature is found on: every tenth."""
    found: npt.NDArray[np.bool_] = np.arange(n) % 10 == 9
    return found
