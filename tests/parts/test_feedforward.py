"""The position-wise networks, against their formulas."""

import math

import pytest
import torch
from torch import Tensor

from regard.parts.dropout import seeded
from regard.parts.feedforward import FeedForward, GatedFeedForward
from regard.parts.taps import listening, recording


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 5, 6)


def by_hand(name: str, x: Tensor) -> Tensor:
    formulas = {
        "relu": lambda x: torch.where(x > 0, x, 0.0),
        "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
        "silu": lambda x: x / (1 + torch.exp(-x)),
    }
    return formulas[name](x)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_the_plain_network(activation: str, x: Tensor) -> None:
    network = FeedForward(6, 10, activation=activation, dropout=0)
    hidden = by_hand(activation, x @ network.up.weight.T + network.up.bias)
    torch.testing.assert_close(network(x), hidden @ network.down.weight.T + network.down.bias)


def test_the_plain_network_without_biases(x: Tensor) -> None:
    network = FeedForward(6, 10, activation="relu", dropout=0, biases=False)
    torch.testing.assert_close(network(x), by_hand("relu", x @ network.up.weight.T) @ network.down.weight.T)
    assert set(network.state_dict()) == {"up.weight", "down.weight"}


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_the_gated_network(activation: str, x: Tensor) -> None:
    network = GatedFeedForward(6, 10, activation=activation, dropout=0)
    hidden = by_hand(activation, x @ network.gate.weight.T) * (x @ network.up.weight.T)
    torch.testing.assert_close(network(x), hidden @ network.down.weight.T)
    assert all(parameter.dim() == 2 for parameter in network.parameters())


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_the_same_at_every_position(kind: type[FeedForward], x: Tensor) -> None:
    network = kind(6, 10, activation="relu", dropout=0)
    torch.testing.assert_close(network(x)[1, 3], network(x[1, 3]))


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_its_taps(kind: type[FeedForward], x: Tensor) -> None:
    network = kind(6, 10, activation="relu", dropout=0)
    with recording(network) as record:
        out = network(x)
    assert {name: tuple(tensor.shape) for name, tensor in record.items()} == {"hidden": (2, 5, 10), "output": (2, 5, 6)}
    assert torch.equal(record["output"], out)
    with listening(network, "hidden", lambda name, tensor: torch.zeros_like(tensor)):
        silenced = network(x)
    expected = torch.zeros(6) if network.down.bias is None else network.down.bias
    assert torch.equal(silenced, expected.expand(2, 5, 6))


def test_hidden_units_are_dropped(x: Tensor) -> None:
    network = FeedForward(6, 10, activation="relu", dropout=0.5)
    with recording(network, "hidden") as record:
        network(x)
    with seeded(1):
        expected = network.down(network.dropout(record["hidden"]))
    with seeded(1):
        torch.testing.assert_close(network(x), expected)
