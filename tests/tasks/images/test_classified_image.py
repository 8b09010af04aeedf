"""What is said of an image: its class, as lines, cells and JSON; or why it could not be read."""

import numpy as np
import pytest

from regard.tasks.images.classified_image import ClassifiedImage, classify


def test_how_a_prediction_is_shown() -> None:
    probabilities = {"cat": 0.75, "dog": 0.25}
    one = ClassifiedImage(image="a\tb.png", label="cat", probability=0.75, probabilities=probabilities)
    assert one.lines() == ["a b.png\tcat\t0.7500"]
    assert one.lines(top=2) == ["a b.png\tcat\t0.7500\tdog\t0.2500"]
    assert list(one.cells()) == ["image", "prediction", "probability"]
    assert one.to_json() == {
        "image": "a\tb.png",
        "label": "cat",
        "probability": 0.75,
        "probabilities": probabilities,
    }
    assert list(one.to_json(top=1)["probabilities"]) == ["cat"]


def test_the_likeliest_class_comes_first() -> None:
    found = classify("x.png", np.log(np.array([0.25, 0.75], np.float32)), ["cat", "dog"])
    assert (found.image, found.label, list(found.probabilities)) == ("x.png", "dog", ["dog", "cat"])
    assert found.probability == found.probabilities["dog"] == pytest.approx(0.75)


def test_an_image_that_could_not_be_read() -> None:
    bad = ClassifiedImage(image="x.png", problem="x.png: no image.")
    assert (bad.lines(), bad.label) == ([], "")
    assert bad.cells() == bad.to_json() == {"image": "x.png", "problem": "x.png: no image."}
