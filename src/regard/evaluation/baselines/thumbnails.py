"""Thumbnails: images made small by the mean of their pixels, as features of a few hundred numbers."""

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Floats

MOST_SIDE = 32  # pixels


def thumbnails(images: npt.NDArray[np.uint8], side: int) -> Floats:
    """Images (N, H, W, C) of bytes to features (N, D) from 0 to 1, of `side` by `side` pixels where there are as many."""
    made: npt.NDArray[np.generic] = images.astype(np.float32) / 255
    for axis in (1, 2):
        size = images.shape[axis]
        edges = np.linspace(0, size, min(side, size) + 1).astype(np.int64)
        sums = np.add.reduceat(made, edges[:-1], axis=axis)
        counts = np.diff(edges).reshape([-1 if other == axis else 1 for other in range(4)])
        made = sums / counts
    return made.reshape(len(images), -1).astype(np.float32)
