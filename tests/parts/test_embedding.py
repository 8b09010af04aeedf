"""From ids to vectors and back."""

import pytest
import torch
from torch import nn

from regard.parts.dropout import seeded
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding, VectorEmbedding, make_tokens
from regard.parts.positions import Fraction, Sinusoidal, sinusoids
from regard.parts.taps import recording

IDS = torch.tensor([[3, 0, 2], [1, 1, 4]])


@pytest.fixture
def tokens() -> TokenEmbedding:
    torch.manual_seed(1)
    tokens = TokenEmbedding(5, 4)
    nn.init.normal_(tokens.weight)
    return tokens


def test_a_token_is_a_row_times_the_root_of_the_width(tokens: TokenEmbedding) -> None:
    assert torch.equal(tokens(IDS)[0, 2], tokens.weight[2] * 2)


def test_positions_are_added(tokens: TokenEmbedding) -> None:
    embedding = InputEmbedding(tokens, Sinusoidal(4), concatenate=False, dropout=0)
    with recording(embedding) as record:
        embedded = embedding(IDS, torch.arange(3))
    torch.testing.assert_close(embedded, tokens(IDS) + sinusoids(torch.arange(3), 4))
    assert torch.equal(record["tokens"], tokens(IDS))
    assert torch.equal(record["positions"], sinusoids(torch.arange(3), 4))
    assert torch.equal(record["sum"], embedded)


def test_positions_are_concatenated_and_projected_back(tokens: TokenEmbedding) -> None:
    embedding = InputEmbedding(tokens, Sinusoidal(4), concatenate=True, dropout=0)
    assert embedding.join is not None
    both = torch.cat([tokens(IDS), sinusoids(torch.arange(3), 4).expand(2, 3, 4)], dim=-1)
    torch.testing.assert_close(embedding(IDS, torch.arange(3)), embedding.join(both))


def test_rows_may_stand_at_positions_of_their_own(tokens: TokenEmbedding) -> None:
    positions = torch.tensor([[0, 1, 2], [7, 8, 9]])
    for concatenate in (False, True):
        embedding = InputEmbedding(tokens, Sinusoidal(4), concatenate=concatenate, dropout=0)
        embedded = embedding(IDS, positions)
        torch.testing.assert_close(embedded[1:], embedding(IDS[1:], torch.arange(7, 10)))


def test_the_fraction_is_told_the_lengths(tokens: TokenEmbedding) -> None:
    embedding = InputEmbedding(tokens, Fraction(4), concatenate=False, dropout=0)
    with recording(embedding, "positions") as record:
        embedding(IDS, torch.arange(3), torch.tensor([3, 2]))
    assert record["positions"][:, :, 0].tolist() == [[0, 0.5, 1], [0, 1, 2]]


@pytest.mark.parametrize("concatenate", [False, True])
def test_without_positions_there_is_nothing_to_join(tokens: TokenEmbedding, concatenate: bool) -> None:
    embedding = InputEmbedding(tokens, None, concatenate=concatenate, dropout=0)
    assert embedding.join is None
    assert torch.equal(embedding(IDS, torch.arange(3)), tokens(IDS))


def test_the_sum_is_dropped(tokens: TokenEmbedding) -> None:
    embedding = InputEmbedding(tokens, Sinusoidal(4), concatenate=False, dropout=0.5)
    with seeded(1):
        expected = embedding.dropout(tokens(IDS) + sinusoids(torch.arange(3), 4))
    with seeded(1):
        assert torch.equal(embedding(IDS, torch.arange(3)), expected)


def test_the_output_layer(tokens: TokenEmbedding) -> None:
    states = torch.randn(2, 3, 4)
    tied = OutputLayer(5, 4, tied_to=tokens)
    assert tied.weight is tokens.weight
    torch.testing.assert_close(tied(states), states @ tokens.weight.T)
    free = OutputLayer(5, 4)
    nn.init.normal_(free.weight)
    assert free.weight is not tokens.weight
    torch.testing.assert_close(free(states), states @ free.weight.T)


def test_the_output_layers_own_bias_is_added(tokens: TokenEmbedding) -> None:
    states = torch.randn(2, 3, 4)
    layer = OutputLayer(5, 4, tied_to=tokens, bias=True)
    assert layer.bias is not None
    nn.init.normal_(layer.bias)
    assert layer.weight is tokens.weight
    torch.testing.assert_close(layer(states), states @ tokens.weight.T + layer.bias)
    assert OutputLayer(5, 4).bias is None


@pytest.mark.parametrize("concatenate", [False, True])
def test_vectors_take_the_place_of_tokens(concatenate: bool) -> None:
    torch.manual_seed(1)
    vectors = make_tokens(0, 4, n_features=3, scaled=True)
    assert isinstance(vectors, VectorEmbedding)
    embedding = InputEmbedding(vectors, Sinusoidal(4), concatenate=concatenate, dropout=0)
    x = torch.randn(2, 5, 3)
    with recording(embedding, "tokens") as record:
        assert embedding(x, torch.arange(5)).shape == (2, 5, 4)
    torch.testing.assert_close(record["tokens"], x @ vectors.weight.T + vectors.bias)


@pytest.mark.parametrize(("scaled", "factor"), [(True, 2), (False, 1)])
def test_without_features_there_are_tokens(scaled: bool, factor: int) -> None:
    found = make_tokens(5, 4, n_features=0, scaled=scaled)
    assert isinstance(found, TokenEmbedding)
    nn.init.normal_(found.weight)
    assert torch.equal(found(IDS), found.weight[IDS] * factor)
