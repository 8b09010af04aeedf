"""Probabilities of classes, and the tables of an evaluation of them."""

import json

import numpy as np
import pytest

from regard.tasks.class_evaluation import MAX_CLASSES, class_probabilities, class_sections, class_statistics


def test_probabilities_come_with_the_likeliest_class_first() -> None:
    found = class_probabilities(np.log(np.array([0.25, 0.5, 0.25], np.float32)), ["a", "b", "c"])
    assert list(found) == ["b", "a", "c"]  # of equal ones the first
    assert list(found.values()) == pytest.approx([0.5, 0.25, 0.25], abs=1e-7)


def test_the_tables_of_an_evaluation() -> None:
    matrix, sections = class_sections([0, 0, 1], [0, 1, 1], ["x", "y"], unit="images")
    assert matrix.counts == ((1, 1), (0, 1))
    classes, labels, confusion = sections
    assert [one.name for one in sections] == ["classes", "labels", "confusion"]
    assert classes.table is not None and classes.table.headings[-1] == "images"
    assert classes.data["classes"][0] == {"label": "x", "precision": 100, "recall": 50, "f1": 200 / 3, "support": 2}
    assert json.loads(json.dumps([labels.data, confusion.data])) == [["x", "y"], [[1, 1], [0, 1]]]
    assert confusion.table == matrix.table()


def test_a_matrix_of_many_classes_is_no_table() -> None:
    for n, shown in ((MAX_CLASSES, True), (MAX_CLASSES + 1, False)):
        _, (_, _, confusion) = class_sections(range(n), range(n), [f"class {number}" for number in range(n)], unit="x")
        assert (confusion.table is not None) == shown
        assert len(confusion.data) == n


def test_statistics_of_runs_with_the_same_classes_go_by_one_signature() -> None:
    gold, labels = [0, 0, 1], ["x", "y", "z"]
    first, second = (class_statistics(gold, own, labels, unit="x") for own in ([0, 1, 1], [2, 2, 2]))
    assert [one.value for one in first] == pytest.approx([200 / 3, 200 / 3])
    assert [one.signature for one in first] == [one.signature for one in second]
    others = class_statistics(gold, [0, 1, 1], ["x", "y", "w"], unit="x")
    assert [one.signature == other.signature for one, other in zip(first, others, strict=True)] == [True, False]
