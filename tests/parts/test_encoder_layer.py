"""A layer of an encoder: what goes through it, and in which order."""

import pytest
import torch
from torch import Tensor, nn

from regard.parts import masks
from regard.parts.attention import MultiHeadAttention
from regard.parts.encoder_layer import EncoderLayer
from regard.parts.feedforward import FeedForward
from regard.parts.norms import LayerNorm
from regard.parts.positions import Rotation
from regard.parts.residual import PostNorm, PreNorm

WIDTH, HEADS = 8, 2


def make_layer(residual: type[nn.Module] = PostNorm) -> EncoderLayer:
    torch.manual_seed(1)
    attention = MultiHeadAttention(WIDTH, HEADS)
    feed_forward = FeedForward(WIDTH, 16, activation="gelu", dropout=0.0)
    return EncoderLayer(attention, feed_forward, lambda: residual(LayerNorm(WIDTH), dropout=0.0))


def by_hand(layer: EncoderLayer, x: Tensor, attended: Tensor) -> Tensor:
    x = layer.self_attention_residual.norm(x + attended)  # type: ignore[operator]
    total: Tensor = layer.feed_forward_residual.norm(x + layer.feed_forward(x))  # type: ignore[operator]
    return total


def test_attention_comes_first_and_each_has_a_residual_connection_of_its_own() -> None:
    layer, x, mask = make_layer(), torch.randn(2, 5, WIDTH), masks.padding(torch.tensor([5, 3]), 5)
    assert layer.self_attention_residual is not layer.feed_forward_residual
    torch.testing.assert_close(layer(x, mask), by_hand(layer, x, layer.self_attention(x, x, mask)))


def test_rotation_and_bias_reach_the_attention() -> None:
    layer, x, mask = make_layer(), torch.randn(2, 5, WIDTH), masks.EVERYTHING
    rotation, bias = Rotation(torch.arange(5), WIDTH // HEADS), torch.randn(1, HEADS, 5, 5)
    found = layer(x, mask, rotation=rotation, bias=bias)
    attended = layer.self_attention(x, x, mask, rotation=rotation, bias=bias)
    torch.testing.assert_close(found, by_hand(layer, x, attended))
    for less in ({}, {"rotation": rotation}, {"bias": bias}):
        assert not torch.allclose(found, layer(x, mask, **less), atol=1e-3)


@pytest.mark.parametrize("residual", [PreNorm, PostNorm])
def test_the_first_states_alone_are_those_of_all(residual: type[nn.Module]) -> None:
    layer, x, mask = make_layer(residual), torch.randn(2, 5, WIDTH, requires_grad=True), masks.EVERYTHING
    found, expected = layer(x, mask, n_states=2), layer(x, mask)[:, :2]
    assert found.shape == (2, 2, WIDTH)
    torch.testing.assert_close(found, expected)
    learned = [x, *layer.parameters()]
    direction = torch.randn_like(found)
    for own, wanted in zip(
        *(torch.autograd.grad(states, learned, direction) for states in (found, expected)), strict=True
    ):
        torch.testing.assert_close(own, wanted)


def test_nothing_is_asked_of_parts_but_that_they_can_be_called() -> None:
    class Nothing(nn.Module):
        def forward(self, x: Tensor, *others: object, **more: object) -> Tensor:
            return torch.zeros_like(x)

    layer = EncoderLayer(Nothing(), Nothing(), lambda: PostNorm(nn.Identity(), dropout=0.0))
    x = torch.randn(1, 3, WIDTH)
    assert torch.equal(layer(x, masks.EVERYTHING), x)
