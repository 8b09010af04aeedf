"""Precision, recall, F1 and support by class."""

import json
import math

import numpy as np
import pytest

from regard.evaluation.class_report import ClassReport, class_report


@pytest.fixture
def report() -> ClassReport:
    """A class that is found, one that is missed, one that is only predicted, and one that occurs nowhere."""
    return class_report(
        ["found", "missed", "invented", "absent"],
        n_correct=np.array([3, 0, 0, 0]),
        n_predicted=np.array([4, 0, 2, 0]),
        n_gold=np.array([5, 1, 0, 0]),
        unit="entities",
    )


def test_what_is_not_defined_is_nan(report: ClassReport) -> None:
    found, missed, invented, absent = report.classes
    assert (found.precision, found.recall, found.f1) == (75, 60, pytest.approx(100 * 6 / 9))
    assert (missed.precision, missed.recall, missed.f1) == (0, 0, 0)
    assert (invented.precision, invented.f1) == (0, 0)
    assert math.isnan(invented.recall)
    assert all(math.isnan(value) for value in (absent.precision, absent.recall, absent.f1))


def test_averages_leave_out_what_has_no_number(report: ClassReport) -> None:
    micro, macro, weighted = report.averages
    assert (micro.precision, micro.recall, micro.f1) == (50, 50, 50)
    assert (macro.precision, macro.recall) == (25, 30)
    assert macro.f1 == pytest.approx(100 * 6 / 9 / 3)
    assert (weighted.precision, weighted.recall) == (75 * 5 / 6, 50)
    assert [one.support for one in report.averages] == [6, 6, 6]


def test_it_is_shown_as_a_table(report: ClassReport) -> None:
    assert report.lines() == [
        "class             precision  recall     F1  entities",
        "found                 75.00   60.00  66.67         5",
        "missed                 0.00    0.00   0.00         1",
        "invented               0.00       —   0.00         0",
        "absent                    —       —      —         0",
        "micro average         50.00   50.00  50.00         6",
        "macro average         25.00   30.00  22.22         6",
        "weighted average      62.50   50.00  55.56         6",
    ]
    assert "<td" in report._repr_html_()


def test_it_is_data(report: ClassReport) -> None:
    facts = json.loads(json.dumps(report.to_json()))
    assert facts["unit"] == "entities"
    assert facts["classes"][0] == {
        "label": "found",
        "precision": 75,
        "recall": 60,
        "f1": report.classes[0].f1,
        "support": 5,
    }
    assert facts["averages"]["micro"] == {"precision": 50, "recall": 50, "f1": 50, "support": 6}
    assert [one["label"] for one in report.records()] == ["found", "missed", "invented", "absent"]


def test_of_nothing_there_is_no_average() -> None:
    none = np.zeros(1, np.int64)
    report = class_report(["a"], n_correct=none, n_predicted=none, n_gold=none, unit="words")
    assert all(math.isnan(one.f1) for one in report.averages)
