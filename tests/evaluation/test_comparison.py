"""Several systems of any task on one test set, side by side."""

import json
import math
from typing import Any

import numpy as np
import pytest

from regard.errors import UsageError
from regard.evaluation.classification import class_statistics, top_statistics
from regard.evaluation.comparison import Comparison, System, compare_systems, differing_examples
from regard.evaluation.entities import tag_statistics
from regard.evaluation.perplexity import cross_entropy_statistics
from regard.evaluation.regression import regression_statistics
from regard.evaluation.sufficient_statistics import Statistics, share_statistics

N = 60
DRAW = np.random.default_rng(3)
N_BYTES = DRAW.integers(800, 1000, N).astype(float)
N_TOKENS = np.floor(N_BYTES / 4)
NATS = N_TOKENS * DRAW.normal(3.0, 0.2, N)
POOR_NATS = NATS + N_TOKENS * DRAW.normal(0.1, 0.1, N)
ALIKE_NATS = NATS + N_TOKENS * DRAW.normal(0.0, 0.1, N)
ALL = ["loss", "perplexity", "bits_per_byte"]


def reader(name: str, nats: Any, n_tokens: Any = N_TOKENS, **facts: Any) -> System:
    """A language model that read the text."""
    counts = {"tokens": int(n_tokens.sum())}
    return System(name=name, statistics=cross_entropy_statistics(nats, n_tokens, N_BYTES), counts=counts, **facts)


def compare(*systems: System, notes: tuple[str, ...] = ()) -> Comparison:
    return compare_systems(systems, unit="documents", throughput=("bytes", int(N_BYTES.sum())), notes=notes)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    good = reader("good", NATS, parameters=1_234_567, seconds=0.5)
    return compare(good, reader("poor", POOR_NATS), reader("alike", ALIKE_NATS), notes=("something to know",))


def test_scores_are_those_of_the_whole_text(comparison: Comparison) -> None:
    loss, perplexity, bits = (score.value for score in comparison.results[0].scores)
    assert loss == pytest.approx(NATS.sum() / N_TOKENS.sum())
    assert perplexity == pytest.approx(math.exp(loss))
    assert bits == pytest.approx(NATS.sum() / math.log(2) / N_BYTES.sum())
    assert comparison.results[0].per_second == pytest.approx(N_BYTES.sum() / 0.5)


def test_a_real_difference_is_told_from_chance(comparison: Comparison) -> None:
    _, poor, alike = comparison.results
    for found in poor.significance:
        assert found.delta is not None and found.delta > 0
        assert found.bootstrap_p is not None and found.bootstrap_p < 0.01
        assert found.randomisation_p is not None and found.randomisation_p < 0.01
        assert found.low < found.score < found.high
    for found in alike.significance:
        assert found.bootstrap_p is not None and found.bootstrap_p > 0.05
        assert found.randomisation_p is not None and found.randomisation_p > 0.05


def test_a_model_against_itself_differs_by_nothing() -> None:
    for found in compare(reader("good", NATS), reader("again", NATS)).results[1].significance:
        assert (found.delta, found.bootstrap_p, found.randomisation_p) == (0, 1, 1)


def test_other_vocabularies_have_other_numbers_of_tokens() -> None:
    result = compare(reader("good", NATS), reader("other", NATS, 2 * N_TOKENS)).results[1]
    assert result.significance[2].delta == 0
    assert result.scores[2].signature == f"tokens:{2 * N_TOKENS.sum():.0f}|bytes:{N_BYTES.sum():.0f}"


def test_the_tables_are_ready_to_be_shown(comparison: Comparison) -> None:
    table = comparison.table()
    assert table.headings == ("system", "parameters", "bytes/s", "loss ↓", "perplexity ↓", "bits per byte ↓")
    assert table.rows[0][:3] == ("good", "1,234,567", f"{2 * N_BYTES.sum():,.0f}")
    assert table.rows[1][:3] == ("poor", "", "")
    assert table.rows[1][3] == f"{comparison.results[1].scores[0].value:.4f}"
    table = comparison.significance_table()
    assert table.headings == (
        *("metric", "system", "score", "95 % interval", "difference", "p bootstrap", "p randomisation"),
    )
    assert [row[:2] for row in table.rows[:4]] == [
        ("loss", "good"),
        ("loss", "poor"),
        ("loss", "alike"),
        ("perplexity", "good"),
    ]
    assert table.rows[0][4:] == ("baseline", "", "")
    found = comparison.results[1].significance[0]
    assert table.rows[1][2:5] == (f"{found.score:.4f}", f"{found.low:.4f} to {found.high:.4f}", f"{found.delta:+.4f}")
    assert comparison.length_table() is None
    assert comparison._repr_html_().count("<table>") == 2


def test_json_holds_every_fact(comparison: Comparison) -> None:
    facts = json.loads(json.dumps(comparison.to_json()))
    assert (facts["unit"], facts["units"], facts["bytes"]) == ("documents", N, N_BYTES.sum())
    assert (facts["baseline"], facts["notes"]) == ("good", ["something to know"])
    good, poor, _ = facts["systems"]
    assert (good["system"], good["parameters"], good["tokens"]) == ("good", 1_234_567, N_TOKENS.sum())
    assert poor["bytes_per_second"] is None
    assert list(poor["scores"]) == ALL
    assert set(poor["scores"]["loss"]) == {
        *("label", "signature", "score", "mean", "low", "high"),
        *("delta", "delta_low", "delta_high", "bootstrap_p", "randomisation_p"),
    }


