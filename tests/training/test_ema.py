"""The moving average of the weights, and of a batch norm's statistics, against its formula."""

import pytest
import torch
from torch import nn

from regard.config import ModelTable
from regard.errors import CheckpointError
from regard.models.presets import build_model, model_config
from regard.parts.convolution import BatchNorm
from regard.training.ema import WeightEMA


def set_weight(model: nn.Module, value: float) -> None:
    with torch.no_grad():
        model.weight.fill_(value)


def linear(value: float) -> nn.Module:
    model = nn.Linear(2, 1, bias=False)
    set_weight(model, value)
    return model


def test_late_in_a_run_the_decay_is_the_given_one() -> None:
    model = linear(1.0)
    average = WeightEMA(model, 0.9)
    set_weight(model, 3.0)
    average.update(1000)
    torch.testing.assert_close(average.average["weight"], torch.full((1, 2), 0.9 * 1.0 + 0.1 * 3.0))


def test_early_the_decay_is_lower_so_that_first_weights_are_forgotten() -> None:
    model = linear(1.0)
    average = WeightEMA(model, 0.999)
    set_weight(model, 3.0)
    average.update(1)
    decay = 2 / 11  # (1 + step) / (10 + step)
    torch.testing.assert_close(average.average["weight"], torch.full((1, 2), decay * 1.0 + (1 - decay) * 3.0))


def test_the_model_has_the_average_inside_the_block_and_its_own_weights_after() -> None:
    model = linear(1.0)
    average = WeightEMA(model, 0.5)
    set_weight(model, 3.0)
    with average.swapped_in():
        assert model.weight.tolist() == [[1.0, 1.0]]
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert model.weight.requires_grad
    with pytest.raises(KeyError), average.swapped_in():
        raise KeyError
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert average.average["weight"].tolist() == [[1.0, 1.0]]


def test_a_restored_average_is_the_saved_one() -> None:
    average = WeightEMA(linear(1.0), 0.5)
    average.restore({"weight": torch.tensor([[7.0, 8.0]])})
    assert average.average["weight"].tolist() == [[7.0, 8.0]]


def test_tied_weights_are_averaged_once() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert list(WeightEMA(model, 0.5).average) == ["0.weight"]


class Counting(nn.Module):
    """A network with a batch norm of torch's, one of ours, and a table that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.theirs = nn.BatchNorm2d(1)
        self.ours = BatchNorm(1)
        self.register_buffer("table", torch.arange(3.0), persistent=False)


def count(model: Counting, value: float) -> None:
    with torch.no_grad():
        for norm in (model.theirs, model.ours):
            norm.running_mean.fill_(value)
        model.theirs.num_batches_tracked.fill_(int(value))


def test_statistics_are_averaged_and_swapped_like_weights_and_counts_stay_the_models() -> None:
    model = Counting()
    count(model, 1.0)
    average = WeightEMA(model, 0.9)
    count(model, 3.0)
    average.update(1000)
    statistics = {name for name in average.average if name not in dict(model.named_parameters())}
    assert statistics == {
        "theirs.running_mean",
        "theirs.running_var",
        "ours.running_mean",
        "ours.running_variance",
    }
    for norm in ("theirs", "ours"):
        assert average.average[f"{norm}.running_mean"].item() == pytest.approx(0.9 * 1.0 + 0.1 * 3.0)
    with average.swapped_in():
        assert model.ours.running_mean.item() == model.theirs.running_mean.item() == pytest.approx(1.2)
        assert model.theirs.num_batches_tracked.item() == 3
    assert model.ours.running_mean.item() == model.theirs.running_mean.item() == 3.0
    model.ours.running_mean = torch.tensor([5.0])  # some networks put another tensor in the place of the first
    average.update(1000)
    assert average.average["ours.running_mean"].item() == pytest.approx(0.9 * 1.2 + 0.1 * 5.0)


def test_a_restored_average_has_its_statistics() -> None:
    first, second = Counting(), Counting()
    count(first, 7.0)
    average = WeightEMA(second, 0.5)
    average.restore(WeightEMA(first, 0.5).average)
    with average.swapped_in():
        assert second.ours.running_mean.item() == second.theirs.running_mean.item() == 7.0


def test_without_statistics_the_average_is_of_parameters_alone() -> None:
    table = ModelTable(
        preset="transformer-base",
        fields={"source_vocab": 9, "target_vocab": 9, "d_model": 8, "n_heads": 2, "d_ff": 8},
    )
    model = build_model(model_config(table, origin="test"), seed=1)
    assert list(model.buffers()), "tables of positions, which are not saved"
    assert list(WeightEMA(model, 0.5).average) == [name for name, _ in model.named_parameters()]


def test_an_average_of_other_weights_is_refused() -> None:
    for saved in ({}, {"weight": torch.zeros(2, 2)}, {"weight": torch.zeros(1, 2), "other": torch.zeros(1)}):
        with pytest.raises(CheckpointError, match="The saved EMA is not of the model's weights"):
            WeightEMA(linear(1.0), 0.9).restore(saved)
