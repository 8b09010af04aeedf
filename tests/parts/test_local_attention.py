"""Attention in blocks: the dense formula to the last case, and no tensor of n² numbers on the way."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.parts import attention, local_attention
from regard.parts.attention import MultiHeadAttention, attend, attention_scores, attention_weights
from regard.parts.local_attention import Blocks, cut
from regard.parts.masks import Mask, padding
from regard.parts.taps import recording

K = 8
either_way = pytest.mark.parametrize("causal", [True, False], ids=["causal", "both"])


def inputs(length: int, *, d_value: int = K) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(length)
    widths = (K, K, d_value)
    query, key, value = (torch.randn(2, 3, length, width, requires_grad=True) for width in widths)
    return query, key, value


def dense(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """The formula over all pairs of positions."""
    allowed = mask.tensor(query.shape[2], key.shape[2], query.device)
    return attention_weights(attention_scores(query, key, scale=0.3), allowed) @ value


def assert_the_same(tensors: tuple[Tensor, Tensor, Tensor], mask: Mask) -> None:
    """Compare numbers and gradients of `attend` with the dense formula."""
    attended, expected = attend(*tensors, mask, scale=0.3), dense(*tensors, mask)
    torch.testing.assert_close(attended, expected, atol=1e-5, rtol=0)
    direction = torch.randn_like(attended)
    ours, wanted = (torch.autograd.grad(out, tensors, direction) for out in (attended, expected))
    for gradient, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(gradient, other, atol=1e-5, rtol=1e-5)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut wherever it is possible, so that short sequences have many blocks."""
    monkeypatch.setattr(local_attention, "LEAST", 1)
    monkeypatch.setattr(local_attention, "WORTH", 0)


# -- the dense formula --------------------------------------------------------------------------------------------------


@either_way
@pytest.mark.parametrize("d_value", [K, 5])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 11, 12])
@pytest.mark.parametrize("length", [12, 13])
@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_the_dense_formula(length: int, window: int, padded: bool, d_value: int, causal: bool) -> None:
    # Behind 4 of 13 tokens, a window of 5 reaches nothing: such rows are among them.
    lengths = torch.tensor([length, 4])
    mask = replace(padding(lengths, length), causal=causal, window=window) if padded else Mask(None, causal, window)
    assert (cut(mask.simplified(length), length, length) is None) == (window >= length - 1)
    assert_the_same(inputs(length, d_value=d_value), mask)


@either_way
@pytest.mark.parametrize("few", [0, 10**9], ids=["formula", "fused"])
@pytest.mark.parametrize("window", [0, 1, 16, 40])
@pytest.mark.parametrize("length", [300, 320])
def test_long_sequences_as_they_are(
    monkeypatch: pytest.MonkeyPatch, length: int, window: int, few: int, causal: bool
) -> None:
    monkeypatch.setattr(attention, "FEW", few)
    mask = replace(padding(torch.tensor([length - 3, 0]), length), causal=causal, window=window)
    assert cut(mask, length, length) is not None
    assert_the_same(inputs(length), mask)


@either_way
def test_rows_that_may_attend_to_nothing_are_zero_and_have_finite_gradients(causal: bool) -> None:
    mask = replace(padding(torch.tensor([0, 150]), 300), causal=causal, window=4)
    tensors = inputs(300)
    attended = attend(*tensors, mask, scale=0.3)
    assert not attended[0].any()
    assert not attended[1, :, 154:].any()
    assert attended[1, :, :154].all()
    gradients = torch.autograd.grad(attended.square().sum(), tensors)
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    assert not gradients[1][1, :, 150:].any()


def test_one_padding_may_stand_for_all_rows() -> None:
    assert_the_same(inputs(300), replace(padding(torch.tensor([200]), 300), window=4))
    assert_the_same(inputs(300), Mask(torch.tensor(True).view(1, 1, 1, 1), window=4))


# -- when ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "length", "expected"),
    [
        (Mask(causal=True, window=64), 512, Blocks(length=512, size=64, before=64, after=0)),
        (Mask(window=64), 512, Blocks(length=512, size=64, before=64, after=64)),
        (Mask(window=2), 512, Blocks(length=512, size=32, before=2, after=2)),
        (Mask(window=2), 72, None),
        (Mask(causal=True, window=2), 72, Blocks(length=72, size=32, before=2, after=0)),
        (Mask(causal=True), 512, None),
    ],
    ids=["causal", "both directions", "a narrow window", "too short", "long enough", "no window"],
)
def test_how_a_sequence_is_cut(mask: Mask, length: int, expected: Blocks | None) -> None:
    assert cut(mask, length, length) == expected


@pytest.mark.parametrize("shape", [(300, 300), (2, 1, 300, 300), (1, 3, 1, 300), (300,)], ids=str)
def test_what_differs_between_queries_or_heads_is_computed_densely(shape: tuple[int, ...]) -> None:
    torch.manual_seed(5)
    mask = Mask(torch.rand(shape) < 0.5, window=4)
    assert cut(mask, 300, 300) is None
    assert_the_same(inputs(300), mask)


@either_way
def test_queries_that_are_the_last_positions_are_computed_densely(causal: bool) -> None:
    query, key, value = inputs(300)
    mask = Mask(causal=causal, window=4)
    assert cut(mask, 20, 300) is None
    assert_the_same((query[:, :, -20:], key, value), mask)


def test_a_bias_is_computed_densely() -> None:
    query, key, value = inputs(300)
    mask, bias = Mask(causal=True, window=4), torch.randn(1, 3, 300, 300)
    scores = attention_scores(query, key, scale=0.3) + bias
    expected = attention_weights(scores, mask.tensor(300, 300, query.device)) @ value
    torch.testing.assert_close(attend(query, key, value, mask, scale=0.3, bias=bias), expected, atol=1e-5, rtol=0)


@either_way
def test_listening_changes_no_number(causal: bool) -> None:
    torch.manual_seed(1)
    module, states = MultiHeadAttention(12, 3), torch.randn(2, 300, 12)
    mask = replace(padding(torch.tensor([300, 170]), 300), causal=causal, window=4)
    silent = module(states, states, mask)
    with recording(module, "weights") as record:
        heard = module(states, states, mask)
    assert record["weights"].shape == (2, 3, 300, 300)
    torch.testing.assert_close(heard, silent, atol=1e-5, rtol=0)


# -- what it costs ------------------------------------------------------------------------------------------------------


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor holds that was made."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        sizes = [one.numel() for one in tree_leaves(made) if isinstance(one, Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return made


def largest_tensor(length: int, mask: Mask, *, d_value: int) -> int:
    """Forward and backward through one layer of two heads."""
    torch.manual_seed(1)
    module, states = MultiHeadAttention(8, 2, d_value=d_value), torch.randn(1, length, 8, requires_grad=True)
    with Largest() as largest:
        module(states, states, mask).sum().backward()
    assert states.grad is not None
    return largest.numbers


@either_way
@pytest.mark.parametrize("d_value", [4, 6], ids=["fused", "no kernel fuses it"])
def test_no_tensor_of_all_pairs_is_made(d_value: int, causal: bool) -> None:
    mask = Mask(causal=causal, window=16)
    whole, half = (largest_tensor(length, mask, d_value=d_value) for length in (2048, 1024))
    assert whole <= 2 * 2048 * (32 + 16 + 16)  # heads × positions × what a block reaches
    assert whole <= 2 * half + 1000
    assert largest_tensor(2048, replace(mask, window=1000), d_value=d_value) >= 2048**2, "the dense way makes one"
