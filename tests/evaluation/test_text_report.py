"""Several language models on one text, side by side."""

import json
import math

import numpy as np
import pytest

from regard.errors import UsageError
from regard.evaluation.text_report import TextComparison, TextSystem, compare_texts

N = 60
DRAW = np.random.default_rng(3)
N_BYTES = DRAW.integers(800, 1000, N).astype(float)
N_TOKENS = np.floor(N_BYTES / 4)
NATS = N_TOKENS * DRAW.normal(3.0, 0.2, N)
GOOD = TextSystem(name="good", nats=NATS, n_tokens=N_TOKENS, parameters=1_234_567, seconds=0.5)
POOR = TextSystem(name="poor", nats=NATS + N_TOKENS * DRAW.normal(0.1, 0.1, N), n_tokens=N_TOKENS)
ALIKE = TextSystem(name="alike", nats=NATS + N_TOKENS * DRAW.normal(0.0, 0.1, N), n_tokens=N_TOKENS)
ALL = ("loss", "perplexity", "bits_per_byte")


def compare(*systems: TextSystem, metrics: tuple[str, ...] = ALL, notes: tuple[str, ...] = ()) -> TextComparison:
    return compare_texts(systems, n_bytes=N_BYTES, unit="documents", metrics=metrics, notes=notes)


@pytest.fixture(scope="module")
def comparison() -> TextComparison:
    return compare(GOOD, POOR, ALIKE, notes=("something to know",))


def test_scores_are_those_of_the_whole_text(comparison: TextComparison) -> None:
    loss, perplexity, bits = (score.value for score in comparison.rows[0].scores)
    assert loss == pytest.approx(NATS.sum() / N_TOKENS.sum())
    assert perplexity == pytest.approx(math.exp(loss))
    assert bits == pytest.approx(NATS.sum() / math.log(2) / N_BYTES.sum())
    assert comparison.rows[0].bytes_per_second == pytest.approx(N_BYTES.sum() / 0.5)


def test_a_real_difference_is_told_from_chance(comparison: TextComparison) -> None:
    _, poor, alike = comparison.rows
    for found in poor.significance:
        assert found.delta is not None and found.delta > 0
        assert found.bootstrap_p is not None and found.bootstrap_p < 0.01
        assert found.randomisation_p is not None and found.randomisation_p < 0.01
        assert found.low < found.score < found.high
    for found in alike.significance:
        assert found.bootstrap_p is not None and found.bootstrap_p > 0.05
        assert found.randomisation_p is not None and found.randomisation_p > 0.05


def test_a_model_against_itself_differs_by_nothing() -> None:
    again = TextSystem(name="again", nats=NATS, n_tokens=N_TOKENS)
    for found in compare(GOOD, again).rows[1].significance:
        assert (found.delta, found.bootstrap_p, found.randomisation_p) == (0, 1, 1)


def test_other_vocabularies_have_other_numbers_of_tokens() -> None:
    other = TextSystem(name="other", nats=NATS, n_tokens=2 * N_TOKENS)
    _, row = compare(GOOD, other, metrics=("bits_per_byte",)).rows
    assert [score.name for score in row.scores] == ["bits_per_byte"]
    assert row.significance[0].delta == 0
    assert row.scores[0].signature == f"tokens:{2 * N_TOKENS.sum():.0f}|bytes:{N_BYTES.sum():.0f}"


def test_the_tables_are_ready_to_be_shown(comparison: TextComparison) -> None:
    headings, rows = comparison.as_table()
    assert headings == ["system", "parameters", "bytes/s", "loss ↓", "perplexity ↓", "bits per byte ↓"]
    assert rows[0][:3] == ["good", "1,234,567", f"{2 * N_BYTES.sum():,.0f}"]
    assert rows[1][:3] == ["poor", "", ""]
    assert rows[1][3] == f"{comparison.rows[1].scores[0].value:.4f}"
    headings, rows = comparison.as_significance_table()
    assert headings == ["metric", "system", "score", "95 % interval", "difference", "p bootstrap", "p randomisation"]
    assert [row[:2] for row in rows[:4]] == [
        ["loss", "good"],
        ["loss", "poor"],
        ["loss", "alike"],
        ["perplexity", "good"],
    ]
    found = comparison.rows[1].significance[0]
    assert rows[1][2:5] == [f"{found.score:.4f}", f"{found.low:.4f} to {found.high:.4f}", f"{found.delta:+.4f}"]


def test_json_holds_every_fact(comparison: TextComparison) -> None:
    facts = json.loads(json.dumps(comparison.as_json()))
    assert (facts["unit"], facts["units"], facts["bytes"]) == ("documents", N, N_BYTES.sum())
    assert (facts["baseline"], facts["notes"]) == ("good", ["something to know"])
    good, poor, _ = facts["systems"]
    assert (good["system"], good["parameters"], good["tokens"]) == ("good", 1_234_567, N_TOKENS.sum())
    assert poor["bytes_per_second"] is None
    assert set(poor["scores"]) == set(ALL)
    assert set(poor["scores"]["loss"]) == {
        *("label", "signature", "score", "mean", "low", "high"),
        *("delta", "bootstrap_p", "randomisation_p"),
    }


def test_two_systems_of_one_name_are_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        compare(GOOD, GOOD)
    assert str(caught.value) == "Two systems are named 'good'.\nGive each system a name of its own."
