"""Attention kernels: one result by whichever way it is computed, and which way is taken where."""

from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from tests.parts.attention_cases import LONG, by_hand, inputs, masks_of

from regard.parts import attention_kernels
from regard.parts.attention_kernels import SHORT, SHORT_UNMASKED, attend
from regard.parts.masks import EVERYTHING, Mask, padding


@pytest.fixture(autouse=True)
def as_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few queries take the fused kernel; these few shall take the way that training takes."""
    monkeypatch.setattr(attention_kernels, "FEW", 0)
    monkeypatch.setattr(attention_kernels, "FEW_SINGLE", 0)


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize(("n_queries", "n_keys"), [(7, 7), (1, 9), (LONG, LONG), (1, LONG), (5, LONG)])
@pytest.mark.parametrize("kind", masks_of(1, 1))
def test_attend_is_the_formula(kind: str, n_queries: int, n_keys: int, biased: bool) -> None:
    mask = masks_of(n_queries, n_keys)[kind]
    tensors = inputs(n_queries, n_keys, d_value=5)
    bias = torch.randn(1, 3, n_queries, n_keys, requires_grad=True) if biased else None
    given = [*tensors, bias] if bias is not None else [*tensors]
    attended = attend(*tensors, mask, scale=0.3, bias=bias)
    expected = by_hand(*tensors, mask, scale=0.3, bias=bias)
    torch.testing.assert_close(attended.double(), expected, atol=1e-5, rtol=0)
    direction = torch.randn_like(attended)
    gradients = torch.autograd.grad(attended, given, direction)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, given, direction.double()), strict=True):
        torch.testing.assert_close(gradient, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", masks_of(1, 1))
def test_the_formula_is_the_fused_kernel(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    tensors, mask = inputs(11, 11), masks_of(11, 11)[kind]
    formula = attend(*tensors, mask, scale=0.3)
    monkeypatch.setattr(attention_kernels, "SHORT", 0)
    monkeypatch.setattr(attention_kernels, "SHORT_UNMASKED", 0)
    with patch.object(F, "scaled_dot_product_attention", wraps=F.scaled_dot_product_attention) as kernel:
        fused = attend(*tensors, mask, scale=0.3)
    assert kernel.call_count == 1
    torch.testing.assert_close(fused, formula, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("n_keys", "mask", "learning", "taken"),
    [
        (SHORT_UNMASKED, EVERYTHING, True, "formula"),
        (SHORT_UNMASKED + 1, EVERYTHING, True, "kernel"),
        (SHORT_UNMASKED, EVERYTHING, False, "kernel"),
        (SHORT, padding(torch.tensor([SHORT, 5]), SHORT), True, "formula"),
        (SHORT, padding(torch.tensor([SHORT, 5]), SHORT), False, "formula"),
        (LONG, padding(torch.tensor([LONG, 5]), LONG), True, "kernel"),
    ],
)
def test_without_a_mask_the_kernel_is_taken_earlier(
    monkeypatch: pytest.MonkeyPatch, n_keys: int, mask: Mask, learning: bool, taken: str
) -> None:
    monkeypatch.setattr(attention_kernels, "FEW", 0)
    wrapped = patch.object(F, "scaled_dot_product_attention", wraps=F.scaled_dot_product_attention)
    with torch.set_grad_enabled(learning), wrapped as kernel:
        attend(*inputs(n_keys, n_keys), mask, scale=0.3)
    assert kernel.call_count == (taken == "kernel")


@pytest.mark.parametrize(("n_queries", "n_keys", "few"), [(1, 9, "FEW_SINGLE"), (1, LONG, "FEW_SINGLE"), (3, 9, "FEW")])
def test_few_queries_take_the_fused_kernel(
    monkeypatch: pytest.MonkeyPatch, n_queries: int, n_keys: int, few: str
) -> None:
    tensors = inputs(n_queries, n_keys)
    with patch.object(F, "scaled_dot_product_attention", wraps=F.scaled_dot_product_attention) as kernel:
        formula = attend(*tensors, EVERYTHING, scale=0.3)
        assert kernel.call_count == 0
        monkeypatch.setattr(attention_kernels, few, tensors[0].numel())
        fused = attend(*tensors, EVERYTHING, scale=0.3)
        assert kernel.call_count == 1
    torch.testing.assert_close(fused, formula, atol=1e-5, rtol=0)


@pytest.mark.parametrize("n_keys", [6, LONG])
@pytest.mark.parametrize("biased", [False, True])
def test_a_row_that_may_attend_to_nothing_is_zero_and_has_finite_gradients(n_keys: int, biased: bool) -> None:
    tensors = inputs(n_keys, n_keys)
    allowed = torch.ones(2, 1, n_keys, n_keys, dtype=torch.bool)
    allowed[0] = False
    allowed[1, :, 2] = False
    bias = torch.randn(1, 3, n_keys, n_keys) if biased else None
    attended = attend(*tensors, Mask(allowed), scale=0.3, bias=bias)
    assert not attended[0].any()
    assert not attended[1, :, 2].any()
    assert attended[1, :, 3].all()
    gradients = torch.autograd.grad(attended.square().sum(), tensors)
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    assert not gradients[0][0].any()
    assert gradients[0][1, :, 3].any()


@pytest.mark.parametrize(("learns", "calls"), [(True, 0), (False, 1)])
def test_a_bias_that_learns_takes_the_formula_at_any_length(learns: bool, calls: int) -> None:
    tensors, bias = inputs(LONG, LONG), torch.randn(1, 3, LONG, LONG, requires_grad=learns)
    with patch.object(F, "scaled_dot_product_attention", wraps=F.scaled_dot_product_attention) as kernel:
        attend(*tensors, Mask(causal=True), scale=1.0, bias=bias)
        assert kernel.call_count == calls
        with torch.no_grad():
            attend(*tensors, Mask(causal=True), scale=1.0, bias=bias)
    assert kernel.call_count == calls + 1


def test_attention_is_linear_in_the_values() -> None:
    query, key, first = inputs(6, 6)
    second = torch.randn_like(first)
    both = attend(query, key, 2 * first - 3 * second, EVERYTHING, scale=0.3)
    apart = [attend(query, key, value, EVERYTHING, scale=0.3) for value in (first, second)]
    torch.testing.assert_close(both, 2 * apart[0] - 3 * apart[1], atol=1e-5, rtol=0)
