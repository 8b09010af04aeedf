import contextlib
import errno
import json
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import regard
from regard.errors import CheckpointError, TrainingError
from regard.runs import checkpoints, selection, tensors
from regard.runs.checkpoints import Checkpoint
from regard.runs.disk import TEMPORARY
from regard.runs.folder import Reference, RunFolder
from regard.runs.names import find

Save = Callable[..., Checkpoint]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_comes_back(run: RunFolder) -> None:
    state = {"step": 400, "validation": {"loss": 1.25}, "best": {"step": 400, "loss": 1.25}}
    written = checkpoints.write(
        run,
        step=400,
        model={"weight": torch.arange(3.0)},
        optimizer={"mean": torch.ones(3)},
        ema={"weight": torch.full((3,), 0.5)},
        state=state,
        facts={"threads": 2, "data": "ab12"},
    )
    assert written.path == run.checkpoints / "step-00000400"
    files = ["ema.safetensors", "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"]
    assert names(written.path) == files
    read = checkpoints.verify(written.path)
    assert read == written
    assert read.step == 400
    assert read.facts == {"threads": 2, "data": "ab12"}
    versions = {"regard": regard.__version__, "torch": torch.__version__, "python": platform.python_version()}
    assert read.manifest.versions == versions
    assert checkpoints.load_weights(read)["weight"].tolist() == [0, 1, 2]
    assert checkpoints.load_weights(read, which="ema")["weight"].tolist() == [0.5, 0.5, 0.5]
    assert checkpoints.load_optimizer(read)["mean"].tolist() == [1, 1, 1]
    assert checkpoints.load_state(read) == state


def test_an_average_holds_weights_only(run: RunFolder) -> None:
    written = checkpoints.write(run, step=400, model={"weight": torch.ones(1)}, facts={}, kind="average")
    assert written.path.name == "average-00000400"
    assert names(written.path) == ["manifest.json", "model.safetensors"]
    assert list(find(run, kind="average")) == [400]
    assert find(run) == {}


def test_what_a_checkpoint_lacks_is_named(run: RunFolder) -> None:
    bare = checkpoints.write(run, step=4, model={"weight": torch.ones(1)}, facts={})
    for load, what in [
        (
            lambda: checkpoints.load_weights(bare, which="ema"),
            "an EMA of the weights: it has no ema.safetensors",
        ),
        (lambda: checkpoints.load_optimizer(bare), "the optimizer's state: it has no optimizer.safetensors"),
        (lambda: checkpoints.load_state(bare), "the training state: it has no state.json"),
    ]:
        with pytest.raises(CheckpointError) as caught:
            load()
        assert caught.value.problem == f"{bare.path} does not contain {what}."
        assert caught.value.remedy == "Choose a checkpoint that has it, by its step."


def test_steps_are_found_in_order_and_other_names_are_not(run: RunFolder, save: Save) -> None:
    for step in (100, 20, 123_456_789):
        save(step)
    for stranger in (".tmp-new-step-00000007-1", "step-7", "step-00000008.bak", "notes"):
        (run.checkpoints / stranger).mkdir()
    (run.checkpoints / "step-00000009").touch()
    assert list(find(run)) == [20, 100, 123_456_789]


def test_flipped_bytes_are_found(save: Save) -> None:
    path = save(400).path
    file = path / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        checkpoints.verify(path)
    expected = json.loads((path / "manifest.json").read_bytes())["files"]["model.safetensors"]["sha256"]
    assert caught.value.problem == (
        f"The checkpoint is damaged: the bytes of {file} have changed "
        f"(sha256 {checkpoints.sha256(file)[:8]}…, not {expected[:8]}…)."
    )
    assert caught.value.remedy == f"Use another: {path.parent.parent}@last is the newest intact one."


def test_a_file_that_is_cut_short_is_found(save: Save) -> None:
    path = save(400).path
    file = path / "optimizer.safetensors"
    size = file.stat().st_size
    os.truncate(file, 10)
    with pytest.raises(CheckpointError) as caught:
        checkpoints.verify(path)
    assert caught.value.problem == f"The checkpoint is damaged: {file} has 10 bytes, {size} were written."


