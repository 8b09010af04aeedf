"""The confusion matrix as a picture."""

from pathlib import Path

import numpy as np
import pytest

from regard.errors import UsageError
from regard.evaluation.confusion_matrix import ConfusionMatrix, confusion_matrix
from regard.inspection.confusion_picture import confusion_picture
from regard.inspection.render import save

MATRIX = ConfusionMatrix(labels=("cat", "$dog", "owl"), counts=((90, 10, 0), (1, 1_999, 0), (0, 0, 0)))


def texts(labels):
    return [label.get_text() for label in labels]


def test_it_has_labels_counts_and_shares_of_rows(tmp_path: Path) -> None:
    figure = confusion_picture(MATRIX, title="runs/pets, $test")
    axes, legend = figure.axes
    assert texts(axes.get_xticklabels()) == texts(axes.get_yticklabels()) == list(MATRIX.labels)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "expected")
    assert axes.get_title(loc="left") == "runs/pets, $test"
    assert {text.get_position(): text.get_text() for text in axes.texts} == {
        (0, 0): "90",
        (1, 0): "10",
        (0, 1): "1",
        (1, 1): "1,999",
    }
    shown = axes.images[0].get_array()
    np.testing.assert_allclose(shown[:2], MATRIX.shares()[:2])
    assert shown.mask[2].all()  # no owl was expected: hatched
    assert legend.get_ylabel() == "share of the expected class"
    assert save(figure, tmp_path / "x.png").stat().st_size > 1000


def test_mistakes_of_a_few_percent_are_seen() -> None:
    image = confusion_picture(MATRIX).axes[0].images[0]
    assert image.norm(0.04) == pytest.approx(0.2)
    assert (image.norm(0.0), image.norm(1.0)) == (0, 1)


@pytest.mark.parametrize("n_classes", [1, 2, 26, 100, 1000])
def test_any_number_of_classes_fits(n_classes: int, tmp_path: Path) -> None:
    classes = np.arange(n_classes)
    figure = confusion_picture(confusion_matrix(classes, classes, [f"class {number}" for number in classes]))
    assert max(figure.get_size_inches()) < 30
    assert bool(figure.axes[0].texts) == (n_classes <= 25)
    if n_classes == 100:
        assert len(figure.axes[0].get_yticklabels()) == 100
        assert save(figure, tmp_path / "x.svg").stat().st_size > 1000


def test_there_must_be_a_class() -> None:
    with pytest.raises(UsageError) as caught:
        confusion_picture(ConfusionMatrix(labels=(), counts=()))
    assert str(caught.value) == "There are no classes to draw.\nGive a confusion matrix of at least one class."
