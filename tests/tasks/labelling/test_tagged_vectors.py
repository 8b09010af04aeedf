"""Tagging of vectors: a tag for each frame of a sequence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.config import from_tables, override
from regard.errors import DataError, UsageError
from regard.tasks.labelling.examples import VectorSequences
from regard.tasks.labelling.tagging import TaggingTask

# A network so small that it learns in a second; the second half of its states is read from the end.
SETTINGS: dict[str, Any] = {
    "model.preset": "birnn",
    "model.n_layers": 1,
    "model.d_model": 8,
    "model.d_state": 16,
    "model.dropout": 0.0,
    "data.valid_size": 10,
    "data.max_length": 30,
    "training.batch_tokens": 200,
    "training.learning_rate": 0.05,
    "training.warmup": 10,
    "training.steps": 80,
    "runtime.device": "cpu",
    "runtime.threads": 1,
}


def recordings(count: int, *, seed: int, longest: int = 24) -> list[tuple[Any, list[str]]]:
    """A machine works from one pulse to the next, and rests in between: a frame without a pulse looks the same in both."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        length = int(random.integers(longest // 2, longest))
        works, pulses = random.random() < 0.5, random.random(length) < 0.15
        frames, tags = random.normal(0, 0.2, (length, 2)), []
        for place, pulse in enumerate(pulses):
            frames[place, 0] += pulse * (-1 if works else 1)
            works = bool(works ^ pulse)
            tags.append("work" if works else "rest")
        found.append((frames.astype(np.float32), tags))
    return found


def write_npz(path: Path, sequences: list[tuple[Any, list[str]]]) -> str:
    arrays = {f"r{number}": frames for number, (frames, _) in enumerate(sequences)}
    np.savez(path, **arrays, labels=np.array([tag for _, tags in sequences for tag in tags]))
    return str(path)


def write_csv(path: Path, sequences: list[tuple[Any, list[str]]]) -> str:
    lines = ["recording,x,y,tag"]
    for number, (frames, tags) in enumerate(sequences):
        lines += [f"r{number},{x},{y},{tag}" for (x, y), tag in zip(frames.tolist(), tags, strict=True)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tagged")
    train = write_npz(folder / "train.npz", recordings(120, seed=1))
    regard.train("tag", train=[train], run=folder / "run", settings=SETTINGS)
    return regard.load(folder / "run", threads=1)


def test_it_learns_what_no_majority_and_no_single_frame_tells(run: Any, tmp_path: Path) -> None:
    test = recordings(40, seed=2)
    found = run.evaluate([write_npz(tmp_path / "test.npz", test)])
    tags = np.array([tag for _, own in test for tag in own])
    majority = max((tags == tag).mean() for tag in ("work", "rest"))
    assert 100 * majority < 62
    assert found["accuracy"] > 85
    assert found.unit == "sequences"
    assert [score.signature for score in found.scores] == ["unit:vector", f"vectors:{len(tags)}"]
    assert found.output[0].split("\t")[:2] == ["0", test[0][1][0]]


def test_a_csv_is_scored_as_the_npz_of_the_same(run: Any, tmp_path: Path) -> None:
    test = recordings(6, seed=3)
    npz = run.evaluate([write_npz(tmp_path / "a.npz", test)])
    csv = run.evaluate([write_csv(tmp_path / "a.csv", test)], text="recording", label="tag")
    assert csv["loss"] == pytest.approx(npz["loss"], abs=1e-5)


def test_arrays_from_python(run: Any) -> None:
    [(frames, tags), (other, _)] = recordings(2, seed=4)
    one = run.predict(frames)
    assert len(one.tags) == len(tags) == len(one.probabilities)
    assert one.lines()[1] == f"1\t{one.tags[1]}"
    assert set(one.to_json()) == {"tags", "probabilities", "parts"}
    assert one.cells() == {"tags": " ".join(one.tags)}
    assert [len(found.tags) for found in run.predict([frames, other])] == [len(frames), len(other)]
    with pytest.raises(UsageError, match="the run was trained on sequences of vectors of 2 features"):
        run.predict("a text")


def test_a_long_sequence_is_read_in_parts(run: Any, tmp_path: Path) -> None:
    [(frames, tags)] = recordings(1, seed=5, longest=150)
    one = run.predict(frames)
    assert len(one.tags) == len(frames)
    n_parts = -(-len(frames) // 30)
    assert (one.n_segments, one.truncation) == (n_parts, "read in parts")
    segments = VectorSequences([frames], 2).segments(0, 30)
    parts = run.predict([frames[segment] for segment in segments])
    assert one.tags == tuple(tag for part in parts for tag in part.tags)
    found = run.evaluate([write_npz(tmp_path / "long.npz", [(frames, tags)])])
    assert found.count == 1
    assert len(found.predictions[0].tags) == len(tags)


def test_what_is_wrong_is_told_with_file_and_line(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("recording,x,y,tag\na,0,0,rest\na,0,0,sleep\n")
    with pytest.raises(DataError) as caught:
        run.evaluate([str(file)], text="recording", label="tag")
    assert (
        str(caught.value) == f"{file}:3: the tag 'sleep' is none of the 2 that the model knows.\nAvailable: rest, work."
    )
    same = write_npz(tmp_path / "same.npz", [(np.zeros((3, 2), np.float32), ["a"] * 3)] * 30)
    with pytest.raises(DataError, match="all vectors have the tag 'a'"):
        regard.train("tag", train=[same], run=tmp_path / "run", settings=SETTINGS)


def test_what_is_cut_for_training_is_told(tmp_path: Path) -> None:
    train = write_npz(tmp_path / "train.npz", recordings(60, seed=6))
    settings = {**SETTINGS, "data.max_length": 20, "training.steps": 1}
    config = override(from_tables({"task": "tag", "data": {"train": [train]}}, origin="test"), settings)
    told = dict(TaggingTask.prepare(config, vocabulary=None, progress=lambda what, done: None).facts)
    assert "longer than 20 vectors" in told["cut"]
    assert told["cut"].endswith("vectors have no tag")
    assert told["features"] == "2 a vector"
