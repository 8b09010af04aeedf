import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.errors import CheckpointError, RunError
from regard.runs import checkpoints
from regard.runs.checkpoints import Checkpoint, OtherModelError, VanishedError, verify
from regard.runs.folder import Reference, RunFolder
from regard.runs.names import find
from regard.runs.selection import drop_after, newest_intact, prune, read_selected, select

Save = Callable[..., Checkpoint]


def chosen(run: RunFolder, selector: str = "") -> str:
    checkpoint, notes = select(Reference.parse(f"{run.path}{selector}"))
    assert notes == []
    return checkpoint.path.name


def save_average(run: RunFolder, step: int) -> Path:
    return checkpoints.write(run, step=step, model={"a": torch.ones(1)}, facts={}, kind="average").path


def damage(path: Path) -> str:
    """Cut one file short, and return what is then said of it."""
    file = path / "model.safetensors"
    size = file.stat().st_size
    os.truncate(file, 5)
    return f"{path.name} is skipped. The checkpoint is damaged: {file} has 5 bytes, {size} were written."


def test_each_word_means_its_checkpoint(run: RunFolder, save: Save) -> None:
    save(100, loss=2.0)
    save(200, loss=1.0)
    save(300)
    assert chosen(run, "@100") == "step-00000100"
    assert chosen(run, "@best") == "step-00000200"
    assert chosen(run, "@last") == "step-00000300"
    save_average(run, 200)
    save_average(run, 300)
    assert chosen(run, "@average") == "average-00000300"
    assert chosen(run, "@last") == "step-00000300"


def test_the_best_is_the_best_by_the_score_that_the_run_is_after(run: RunFolder, save: Save) -> None:
    save(100, loss=1.0, accuracy=70.0, best_by="accuracy")
    save(200, loss=2.0, accuracy=90.0, best_by="accuracy")
    save(300, loss=1.5, accuracy=90.0, best_by="accuracy")
    save(400, loss=1.5, accuracy=90.0, best_by="accuracy")
    save(500, loss=3.0, accuracy=80.0, best_by="accuracy")
    assert chosen(run, "@best") == "step-00000300"  # of the lower loss, and the earlier of two that are equal in that
    assert prune(run, keep=1) == [100, 200, 400]
    assert chosen(run) == "step-00000300"


@pytest.mark.parametrize(("accuracy", "meant"), [(91.0, "average-00000200"), (89.0, "step-00000200")])
def test_an_average_is_compared_by_that_score_too(run: RunFolder, save: Save, accuracy: float, meant: str) -> None:
    save(200, loss=1.0, accuracy=90.0, best_by="accuracy")
    state = {"validation": {"loss": 1.0, "accuracy": accuracy}}
    checkpoints.write(run, step=200, model={"a": torch.ones(1)}, facts={}, state=state, kind="average")
    assert chosen(run) == meant


def test_a_plain_run_means_the_average_else_the_best_else_the_last(run: RunFolder, save: Save) -> None:
    save(100)
    save(200)
    assert chosen(run) == "step-00000200"
    save(50, loss=3.0)
    assert chosen(run) == "step-00000050"
    save_average(run, 200)
    assert chosen(run) == "average-00000200"


def test_an_average_that_was_trained_beyond_is_no_longer_meant(run: RunFolder, save: Save) -> None:
    save(100, loss=2.0)
    save_average(run, 100)
    save(200, loss=1.0)
    assert chosen(run) == "step-00000200"
    assert chosen(run, "@average") == "average-00000100"


def test_an_average_that_was_scored_worse_than_the_best_is_meant_by_its_word_only(run: RunFolder, save: Save) -> None:
    save(100, loss=2.0)
    save(200, loss=2.5)
    weights = {"a": torch.ones(1)}
    for loss, meant in ((2.1, "step-00000100"), (2.0, "average-00000200")):
        state = {"validation": {"loss": loss}}
        checkpoints.write(run, step=200, model=weights, facts={}, state=state, kind="average")
        assert chosen(run) == meant
        assert chosen(run, "@average") == "average-00000200"


