"""Attention: the lectures' numbers, and one result by whichever way it is computed."""

import math
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts import attention
from regard.parts.attention import (
    SHORT,
    SHORT_UNMASKED,
    MultiHeadAttention,
    attend,
    attention_scores,
    attention_weights,
)
from regard.parts.masks import EVERYTHING, Mask, padding
from regard.parts.taps import listening, recording

LONG = SHORT + 9
K = 8


@pytest.fixture(autouse=True)
def as_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few queries take the fused kernel; these few shall take the way that training takes."""
    monkeypatch.setattr(attention, "FEW", 0)
    monkeypatch.setattr(attention, "FEW_SINGLE", 0)


def masks_of(n_queries: int, n_keys: int) -> dict[str, Mask]:
    """Every kind of mask; in `nothing` and `sparse` some rows may attend to nothing."""
    torch.manual_seed(3)
    lengths = torch.tensor([n_keys, n_keys // 2])
    return {
        "everything": EVERYTHING,
        "padding": padding(lengths, n_keys),
        "causal": Mask(causal=True),
        "window": Mask(window=2),
        "padding and window": replace(padding(lengths, n_keys), window=2),
        "causal and window": Mask(causal=True, window=2),
        "a window of all": Mask(causal=True, window=n_keys),
        "nothing": padding(torch.tensor([0, n_keys]), n_keys),
        "sparse": Mask(torch.rand(2, 1, n_queries, n_keys) < 0.02),
    }


def inputs(n_queries: int, n_keys: int, d_value: int = K) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(n_queries * 1000 + n_keys)
    query, key = torch.randn(2, 3, n_queries, K), torch.randn(2, 3, n_keys, K)
    return query.requires_grad_(), key.requires_grad_(), torch.randn(2, 3, n_keys, d_value).requires_grad_()


def by_hand(query: Tensor, key: Tensor, value: Tensor, mask: Mask, *, scale: float, bias: Tensor | None) -> Tensor:
    """The formula in double precision, without softmax: exponentials of what is allowed, over their sum if there is one."""
    scores = torch.einsum("bhtk,bhsk->bhts", query.double(), key.double()) * scale
    scores = scores if bias is None else scores + bias.double()
    allowed = mask.tensor(query.shape[2], key.shape[2], query.device)
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed.expand(scores.shape)
    powers = torch.where(allowed, scores.exp(), 0.0)
    total = powers.sum(-1, keepdim=True)
    return torch.einsum("bhts,bhsv->bhtv", powers / torch.where(total == 0, 1.0, total), value.double())


# -- the worked numbers of the lectures ---------------------------------------------------------------------------------


def weights_of(dots: list[float]) -> list[float]:
    """The weights for queries and keys of width 64 with these dot products."""
    query = torch.zeros(1, 64, dtype=torch.float64)
    query[0, 0] = 1
    keys = torch.zeros(len(dots), 64, dtype=torch.float64)
    keys[:, 0] = torch.tensor(dots, dtype=torch.float64)
    scores = attention_scores(query, keys, scale=64**-0.5)
    assert scores[0].tolist() == [dot / 8 for dot in dots]
    return attention_weights(scores, None)[0].tolist()


def test_two_words_of_the_lecture() -> None:
    # q1·k1 = 112, q1·k2 = 96, d_k = 64: divided by 8 they are 14 and 12, and softmax gives 0.88 and 0.12.
    weights = weights_of([112, 96])
    assert weights == pytest.approx([1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))], abs=1e-12)
    assert [round(weight, 2) for weight in weights] == [0.88, 0.12]


@pytest.mark.parametrize(
    ("dots", "exact", "rounded"),
    [
        # The slide sketches 0.87, 0.12, 0.01, 0.
        ([112, 96, 16, 8], [0.880791, 0.119202, 0.000005, 0.000002], [0.88, 0.12, 0.00, 0.00]),
        # The slide sketches 0.08, 0.91, 0.01, 0.
        ([92, 124, 22, 8], [0.017986, 0.982011, 0.000003, 0.000000], [0.02, 0.98, 0.00, 0.00]),
    ],
)
def test_four_words_of_the_lecture(dots: list[float], exact: list[float], rounded: list[float]) -> None:
    weights = weights_of(dots)
    powers = [math.exp(dot / 8) for dot in dots]
    assert weights == pytest.approx([power / sum(powers) for power in powers], abs=1e-12)
    assert weights == pytest.approx(exact, abs=5e-7)
    assert [round(weight, 2) for weight in weights] == rounded


def test_the_scale_keeps_the_variance_of_the_scores_at_one() -> None:
    torch.manual_seed(0)
    scores = attention_scores(torch.randn(300, 256), torch.randn(300, 256), scale=256**-0.5)
    assert float(scores.var()) == pytest.approx(1.0, abs=0.05)


# -- one result by every way --------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(attention, "SHORT", 0)
    monkeypatch.setattr(attention, "SHORT_UNMASKED", 0)
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
    monkeypatch.setattr(attention, "FEW", 0)
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
        monkeypatch.setattr(attention, few, tensors[0].numel())
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


def test_weights_are_a_distribution_over_what_is_allowed() -> None:
    allowed = torch.tensor([[True, True, False], [False, False, False], [False, True, False]])
    weights = attention_weights(torch.tensor([[1.0, 1.0, 9.0]] * 3), allowed)
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_weights_never_wait_for_a_device() -> None:
    # A tensor of the meta device has no numbers: a look at them, for which a GPU's queue must run empty, is an error.
    scores, allowed = torch.empty(2, 3, 5, 7, device="meta"), torch.ones(2, 1, 1, 7, dtype=torch.bool, device="meta")
    assert attention_weights(scores, allowed).shape == (2, 3, 5, 7)


def test_attention_is_linear_in_the_values() -> None:
    query, key, first = inputs(6, 6)
    second = torch.randn_like(first)
    both = attend(query, key, 2 * first - 3 * second, EVERYTHING, scale=0.3)
    apart = [attend(query, key, value, EVERYTHING, scale=0.3) for value in (first, second)]
    torch.testing.assert_close(both, 2 * apart[0] - 3 * apart[1], atol=1e-5, rtol=0)


# -- many heads ---------------------------------------------------------------------------------------------------------


def make(d_model: int = 12, n_heads: int = 3, **options: int | bool) -> MultiHeadAttention:
    torch.manual_seed(1)
    return MultiHeadAttention(d_model, n_heads, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_keys", [6, LONG])
@pytest.mark.parametrize("kind", masks_of(1, 1))
def test_listening_changes_no_number(kind: str, n_keys: int) -> None:
    module, mask = make(), masks_of(5, n_keys)[kind]
    states, memory = torch.randn(2, 5, 12), torch.randn(2, n_keys, 12)
    bias = torch.randn(1, 3, 5, n_keys)
    silent = module(states, memory, mask, bias=bias)
    with recording(module, "weights") as record:
        heard = module(states, memory, mask, bias=bias)
    assert record["weights"].shape == (2, 3, 5, n_keys)
    torch.testing.assert_close(heard, silent, atol=1e-5, rtol=0)


def test_only_a_listener_for_scores_or_weights_leaves_the_fused_kernel() -> None:
    module, states = make(), torch.randn(2, LONG, 12)
    for tapped, calls in (("output", 1), ("heads", 1), ("scores", 0), ("weights", 0), ("*", 0)):
        with (
            patch.object(F, "scaled_dot_product_attention", wraps=F.scaled_dot_product_attention) as kernel,
            recording(module, tapped),
        ):
            module(states, states, EVERYTHING)
        assert kernel.call_count == calls, tapped


def test_it_equals_torchs_module() -> None:
    module = make()
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.in_proj_weight.data = torch.cat([module.query.weight, module.key.weight, module.value.weight])
    theirs.in_proj_bias.data = torch.cat([module.query.bias, module.key.bias, module.value.bias])
    theirs.out_proj.load_state_dict(module.output.state_dict())
    states, memory, lengths = torch.randn(2, 5, 12), torch.randn(2, 7, 12), torch.tensor([7, 4])
    ignored = torch.arange(7) >= lengths[:, None]
    expected, weights = theirs(states, memory, memory, key_padding_mask=ignored, average_attn_weights=False)
    with recording(module, "weights") as record:
        heard = module(states, memory, padding(lengths, 7))
    torch.testing.assert_close(heard, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(record["weights"], weights, atol=1e-5, rtol=0)


def test_values_may_have_another_width_than_keys() -> None:
    module = make(d_head=5, d_value=7)
    shapes = {}
    states = torch.randn(2, 4, 12)
    with recording(module) as record:
        out = module(states, states, EVERYTHING)
    shapes = {name: tuple(tensor.shape) for name, tensor in record.items()}
    assert shapes == {
        "query": (2, 3, 4, 5),
        "key": (2, 3, 4, 5),
        "value": (2, 3, 4, 7),
        "scores": (2, 3, 4, 4),
        "weights": (2, 3, 4, 4),
        "heads": (2, 3, 4, 7),
        "output": (2, 4, 12),
    }
    torch.testing.assert_close(module(states, states, EVERYTHING), out, atol=1e-5, rtol=0)
    expected = by_hand(record["query"], record["key"], record["value"], EVERYTHING, scale=5**-0.5, bias=None)
    torch.testing.assert_close(record["heads"].double(), expected, atol=1e-5, rtol=0)


def test_the_scale_can_be_left_out() -> None:
    module, states = make(scaled=False), torch.randn(2, 4, 12)
    with recording(module) as record:
        module(states, states, EVERYTHING)
    assert torch.equal(record["scores"], record["query"] @ record["key"].transpose(-1, -2))


def test_projections_may_have_no_biases() -> None:
    module, states, memory = make(biases=False), torch.randn(2, 4, 12), torch.randn(2, 6, 12)
    assert set(module.state_dict()) == {f"{name}.weight" for name in ("query", "key", "value", "output")}
    with recording(module) as record:
        out = module(states, memory, EVERYTHING)
    split = {"query": states, "key": memory, "value": memory}
    for name, given in split.items():
        expected = (given @ getattr(module, name).weight.T).view(2, -1, 3, 4).transpose(1, 2)
        torch.testing.assert_close(record[name], expected)
    torch.testing.assert_close(out, record["heads"].transpose(1, 2).flatten(2) @ module.output.weight.T)


def test_without_positions_order_means_nothing() -> None:
    # "he hit me with a pie" is any order of it: permuted words give the same vectors, permuted.
    module, words = make(), torch.randn(1, 6, 12)
    order = torch.tensor([5, 2, 0, 4, 1, 3])
    shuffled = module(words[:, order], words[:, order], EVERYTHING)
    torch.testing.assert_close(shuffled, module(words, words, EVERYTHING)[:, order], atol=1e-5, rtol=0)


def test_heads_are_independent_until_the_output_layer() -> None:
    """A change of head 1's value matrix changes head 1 alone."""
    module, states = make(), torch.randn(2, 4, 12)
    with recording(module, "heads") as before:
        module(states, states, EVERYTHING)
    with torch.no_grad():
        module.value.weight[4:8] += 1
    with recording(module, "heads") as after:
        module(states, states, EVERYTHING)
    same = [torch.equal(before["heads"][:, head], after["heads"][:, head]) for head in range(3)]
    assert same == [True, False, True]


def test_without_heads_only_the_bias_of_the_output_layer_is_left() -> None:
    module, states = make(), torch.randn(2, 4, 12)
    with listening(module, "heads", lambda name, heads: torch.zeros_like(heads)):
        out = module(states, states, EVERYTHING)
    assert torch.equal(out, module.output.bias.expand(2, 4, 12))


def test_keys_and_values_can_be_kept() -> None:
    module, states, memory = make(), torch.randn(2, 4, 12), torch.randn(2, 6, 12)
    kept = module.keys_values(memory)
    assert torch.equal(module.read(states, *kept, EVERYTHING), module(states, memory, EVERYTHING))


def test_a_width_that_the_heads_cannot_share() -> None:
    with pytest.raises(ConfigError) as caught:
        MultiHeadAttention(130, 4)
    assert str(caught.value) == (
        "A width of 130 cannot be divided among 4 heads.\nChoose d_model as a multiple of n_heads."
    )
