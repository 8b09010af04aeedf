import errno
import json
import os
import shutil
from itertools import accumulate
from pathlib import Path

import pytest

from regard.errors import RunError, TrainingError
from regard.runs import metrics
from regard.runs.folder import RunFolder
from regard.runs.metrics import Metrics


def test_records_come_back_in_order_as_valid_json(run: RunFolder) -> None:
    assert metrics.read(run) == []
    with Metrics(run) as writer:
        writer.append({"kind": "train", "step": 1, "loss": 0.1 + 0.2})
        # A second reader sees the record at once.
        assert metrics.read(run) == [{"kind": "train", "step": 1, "loss": 0.1 + 0.2}]
        writer.append({"kind": "train", "step": 2, "loss": float("nan"), "sample": "grün\u2028weiß\nblau"})
        writer.sync()
    assert metrics.read(run)[1] == {"kind": "train", "step": 2, "loss": None, "sample": "grün\u2028weiß\nblau"}
    assert "NaN" not in run.metrics_file.read_text()


def test_sync_waits_for_the_disk(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Metrics(run) as writer:
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        writer.append({"step": 1})
        assert synced == []
        writer.sync()
        assert synced == [writer.file.fileno()]


@pytest.mark.parametrize("torn", [b'{"kind": "train", "step": 2, "lo', b'{"kind": "train", "step": 2}', b"\0\0\0\0"])
def test_a_torn_last_line_is_not_read_and_not_appended_to(run: RunFolder, torn: bytes) -> None:
    first = b'{"kind": "train", "step": 1}\n'
    run.metrics_file.write_bytes(first + torn)
    assert metrics.read(run) == [{"kind": "train", "step": 1}]
    with Metrics(run) as writer:
        writer.append({"kind": "train", "step": 2, "loss": 1.0})
    assert run.metrics_file.read_bytes() == first + b'{"kind": "train", "step": 2, "loss": 1.0}\n'


def line(kind: str, step: int) -> bytes:
    return f'{{"kind":  "{kind}", "step": {step}, "loss": 1.50}}\n'.encode()


def test_cutting_drops_what_came_after_the_step(run: RunFolder) -> None:
    kept = line("train", 1) + line("train", 2) + line("valid", 2) + line("average", 2)
    run.metrics_file.write_bytes(kept + line("train", 3) + line("train", 4) + b'{"kind": "train", "step": 5, "lo')
    metrics.truncate(run, step=2, validated=True)
    assert run.metrics_file.read_bytes() == kept
    metrics.truncate(run, step=0, validated=True)
    assert metrics.read(run) == []


def test_the_norms_of_an_update_stay_and_go_with_it(run: RunFolder) -> None:
    kept = line("train", 1) + line("gradients", 1) + line("train", 2) + line("gradients", 2)
    run.metrics_file.write_bytes(kept + line("valid", 2) + line("train", 3) + line("gradients", 3))
    metrics.truncate(run, step=2, validated=False)
    assert run.metrics_file.read_bytes() == kept


def test_cutting_drops_a_validation_that_comes_again(run: RunFolder) -> None:
    run.metrics_file.write_bytes(line("valid", 1) + line("train", 2) + line("valid", 2))
    metrics.truncate(run, step=2, validated=False)
    assert run.metrics_file.read_bytes() == line("valid", 1) + line("train", 2)


def test_cutting_where_nothing_was_written(run: RunFolder) -> None:
    metrics.truncate(run, step=2, validated=True)
    assert not run.metrics_file.exists()


@pytest.mark.parametrize(
    "content", [b"", b"a", b"\n", b"a\n", b"\n\na", b"12345678\n123\n\n1234567\nabc", b"0123\n" * 9]
)
@pytest.mark.parametrize("block", [1, 3, 5, 1000])
def test_lines_from_the_end_are_those_from_the_beginning(
    tmp_path: Path, content: bytes, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "BLOCK", block)
    (tmp_path / "lines").write_bytes(content)
    lines = list(metrics.whole_lines(tmp_path / "lines"))
    ends = list(accumulate(map(len, lines)))
    assert list(metrics.lines_from_end(tmp_path / "lines")) == list(zip(ends, lines, strict=True))[::-1]
    assert list(metrics.lines_from_end(tmp_path / "none")) == []


def test_the_end_of_a_long_file_is_all_that_is_read_of_it(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "BLOCK", 100)
    run.metrics_file.write_bytes(b"not read\n" * 1000 + line("train", 7) + line("train", 8) + line("valid", 8))
    assert metrics.newest(run) == {"kind": "valid", "step": 8, "loss": 1.5}
    metrics.truncate(run, step=7, validated=True)
    assert run.metrics_file.read_bytes() == b"not read\n" * 1000 + line("train", 7)
    with pytest.raises(RunError, match=r"metrics\.jsonl:1000: expected a JSON object"):
        metrics.truncate(run, step=6, validated=True)


def test_of_very_many_records_some_are_read(run: RunFolder) -> None:
    with Metrics(run) as writer:
        for step in range(1, 11):
            writer.append({"kind": "train", "step": step})
            if step % 5 == 0:
                writer.append({"kind": "valid", "step": step})
    records, stride = metrics.read_some(run, most=4)
    assert [(one["kind"], one["step"]) for one in records] == [
        *(("train", step) for step in (1, 4)),
        ("valid", 5),
        *(("train", step) for step in (7, 10)),
        ("valid", 10),
    ]
    assert stride == 3
    assert metrics.read_some(run, most=10) == (metrics.read(run), 1)


@pytest.mark.parametrize(
    "damaged", ["[1, 2]", "{'step': 2}", "\udcff", '{"step": 2}', '{"kind": "train", "step": "2"}']
)
def test_a_damaged_line_in_the_middle_is_named(run: RunFolder, damaged: str) -> None:
    content = line("train", 1) + damaged.encode(errors="surrogateescape") + b"\n" + line("train", 3)
    run.metrics_file.write_bytes(content)
    with pytest.raises(RunError) as caught:
        metrics.read(run)
    assert caught.value.problem == (f"{run.metrics_file}:2: expected a JSON object with kind and step.")
    assert caught.value.remedy == "Delete that line."


class NarrowFile:
    """A file that takes three bytes a call, and no more than ten."""

    def __init__(self) -> None:
        self.content = b""

    def write(self, data: memoryview) -> int:
        if len(self.content) > 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.content += bytes(data[:3])
        return min(3, len(data))


def test_short_writes_go_on_and_a_full_disk_is_told(run: RunFolder) -> None:
    with Metrics(run) as writer:
        real, narrow = writer.file, NarrowFile()
        writer.file = narrow  # type: ignore[assignment]
        try:
            writer.append({"a": 1})
            assert json.loads(narrow.content) == {"a": 1}
            with pytest.raises(TrainingError, match="The disk is full: 1 MB needed"):
                writer.append({"a": 2})
        finally:
            writer.file = real


def test_metrics_that_are_a_link_are_not_written_to(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious\nwords")
    run.metrics_file.symlink_to(tmp_path / "victim")
    with pytest.raises(TrainingError, match="it is a link, not a file"):
        Metrics(run)
    with pytest.raises(RunError) as caught:
        metrics.read(run)
    assert caught.value.problem == f"{run.metrics_file} cannot be read: it is a link, not a file."
    assert (tmp_path / "victim").read_text() == "precious\nwords"


def test_a_line_without_an_end_takes_no_memory(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "LONGEST_LINE", 1000)
    run.metrics_file.write_bytes(line("train", 1) + b" " * 999)
    assert len(metrics.read(run)) == 1
    run.metrics_file.write_bytes(line("train", 1) + b" " * 1000 + line("train", 2))
    with pytest.raises(RunError, match=r"has a line of more than 0 MB"):
        metrics.read(run)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ('{"kind": "train", "step": 1, "loss": "x"}', "loss"),
        ('{"kind": "train", "step": 1, "loss": {"a": 1}}', "loss"),
        ('{"kind": "train", "step": 1, "loss": Infinity}', "loss"),
        ('{"kind": "train", "step": 1, "learning_rate": [1]}', "learning_rate"),
        ('{"kind": "average", "step": 1, "bleu": [1]}', "bleu"),
        ('{"kind": "gradients", "step": 1, "norms": [1]}', "norms"),
        ('{"kind": "gradients", "step": 1, "norms": {"a": "x"}}', "norms"),
    ],
)
def test_what_is_drawn_must_be_numbers(run: RunFolder, record: str, name: str) -> None:
    run.metrics_file.write_text(f"{record}\n")
    with pytest.raises(RunError) as caught:
        metrics.read(run)
    assert caught.value.problem == f"{run.metrics_file}:1: {name} is not a number."


@pytest.mark.parametrize("step", ["-1", "true", "1.5", '"1"', "9" * 400, "9" * 5_000, "[" * 100_000])
def test_a_step_that_is_none(run: RunFolder, step: str) -> None:
    run.metrics_file.write_text(f'{{"kind": "train", "step": {step}}}\n')
    with pytest.raises(RunError, match="expected a JSON object with kind and step"):
        metrics.read(run)


@pytest.mark.parametrize("fate", ["moved", "deleted", "replaced"])
def test_a_run_that_is_moved_or_deleted_meanwhile(run: RunFolder, tmp_path: Path, fate: str) -> None:
    with Metrics(run) as writer:
        writer.append({"kind": "train", "step": 1})
        writer.sync()
        if fate == "deleted":
            shutil.rmtree(run.path)
        else:
            run.path.rename(tmp_path / "elsewhere")
        if fate == "replaced":
            shutil.copytree(tmp_path / "elsewhere", run.path)
        writer.append({"kind": "train", "step": 2})
        with pytest.raises(TrainingError) as caught:
            writer.sync()
    assert caught.value.problem == f"{run} was moved or deleted while it was being trained."
    assert caught.value.remedy == "If it was moved, go on from its last checkpoint: regard resume NEW_FOLDER"
