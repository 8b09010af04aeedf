"""Systems that generate text, side by side."""

import json

import pytest

from regard.errors import DataError, UsageError
from regard.evaluation.generated_comparison import GeneratingSystem, compare_generated
from regard.evaluation.generated_text import score_translations

SOURCES = ["Ein Hund rennt.", "Zwei Männer spielen Schach.", "Eine Frau liest ein Buch.", "Das Kind schläft."]
REFERENCES = ["A dog is running.", "Two men are playing chess.", "A woman reads a book.", "The child is asleep."]
GOOD = GeneratingSystem(
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
POOR = GeneratingSystem(
    name="poor",
    hypotheses=["A dog is running.", "Men play the game.", "A woman a book.", "zzz"],
    parameters=89,
    seconds=0.001,
)


@pytest.fixture(scope="module")
def comparison():
    return compare_generated([GOOD, POOR], sources=SOURCES, references=REFERENCES)


def test_rows_hold_scores_size_and_speed(comparison):
    good, poor = comparison.results
    assert good.scores == tuple(score_translations(GOOD.hypotheses, REFERENCES))
    assert (good.parameters, good.per_second) == (1_234_567, 8.0)
    assert [found.score for found in poor.significance] == [score.value for score in poor.scores]
    assert poor.significance[0].delta == poor.scores[0].value - good.scores[0].value


def test_examples_are_the_widest_differences_first(comparison):
    assert [example.line for example in comparison.examples] == [4, 2, 3]  # line 1 is equal in both
    first = comparison.examples[0]
    assert first.source == "Das Kind schläft."
    assert first.references == ("The child is asleep.",)
    assert first.outputs == {"good": "The child is asleep.", "poor": "zzz"}
    assert first.scores == {"good": pytest.approx(100), "poor": 0}
    assert first.spread == pytest.approx(100)


def test_the_number_of_examples_is_bounded():
    few = compare_generated([GOOD, POOR], sources=SOURCES, references=REFERENCES, metrics=["bleu"], n_examples=1)
    assert [example.line for example in few.examples] == [4]
    assert [score.name for score in few.results[0].scores] == ["bleu"]


def test_the_table_is_ready_to_be_shown(comparison):
    table = comparison.table()
    assert table.headings == ("system", "parameters", "sentences/s", "BLEU ↑", "chrF ↑", "TER ↓")
    assert table.rows[0][:3] == ("good", "1,234,567", "8.0")
    assert table.rows[1][:3] == ("poor", "89", "4,000.0")
    assert table.rows[0][3] == f"{comparison.results[0].scores[0].value:.2f}"


def test_unknown_size_and_speed_stay_empty():
    system = GeneratingSystem(name="file", hypotheses=GOOD.hypotheses)
    table = compare_generated([system], sources=SOURCES, references=REFERENCES).table()
    assert table.rows[0][:3] == ("file", "", "")


def test_a_person_sees_both_tables_and_the_examples(comparison):
    lines = comparison.lines()
    assert lines[:12] == [
        "system  parameters  sentences/s  BLEU ↑  chrF ↑  TER ↓",
        "good     1,234,567          8.0   77.40   88.59  11.11",
        "poor            89      4,000.0   33.93   38.95  50.00",
        "",
        "metric  system  score    95 % interval  difference  p bootstrap  p randomisation",
        "BLEU    good    77.40  38.36 to 100.00    baseline",
        "BLEU    poor    33.93    2.64 to 76.63      -43.46       0.1119           0.5015",
        "chrF    good    88.59  65.53 to 100.00    baseline",
        "chrF    poor    38.95   10.94 to 74.48      -49.64       0.0070           0.2526",
        "TER     good    11.11    0.00 to 31.58    baseline",
        "TER     poor    50.00   11.11 to 88.89      +38.89       0.1119           0.5015",
        "",
    ]
    assert lines[12:17] == [
        "line 4, where chrF differs by 100.0",
        "source: Das Kind schläft.",
        "expected: The child is asleep.",
        "good (100): The child is asleep.",
        "poor (0): zzz",
    ]


def test_scores_by_length_have_a_table(comparison):
    table = comparison.length_table()
    assert table.headings == ("BLEU by source words", "0-9 (4)")
    assert table.rows == (("good", "77.40"), ("poor", "33.93"))
    images = compare_generated([GOOD, POOR], sources=SOURCES, references=REFERENCES, unit="images", by_length=False)
    assert images.length_table() is None
    assert images.table().headings[2] == "images/s"


def test_exact_match_and_error_rates_are_tested_too():
    metrics = ("exact_match", "wer", "cer")
    found = compare_generated([GOOD, POOR], sources=SOURCES, references=REFERENCES, metrics=metrics)
    exact, wer, cer = found.results[1].significance
    assert (exact.score, exact.delta) == (25, -50)
    assert exact.mcnemar_p == 0.5  # two sentences are right in one system only
    assert (wer.mcnemar_p, cer.mcnemar_p) == (None, None)
    assert found.significance_table().headings[-1] == "p McNemar"
    assert found.examples[0].metric == "chrf"


def test_json_holds_every_fact(comparison):
    facts = json.loads(json.dumps(comparison.to_json()))
    assert facts["sentences"] == 4
    assert facts["baseline"] == "good"
    good, poor = facts["systems"]
    assert good["parameters"] == 1_234_567
    assert good["scores"]["bleu"]["signature"].startswith("nrefs:1|case:mixed")
    assert set(poor["scores"]["ter"]) == {
        *("label", "signature", "score", "mean", "low", "high"),
        *("delta", "delta_low", "delta_high", "bootstrap_p", "randomisation_p"),
    }
    assert facts["examples"][0]["outputs"]["poor"] == "zzz"
    assert facts["examples"][0]["spread"] == pytest.approx(100)


def test_several_references_are_shown_with_the_examples():
    others = ["A dog runs.", "Two men play chess.", "A woman is reading a book.", "The kid sleeps."]
    found = compare_generated([GOOD, POOR], sources=SOURCES, references=[REFERENCES, others])
    assert found.examples[0].references == ("The child is asleep.", "The kid sleeps.")
    assert "nrefs:2" in found.results[0].scores[0].signature


def test_no_system_is_an_error():
    with pytest.raises(UsageError) as caught:
        compare_generated([], sources=SOURCES, references=REFERENCES)
    assert str(caught.value) == "There are no systems to compare.\nGive at least one."


def test_two_systems_of_one_name_are_an_error():
    with pytest.raises(UsageError) as caught:
        compare_generated([GOOD, POOR, GOOD], sources=SOURCES, references=REFERENCES)
    assert str(caught.value) == "Two systems are named 'good'.\nGive each system a name of its own."


def test_sources_without_references_are_an_error():
    with pytest.raises(DataError) as caught:
        compare_generated([GOOD], sources=SOURCES[:3], references=REFERENCES)
    assert str(caught.value) == (
        "Each source sentence needs its reference: there are 3 sources and 4 references.\n"
        "Give the references of exactly these source sentences."
    )
