"""First weights: a function of the seed and of each parameter's name."""

import math

import pytest
import torch
from torch import nn

from regard.parts.convolution import BatchNorm
from regard.parts.embedding import OutputLayer, TokenEmbedding
from regard.parts.initialisation import Deviation, initialise
from regard.parts.linear import Linear
from regard.parts.norms import LayerNorm


class Built(nn.Module):
    """Two layers and an embedding, built in the order that is asked for."""

    def __init__(self, *order: str) -> None:
        super().__init__()
        for name in order:
            self.add_module(name, TokenEmbedding(300, 64) if name == "tokens" else nn.Linear(40, 60))


def first_weights(model: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    initialise(model, seed)
    return dict(model.state_dict())


def test_the_order_of_building_does_not_matter() -> None:
    torch.manual_seed(1)
    weights = first_weights(Built("tokens", "up", "down"), 7)
    torch.manual_seed(2)
    torch.randn(100)
    again = first_weights(Built("down", "tokens", "up", "another"), 7)
    assert len(weights) == 5
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_parameters_of_one_shape_differ() -> None:
    weights = first_weights(Built("up", "down"), 7)
    assert not torch.equal(weights["up.weight"], weights["down.weight"])


def test_another_seed_gives_other_weights() -> None:
    first, second = (first_weights(Built("tokens", "up"), seed) for seed in (1, 2))
    for name in ("tokens.weight", "up.weight"):
        assert not torch.equal(first[name], second[name])


def test_drawing_them_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(1)
    expected = torch.randn(3)
    model = Built("tokens", "up")
    torch.manual_seed(1)
    initialise(model, 7)
    assert torch.equal(torch.randn(3), expected)


def test_their_distributions() -> None:
    weights = first_weights(Built("tokens", "up"), 7)
    bound = math.sqrt(6 / (40 + 60))  # Glorot & Bengio 2010
    assert 0.95 * bound < float(weights["up.weight"].abs().max()) <= bound
    assert abs(float(weights["up.weight"].std()) - bound / math.sqrt(3)) < 0.005
    assert not weights["up.bias"].any()
    assert abs(float(weights["tokens.weight"].std()) - 1 / 8) < 0.003


def test_convolutions_over_images_keep_the_variance_through_relu() -> None:
    weights = first_weights(nn.Conv2d(32, 64, 3), 7)
    # He et al. 2015, equation 10: of 3 · 3 · 32 inputs.
    assert abs(float(weights["weight"].std()) - math.sqrt(2 / 288)) < 0.002
    assert abs(float(weights["weight"].mean())) < 0.002
    assert not weights["bias"].any()


@pytest.mark.parametrize("norm", [LayerNorm(6), BatchNorm(6)], ids=["layer", "batch"])
def test_norms_keep_their_ones_and_zeros(norm: LayerNorm | BatchNorm) -> None:
    initialise(norm, 7)
    assert torch.equal(norm.weight, torch.ones(6))
    assert torch.equal(norm.bias, torch.zeros(6))


def test_a_shared_matrix_is_drawn_once_by_its_first_name() -> None:
    class Shared(nn.Module):
        def __init__(self, *, tied: bool) -> None:
            super().__init__()
            self.tokens = TokenEmbedding(30, 8)
            self.output = OutputLayer(30, 8, tied_to=self.tokens if tied else None)

    alone, tied = Shared(tied=False), Shared(tied=True)
    initialise(alone, 7)
    initialise(tied, 7)
    assert torch.equal(tied.output.weight, alone.tokens.weight)
    assert not torch.equal(tied.output.weight, alone.output.weight)


@pytest.mark.parametrize("deviation", [None, lambda role, matrix: 0.02])
def test_an_output_layers_bias_begins_as_zeros(deviation: Deviation | None) -> None:
    layer = OutputLayer(30, 8, bias=True)
    assert layer.bias is not None
    nn.init.ones_(layer.bias)
    initialise(layer, 7, deviation=deviation)
    assert not layer.bias.any()
    assert layer.weight.any()


def test_weights_that_nobody_thought_of_are_not_left_to_chance() -> None:
    with pytest.raises(NotImplementedError, match="the first weights of weight are drawn"):
        initialise(nn.Conv1d(3, 4, 2), 7)


def test_a_deviation_may_go_by_the_role_of_a_layer() -> None:
    layers = nn.Sequential(Linear(64, 300), Linear(64, 300, role="residual_output"), nn.Linear(64, 300))
    initialise(layers, 7, deviation=lambda role, matrix: {"residual_output": 0.1}.get(role, 1.0) / matrix.shape[1])
    deviations = [float(layer.weight.detach().std()) * 64 for layer in layers]
    assert deviations == pytest.approx([1.0, 0.1, 1.0], rel=0.03)
