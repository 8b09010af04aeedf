"""Attention: the lectures' numbers, and the module with many heads."""

import math
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from tests.parts.attention_cases import LONG, by_hand, masks_of
from torch import nn

from regard.errors import ConfigError
from regard.parts import attention_kernels
from regard.parts.attention import MultiHeadAttention, attention_scores
from regard.parts.masks import EVERYTHING, masked_softmax, padding
from regard.parts.taps import listening, recording


@pytest.fixture(autouse=True)
def as_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few queries take the fused kernel; these few shall take the way that training takes."""
    monkeypatch.setattr(attention_kernels, "FEW", 0)
    monkeypatch.setattr(attention_kernels, "FEW_SINGLE", 0)


# -- the worked numbers of the lectures ---------------------------------------------------------------------------------


def weights_of(dots: list[float]) -> list[float]:
    """The weights for queries and keys of width 64 with these dot products."""
    query = torch.zeros(1, 64, dtype=torch.float64)
    query[0, 0] = 1
    keys = torch.zeros(len(dots), 64, dtype=torch.float64)
    keys[:, 0] = torch.tensor(dots, dtype=torch.float64)
    scores = attention_scores(query, keys, scale=64**-0.5)
    assert scores[0].tolist() == [dot / 8 for dot in dots]
    return masked_softmax(scores, None)[0].tolist()


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
