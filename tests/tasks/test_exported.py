"""What stands beside the network of a run that is exported."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.tasks.exported import TaskParts, parts_of


def parts(path: Path) -> tuple[Any, TaskParts]:
    run = regard.load(path, device="cpu", threads=1)
    return run, parts_of(run.task, run.model.state_dict())


def test_text_has_a_tokenizer_for_each_side(trained: Path, mask_run: Path) -> None:
    run, found = parts(trained)
    assert (found.source, found.target) == (run.task.vocabulary.source, run.task.vocabulary.target)
    assert (found.labels, found.images) == ((), None)
    run, found = parts(mask_run)
    assert found.source is found.target is run.task.tokenizer


def test_labels_come_along(classify_run: Path, tag_run: Path, vectors_run: Path) -> None:
    assert parts(classify_run)[1].labels == ("neg", "pos")
    assert parts(tag_run)[1].labels == ("B-LOC", "B-PER", "I-PER", "O")
    _, found = parts(vectors_run)
    assert (found.labels, found.source, found.target) == (("down", "up"), None, None)


def test_images_come_with_how_they_are_read(image_run: Path, caption_run: Path) -> None:
    run, found = parts(image_run)
    assert found.images is run.task.table
    assert (found.labels, found.source) == (("lying", "none", "standing"), None)
    run, found = parts(caption_run)
    assert found.images is run.task.table
    assert (found.labels, found.target) == ((), run.task.tokenizer)


def test_numbers_are_those_of_the_data(regress_run: Path) -> None:
    run, found = parts(regress_run)
    assert run.task.table.scale not in (0.0, 1.0)
    ids = torch.tensor([[run.task.tokenizer.start_id, *run.task.tokenizer.encode("AAC"), run.task.tokenizer.end_id]])
    expected = run.predict("AAC").value
    run.model.load_state_dict(found.weights)
    with torch.inference_mode():
        assert run.model(ids, torch.tensor([ids.shape[1]])).item() == pytest.approx(expected, abs=1e-5)


def test_other_weights_are_left_alone(classify_run: Path) -> None:
    run, found = parts(classify_run)
    weights = run.model.state_dict()
    assert found.weights.keys() == weights.keys()
    assert all(torch.equal(found.weights[name], weight) for name, weight in weights.items())