def test_a_comparison_is_a_line(comparison: Comparison) -> None:
    shown = repr(comparison)
    assert "\n" not in shown
    assert all(one.system in shown and str(one.scores[0]) in shown for one in comparison.results)


def test_records_are_flat(comparison: Comparison) -> None:
    records = comparison.records()
    assert [(one["system"], one["metric"]) for one in records[:4]] == [
        *(("good", name) for name in ALL),
        ("poor", "loss"),
    ]
    assert records[3]["bytes_per_second"] is None
    assert not any(isinstance(value, dict | list) for one in records for value in one.values())


def test_two_systems_of_one_name_are_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        compare(reader("good", NATS), reader("good", NATS))
    assert str(caught.value) == "Two systems are named 'good'.\nGive each system a name of its own."


def test_no_system_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        compare()
    assert str(caught.value) == "There are no systems to compare.\nGive at least one."


# -- every task ---------------------------------------------------------------------------------------------------------

GOLD = [0, 1, 2, 0, 1, 2, 3, 4, 5, 6] * 4
TAGS = [["B-PER", "O"], ["O", "O", "B-LOC"]] * 5
CLASSIFIERS: dict[str, list[list[Statistics]]] = {
    "classify": [class_statistics(GOLD, predicted, 7) for predicted in (GOLD, [0] * 40)],
    "image": [
        [*class_statistics(GOLD, outputs.argmax(1), 7), top_statistics(GOLD, outputs, 5, unit="images")]
        for outputs in (np.eye(7)[GOLD], np.ones((40, 7)))
    ],
    "tag": [
        [*tag_statistics(TAGS, predicted, labels=["O", "B-PER", "B-LOC"])]
        for predicted in (TAGS, [["O"] * len(own) for own in TAGS])
    ],
    "regress": [regression_statistics(GOLD, predicted) for predicted in (GOLD, GOLD[::-1])],
    "mask": [
        [share_statistics("masked_accuracy", right, np.full(40, 3), unit="tokens")] for right in ([3] * 40, [1] * 40)
    ],
}


@pytest.mark.parametrize("task", CLASSIFIERS)
def test_a_perfect_system_is_better_in_every_task(task: str) -> None:
    perfect, poor = CLASSIFIERS[task]
    found = compare_systems(
        [System(name="perfect", statistics=perfect), System(name="poor", statistics=poor)], unit="rows"
    )
    assert found.throughput_unit == found.unit
    for score, one in zip(found.results[0].scores, found.results[1].significance, strict=True):
        assert one.delta is not None and one.randomisation_p is not None and one.bootstrap_p is not None
        assert (one.delta < 0) == score.metric.higher_is_better
        assert max(one.randomisation_p, one.bootstrap_p) < 0.05


def test_a_score_that_is_not_defined_is_a_dash() -> None:
    one, other = (
        regression_statistics([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        regression_statistics([1.0, 2.0, 3.0], [5.0] * 3),
    )
    found = compare_systems([System(name="a", statistics=one), System(name="b", statistics=other)], unit="rows")
    assert found.table().rows[1][3] == "—"
    assert found.significance_table().rows[1] == ("Spearman", "b", "—", "— to —", "—", "—", "—")


# -- examples -----------------------------------------------------------------------------------------------------------


def test_examples_are_those_on_which_systems_differ() -> None:
    scores = {"a": np.array([100.0, 0.0, 100.0, 40.0]), "b": np.array([100.0, 100.0, 0.0, 50.0])}
    outputs = {"a": ["pos", "neg", "pos", "neg"], "b": ["pos", "pos", "neg", "pos"]}
    sources, expected = ["w", "x", "y", "z"], [["pos"] * 4]
    found = differing_examples(outputs, scores, metric="accuracy", sources=sources, references=expected)
    assert [one.line for one in found] == [2, 3, 4]  # of equal spreads in their order; line 1 is the same in both
    assert found[0].heading == "line 2, where accuracy differs by 100.0"
    assert found[0].facts() == [("source", "x"), ("expected", "pos"), ("a (0)", "neg"), ("b (100)", "pos")]
    assert found[0].to_json() == {
        "line": 2,
        "source": "x",
        "references": ["pos"],
        "outputs": {"a": "neg", "b": "pos"},
        "accuracy": {"a": 0.0, "b": 100.0},
        "spread": 100.0,
    }
    assert len(differing_examples(outputs, scores, metric="accuracy", sources=sources, references=expected, n=1)) == 1


def test_a_tiny_p_value_is_not_written_as_zero() -> None:
    gold = np.zeros(N, dtype=int)
    systems = [
        System(name=name, statistics=class_statistics(gold, gold + wrong, 2)) for name, wrong in (("a", 0), ("b", 1))
    ]
    table = compare(*systems).significance_table()
    assert table.rows[1][table.headings.index("p McNemar")] == "< 0.0001"
