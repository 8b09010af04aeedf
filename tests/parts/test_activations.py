"""Activations by name; the fast way of GPT-2's GELU is the library's, to the last digits."""

import pytest
import torch
import torch.nn.functional as F

from regard.parts import activations
from regard.parts.activations import gelu_tanh


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activations, "MANY", 0)


def test_the_fast_way_gives_the_same_numbers(fast: None) -> None:
    x = torch.cat([torch.linspace(-9, 9, 20_001), torch.tensor([-1e4, -60.0, 0.0, 60.0, 1e4])])
    assert torch.allclose(gelu_tanh(x), F.gelu(x, approximate="tanh"), atol=1e-6)


def test_its_gradient_is_that_of_the_function(fast: None) -> None:
    x = torch.linspace(-6, 6, 101, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(gelu_tanh, x)
    far = torch.tensor([-200.0, 200.0], requires_grad=True)
    gelu_tanh(far).sum().backward()
    assert far.grad is not None
    assert far.grad.tolist() == [0.0, 1.0]


def test_it_is_the_same_in_pieces(fast: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = torch.randn(3, 5, 4, requires_grad=True)
    pieces = whole.detach().clone().requires_grad_()
    weights = torch.randn(4, 5, 3).transpose(0, 2)  # their memory is not in order
    (gelu_tanh(whole) * weights).sum().backward()
    monkeypatch.setattr(activations, "CHUNK", 7)
    (gelu_tanh(pieces) * weights).sum().backward()
    assert whole.grad is not None
    assert pieces.grad is not None
    assert torch.equal(gelu_tanh(whole), gelu_tanh(pieces))
    assert torch.allclose(whole.grad, pieces.grad, atol=1e-7)


def test_few_numbers_take_the_library_s_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(7)
    monkeypatch.setattr(activations, "_GeluTanh", None)
    assert torch.equal(gelu_tanh(x), F.gelu(x, approximate="tanh"))