@pytest.mark.parametrize("name", ["state.json", "manifest.json"])
def test_a_missing_file_is_found(save: Save, name: str) -> None:
    path = save(400).path
    (path / name).unlink()
    with pytest.raises(CheckpointError) as caught:
        checkpoints.verify(path)
    assert caught.value.problem == (
        f"The checkpoint is damaged: {path / name} cannot be read (No such file or directory)."
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "step"}', "\0\0", "7"])
def test_a_manifest_that_is_none(save: Save, text: str) -> None:
    path = save(400).path
    (path / "manifest.json").write_text(text)
    with pytest.raises(CheckpointError) as caught:
        checkpoints.verify(path)
    assert caught.value.problem.startswith(f"The checkpoint is damaged: {path}/manifest.json is not a manifest")


@pytest.mark.parametrize(
    "change",
    [{"step": 300}, {"kind": "average"}, {"files": {}}, {"files": {"model.safetensors": {"size": 1}}}],
)
def test_a_manifest_of_something_else(save: Save, change: dict[str, Any]) -> None:
    path = save(400).path
    manifest = json.loads((path / "manifest.json").read_bytes())
    (path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(CheckpointError) as caught:
        checkpoints.verify(path)
    assert caught.value.problem == (
        f"The checkpoint is damaged: {path}/manifest.json is not the manifest of step-00000400."
    )


@pytest.mark.parametrize("group", ["model", "ema"])
def test_weights_that_are_not_finite_are_never_written(run: RunFolder, save: Save, group: str) -> None:
    save(100)
    weights = {"model": {"a": torch.ones(1)}, "ema": {"a": torch.ones(1)}}
    weights[group] = {"a": torch.tensor([float("nan")])}
    with pytest.raises(TrainingError, match="Not saving: a contains NaN or Inf"):
        checkpoints.write(run, step=200, facts={}, **weights)
    assert names(run.checkpoints) == ["step-00000100"]


def test_no_file_is_begun_where_the_disk_has_no_room(
    run: RunFolder, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=47))
    monkeypatch.setattr(tensors, "save", lambda *_: pytest.fail("a file was begun"))
    with pytest.raises(TrainingError) as caught:
        save(200)
    assert caught.value.problem == f"The disk is full: 1 MB needed, 0 MB free in {run.path}."
    assert names(run.checkpoints) == ["step-00000100"]


def test_a_disk_that_fills_up_in_the_middle_leaves_the_earlier_checkpoints(
    run: RunFolder, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(100)
    real = tensors.save

    def fail_on_the_second_file(path: Path, group: dict[str, torch.Tensor]) -> None:
        if path.name == "optimizer.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, group)

    monkeypatch.setattr(tensors, "save", fail_on_the_second_file)
    with pytest.raises(TrainingError, match="The disk is full: 1 MB needed"):
        save(200)
    assert names(run.checkpoints) == ["step-00000100"]
    assert selection.newest_intact(run)[0].step == 100


class Cut(BaseException):
    """Stands for the end of the process: no handler of errors may swallow it."""


def fail_at(monkeypatch: pytest.MonkeyPatch, count: int, error: BaseException) -> list[str]:
    """Make the `count`-th call that touches names or the disk raise; return the list that the calls are noted in."""
    calls: list[str] = []

    def wrap(module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            if len(calls) == count:
                raise error
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, call)

    for name in ("rename", "fsync", "mkdir", "open"):
        wrap(os, name)
    wrap(tensors, "save_file")
    real_rmtree = shutil.rmtree

    def rmtree(*arguments: Any, **options: Any) -> None:
        # A killed process does not tidy up behind itself.
        if not (isinstance(error, Cut) and len(calls) >= count):
            real_rmtree(*arguments, **options)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    return calls


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), Cut()], ids=["error", "cut"])
@pytest.mark.parametrize("replaced", [False, True], ids=["new", "replaced"])
def test_a_fault_at_any_stage_leaves_a_loadable_run(
    run: RunFolder, save: Save, monkeypatch: pytest.MonkeyPatch, error: BaseException, replaced: bool
) -> None:
    """Each call that a write makes fails once; also where the only checkpoint of the run is the one being replaced."""
    save(100)
    step = 100 if replaced else 200
    count = 0
    while True:
        count += 1
        with monkeypatch.context() as patch:
            calls = fail_at(patch, count, error)
            with contextlib.suppress(TrainingError, Cut):
                save(step)
        checkpoint, notes = selection.newest_intact(run)
        assert notes == []
        assert checkpoint.step in (100, step)
        assert checkpoints.load_weights(checkpoint)["layer.weight"][0, 0] == checkpoint.step
        if len(calls) < count:
            break
        if step == 200 and checkpoint.step == 200:
            shutil.rmtree(checkpoint.path)
    # The last round had no fault: all stages were seen, and nothing was left behind.
    assert count > 10
    assert {"rename", "fsync", "mkdir", "open", "save_file"} <= set(calls)
    save(300)
    assert names(run.checkpoints) == [f"step-{left:08d}" for left in sorted({100, step, 300})]


