"""The moving average of the weights, against its formula."""

import pytest
import torch
from torch import nn

from regard.training.averages import MovingAverage


def set_weight(model: nn.Module, value: float) -> None:
    with torch.no_grad():
        model.weight.fill_(value)


def linear(value: float) -> nn.Module:
    model = nn.Linear(2, 1, bias=False)
    set_weight(model, value)
    return model


def test_late_in_a_run_the_decay_is_the_given_one() -> None:
    model = linear(1.0)
    average = MovingAverage(model, 0.9)
    set_weight(model, 3.0)
    average.update(1000)
    torch.testing.assert_close(average.average["weight"], torch.full((1, 2), 0.9 * 1.0 + 0.1 * 3.0))


def test_early_the_decay_is_lower_so_that_first_weights_are_forgotten() -> None:
    model = linear(1.0)
    average = MovingAverage(model, 0.999)
    set_weight(model, 3.0)
    average.update(1)
    decay = 2 / 11  # (1 + step) / (10 + step)
    torch.testing.assert_close(average.average["weight"], torch.full((1, 2), decay * 1.0 + (1 - decay) * 3.0))


def test_the_model_has_the_average_inside_the_block_and_its_own_weights_after() -> None:
    model = linear(1.0)
    average = MovingAverage(model, 0.5)
    set_weight(model, 3.0)
    with average.in_place():
        assert model.weight.tolist() == [[1.0, 1.0]]
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert model.weight.requires_grad
    with pytest.raises(KeyError), average.in_place():
        raise KeyError
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert average.average["weight"].tolist() == [[1.0, 1.0]]


def test_a_restored_average_is_the_saved_one() -> None:
    average = MovingAverage(linear(1.0), 0.5)
    average.restore({"weight": torch.tensor([[7.0, 8.0]])})
    assert average.average["weight"].tolist() == [[7.0, 8.0]]


def test_tied_weights_are_averaged_once() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert list(MovingAverage(model, 0.5).average) == ["0.weight"]
