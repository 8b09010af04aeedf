"""Scores of labels, by numbers worked out by hand, and spans as conlleval finds them."""

import math

import numpy as np
import pytest

from regard.evaluation.labels import (
    Span,
    accuracy,
    are_entities,
    confusion,
    entities,
    entity_scores,
    macro_f1,
    share_right,
)

GOLD = [0, 0, 0, 1, 1, 2]
PREDICTED = [0, 0, 1, 1, 2, 2]


def test_accuracy_is_the_share_of_right_labels_in_percent():
    score = accuracy(GOLD, PREDICTED)
    assert (score.name, score.label) == ("accuracy", "accuracy")
    assert score.value == pytest.approx(100 * 4 / 6)
    assert score.signature == "examples:6"
    assert accuracy(np.array(GOLD), np.array(GOLD), unit="words").signature == "words:6"
    assert accuracy(GOLD, GOLD).value == 100


def test_what_was_counted_on_the_way_has_an_accuracy_too():
    score = share_right(3, 12, unit="tokens", name="masked_accuracy")
    assert (score.label, score.value, score.signature) == ("masked accuracy", 25, "tokens:12")
    assert math.isnan(share_right(0, 0, unit="tokens").value)


def test_macro_f1_is_the_mean_over_classes():
    # Class 0: precision 2/2, recall 2/3; class 1: 1/2, 1/2; class 2: 1/2, 1/1.
    score = macro_f1(GOLD, PREDICTED, 3)
    assert score.value == pytest.approx(100 * (0.8 + 0.5 + 2 / 3) / 3)
    assert score.signature == "examples:6|averaging:macro|classes:3 of 3"


def test_a_class_that_nobody_met_does_not_count_and_one_that_was_only_predicted_does():
    score = macro_f1([0, 0, 1], [0, 0, 3], 5)
    assert score.value == pytest.approx(100 * (1 + 0 + 0) / 3)  # classes 0, 1 and 3; 2 and 4 occur nowhere
    assert score.signature == "examples:3|averaging:macro|classes:3 of 5"
    assert math.isnan(macro_f1([], [], 2).value)


def test_the_confusion_matrix_has_a_row_for_each_gold_class():
    matrix = confusion(GOLD, PREDICTED, 4)
    assert matrix.dtype == np.int64
    assert matrix.tolist() == [[2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_lists_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="6 gold labels, 5 predicted"):
        accuracy(GOLD, PREDICTED[:5])
    with pytest.raises(ValueError, match="2 gold tags, 1 predicted"):
        entity_scores([["O", "O"]], [["O"]])


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [Span(0, 2, "PER"), Span(3, 4, "LOC")]),
        ("B-PER B-PER", [Span(0, 1, "PER"), Span(1, 2, "PER")]),
        ("O I-PER I-PER", [Span(1, 3, "PER")]),  # an I- that begins starts an entity
        ("B-PER I-LOC I-LOC", [Span(0, 1, "PER"), Span(1, 3, "LOC")]),  # as does one of another kind
        ("I-PER I-LOC", [Span(0, 1, "PER"), Span(1, 2, "LOC")]),
        ("B-corporate-name I-corporate-name", [Span(0, 2, "corporate-name")]),
        ("", []),
    ],
)
def test_entities_are_found_as_conlleval_finds_them(tags, spans):
    assert list(entities(tags.split())) == spans


def test_entity_f1_counts_whole_entities_over_all_sentences():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O"], ["O", "O"]]
    found = [["B-PER", "I-PER", "O", "B-ORG"], ["I-ORG", "O"], ["B-LOC", "I-LOC"]]
    # Right: the person, and the organisation although it begins with I-. Gold has 3 entities, 4 are predicted.
    f1, precision, recall = entity_scores(gold, found)
    assert f1.value == pytest.approx(100 * 2 * 2 / 7)
    assert precision.value == pytest.approx(50)
    assert recall.value == pytest.approx(100 * 2 / 3)
    assert f1.signature == "sentences:3|entities:3|predicted:4|averaging:micro|scheme:BIO"
    assert [score.label for score in (f1, precision, recall)] == ["entity F1", "entity precision", "entity recall"]
    assert [score.value for score in entity_scores(gold, gold)] == [100, 100, 100]


def test_an_entity_cut_short_is_wrong_twice():
    f1, *_ = entity_scores([["B-PER", "I-PER", "I-PER"]], [["B-PER", "I-PER", "O"]])
    assert f1.value == 0
    assert "entities:1|predicted:1" in f1.signature


def test_nothing_found_scores_nothing_and_nothing_to_find_has_no_score():
    assert [score.value for score in entity_scores([["B-PER"]], [["O"]])] == [0, 0, 0]
    assert all(math.isnan(score.value) for score in entity_scores([["O"]], [["O"]]))


def test_tags_that_mark_entities_are_told_apart():
    assert are_entities(["O", "B-PER", "I-PER"])
    assert are_entities(["I-PER", "O"])
    assert not are_entities(["O"])
    assert not are_entities(["O", "NOUN"])
    assert not are_entities(["O", "B-"])
    assert not are_entities([])
