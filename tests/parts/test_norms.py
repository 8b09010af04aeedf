"""Norms: the formulas, and torch's own modules."""

import pytest
import torch
from torch import nn

from regard.parts.norms import LayerNorm, RMSNorm


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 5, 12) * 3 + 1


def test_layer_norm_is_torchs(x: torch.Tensor) -> None:
    ours, theirs = LayerNorm(12), nn.LayerNorm(12)
    for parameter in ours.parameters():
        nn.init.normal_(parameter)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x), theirs(x))


def test_rms_norm_is_torchs(x: torch.Tensor) -> None:
    ours, theirs = RMSNorm(12), nn.RMSNorm(12, eps=1e-6)
    nn.init.normal_(ours.weight)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x), theirs(x))


def test_the_gradients_of_an_rms_norm_are_those_of_its_formula(x: torch.Tensor) -> None:
    norm = RMSNorm(12).double()
    nn.init.normal_(norm.weight)
    assert torch.autograd.gradcheck(norm, x.double().requires_grad_())
    theirs = nn.RMSNorm(12, eps=1e-6).double()
    theirs.load_state_dict(norm.state_dict())
    for shape in ((12,), (5, 12), (2, 5, 12)):
        y = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        ours = torch.autograd.grad(norm(y).square().sum(), [y, norm.weight])
        torch.testing.assert_close(ours, torch.autograd.grad(theirs(y).square().sum(), [y, theirs.weight]))


def test_layer_norm_is_the_formula(x: torch.Tensor) -> None:
    expected = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(LayerNorm(12)(x), expected)


def test_rms_norm_is_the_formula(x: torch.Tensor) -> None:
    torch.testing.assert_close(RMSNorm(12)(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())


def test_a_norm_looks_at_one_position_only(x: torch.Tensor) -> None:
    # Why sequences take it and not batch norm: neither the batch nor the length changes a position's result.
    for norm in (LayerNorm(12), RMSNorm(12)):
        torch.testing.assert_close(norm(x)[1, 3], norm(x[1, 3]))
