"""Positions: the lectures' table and four criteria, and rotations that know only distances."""

import math

import pytest
import torch
from torch import Tensor

from regard.errors import ConfigError, DataError
from regard.parts.positions import (
    POSITIONS,
    Fraction,
    Index,
    Learned,
    Rotation,
    Sinusoidal,
    fraction_encoding,
    index_encoding,
    make_positions,
    sinusoids,
)


def by_hand(position: int, feature: int, d_model: int, base: float) -> float:
    angle = position / base ** (2 * (feature // 2) / d_model)
    return math.cos(angle) if feature % 2 else math.sin(angle)


# -- sinusoids ----------------------------------------------------------------------------------------------------------


def test_i_am_a_robot() -> None:
    # The lecture's worked table: d = 4, n = 100, to two decimals (-0.4161 and -0.9900 stand there as -0.42 and -0.99).
    expected = [[0, 1, 0, 1], [0.84, 0.54, 0.10, 1.0], [0.91, -0.42, 0.20, 0.98], [0.14, -0.99, 0.30, 0.96]]
    encoded = sinusoids(torch.arange(4), 4, base=100)
    assert [[round(value, 2) for value in row] for row in encoded.tolist()] == expected


@pytest.mark.parametrize(("d_model", "base"), [(4, 100.0), (6, 10000.0), (7, 10000.0), (1, 50.0)])
def test_sinusoids_are_the_formula(d_model: int, base: float) -> None:
    expected = [[by_hand(position, feature, d_model, base) for feature in range(d_model)] for position in range(40)]
    encoded = sinusoids(torch.arange(40), d_model, base=base)
    torch.testing.assert_close(encoded, torch.tensor(expected), atol=1e-6, rtol=0)


def test_sinusoids_of_rows_of_positions() -> None:
    positions = torch.tensor([[0, 5, 9], [3, 3, 1]])
    assert torch.equal(sinusoids(positions, 6)[1, 0], sinusoids(torch.tensor([3]), 6)[0])


def test_positions_beyond_the_ready_table_are_computed() -> None:
    module = Sinusoidal(6, n_ready=4)
    for length in (5, 9):
        assert torch.equal(module(torch.arange(length)), sinusoids(torch.arange(length), 6))
    assert torch.equal(module(torch.tensor([[2, 3], [700, 701]]))[1], sinusoids(torch.tensor([700, 701]), 6))
    assert torch.equal(module(torch.arange(4)), sinusoids(torch.arange(4), 6))


@pytest.mark.parametrize("shape", [(9,), (2, 9)])
def test_sinusoids_never_wait_for_a_device(shape: tuple[int, ...]) -> None:
    # A tensor of the meta device has no numbers: a look at them, for which a GPU's queue must run empty, is an error.
    positions = torch.zeros(shape, dtype=torch.long, device="meta")
    assert Sinusoidal(6, n_ready=4).to("meta")(positions).shape == (*shape, 6)


def test_sinusoids_are_not_saved_with_the_weights() -> None:
    assert not Sinusoidal(6).state_dict()


# -- the four criteria of the lectures ----------------------------------------------------------------------------------


def encode_index(length: int) -> Tensor:
    return Index(8)(torch.arange(length))


def encode_fraction(length: int) -> Tensor:
    encoded: Tensor = Fraction(8)(torch.arange(length), torch.tensor([length]))
    return encoded[0]


def encode_sinusoids(length: int) -> Tensor:
    return sinusoids(torch.arange(length), 8)


ENCODINGS = pytest.mark.parametrize("encode", [encode_index, encode_fraction, encode_sinusoids])


@ENCODINGS
def test_first_criterion_unique_per_position(encode) -> None:  # type: ignore[no-untyped-def]
    assert len(encode(200).unique(dim=0)) == 200


@ENCODINGS
def test_second_criterion_equal_distance_between_neighbours(encode) -> None:  # type: ignore[no-untyped-def]
    def steps(length: int) -> Tensor:
        return encode(length).diff(dim=0).norm(dim=-1)

    assert float(steps(50).std()) < 1e-5
    alike = torch.allclose(steps(50)[:9], steps(10), atol=1e-6)
    assert alike == (encode is not encode_fraction)


@ENCODINGS
def test_third_criterion_bounded_for_longer_inputs(encode) -> None:  # type: ignore[no-untyped-def]
    bounded = float(encode(3000).abs().max()) <= 1
    assert bounded == (encode is not encode_index)


@ENCODINGS
def test_fourth_criterion_deterministic(encode) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(1)
    first = encode(20)
    torch.manual_seed(2)
    assert torch.equal(first, encode(20))


def test_the_index_is_in_every_feature() -> None:
    assert index_encoding(torch.tensor([[0, 1], [7, 8]]), 2).tolist() == [[[0, 0], [1, 1]], [[7, 7], [8, 8]]]


def test_the_fraction_is_that_of_each_sequence() -> None:
    positions = torch.arange(3).expand(3, -1)
    encoded = fraction_encoding(positions, 1, lengths=torch.tensor([3, 2, 1]))
    assert encoded[:, :, 0].tolist() == [[0, 0.5, 1], [0, 1, 2], [0, 1, 2]]


# -- learned ------------------------------------------------------------------------------------------------------------


def test_learned_positions_are_rows_of_a_table() -> None:
    module = Learned(3, limit=5)
    module.weight.data = torch.arange(15.0).view(5, 3)
    assert module(torch.tensor([4, 0])).tolist() == [[12, 13, 14], [0, 1, 2]]
    assert module(torch.tensor([[4], [1]])).shape == (2, 1, 3)


def test_learned_positions_end() -> None:
    module = Learned(3, limit=5)
    with pytest.raises(DataError) as caught:
        module(torch.arange(6))
    assert str(caught.value) == (
        "A sequence of 6 tokens is longer than the 5 learned positions.\n"
        "Shorten it, or train a model with more positions."
    )


# -- rotary -------------------------------------------------------------------------------------------------------------


def test_a_rotation_turns_pairs_of_features() -> None:
    turned = Rotation(torch.tensor([2]), 4, base=100.0)(torch.tensor([[1.0, 0.0, 0.0, 1.0]]))
    expected = [math.cos(2), math.sin(2), -math.sin(0.2), math.cos(0.2)]
    torch.testing.assert_close(turned[0], torch.tensor(expected))


def test_scores_of_rotated_vectors_depend_only_on_the_distance() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 1, 8)
    distances = torch.arange(12)

    def scores(shift: int) -> Tensor:
        at = Rotation(torch.tensor([shift]), 8)(query)
        away = Rotation(distances + shift, 8)(key.expand(3, 12, 8))
        return at @ away.transpose(-1, -2)

    torch.testing.assert_close(scores(0), scores(500), atol=1e-4, rtol=0)
    assert float(scores(0).std(dim=-1).min()) > 0.01


def test_a_rotation_keeps_norms_and_leaves_the_first_position() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 40, 8)
    turned = Rotation(torch.arange(40), 8)(x)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], x[:, :, 0])
    assert not torch.allclose(turned[:, :, 1], x[:, :, 1])


