"""What all baselines have in common: arrays that are kept, and checked when they come back."""

import numpy as np
import pytest

from regard.evaluation.baselines.baseline import as_logits, require_integers, require_numbers, sum_by
from regard.evaluation.baselines.constant import MajorityClass
from regard.evaluation.baselines.copied_source import CopiedSource
from regard.evaluation.baselines.nearest_mean import NearestMean


def test_a_baseline_comes_back_from_its_arrays() -> None:
    kept = MajorityClass.fit([3, 1])
    again = MajorityClass.of_arrays(kept.arrays, n_inputs=0, n_outputs=2)
    assert again.logits.tolist() == kept.logits.tolist()
    copied = CopiedSource.of_arrays(CopiedSource(np.array([9])).arrays, n_inputs=5, n_outputs=9)
    assert copied.n_outputs == 9


def test_arrays_of_other_data_are_refused() -> None:
    majority = MajorityClass.fit([3, 1])
    with pytest.raises(ValueError, match="majority class is of other data than the run's"):
        MajorityClass.of_arrays(majority.arrays, n_inputs=0, n_outputs=3)
    nearest = NearestMean.fit(np.eye(4, 3, dtype=np.float32), np.array([0, 1, 0, 1]), 2)
    with pytest.raises(ValueError, match="nearest class mean is of other data than the run's"):
        NearestMean.of_arrays(nearest.arrays, n_inputs=4, n_outputs=2)
    with pytest.raises(ValueError, match="of majority class, logits, other is missing or too much"):
        MajorityClass.of_arrays({"other": np.zeros(2)}, n_inputs=0, n_outputs=2)


@pytest.mark.parametrize("array", [np.array([1.0, np.nan]), np.array([1.0, np.inf]), np.array([1, 2]), np.array(["a"])])
def test_what_are_no_finite_numbers_is_refused(array: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match="finite numbers were expected"):
        require_numbers(array, None)


def test_shapes_and_ranges_are_held_to() -> None:
    require_numbers(np.zeros((2, 3)), None, 3)
    with pytest.raises(ValueError, match=r"an array has the shape \(2, 3\), and \(2, 4\) was expected"):
        require_numbers(np.zeros((2, 3)), 2, 4)
    with pytest.raises(ValueError, match=r"the shape \(2,\), and \(\) was expected"):
        require_numbers(np.zeros(2))
    require_integers(np.array([0, 4]), None, below=5)
    for wrong in ([0, 5], [-1, 0]):
        with pytest.raises(ValueError, match="a number is outside its range"):
            require_integers(np.array(wrong), 2, below=5)
    with pytest.raises(ValueError, match="whole numbers were expected"):
        require_integers(np.array([0.5]), None)


def test_sums_by_place() -> None:
    assert sum_by(np.array([2, 0, 2]), np.array([1.0, 5.0, 0.5]), 4).tolist() == [5.0, 0.0, 1.5, 0.0]


def test_logits_are_what_single_precision_holds() -> None:
    found = as_logits(np.array([1e300, -1e300, 2.0]))
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([1e30, -1e30, 2.0])