def test_a_checkpoint_that_stands_aside_counts_until_it_is_replaced(run: RunFolder, save: Save) -> None:
    path = save(100, loss=0.5).path
    path.rename(path.with_name("step-00000100.old"))
    checkpoint, _ = selection.newest_intact(run)
    assert (checkpoint.step, checkpoint.path.name) == (100, "step-00000100.old")
    save(200)
    assert names(run.checkpoints) == ["step-00000100.old", "step-00000200"]
    save(100, loss=0.25)
    assert names(run.checkpoints) == ["step-00000100", "step-00000200"]
    assert checkpoints.load_state(selection.newest_intact(run)[0]) == {"validation": None, "best_by": "loss"}
    assert selection.validation_rank(path) == (0, -0.25, -0.25)


def test_what_a_killed_process_left_is_removed_by_the_next_write(run: RunFolder, save: Save) -> None:
    path = save(100).path
    shutil.copytree(path, run.checkpoints / "step-00000100.old")
    shutil.copytree(path, run.checkpoints / f"{TEMPORARY}new-step-00000200-1")
    run.vocabulary.mkdir()
    for folder in (run.path, run.vocabulary):
        (folder / f"{TEMPORARY}new-task.json-1").touch()
    assert find(run) == {100: path}
    save(300)
    assert names(run.checkpoints) == ["step-00000100", "step-00000300"]
    assert not list(run.path.rglob(".tmp-*"))


def test_the_manifest_is_the_last_file_and_everything_is_on_the_disk_before_the_name(
    run: RunFolder, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    opened: dict[int, str] = {}
    real_open, real_fsync, real_rename = os.open, os.fsync, os.rename

    def open_file(path: Path, *options: int) -> int:
        descriptor = real_open(path, *options)
        opened[descriptor] = Path(path).name
        return descriptor

    def fsync(descriptor: int) -> None:
        events.append(opened[descriptor])
        real_fsync(descriptor)

    def rename(source: Path, target: Path) -> None:
        events.append(f"rename to {Path(target).name}")
        real_rename(source, target)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    save(100)
    assert events == [
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
        "manifest.json",
        f".tmp-new-step-00000100-{os.getpid()}",
        "rename to step-00000100",
        "checkpoints",
    ]


def seal(path: Path) -> None:
    """Write the manifest of a checkpoint anew, as if its files were what was written."""
    file = path / "manifest.json"
    manifest = json.loads(file.read_bytes())
    for name in manifest["files"]:
        size = (path / name).stat().st_size
        manifest["files"][name] = {"size": size, "sha256": checkpoints.sha256(path / name)}
    file.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change",
    [
        {"step": True},
        {"step": 400.0},
        {"step": "400"},
        {"kind": ["step"]},
        {"facts": 3},
        {"versions": []},
        {"files": ["model.safetensors"]},
        {"files": "model.safetensors"},
        *(
            {"files": {"model.safetensors": {"size": 1, "sha256": ""}, name: {"size": 0, "sha256": ""}}}
            for name in ("/dev/zero", "../../config.toml", "a\0b", "a\ud800b", "notes.txt")
        ),
        *(
            {"files": {"model.safetensors": entry}}
            for entry in (3, {"size": "1", "sha256": ""}, {"size": 1, "sha256": 5}, {"size": -1, "sha256": ""})
        ),
        {"files": {"model.safetensors": {"size": 9, "sha256": ""}, "ema.safetensors": {"size": 10**12, "sha256": ""}}},
    ],
)
def test_a_manifest_of_anothers_making(save: Save, change: dict[str, Any]) -> None:
    path = save(400).path
    manifest = json.loads((path / "manifest.json").read_bytes())
    (path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(CheckpointError) as caught:
        checkpoints.verify(path)
    assert caught.value.problem == (
        f"The checkpoint is damaged: {path}/manifest.json is not the manifest of step-00000400."
    )


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "model.safetensors"])
def test_only_regular_files_are_read(save: Save, tmp_path: Path, name: str) -> None:
    path = save(400).path
    (tmp_path / "outside").write_bytes((path / name).read_bytes())
    (path / name).unlink()
    (path / name).symlink_to(tmp_path / "outside")
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read \(it is a link, not a file\)"):
        checkpoints.verify(path)
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read \(it is a pipe, not a file\)"):
        checkpoints.verify(path)


