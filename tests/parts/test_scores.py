"""Scores of queries and keys against their formulas written out, and the attention made of them."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.masks import EVERYTHING, Mask, padding
from regard.parts.scores import FUNCTIONS, SCORES, Sigmoid, StateAttention, function_width, make_function
from regard.parts.taps import listening, recording

B, T, S, Q, K = 2, 3, 5, 4, 6


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def random_weights(module: Any) -> Any:
    torch.manual_seed(2)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def naive(score: Callable[[Tensor, Tensor], Tensor], query: Tensor, key: Tensor) -> Tensor:
    """One pair at a time."""
    rows = [[[score(h, s) for s in keys] for h in queries] for queries, keys in zip(query, key, strict=True)]
    return torch.stack([torch.stack([torch.stack(row) for row in table]) for table in rows])


def assert_close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first, second, atol=1e-5, rtol=0)


# -- scores -------------------------------------------------------------------------------------------------------------


def test_dot() -> None:
    score = SCORES["dot"](Q, Q)
    query, key = draw(B, T, Q), draw(B, S, Q)
    assert_close(score(query, score.prepare(key)), naive(lambda h, s: (h * s).sum(), query, key))


def test_bilinear() -> None:
    score = random_weights(SCORES["bilinear"](Q, K))
    query, key = draw(B, T, Q), draw(B, S, K)
    assert_close(score(query, score.prepare(key)), naive(lambda h, s: h @ score.key.weight @ s, query, key))


def test_additive() -> None:
    score = random_weights(SCORES["additive"](Q, K))
    query, key = draw(B, T, Q), draw(B, S, K)
    w1 = torch.cat([score.query.weight, score.key.weight], dim=1)
    w2 = score.output.weight[0]
    expected = naive(lambda h, s: w2 @ torch.tanh(w1 @ torch.cat([h, s])), query, key)
    assert_close(score(score.ask(query), score.prepare(key)), expected)


def test_the_dot_product_needs_one_width() -> None:
    with pytest.raises(ConfigError) as caught:
        SCORES["dot"](4, 8)
    assert str(caught.value) == (
        "model.attention = dot needs queries and keys of one width, not 4 and 8.\n"
        "Use model.key_function = linear or sigmoid, model.attention = bilinear or additive, or model.bidirectional = false."
    )


# -- functions of states ------------------------------------------------------------------------------------------------


def test_functions() -> None:
    states = draw(B, S, K)
    assert make_function("identity", K, Q)(states) is states
    linear = random_weights(make_function("linear", K, Q))
    assert_close(linear(states), states @ linear.weight.T + linear.bias)
    sigmoid = random_weights(make_function("sigmoid", K, Q))
    assert_close(sigmoid(states), 1 / (1 + torch.exp(-(states @ sigmoid.linear.weight.T + sigmoid.linear.bias))))


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_width_of_a_function(kind: str) -> None:
    assert function_width(kind, K, Q) == make_function(kind, K, Q)(draw(B, S, K)).shape[-1]


# -- attention ----------------------------------------------------------------------------------------------------------


def attention(
    score: str = "bilinear",
    functions: tuple[str, str, str] = ("identity", "identity", "identity"),
    *,
    d_memory: int = K,
) -> StateAttention:
    query, key, value = functions
    made = StateAttention(score, query=query, key=key, value=value, d_query=Q, d_memory=d_memory)
    module: StateAttention = random_weights(made)
    return module


@pytest.mark.parametrize("functions", list(itertools.product(FUNCTIONS, repeat=3)), ids="-".join)
@pytest.mark.parametrize("score", list(SCORES))
def test_attention_is_the_softmax_of_scores_over_values(score: str, functions: tuple[str, str, str]) -> None:
    # States of two widths have no dot product: keys must be projected, or the widths be one.
    width = Q if score == "dot" and functions[1] == "identity" else K
    module = attention(score, functions, d_memory=width)
    states, memory = draw(B, T, Q), draw(B, S, width)
    lengths = torch.tensor([5, 2])
    context = module(states, *module.memory(memory), padding(lengths, S))
    assert context.shape == (B, T, module.d_context)
    assert module.d_context == (width if functions[2] == "identity" else Q)
    for row, length in enumerate(lengths.tolist()):
        keys, values = module.key(memory[row, :length]), module.value(memory[row, :length])
        scores = module.score(module.score.ask(module.query(states[row])[None]), module.score.prepare(keys[None]))[0]
        assert_close(context[row], scores.softmax(-1) @ values)


def test_taps_of_attention() -> None:
    module = attention()
    with recording(module) as record:
        context = module(draw(B, T, Q), *module.memory(draw(B, S, K)), padding(torch.tensor([5, 2]), S))
    assert list(record) == ["key", "value", "query", "scores", "weights", "context"]
    assert record["scores"].shape == record["weights"].shape == (B, 1, T, S)
    assert not record["weights"][1, :, :, 2:].any()
    assert_close(record["weights"].sum(-1), torch.ones(B, 1, T))
    assert torch.equal(record["context"], context)


def test_weights_can_be_replaced() -> None:
    module = attention()
    memory = draw(B, S, K)
    with listening(module, "weights", lambda name, weights: torch.full_like(weights, 1 / S)):
        context = module(draw(B, T, Q), *module.memory(memory), EVERYTHING)
    assert_close(context, memory.mean(1, keepdim=True).expand(B, T, K))


def test_who_may_attend_to_nothing_reads_zeros() -> None:
    module = attention()
    allowed = torch.ones(B, 1, 1, S, dtype=torch.bool)
    allowed[1] = False
    context = module(draw(B, T, Q), *module.memory(draw(B, S, K)), Mask(allowed))
    assert bool(context[0].all())
    assert not context[1].any()


@pytest.mark.parametrize("functions", [("linear", "sigmoid", "identity"), ("identity", "linear", "sigmoid")], ids=str)
def test_each_function_stands_for_itself(functions: tuple[str, str, str]) -> None:
    module = attention("bilinear", functions)
    kinds = {"identity": nn.Identity, "linear": nn.Linear, "sigmoid": Sigmoid}
    made = (module.query, module.key, module.value)
    assert [type(function) for function in made] == [kinds[name] for name in functions]
