"""Several systems side by side."""

import json

import pytest

from regard.errors import DataError, UsageError
from regard.evaluation.report import System, compare_systems
from regard.evaluation.scores import score_translations

SOURCES = ["Ein Hund rennt.", "Zwei Männer spielen Schach.", "Eine Frau liest ein Buch.", "Das Kind schläft."]
REFERENCES = ["A dog is running.", "Two men are playing chess.", "A woman reads a book.", "The child is asleep."]
GOOD = System(
    name="good",
    hypotheses=[
        "A dog is running.",
        "Two men are playing chess.",
        "A woman is reading a book.",
        "The child is asleep.",
    ],
    parameters=1_234_567,
    seconds=0.5,
)
POOR = System(
    name="poor",
    hypotheses=["A dog is running.", "Men play the game.", "A woman a book.", "zzz"],
    parameters=89,
    seconds=0.001,
)


@pytest.fixture(scope="module")
def comparison():
    return compare_systems([GOOD, POOR], sources=SOURCES, references=REFERENCES)


def test_rows_hold_scores_size_and_speed(comparison):
    good, poor = comparison.rows
    assert good.scores == tuple(score_translations(GOOD.hypotheses, REFERENCES))
    assert (good.parameters, good.sentences_per_second) == (1_234_567, 8.0)
    assert [found.score for found in poor.significance] == [score.value for score in poor.scores]
    assert poor.significance[0].delta == poor.scores[0].value - good.scores[0].value


def test_examples_are_the_widest_differences_first(comparison):
    assert [example.line for example in comparison.examples] == [4, 2, 3]  # line 1 is equal in both
    first = comparison.examples[0]
    assert first.source == "Das Kind schläft."
    assert first.references == ("The child is asleep.",)
    assert first.outputs == {"good": "The child is asleep.", "poor": "zzz"}
    assert first.chrf == {"good": pytest.approx(100), "poor": 0}
    assert first.spread == pytest.approx(100)


def test_the_number_of_examples_is_bounded():
    few = compare_systems([GOOD, POOR], sources=SOURCES, references=REFERENCES, metrics=["bleu"], n_examples=1)
    assert [example.line for example in few.examples] == [4]
    assert [score.name for score in few.rows[0].scores] == ["bleu"]


def test_the_table_is_ready_to_be_shown(comparison):
    headings, rows = comparison.as_table()
    assert headings == ["system", "parameters", "sentences/s", "BLEU ↑", "chrF ↑", "TER ↓"]
    assert rows[0][:3] == ["good", "1,234,567", "8.0"]
    assert rows[1][:3] == ["poor", "89", "4,000.0"]
    assert rows[0][3] == f"{comparison.rows[0].scores[0].value:.2f}"


def test_unknown_size_and_speed_stay_empty():
    system = System(name="file", hypotheses=GOOD.hypotheses)
    _, rows = compare_systems([system], sources=SOURCES, references=REFERENCES).as_table()
    assert rows[0][:3] == ["file", "", ""]


def test_the_table_of_significance_has_a_row_a_metric_and_system(comparison):
    headings, rows = comparison.as_significance_table()
    assert headings == ["metric", "system", "score", "95 % interval", "difference", "p bootstrap", "p randomisation"]
    assert [row[:2] for row in rows[:3]] == [["BLEU", "good"], ["BLEU", "poor"], ["chrF", "good"]]
    assert rows[0][4:] == ["baseline", "", ""]
    found = comparison.rows[1].significance[0]
    assert rows[1][3] == f"{found.low:.2f} to {found.high:.2f}"
    assert rows[1][4:] == [f"{found.delta:+.2f}", f"{found.bootstrap_p:.4f}", f"{found.randomisation_p:.4f}"]


def test_json_holds_every_fact(comparison):
    facts = json.loads(json.dumps(comparison.as_json()))
    assert facts["sentences"] == 4
    assert facts["baseline"] == "good"
    good, poor = facts["systems"]
    assert good["parameters"] == 1_234_567
    assert good["scores"]["bleu"]["signature"].startswith("nrefs:1|case:mixed")
    assert set(poor["scores"]["ter"]) == {
        *("label", "signature", "score", "mean", "low", "high"),
        *("delta", "bootstrap_p", "randomisation_p"),
    }
    assert facts["examples"][0]["outputs"]["poor"] == "zzz"
    assert facts["examples"][0]["spread"] == pytest.approx(100)


def test_several_references_are_shown_with_the_examples():
    others = ["A dog runs.", "Two men play chess.", "A woman is reading a book.", "The kid sleeps."]
    found = compare_systems([GOOD, POOR], sources=SOURCES, references=[REFERENCES, others])
    assert found.examples[0].references == ("The child is asleep.", "The kid sleeps.")
    assert "nrefs:2" in found.rows[0].scores[0].signature


def test_no_system_is_an_error():
    with pytest.raises(UsageError) as caught:
        compare_systems([], sources=SOURCES, references=REFERENCES)
    assert str(caught.value) == "There are no systems to compare.\nGive at least one."


def test_two_systems_of_one_name_are_an_error():
    with pytest.raises(UsageError) as caught:
        compare_systems([GOOD, POOR, GOOD], sources=SOURCES, references=REFERENCES)
    assert str(caught.value) == "Two systems are named 'good'.\nGive each system a name of its own."


def test_sources_without_references_are_an_error():
    with pytest.raises(DataError) as caught:
        compare_systems([GOOD], sources=SOURCES[:3], references=REFERENCES)
    assert str(caught.value) == (
        "Each source sentence needs its reference: there are 3 sources and 4 references.\n"
        "Give the references of exactly these source sentences."
    )
