"""Attention in blocks: the dense formula to the last case, and no tensor of n² numbers on the way."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.parts import attention_kernels, local_attention
from regard.parts.attention import MultiHeadAttention, attention_scores
from regard.parts.attention_kernels import attend
from regard.parts.local_attention import Blocks, cut
from regard.parts.masks import Mask, masked_softmax, padding
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
    return masked_softmax(attention_scores(query, key, scale=0.3), allowed) @ value


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
    monkeypatch.setattr(attention_kernels, "FEW", few)
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


# -- several documents --------------------------------------------------------------------------------------------------


def documents_of(length: int, *, n_rows: int = 2) -> Tensor:
    """Rows of documents of about 20 tokens, numbered from 0, so that the first has the number of what is empty."""
    torch.manual_seed(length)
    begins = torch.rand(n_rows, length) < 1 / 20
    begins[:, 0] = False
    return begins.cumsum(1)


@either_way
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 11, 12])
@pytest.mark.parametrize("length", [12, 13])
@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_several_documents_are_the_dense_formula(
    length: int, window: int, padded: bool, causal: bool
) -> None:
    documents = torch.tensor([[0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0], [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5]])
    mask = Mask(causal=causal, window=window, documents=documents[:, :length])
    mask = replace(mask, allowed=padding(torch.tensor([length, 4]), length).allowed) if padded else mask
    assert (cut(mask.simplified(length), length, length) is None) == (window >= length - 1)
    assert_the_same(inputs(length), mask)


@either_way
@pytest.mark.parametrize("few", [0, 10**9], ids=["formula", "fused"])
@pytest.mark.parametrize("window", [0, 1, 16, 40])
@pytest.mark.parametrize("length", [300, 320])
def test_long_sequences_of_several_documents(
    monkeypatch: pytest.MonkeyPatch, length: int, window: int, few: int, causal: bool
) -> None:
    monkeypatch.setattr(attention_kernels, "FEW", few)
    mask = Mask(causal=causal, window=window, documents=documents_of(length))
    assert cut(mask, length, length) is not None
    assert_the_same(inputs(length), mask)


@either_way
@pytest.mark.parametrize("length", [20, 300], ids=["short", "long"])
def test_several_documents_without_a_window(length: int, causal: bool) -> None:
    mask = Mask(causal=causal, documents=documents_of(length))
    assert cut(mask, length, length) is None
    assert_the_same(inputs(length), mask)


@either_way
def test_one_row_of_documents_may_stand_for_all_rows(causal: bool) -> None:
    assert_the_same(inputs(300), Mask(causal=causal, window=4, documents=documents_of(300, n_rows=1)))


@either_way
def test_no_document_reaches_into_another(causal: bool) -> None:
    documents = documents_of(300)
    tensors = inputs(300)
    attended = attend(*tensors, Mask(causal=causal, window=16, documents=documents), scale=0.3)
    chosen = int(documents[0].max()) // 2
    inside = documents[0] == chosen
    gradients = torch.autograd.grad(attended[0, :, inside].square().sum(), tensors)
    for gradient in gradients:
        assert bool(gradient[0, :, inside].any())
        assert not gradient[0, :, ~inside].any()


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
    expected = masked_softmax(scores, mask.tensor(300, 300, query.device)) @ value
    torch.testing.assert_close(attend(query, key, value, mask, scale=0.3, bias=bias), expected, atol=1e-5, rtol=0)


@either_way
@pytest.mark.parametrize("several", [False, True], ids=["one document", "several documents"])
def test_listening_changes_no_number(several: bool, causal: bool) -> None:
    torch.manual_seed(1)
    module, states = MultiHeadAttention(12, 3), torch.randn(2, 300, 12)
    mask = replace(padding(torch.tensor([300, 170]), 300), causal=causal, window=4)
    mask = replace(mask, documents=documents_of(300)) if several else mask
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
@pytest.mark.parametrize("several", [False, True], ids=["one document", "several documents"])
@pytest.mark.parametrize("d_value", [4, 6], ids=["fused", "no kernel fuses it"])
def test_no_tensor_of_all_pairs_is_made(d_value: int, several: bool, causal: bool) -> None:
    mask = Mask(causal=causal, window=16)
    masks = {
        length: replace(mask, documents=documents_of(length, n_rows=1) if several else None) for length in (2048, 1024)
    }
    whole, half = (largest_tensor(length, masks[length], d_value=d_value) for length in (2048, 1024))
    assert whole <= 2 * 2048 * (32 + 16 + 16)  # heads × positions × what a block reaches
    assert whole <= 2 * half + 1000
    dense_way = replace(masks[2048], window=1000)
    assert largest_tensor(2048, dense_way, d_value=d_value) >= 2048**2, "the dense way makes one"
