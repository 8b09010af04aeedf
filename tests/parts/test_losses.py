"""The chunked loss: the value and the gradients of `F.cross_entropy`, without its logits."""

from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts import losses
from regard.parts.losses import output_cross_entropy

N, D, V = 13, 6, 11


def inputs(spread: float = 1.0, *, biased: bool = True) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    torch.manual_seed(1)
    states = (torch.randn(N, D) * spread).requires_grad_()
    weight = torch.randn(V, D, requires_grad=True)
    bias = torch.randn(V, requires_grad=True) if biased else None
    return states, weight, bias, torch.randint(V, (N,))


def with_gradients(total: Tensor, *tensors: Tensor | None) -> list[Tensor]:
    return [total, *torch.autograd.grad(3 * total, [tensor for tensor in tensors if tensor is not None])]


@pytest.mark.parametrize("rows_in_a_chunk", [1, 4, 12, 13, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [False, True], ids=["no bias", "bias"])
def test_it_is_the_cross_entropy(
    monkeypatch: pytest.MonkeyPatch, biased: bool, smoothing: float, rows_in_a_chunk: int
) -> None:
    monkeypatch.setattr(losses, "CHUNK_ELEMENTS", rows_in_a_chunk * V)
    states, weight, bias, targets = inputs(biased=biased)
    ours = output_cross_entropy(states, weight, bias, targets, smoothing=smoothing)
    logits = F.linear(states, weight, bias)
    theirs = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    expected = with_gradients(theirs, states, weight, bias)
    for value, wanted in zip(with_gradients(ours, states, weight, bias), expected, strict=True):
        torch.testing.assert_close(value, wanted, atol=1e-5, rtol=1e-5)


def test_products_are_in_half_precision_under_autocast_and_sums_in_full() -> None:
    states, weight, bias, targets = inputs()
    wanted = with_gradients(output_cross_entropy(states, weight, bias, targets, smoothing=0.1), states, weight, bias)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = output_cross_entropy(states, weight, bias, targets, smoothing=0.1)
    found = with_gradients(total, states, weight, bias)
    for value, expected in zip(found, wanted, strict=True):
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, expected, rtol=0.02, atol=0.05)
    assert not torch.equal(found[0], wanted[0]), "autocast was not heeded"


def test_a_chunk_holds_at_least_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "CHUNK_ELEMENTS", 1)
    states, weight, bias, targets = inputs()
    expected = F.cross_entropy(F.linear(states, weight, bias), targets, reduction="sum")
    torch.testing.assert_close(output_cross_entropy(states, weight, bias, targets), expected)


def test_no_more_logits_than_a_chunk_exist_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "CHUNK_ELEMENTS", 5 * V)
    states, weight, bias, targets = inputs()
    with patch.object(F, "linear", wraps=F.linear) as linear:
        output_cross_entropy(states, weight, bias, targets)
    assert [len(call.args[0]) for call in linear.call_args_list] == [5, 5, 3]


@pytest.mark.parametrize("spread", [1e3, 1e6, 0.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_extreme_logits_are_no_trouble(spread: float, smoothing: float) -> None:
    states, weight, bias, targets = inputs(spread)
    ours = output_cross_entropy(states, weight, bias, targets, smoothing=smoothing)
    logits = F.linear(states.double(), weight.double(), None if bias is None else bias.double())
    theirs = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    for value, wanted in zip(
        with_gradients(ours, states, weight, bias), with_gradients(theirs, states, weight, bias), strict=True
    ):
        assert bool(value.isfinite().all())
        torch.testing.assert_close(value.double(), wanted.double(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("biased", [False, True])
def test_without_gradients_none_are_computed(biased: bool) -> None:
    states, weight, bias, targets = inputs(biased=biased)
    expected = output_cross_entropy(states, weight, bias, targets, smoothing=0.1)
    with torch.no_grad(), patch.object(torch, "mm", wraps=torch.mm) as product:
        total = output_cross_entropy(states, weight, bias, targets, smoothing=0.1)
    assert torch.equal(total, expected.detach())
    assert not total.requires_grad
    assert product.call_count == 0


def test_frozen_weights_leave_the_states_gradient() -> None:
    states, weight, _, targets = inputs()
    ours = output_cross_entropy(states, weight.detach(), None, targets)
    theirs = F.cross_entropy(F.linear(states, weight), targets, reduction="sum")
    torch.testing.assert_close(with_gradients(ours, states)[1], with_gradients(theirs, states)[1])


def test_the_inputs_stay_as_they_are() -> None:
    states, weight, bias, targets = inputs()
    before = [tensor.detach().clone() for tensor in (states, weight, targets)]
    output_cross_entropy(states, weight, bias, targets, smoothing=0.1).backward()
    assert all(torch.equal(one, other) for one, other in zip(before, (states, weight, targets), strict=True))


def test_no_tokens_cost_nothing() -> None:
    states, weight, bias, targets = inputs()
    assert output_cross_entropy(states[:0], weight, bias, targets[:0], smoothing=0.1).item() == 0


def test_states_of_half_precision_meet_weights_of_full() -> None:
    states, weight, bias, targets = inputs()
    half = states.detach().bfloat16().requires_grad_()
    ours = output_cross_entropy(half, weight, bias, targets)
    expected = F.cross_entropy(F.linear(half.float(), weight, bias), targets, reduction="sum")
    torch.testing.assert_close(ours, expected)
    (gradient,) = torch.autograd.grad(ours, half)
    assert gradient.dtype == torch.bfloat16


@pytest.mark.parametrize("autocast", [False, True])
def test_confident_tokens_cost_next_to_nothing(autocast: bool) -> None:
    torch.manual_seed(0)
    weight = torch.randn(300, 32)
    targets = torch.randint(0, 300, (512,))
    states = 5 * weight[targets]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = output_cross_entropy(states, weight, None, targets)
    expected = F.cross_entropy(states @ weight.t(), targets, reduction="sum")
    assert 0 <= float(loss) < 1e-3
    assert abs(float(loss) - float(expected)) < 1e-3


def test_frozen_weights_are_not_multiplied_for() -> None:
    states, weight, _, targets = inputs()

    def products(weight: Tensor) -> int:
        with torch.profiler.profile() as profile:
            output_cross_entropy(states, weight, None, targets)
        return sum(event.name in ("aten::mm", "aten::addmm_") for event in profile.events())

    assert products(weight.detach()) == products(weight) - 1
