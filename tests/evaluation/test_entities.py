"""Scores of tags and of entities, by numbers worked out by hand, and spans as conlleval finds them."""

import math

import pytest

from regard.evaluation.entities import (
    Span,
    are_entities,
    entities,
    entity_report,
    entity_scores,
    entity_statistics,
    tag_report,
    tag_statistics,
)

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O"], ["O", "O"]]
FOUND = [["B-PER", "I-PER", "O", "B-ORG"], ["I-ORG", "O"], ["B-LOC", "I-LOC"]]


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
    # Right: the person, and the organisation although it begins with I-. Gold has 3 entities, 4 are predicted.
    f1, precision, recall = entity_scores(GOLD, FOUND)
    assert f1.value == pytest.approx(100 * 2 * 2 / 7)
    assert precision.value == pytest.approx(50)
    assert recall.value == pytest.approx(100 * 2 / 3)
    assert f1.signature == "sentences:3|entities:3|predicted:4|averaging:micro|scheme:BIO"
    assert [score.label for score in (f1, precision, recall)] == ["entity F1", "entity precision", "entity recall"]
    assert [score.value for score in entity_scores(GOLD, GOLD)] == [100, 100, 100]


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


def test_a_sentence_adds_its_entities():
    f1, precision, recall = entity_statistics(GOLD, FOUND)
    assert f1.counts.tolist() == [[1, 2, 2], [1, 1, 1], [0, 1, 0]]
    assert [one.score for one in (f1, precision, recall)] == entity_scores(GOLD, FOUND)
    assert f1.example_values.tolist() == [50, 100, 0]


def test_a_sentence_adds_the_tags_of_its_words():
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
    words, *others = tag_statistics(GOLD, FOUND, labels=labels)
    assert words.counts.tolist() == [[3, 4], [1, 2], [0, 2]]
    assert (words.metric, words.value, words.signature) == ("accuracy", 50, "words:8")
    assert words.correct is None  # a sentence is more than right or wrong
    assert [one.metric for one in others] == ["entity_f1", "entity_precision", "entity_recall"]
    assert len(tag_statistics([["NOUN"]], [["VERB"]], labels=["NOUN", "VERB"])) == 1


def test_entities_are_reported_by_kind():
    report = entity_report(GOLD, FOUND)
    assert [one.label for one in report.classes] == ["LOC", "ORG", "PER"]
    location, organisation, person = report.classes
    assert (location.precision, location.recall, location.f1, location.support) == (0, 0, 0, 1)
    assert (organisation.precision, organisation.recall, organisation.support) == (50, 100, 1)
    assert (person.precision, person.recall, person.f1, person.support) == (100, 100, 100, 1)
    assert report.averages[0].f1 == entity_scores(GOLD, FOUND)[0].value
    assert report.unit == "entities"


def test_a_tags_recall_is_the_accuracy_of_its_words():
    report = tag_report([["NOUN", "VERB"], ["NOUN"]], [["NOUN", "NOUN"], ["ADJ"]])
    assert [(one.label, one.recall, one.support) for one in report.classes if one.support] == [
        ("NOUN", 50, 2),
        ("VERB", 0, 1),
    ]
    assert report.unit == "words"


def test_sentences_of_different_lengths_are_a_mistake():
    for scored in (entity_scores, entity_report, tag_report):
        with pytest.raises(ValueError, match="2 gold tags, 1 predicted"):
            scored([["O", "O"]], [["O"]])