def test_rows_may_stand_at_positions_of_their_own() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, 8)  # (B, H, T, K)
    rows = Rotation(torch.stack([torch.arange(4), torch.arange(5, 9)]), 8)(x)
    assert torch.equal(rows[0], Rotation(torch.arange(4), 8)(x[0]))
    assert torch.equal(rows[1], Rotation(torch.arange(5, 9), 8)(x[1]))


def test_a_rotation_needs_pairs() -> None:
    with pytest.raises(ConfigError) as caught:
        Rotation(torch.arange(3), 5)
    assert str(caught.value) == "Rotary positions need heads of even width, not 5.\nChange d_model or n_heads."


# -- by name ------------------------------------------------------------------------------------------------------------


def test_every_name_makes_its_encoding() -> None:
    made = {name: make_positions(name, 8, limit=10, base=50.0) for name in POSITIONS}
    kinds = {name: None if module is None else type(module) for name, module in made.items()}
    assert kinds == {
        "sinusoidal": Sinusoidal,
        "learned": Learned,
        "rotary": None,
        "index": Index,
        "fraction": Fraction,
        "none": None,
    }
    assert made["sinusoidal"].base == 50.0  # type: ignore[union-attr]
    assert made["learned"].limit == 10  # type: ignore[union-attr]


def test_no_such_positions() -> None:
    with pytest.raises(ConfigError) as caught:
        make_positions("sinusoid", 8, limit=10, base=100.0)
    assert str(caught.value) == "There are no positions 'sinusoid'.\nDid you mean sinusoidal?"
