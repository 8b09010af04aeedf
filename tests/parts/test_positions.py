"""Positions: the lectures' table and four criteria, and rotations that know only distances."""

import contextlib
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from transformers.models.t5.modeling_t5 import T5Attention

from regard.errors import ConfigError, DataError
from regard.parts.positions import (
    POSITIONS,
    Fraction,
    Index,
    Learned,
    RelativeBias,
    Rotation,
    Sinusoidal,
    distance_buckets,
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


def test_learned_positions_are_not_waited_for() -> None:
    # On `meta`, tensors have a shape and no content: whoever looks at them is told so.
    module = Learned(3, limit=5).to("meta")
    assert module(torch.arange(5, device="meta")).shape == (5, 3)
    with pytest.raises(DataError, match=r"^A sequence of 6 tokens is longer than the 5 learned positions\."):
        module(torch.arange(6, device="meta"))


@contextlib.contextmanager
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def gradients(module: torch.nn.Module, *positions: Tensor) -> list[Tensor]:
    """The gradient of the module's table, again and again, as two threads compute it."""
    torch.manual_seed(0)
    direction = torch.randn_like(module(*positions))
    with two_threads():
        return [torch.autograd.grad(module(*positions), [*module.parameters()], direction)[0] for _ in range(20)]


def test_learning_positions_of_many_rows_is_reproducible() -> None:
    # Rows that share a position add to one row of the table: the order of that sum must not depend on the threads.
    module = Learned(64, limit=32)
    module.weight.data.normal_()
    first, *others = gradients(module, torch.arange(32).expand(64, -1))
    assert all(torch.equal(first, other) for other in others)


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


# -- relative bias ------------------------------------------------------------------------------------------------------


def bucket_by_hand(distance: int, *, n_buckets: int, max_distance: int, backwards_only: bool) -> int:
    """Raffel et al. 2020, 2.1: half of the buckets a distance each, the others logarithmic up to the greatest distance."""
    n_own = n_buckets if backwards_only else n_buckets // 2
    first = 0 if backwards_only or distance <= 0 else n_own
    away = max(-distance, 0) if backwards_only else abs(distance)
    n_exact = n_own // 2
    if away < n_exact:
        return first + away
    # The first distance of each wider bucket: n_exact (max_distance / n_exact)^(i / m).
    n_wide = n_own - n_exact
    begins = [n_exact * (max_distance / n_exact) ** (i / n_wide) - 1e-9 for i in range(n_wide)]
    return first + n_exact + sum(away >= begin for begin in begins) - 1


BUCKETS = pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (32, 64), (8, 20), (4, 5), (64, 1000)])
DIRECTIONS = pytest.mark.parametrize("backwards_only", [False, True], ids=["both directions", "backwards only"])


@BUCKETS
@DIRECTIONS
def test_buckets_are_the_formula(n_buckets: int, max_distance: int, backwards_only: bool) -> None:
    sizes = {"n_buckets": n_buckets, "max_distance": max_distance}
    distances = torch.arange(-1100, 1101)
    found = distance_buckets(distances, **sizes, backwards_only=backwards_only).tolist()
    assert found == [bucket_by_hand(one, **sizes, backwards_only=backwards_only) for one in distances.tolist()]
    assert set(found) == set(range(n_buckets)) - (set() if backwards_only else {n_buckets // 2})


@BUCKETS
@DIRECTIONS
def test_buckets_are_those_of_t5(n_buckets: int, max_distance: int, backwards_only: bool) -> None:
    distances = torch.arange(-1100, 1101)
    expected = T5Attention._relative_position_bucket(distances, not backwards_only, n_buckets, max_distance)
    found = distance_buckets(distances, n_buckets=n_buckets, max_distance=max_distance, backwards_only=backwards_only)
    assert torch.equal(found, expected)


def test_some_buckets_of_t5_by_eye() -> None:
    sizes = {"n_buckets": 32, "max_distance": 128}
    distances = torch.tensor([0, -1, -7, -8, -16, -127, -128, -999, 1, 7, 8, 999])
    both = distance_buckets(distances, **sizes, backwards_only=False)
    assert both.tolist() == [0, 1, 7, 8, 10, 15, 15, 15, 17, 23, 24, 31]
    back = distance_buckets(distances, **sizes, backwards_only=True)
    assert back.tolist() == [0, 1, 7, 8, 16, 31, 31, 31, 0, 0, 0, 0]


def make_bias(n_heads: int = 3, *, backwards_only: bool = False) -> RelativeBias:
    module = RelativeBias(n_heads, n_buckets=8, max_distance=20, backwards_only=backwards_only)
    torch.manual_seed(1)
    module.weight.data.normal_()
    return module


@DIRECTIONS
def test_a_bias_is_a_number_a_head_and_bucket(backwards_only: bool) -> None:
    module = make_bias(backwards_only=backwards_only)
    queries, keys = torch.arange(25, 30), torch.arange(60)
    bias = module(queries, keys)
    assert bias.shape == (1, 3, 5, 60)
    for row, query in enumerate(queries.tolist()):
        for key in keys.tolist():
            bucket = bucket_by_hand(key - query, n_buckets=8, max_distance=20, backwards_only=backwards_only)
            assert torch.equal(bias[0, :, row, key], module.weight[bucket])


def test_rows_have_biases_of_their_own_positions() -> None:
    module = make_bias()
    queries, keys = torch.tensor([[4, 5], [9, 10]]), torch.tensor([[0, 1, 2, 5], [3, -1, 10, 40]])
    bias = module(queries, keys)
    assert bias.shape == (2, 3, 2, 4)
    for row in range(2):
        assert torch.equal(bias[row], module(queries[row], keys[row])[0])


def test_a_bias_knows_only_distances() -> None:
    module = make_bias()
    assert torch.equal(module(torch.arange(6), torch.arange(9)), module(torch.arange(6) + 70, torch.arange(9) + 70))


def test_biases_are_learned_reproducibly() -> None:
    first, *others = gradients(make_bias(), torch.arange(200), torch.arange(200))
    assert all(torch.equal(first, other) for other in others)
    direction = torch.ones(1, 3, 4, 4)
    module = make_bias()
    (counted,) = torch.autograd.grad(module(torch.arange(4), torch.arange(4)), [module.weight], direction)
    # Of four positions, 4 pairs stand together, 3 a step apart in each direction, 3 = 2 + 1 further in each.
    assert counted[:, 0].tolist() == [4, 3, 3, 0, 0, 3, 3, 0]


def test_only_its_numbers_are_saved() -> None:
    assert list(make_bias().state_dict()) == ["weight"]
    assert make_bias().weight.shape == (8, 3)


@pytest.mark.parametrize(
    ("n_buckets", "max_distance", "text"),
    [
        (
            32,
            16,
            "With 32 buckets, 16 distances have one of their own, so that the greatest cannot be 16.\n"
            "Choose fewer buckets, or a greater distance; T5 has 32 buckets up to 128.",
        ),
    ],
)
def test_buckets_that_cannot_be(n_buckets: int, max_distance: int, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RelativeBias(2, n_buckets=n_buckets, max_distance=max_distance, backwards_only=True)
    assert str(caught.value) == text


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