def test_the_earlier_is_best_where_two_are_equal(run: RunFolder, save: Save) -> None:
    for step, loss in [(100, 1.5), (200, 1.0), (300, 1.0), (400, float("nan")), (500, float("inf"))]:
        save(step, loss=loss)
    assert chosen(run, "@best") == "step-00000200"


def test_a_damaged_checkpoint_is_skipped_and_told(run: RunFolder, save: Save) -> None:
    save(100, loss=3.0)
    save(200, loss=2.0)
    best = damage(save(300, loss=1.0).path)
    assert newest_intact(run)[0].step == 200
    assert newest_intact(run)[1] == [best]
    checkpoint, notes = select(Reference(run.path, "best"))
    assert (checkpoint.step, notes) == (200, [best])
    average = damage(save_average(run, 300))
    checkpoint, notes = select(Reference(run.path))
    assert (checkpoint.step, notes) == (200, [average, best])


def test_a_state_that_is_no_json_is_told_where_the_best_is_sought(run: RunFolder, save: Save) -> None:
    save(100, loss=1.0)
    path = save(200, loss=0.5).path
    size = (path / "state.json").stat().st_size
    (path / "state.json").write_bytes(b"\0" * size)
    checkpoint, notes = select(Reference(run.path, "best"))
    assert checkpoint.step == 100
    assert len(notes) == 1
    assert notes[0].startswith(
        f"step-00000200 is skipped. The checkpoint is damaged: the bytes of {path}/state.json have changed (sha256 "
    )


def test_a_step_that_is_asked_for_by_number_has_no_stand_in(run: RunFolder, save: Save) -> None:
    save(100)
    damage(save(200).path)
    with pytest.raises(
        CheckpointError, match=r"The checkpoint is damaged: .*step-00000200/model.safetensors has 5 bytes"
    ):
        select(Reference(run.path, 200))


def test_all_damaged(run: RunFolder, save: Save) -> None:
    first, second = damage(save(100).path), damage(save(200).path)
    with pytest.raises(CheckpointError) as caught:
        newest_intact(run)
    assert caught.value.problem == f"No checkpoint of {run.path} is intact. {second} {first}"
    assert caught.value.remedy == f"Copy the run again, or repeat it: regard train {run.config_file} --run ANOTHER"


