"""A network that is watched: what counts as a change, and what does not."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn

from regard.api.network_watch import NetworkWatch


@pytest.fixture
def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2)))


def in_place(network: nn.Sequential) -> None:
    with torch.no_grad():
        network[1][1].bias[0] = 2.0


def other_weight(network: nn.Sequential) -> None:
    network[0].weight = deepcopy(network[0].weight)


def other_module(network: nn.Sequential) -> None:
    network[1][0] = nn.ReLU()  # without a weight


def no_module(network: nn.Sequential) -> None:
    del network[1][1]


@pytest.mark.parametrize("change", [in_place, other_weight, other_module, no_module])
def test_a_change_is_seen(network: nn.Sequential, change: Callable[[nn.Sequential], None]) -> None:
    watch = NetworkWatch(network)
    change(network)
    assert watch.is_changed()


def test_use_changes_nothing(network: nn.Sequential) -> None:
    watch = NetworkWatch(network)
    network.eval()(torch.ones(1, 2)).sum().backward()
    assert not watch.is_changed()
