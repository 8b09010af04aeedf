"""Labels: near-equal and rare ones are pointed out, none is merged; an unknown one gets the label that is meant."""

import pytest

from regard.data.pipeline.label_set import label_notes, near_equal, sorted_labels, unknown_label

CONSEQUENCE = "trained as different classes; if they mean the same, write them alike in the data"


@pytest.mark.parametrize(
    "labels",
    [
        ("NEGATIVE", "negative ", "Negative"),
        ("B-per", "B-PER"),
        ("very good", "very_good", "very-good", "Very  good", "very–good"),
        ("'spam'", "spam", "spam."),
        ("ＡＢＣ", "abc"),
        ("STRASSE", "Straße"),
    ],
)
def test_labels_that_may_be_one(labels: tuple[str, ...]) -> None:
    assert near_equal([*labels, "other"]) == [list(labels)]


@pytest.mark.parametrize(
    "labels",
    [
        ("-1", "0", "1", "+1"),
        (".", ",", ":", "``", "''", "-", "--", "_"),  # tags of punctuation marks
        ("PRP", "PRP$", "WP", "WP$"),
        ("C", "C#", "C++"),
        ("B-PER", "I-PER", "B-ORG"),
        ("very good", "verygood"),
        ("1.0", "10", "1 0"),
    ],
)
def test_labels_that_differ(labels: tuple[str, ...]) -> None:
    assert near_equal(labels) == []


def test_near_equal_labels_are_named_with_their_counts() -> None:
    counts = {"NEGATIVE": 1200, "Negative": 3, "negative": 4, "positive": 1100}
    named = "labels 'NEGATIVE' (1,200), 'Negative' (3) and 'negative' (4)"
    assert label_notes("example", [], counts) == (("near-equal", f"{named}: {CONSEQUENCE}"),)


def test_of_many_groups_the_first_are_named() -> None:
    counts = {letter: 60 for upper in "ABCDE" for letter in (upper, upper.lower())}
    named = "labels 'A' (60) and 'a' (60); 'B' (60) and 'b' (60); 'C' (60) and 'c' (60); and 2 more such groups"
    assert label_notes("image", [], counts) == (("near-equal", f"{named}: {CONSEQUENCE}"),)


def test_rare_labels_beside_large_ones() -> None:
    counts = {"O": 900, "B-PER": 50, "B-ORG": 2, "I-ORG": 1, "I-PER": 3, "B-LOC": 0}
    notes = dict(label_notes("example", [], counts, labelled="word"))
    told = "2 of 6 labels have one or two training words, too few to be learned: 'B-ORG' (2) and 'I-ORG' (1)"
    assert notes["rare"] == told
    many = {"large": 50} | {f"class {number}": 1 for number in range(7)}
    named = ", ".join(f"'class {number}' (1)" for number in range(5))
    assert dict(label_notes("image", [], many))["rare"].endswith(f": {named} and 2 more")


def test_small_data_has_no_rare_labels() -> None:
    assert label_notes("example", [], {"yes": 49, "no": 2}) == ()
    assert label_notes("example", [], {}) == ()


def test_labels_in_their_order() -> None:
    assert sorted_labels(["10", "9", "1"]) == ("1", "9", "10")
    assert sorted_labels(["10", "9", "x"]) == ("10", "9", "x")


def test_an_unknown_label_that_is_nearly_one() -> None:
    error = unknown_label("v.csv:3", "Negative ", ["negative", "positive"], noun="label", trained=True)
    assert error.problem == "v.csv:3: the label 'Negative ' does not occur in training."
    assert error.remedy == "Write it as 'negative', if that is meant: labels are compared letter by letter."
    error = unknown_label("v.csv:3", "neutral", ["negative", "positive"], noun="label", trained=True)
    assert error.remedy == "Add training examples of it, or leave such examples out of validation."