@pytest.mark.parametrize(
    "state",
    [
        *("3", "[]", "null", '"x"', "{", "[" * 100_000, "9" * 5_000),
        *('{"validation": [1]}', '{"validation": 3}', '{"validation": {"loss": "x"}}', '{"best_by": ["loss"]}'),
    ],
)
def test_a_state_that_is_none_is_damage(run: RunFolder, save: Save, state: str) -> None:
    save(300, 2.0)
    path = save(400, 1.0).path
    (path / "state.json").write_text(state)
    seal(path)
    with pytest.raises(CheckpointError, match=r"state\.json is not a training state"):
        checkpoints.verify(path)
    for word in ("", "@last", "@best"):
        checkpoint, (note,) = selection.select(Reference.parse(f"{run}{word}"))
        assert checkpoint.step == 300
        assert note.startswith("step-00000400 is skipped. The checkpoint is damaged: ")


def test_an_ema_of_other_weights_is_damage(run: RunFolder) -> None:
    weights = {"a": torch.ones(2), "count": torch.tensor(3)}
    for ema in ({}, {"a": torch.ones(3)}, {"b": torch.ones(2)}, {"a": torch.ones(2), "b": torch.ones(2)}):
        checkpoint = checkpoints.write(run, step=4, model=weights, ema=ema, facts={})
        with pytest.raises(CheckpointError, match="is not the average of the weights beside it"):
            checkpoints.load_used_weights(checkpoint)
    checkpoint = checkpoints.write(run, step=4, model=weights, ema={"a": torch.zeros(2)}, facts={})
    assert checkpoints.load_used_weights(checkpoint)["a"].tolist() == [0, 0]


def test_whether_there_is_an_ema_the_manifest_says(run: RunFolder) -> None:
    checkpoint = checkpoints.write(run, step=4, model={"a": torch.ones(2)}, ema={"a": torch.zeros(2)}, facts={})
    (checkpoint.path / "ema.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"ema\.safetensors cannot be read"):
        checkpoints.load_used_weights(checkpoint)


def test_weights_of_another_model_are_known_by_their_shapes(save: Save) -> None:
    path = save(400).path
    checkpoints.require_shapes(path, {"layer.weight": (2, 3)})
    for shapes, shown in (
        (
            {"layer.weight": (3, 2)},
            "layer.weight is of shape (2, 3) in the checkpoint and of shape (3, 2) in the model",
        ),
        ({}, "layer.weight is of shape (2, 3) in the checkpoint and missing in the model"),
        ({"layer.weight": (2, 3), "b": ()}, "b is missing in the checkpoint and of shape () in the model"),
    ):
        with pytest.raises(CheckpointError) as caught:
            checkpoints.require_shapes(path, shapes)
        assert caught.value.problem == f"{path} does not fit the model of the run's config.toml: {shown}."


def test_a_run_that_was_deleted_is_not_made_again(run: RunFolder, save: Save) -> None:
    save(1)
    shutil.rmtree(run.path)
    with pytest.raises(TrainingError) as caught:
        save(2)
    assert caught.value.problem == f"{run} was moved or deleted while it was being trained."
    assert not run.path.exists()


def test_leftovers_of_a_vocabulary_are_deleted(run: RunFolder) -> None:
    run.vocabulary.mkdir()
    for name in (".tmp-shared.json-k3x_9", ".hidden", "shared.json"):
        (run.vocabulary / name).touch()
    checkpoints.clean(run)
    assert names(run.vocabulary) == [".hidden", "shared.json"]
