"""What a run's labels are: kept beside its vocabulary, told in the report."""

import json
import math
import re
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.tasks.labelling.labels import LabelTable

TABLE = LabelTable(labels=("bad", "good"), counts=(442, 558))


def test_labels_come_back_as_they_were_saved(tmp_path: Path) -> None:
    TABLE.save(tmp_path, task="classify")
    assert LabelTable.load(tmp_path, task="classify") == TABLE
    assert LabelTable.find(tmp_path, task="classify") == TABLE
    numbers = LabelTable(offset=0.1 + 0.2, scale=1 / 3, n_features=4, pairs=True)
    numbers.save(tmp_path, task="regress")
    assert LabelTable.load(tmp_path, task="regress") == numbers
    assert (TABLE.n_outputs, numbers.n_outputs) == (2, 1)


def test_the_scale_of_an_older_run_goes_by_the_names_of_regression(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(
        '{"task": "regress", "labels": [], "counts": [], "mean": 2.5, "deviation": 0.5, "n_features": 0, "pairs": false}'
    )
    found = LabelTable.load(tmp_path, task="regress")
    assert (found.offset, found.scale) == (2.5, 0.5)


def test_a_run_of_another_task_has_no_labels(tmp_path: Path) -> None:
    file = re.escape(str(tmp_path / "labels.json"))
    with pytest.raises(
        DataError, match=rf"^{file}: there is no such file; a run of the task tag has one\.\nName a run"
    ):
        LabelTable.load(tmp_path, task="tag")
    assert LabelTable.find(tmp_path, task="tag") is None
    TABLE.save(tmp_path, task="classify")
    with pytest.raises(
        DataError, match=rf"^{file}: it is of the task classify, not of tag\.\nName a run of the task tag\."
    ):
        LabelTable.load(tmp_path, task="tag")
    assert LabelTable.find(tmp_path, task="tag") is None


@pytest.mark.parametrize(
    "content",
    [
        *("no JSON", "[]", "3", "[" * 100_000, '{"task": "tag", "labels": 3}', '{"task": "tag", "labels": ["a"]}'),
        *(
            json.dumps({"task": "tag", **vars(TABLE), **change})
            for change in ({"counts": [1]}, {"counts": ["x", "y"]}, {"offset": math.nan}, {"scale": 10**400})
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(DataError, match=r"labels\.json: not the labels of a run: .*\nPut back the file"):
        LabelTable.load(tmp_path, task="tag")


def test_the_report_tells_how_often_each_class_occurs() -> None:
    assert TABLE.facts("class") == [
        ("classes", "2: good 558 (55.8 %), bad 442 (44.2 %)"),
        ("largest class", "good, 55.8 %: a constant answer has that accuracy"),
    ]


def test_of_many_tags_the_report_shows_the_first_and_the_last() -> None:
    table = LabelTable(labels=tuple("abcdefghijk"), counts=(50, 40, 2, 1, 1, 1, 1, 1, 1, 1, 1))
    [(name, text), _] = table.facts("tag")
    assert name == "tags"
    assert text == (
        "11: a 50 (50.0 %), b 40 (40.0 %), c 2 (2.0 %), d 1 (1.0 %), e 1 (1.0 %), f 1 (1.0 %), 4 more, and last k 1 (1.0 %)"
    )
