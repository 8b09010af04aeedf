"""Dropout: the true rate in every byte lane, an exact expectation, and draws that are a function of the seed."""

import pytest
import torch

from regard.errors import ConfigError
from regard.parts.dropout import Dropout, seeded

N = 8 * 100_000


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.75])
def test_every_lane_of_a_random_word_drops_at_the_same_rate(rate: float) -> None:
    # A plain random_() never sets the top bit of a word: lane 7 would drop twice as often.
    with seeded(1):
        kept = Dropout(rate)(torch.ones(N)) != 0
    true_rate = round(rate * 256) / 256
    rates = 1 - kept.view(-1, 8).float().mean(0)
    deviation = (true_rate * (1 - true_rate) / (N / 8)) ** 0.5
    assert rates.sub(true_rate).abs().max() < 4 * deviation
    assert abs(true_rate - rate) <= 1 / 512


def test_lanes_are_independent() -> None:
    with seeded(1):
        dropped = (Dropout(0.5)(torch.ones(N)) == 0).view(-1, 8).float()
    assert (torch.corrcoef(dropped.T) - torch.eye(8)).abs().max() < 0.015


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_expectation_is_the_input(rate: float) -> None:
    with seeded(2):
        dropped = Dropout(rate)(torch.full((N,), 3.0))
    assert float(dropped.mean()) == pytest.approx(3.0, abs=0.015)
    assert dropped.unique().tolist() == pytest.approx([0.0, 3.0 * 256 / (256 - round(rate * 256))])


def test_draws_are_a_function_of_the_seed() -> None:
    x, dropout = torch.ones(1000), Dropout(0.5)

    def draw(seed: int) -> list[torch.Tensor]:
        with seeded(seed):
            return [dropout(x), dropout(x)]

    torch.manual_seed(1)
    first, second = draw(7)
    torch.manual_seed(2)
    again = draw(7)
    assert torch.equal(first, again[0])
    assert torch.equal(second, again[1])
    assert not torch.equal(first, second)
    assert not torch.equal(first, draw(8)[0])


def test_seeded_blocks_nest_and_end() -> None:
    x, dropout = torch.ones(1000), Dropout(0.5)
    with seeded(1):
        expected = [dropout(x), dropout(x)]
    with seeded(1):
        first = dropout(x)
        with pytest.raises(ZeroDivisionError), seeded(2):
            dropout(x)
            raise ZeroDivisionError
        second = dropout(x)
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])
    torch.manual_seed(5)
    free = dropout(x)
    torch.manual_seed(5)
    assert torch.equal(free, dropout(x))


def test_nothing_is_dropped_in_evaluation() -> None:
    x, dropout = torch.randn(40), Dropout(0.5).eval()
    assert dropout(x) is x
    assert torch.equal(dropout.add(x, x), 2 * x)


def test_a_rate_of_zero_does_nothing() -> None:
    x, dropout = torch.randn(40), Dropout(0.0)
    assert dropout(x) is x
    assert torch.equal(dropout.add(x, x), 2 * x)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (1,), (2, 3, 11), (0,), (8, 8)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    with seeded(3):
        dropped = Dropout(0.5)(x)
    assert dropped.shape == x.shape
    assert bool(((dropped == 0) | (dropped == 2)).all())


def test_add_is_the_sum_with_what_is_left() -> None:
    x, y, dropout = torch.randn(3, 37), torch.randn(3, 37), Dropout(0.3)
    with seeded(4):
        dropped = dropout(y)
    with seeded(4):
        total = dropout.add(x, y)
    assert bool((dropped == 0).any())
    torch.testing.assert_close(total, x + dropped)


def test_gradients_flow_only_where_elements_were_kept() -> None:
    y = torch.ones(1000, requires_grad=True)
    for pass_through in (Dropout(0.3), lambda y: Dropout(0.3).add(torch.zeros(1000), y)):
        with seeded(4):
            dropped = pass_through(y)
        (gradient,) = torch.autograd.grad(dropped.sum(), y)
        assert torch.equal(gradient, dropped.detach())


def test_half_precision_has_the_same_mask() -> None:
    with seeded(5):
        exact = Dropout(0.3)(torch.ones(1000))
    for kind in (torch.bfloat16, torch.float16):
        with seeded(5):
            half = Dropout(0.3)(torch.ones(1000, dtype=kind))
        assert half.dtype == kind
        assert torch.equal(half == 0, exact == 0)


def test_a_rate_just_below_one_still_keeps_something() -> None:
    with seeded(6):
        dropped = Dropout(0.999)(torch.ones(100_000))
    assert bool(dropped.isfinite().all())
    assert 0 < int((dropped != 0).sum()) < 1000


@pytest.mark.parametrize("rate", [-0.1, 1.0, 30.0])
def test_a_rate_that_is_none(rate: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Dropout(rate)
    assert str(caught.value) == (
        f"A dropout rate must be at least 0 and below 1, not {rate}.\nCorrect the model's dropout."
    )


def test_it_shows_its_rate() -> None:
    assert repr(Dropout(0.3)) == "Dropout(rate=0.3)"
