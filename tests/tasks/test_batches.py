"""Padding, places of examples, and losses summed over batches."""

import math

import numpy as np
import pytest
import torch

from regard.tasks.batches import mean_loss, pad, padded, read_in_batches, summed_loss


def test_rows_are_padded_behind_and_framed() -> None:
    assert pad([[5, 6], [7]], 0).tolist() == [[5, 6], [7, 0]]
    assert pad([[5, 6], [7]], 0, start=1).tolist() == [[1, 5, 6], [1, 7, 0]]
    assert pad([[5, 6], []], 0, start=1, end=2).tolist() == [[1, 5, 6, 2], [1, 2, 0, 0]]
    assert pad([np.array([5, 6])], 0, end=2).tolist() == [[5, 6, 2]]
    assert pad([], 0).shape == (0, 0)


def test_padded_rows_have_their_lengths() -> None:
    ids, lengths = padded([[5, 6], [7]], 9, torch.device("cpu"))
    assert ids.tolist() == [[5, 6], [7, 9]]
    assert lengths.tolist() == [2, 1]


def test_what_is_read_in_batches_comes_back_in_order() -> None:
    done: list[int] = []

    def read(numbers: np.ndarray) -> list[np.ndarray]:
        assert torch.is_inference_mode_enabled()
        return [np.full(2, number, np.float32) for number in numbers]

    batches = [np.array([3, 1]), np.array([0]), np.array([2, 4])]
    found = read_in_batches(batches, read, progress=done.append)
    assert [own.tolist() for own in found] == [[number] * 2 for number in range(5)]
    assert done == [2, 3, 5]
    assert read_in_batches([], read) == []


def test_a_mean_is_over_the_whole_weight_and_never_of_means() -> None:
    batches = [(6.0, 3), (1.0, 1)]
    told: list[int] = []
    assert summed_loss(lambda one: (torch.tensor(one[0]), one[1]), batches, progress=told.append) == (7.0, 4)
    assert told == [3, 4]
    assert mean_loss(lambda one: (torch.tensor(one[0]), one[1]), batches) == pytest.approx(7 / 4)
    assert math.isnan(mean_loss(lambda one: one, []))
