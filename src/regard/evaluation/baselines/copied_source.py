"""The source as it is: a baseline for translation, hard to beat where little is to be changed, as in corrected spelling."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Baseline, require_integers


@dataclass(frozen=True, eq=False)
class CopiedSource(Baseline):
    """n_targets (1,): how many tokens there are."""

    name: ClassVar = "copied source"

    n_targets: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        require_integers(self.n_targets, 1, least=1)

    @property
    def n_outputs(self) -> int:
        return int(self.n_targets[0])
