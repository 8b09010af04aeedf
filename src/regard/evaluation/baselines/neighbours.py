"""Neighbours: a hidden token by the one before it and the one behind it, with Kneser-Ney smoothing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regard.evaluation.baselines.baseline import Integers
from regard.evaluation.baselines.kneser_ney import KneserNey


@dataclass(frozen=True, eq=False)
class Neighbours(KneserNey):
    """An n-gram model whose contexts are (right, left): where both together are not known, the left one alone."""

    name: ClassVar = "left and right neighbour"


def neighbours(ids: Integers, rows: Integers, columns: Integers) -> Integers:
    """The tokens (N, 2) behind and before some places (N,) of ids (B, T), none of which is at an edge."""
    return np.stack((ids[rows, columns + 1], ids[rows, columns - 1]), axis=1)
