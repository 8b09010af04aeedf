import pytest

from regard.decoding.penalties import GNMT, LengthPower


def test_length_power_divides_by_the_length_to_the_alpha():
    assert LengthPower(0.5).score(-6.0, length=4) == -3.0
    assert LengthPower(0.0).score(-6.0, length=4) == -6.0
    assert LengthPower().score(-6.0, length=4) == -1.5


def test_gnmt_divides_by_five_plus_length_over_six():
    assert GNMT(1.0).score(-6.0, length=7) == -3.0
    assert GNMT(0.6).divisor(1) == 1.0


@pytest.mark.parametrize(
    "penalty", [LengthPower(alpha) for alpha in (-0.5, 0.0, 0.6, 1.0, 1.4)] + [GNMT(0.6), GNMT(-1)]
)
def test_the_largest_divisor_gives_the_best_score_of_any_length_to_come(penalty):
    for length in (1, 3, 8):
        best = max(penalty.score(-2.5, length=later) for later in range(length + 1, 10))
        assert -2.5 / penalty.largest_divisor(length=length, limit=9) == pytest.approx(best)
