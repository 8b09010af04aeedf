"""Residual connections: where the sum, the norm and the dropout stand."""

import pytest
import torch
from torch import nn

from regard.parts.dropout import seeded
from regard.parts.norms import LayerNorm
from regard.parts.residual import DenseResidualBlock, Plain, PostNorm, PreNorm, make_residual
from regard.parts.taps import listening, recording


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 5, 12)


@pytest.fixture
def norm() -> LayerNorm:
    norm = LayerNorm(12)
    nn.init.normal_(norm.weight)
    return norm


def square(x: torch.Tensor) -> torch.Tensor:
    return x.square() + 1


def test_post_norm(x: torch.Tensor, norm: LayerNorm) -> None:
    torch.testing.assert_close(PostNorm(norm, dropout=0)(x, square), norm(x + square(x)))


def test_pre_norm(x: torch.Tensor, norm: LayerNorm) -> None:
    torch.testing.assert_close(PreNorm(norm, dropout=0)(x, square), x + square(norm(x)))


def test_plain(x: torch.Tensor) -> None:
    torch.testing.assert_close(Plain(dropout=0)(x, square), square(x))


def test_only_what_the_sublayer_adds_is_dropped(x: torch.Tensor, norm: LayerNorm) -> None:
    residual = PreNorm(norm, dropout=0.5)
    with seeded(1):
        dropped = residual.dropout(square(norm(x)))
    with seeded(1):
        torch.testing.assert_close(residual(x, square), x + dropped)
    post = PostNorm(norm, dropout=0.5)
    with seeded(1):
        dropped = post.dropout(square(x))
    with seeded(1):
        torch.testing.assert_close(post(x, square), norm(x + dropped))


def test_with_the_sum_a_layer_can_be_the_identity(x: torch.Tensor, norm: LayerNorm) -> None:
    assert torch.equal(PreNorm(norm, dropout=0)(x, torch.zeros_like), x)


@pytest.mark.parametrize("order", ["pre", "post", "none"])
def test_the_sum_is_a_tap(order: str, x: torch.Tensor) -> None:
    residual = make_residual(order, lambda: LayerNorm(12), dropout=0)
    with recording(residual, "output") as record:
        out = residual(x, square)
    assert torch.equal(record["output"], out)
    with listening(residual, "output", lambda name, tensor: torch.zeros_like(tensor)):
        assert not residual(x, square).any()


def test_by_name() -> None:
    kinds = {order: type(make_residual(order, lambda: LayerNorm(4), dropout=0.1)) for order in ("pre", "post", "none")}
    assert kinds == {"pre": PreNorm, "post": PostNorm, "none": Plain}


def test_the_lectures_dense_block_with_two_skips(x: torch.Tensor) -> None:
    block = DenseResidualBlock(12)
    first, second = block.first, block.second
    # As printed: a dense layer and its ReLU, a second dense layer, both skips added, the last ReLU.
    hidden = torch.clamp(x @ first.weight.T + first.bias, min=0)
    expected = torch.clamp((hidden @ second.weight.T + second.bias) + hidden + x, min=0)
    with recording(block) as record:
        torch.testing.assert_close(block(x), expected)
    assert set(record) == {"hidden", "residual", "output"}
    for tap, wanted in (("hidden", hidden), ("output", expected)):
        torch.testing.assert_close(record[tap], wanted)


def test_without_its_weights_the_dense_block_is_the_identity(x: torch.Tensor) -> None:
    block = DenseResidualBlock(12)
    for parameter in block.parameters():
        nn.init.zeros_(parameter)
    assert torch.equal(block(x), x.relu())
