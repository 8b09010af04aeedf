"""Pooling and the top layers: what they compute, and that padding changes nothing."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import ConfigError
from regard.parts.dropout import seeded
from regard.parts.embedding import TokenEmbedding, VectorEmbedding
from regard.parts.heads import (
    POOLINGS,
    Head,
    Pooler,
    SequenceHead,
    TokenHead,
    WordHead,
    find_pooling,
    make_head,
)
from regard.parts.recurrent import RecurrentEncoder

STATES = torch.tensor([[[1.0, 10], [2, 20], [6, 60]], [[3, 30], [5, 50], [9, 90]]])
LENGTHS = torch.tensor([3, 2])


@pytest.fixture
def tokens() -> TokenEmbedding:
    torch.manual_seed(1)
    tokens = TokenEmbedding(7, 4)
    nn.init.normal_(tokens.weight)
    return tokens


def shaken(module: nn.Module) -> nn.Module:
    torch.manual_seed(3)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


# -- pooling ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "expected"),
    [("class", [[1, 10], [3, 30]]), ("mean", [[3, 30], [4, 40]]), ("last", [[6, 60], [5, 50]])],
)
def test_one_state_a_sequence(how: str, expected: list[list[float]]) -> None:
    assert find_pooling(how)(STATES, LENGTHS).tolist() == expected


def test_the_last_state_of_two_directions_is_where_each_has_read_everything() -> None:
    assert find_pooling("last", both_directions=True)(STATES, LENGTHS).tolist() == [[6, 10], [5, 30]]
    for how in ("class", "mean"):
        assert torch.equal(find_pooling(how, both_directions=True)(STATES, LENGTHS), find_pooling(how)(STATES, LENGTHS))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_last_state_of_a_recurrent_encoder_is_its_final_one(bidirectional: bool) -> None:
    torch.manual_seed(2)
    encoder = RecurrentEncoder("gru", 2, 3, n_layers=2, bidirectional=bidirectional)
    shaken(encoder)
    states, final = encoder(STATES, LENGTHS)
    torch.testing.assert_close(find_pooling("last", both_directions=bidirectional)(states, LENGTHS), final[-1][0])


@pytest.mark.parametrize("both_directions", [False, True])
@pytest.mark.parametrize("how", POOLINGS)
@pytest.mark.parametrize("rubbish", [1e30, math.nan, math.inf])
def test_what_stands_behind_a_row_changes_nothing(how: str, both_directions: bool, rubbish: float) -> None:
    padded = STATES.clone()
    padded[1, 2:] = rubbish
    padded = F.pad(padded, (0, 0, 0, 4), value=rubbish)
    expected = find_pooling(how, both_directions=both_directions)(STATES, LENGTHS)
    assert torch.equal(find_pooling(how, both_directions=both_directions)(padded, LENGTHS), expected)


@pytest.mark.parametrize("how", POOLINGS)
def test_padding_gets_no_gradient(how: str) -> None:
    states = STATES.clone().requires_grad_()
    find_pooling(how)(states, LENGTHS).sum().backward()
    assert states.grad is not None
    assert not states.grad[1, 2].any()
    assert states.grad[0].sum() == pytest.approx(2)


# -- heads --------------------------------------------------------------------------------------------------------------


def test_the_pooler_is_a_layer_with_a_hyperbolic_tangent() -> None:
    pooler, x = shaken(Pooler(4)), torch.randn(2, 4)
    expected = torch.tanh(x @ pooler.dense.weight.T + pooler.dense.bias)
    torch.testing.assert_close(pooler(x), expected)


@pytest.mark.parametrize("kind", [SequenceHead, TokenHead])
def test_a_linear_layer_says_it(kind: type[SequenceHead]) -> None:
    head, x = shaken(kind(4, 3, dropout=0.0)), torch.randn(2, 5, 4)
    torch.testing.assert_close(head(x), x @ head.output.weight.T + head.output.bias)


def test_the_states_are_dropped_before_it() -> None:
    head, x = SequenceHead(4, 3, dropout=0.5), torch.randn(8, 4)
    with seeded(1):
        expected = head.output(head.dropout(x))
    with seeded(1):
        assert torch.equal(head(x), expected)
    assert not torch.equal(expected, head.output(x))
    assert torch.equal(head.eval()(x), head.output(x))


def test_words_are_predicted_by_the_tokens_own_matrix(tokens: TokenEmbedding) -> None:
    head, x = WordHead(6, tokens, epsilon=1e-12), torch.randn(2, 5, 6)
    shaken(head)
    assert head.output.weight is tokens.weight
    hidden = F.gelu(x @ head.dense.weight.T + head.dense.bias)  # the exact one, with erf
    read = F.layer_norm(hidden, (4,), head.norm.weight, head.norm.bias, 1e-12)
    torch.testing.assert_close(head.transform(x), read)
    torch.testing.assert_close(head(x), read @ tokens.weight.T + head.output.bias)
    # Only where a word is hidden, which is what a loss needs.
    torch.testing.assert_close(head.output(head.transform(x[:, 2])), head(x)[:, 2])


@pytest.mark.parametrize(
    ("kind", "cls", "pools", "shape"),
    [
        ("none", Head, True, (2, 4)),
        ("sequence", SequenceHead, True, (2, 3)),
        ("tokens", TokenHead, False, (2, 5, 3)),
        ("words", WordHead, False, (2, 5, 7)),
    ],
)
def test_every_head_by_its_name(
    tokens: TokenEmbedding, kind: str, cls: type[Head], pools: bool, shape: tuple[int, ...]
) -> None:
    head = make_head(kind, 4, n_outputs=3, tokens=tokens, dropout=0.1)
    assert type(head) is cls
    assert head.pools is pools
    assert head(torch.randn(2, 4) if pools else torch.randn(2, 5, 4)).shape == shape


def test_without_a_head_nothing_is_learned_and_nothing_changed(tokens: TokenEmbedding) -> None:
    head, x = make_head("none", 4, n_outputs=0, tokens=tokens, dropout=0.1), torch.randn(2, 4)
    assert not list(head.parameters())
    assert torch.equal(head(x), x)


@pytest.mark.parametrize("kind", ["words", "tokens"])
def test_a_position_is_judged_alone(tokens: TokenEmbedding, kind: str) -> None:
    head = make_head(kind, 4, n_outputs=3, tokens=tokens, dropout=0.0)
    shaken(head)
    x = torch.randn(2, 5, 4)
    other = torch.cat([x[:, :3], torch.full((2, 2, 4), 1e9)], dim=1)
    assert torch.allclose(head(x)[:, :3], head(other)[:, :3])


def test_vectors_have_no_words() -> None:
    with pytest.raises(ConfigError) as caught:
        make_head("words", 4, n_outputs=0, tokens=VectorEmbedding(3, 4), dropout=0.0)
    assert str(caught.value) == (
        "A sequence of vectors has no words that could be predicted.\nGive texts, or choose another task than mask."
    )


def test_half_precision_stays_half() -> None:
    for how in POOLINGS:
        assert find_pooling(how)(STATES.bfloat16(), LENGTHS).dtype == torch.bfloat16