@pytest.mark.parametrize("selector", ["", "@best", "@last", "@average"])
def test_a_run_without_a_checkpoint(run: RunFolder, selector: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        select(Reference.parse(f"{run.path}{selector}"))
    assert caught.value.problem == f"{run.path} has no checkpoint yet."
    assert caught.value.remedy == f"Train it: regard resume {run.path}"


def test_a_missing_step_lists_the_steps_there_are(run: RunFolder, save: Save) -> None:
    with pytest.raises(CheckpointError) as caught:
        select(Reference(run.path, 250))
    assert caught.value.problem == f"{run.path} has no checkpoint of step 250: it has none yet."
    assert caught.value.remedy == f"Train it: regard resume {run.path}"
    save(100)
    save(200)
    with pytest.raises(CheckpointError) as caught:
        select(Reference(run.path, 250))
    assert caught.value.problem == f"{run.path} has no checkpoint of step 250."
    assert caught.value.remedy == "There is one of: 100, 200."


def test_no_average_no_best_no_last(run: RunFolder, save: Save) -> None:
    average = save_average(run, 100)
    with pytest.raises(CheckpointError) as caught:
        select(Reference(run.path, "last"))
    assert caught.value.problem == f"{run.path} has no checkpoint but an average."
    assert caught.value.remedy == f"Use it: {run.path}@average"
    save(100)
    with pytest.raises(CheckpointError) as caught:
        select(Reference(run.path, "best"))
    assert caught.value.problem == f"No checkpoint of {run.path} has been validated."
    assert caught.value.remedy == f"Use the newest: {run.path}@last"
    average.rename(average.with_name("away"))
    with pytest.raises(CheckpointError) as caught:
        select(Reference(run.path, "average"))
    assert caught.value.problem == f"{run.path} has no average."
    assert caught.value.remedy == f"Make one with: regard average {run.path} --last 5"


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not a run: it has no config\.toml"):
        select(Reference(tmp_path))


def test_pruning_keeps_the_newest_the_best_and_the_protected(run: RunFolder, save: Save) -> None:
    for step, loss in [(100, 9.0), (200, 1.0), (300, 5.0), (400, 6.0), (500, None), (600, 7.0)]:
        save(step, loss=loss)
    save_average(run, 100)
    assert prune(run, keep=2, protect={300}) == [100, 400]
    names = ["average-00000100", "step-00000200", "step-00000300", "step-00000500", "step-00000600"]
    assert sorted(path.name for path in run.checkpoints.iterdir()) == names
    assert prune(run, keep=9) == []


def test_pruning_never_takes_the_newest(run: RunFolder, save: Save) -> None:
    save(100)
    save(200)
    assert prune(run, keep=0) == [100]
    assert list(find(run)) == [200]


def test_what_comes_after_the_resumed_step_is_dropped(run: RunFolder, save: Save) -> None:
    for step in (100, 200, 300):
        save(step)
    damage(run.checkpoints / "step-00000300")
    resumed, _ = newest_intact(run)
    assert drop_after(run, step=resumed.step) == [300]
    assert list(find(run)) == [100, 200]


def test_a_state_without_a_validation_is_not_the_best(run: RunFolder, save: Save) -> None:
    path = save(100).path
    for state in ({}, {"validation": {}}, {"validation": {"loss": None}}):
        (path / "state.json").write_text(json.dumps(state))
        with pytest.raises(CheckpointError, match="has been validated"):
            select(Reference(run.path, "best"))


def test_a_checkpoint_that_is_deleted_while_it_is_read_is_no_damage(run: RunFolder, save: Save) -> None:
    save(100, 2.0)

    def read(path: Path) -> Checkpoint:
        checkpoint = verify(path)
        if checkpoint.step < 120:  # whoever trains has written another, and deletes this one
            save(checkpoint.step + 1, 1.0)
            shutil.rmtree(path)
        checkpoints.load_weights(checkpoint)
        return checkpoint

    checkpoint, notes = read_selected(Reference(run.path), read)
    assert (checkpoint.step, notes) == (120, [])
    with pytest.raises(CheckpointError, match="has no checkpoint of step 100"):
        read_selected(Reference(run.path, 100), read)


def test_a_run_that_deletes_faster_than_anybody_reads(run: RunFolder, save: Save) -> None:
    save(100)

    def vanish(path: Path) -> Checkpoint:
        raise VanishedError("gone")

    with pytest.raises(CheckpointError) as caught:
        read_selected(Reference(run.path), vanish)
    assert caught.value.problem == f"The checkpoints of {run} are deleted faster than they can be read."


def test_where_no_checkpoint_fits_the_model_the_config_is_wrong(run: RunFolder, save: Save) -> None:
    for step in (100, 200):
        save(step)

    def refuse(path: Path) -> Checkpoint:
        raise OtherModelError(f"{path.name} does not fit.", "Put back the config.")

    with pytest.raises(CheckpointError) as caught:
        read_selected(Reference(run.path), refuse)
    assert str(caught.value) == "step-00000200 does not fit.\nPut back the config."


def test_of_many_damaged_ones_a_few_are_named(run: RunFolder, save: Save) -> None:
    for step in range(1, 6):
        (save(step).path / "manifest.json").write_text("3")
    with pytest.raises(CheckpointError) as caught:
        newest_intact(run)
    assert caught.value.problem.count("is skipped") == 3
    assert caught.value.problem.endswith(" So are 2 others.")


def test_a_link_is_no_checkpoint(run: RunFolder, save: Save, tmp_path: Path) -> None:
    shutil.move(save(200).path, tmp_path / "outside")
    (run.checkpoints / "step-00000200").symlink_to(tmp_path / "outside")
    save(100)
    assert newest_intact(run)[0].step == 100
