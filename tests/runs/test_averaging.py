import os
from collections.abc import Callable

import pytest
import torch

from regard.errors import CheckpointError, RunError, UsageError
from regard.runs import checkpoints
from regard.runs.averaging import average
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder
from regard.runs.selection import of_step

Save = Callable[..., Checkpoint]


def test_the_last_ones_are_averaged(run: RunFolder, save: Save) -> None:
    for step in (100, 200, 300):
        save(step)
    mean = average(run, last=2)
    assert mean.path.name == "average-00000300"
    assert sorted(path.name for path in mean.path.iterdir()) == ["manifest.json", "model.safetensors"]
    assert checkpoints.load_weights(mean)["layer.weight"].tolist() == [[250.0] * 3] * 2
    assert mean.facts == {"threads": 2, "averaged": [200, 300]}
    assert checkpoints.verify(mean.path) == mean


def test_chosen_steps_are_averaged_in_any_order(run: RunFolder, save: Save) -> None:
    for step in (100, 200, 300):
        save(step)
    mean = average(run, steps=[200, 100, 200])
    assert mean.path.name == "average-00000200"
    assert checkpoints.load_weights(mean)["layer.weight"][0, 0] == 150.0
    # A second average at the same step takes the place of the first.
    assert checkpoints.load_weights(average(run, steps=[200]))["layer.weight"][0, 0] == 200.0


def test_kinds_of_tensors_and_ties_are_kept(run: RunFolder) -> None:
    for step in (1, 2, 3):
        weight = torch.full((2,), step, dtype=torch.bfloat16)
        # Added up in float32, the small number would be lost beside the large one.
        small = torch.tensor([2.0**25 if step == 1 else 1.5])
        model = {"embedding": weight, "output": weight, "count": torch.tensor(step), "small": small}
        checkpoints.write(run, step=step, model=model, facts={})
    weights = checkpoints.load_weights(average(run, last=3))
    assert weights["output"].dtype == torch.bfloat16
    assert weights["output"].tolist() == [2.0, 2.0]
    assert weights["output"].data_ptr() == weights["embedding"].data_ptr()
    assert weights["count"] == 3
    assert weights["small"].item() == torch.tensor((2.0**25 + 3.0) / 3).item()


def test_the_statistics_of_a_batch_norm_are_averaged_and_its_count_is_the_last(run: RunFolder) -> None:
    for step in (1, 2):
        norm = torch.nn.BatchNorm2d(2)
        norm.train()(float(step) * torch.arange(16.0).view(2, 2, 2, 2))
        if step == 2:
            norm(torch.zeros(2, 2, 2, 2))
        checkpoints.write(run, step=step, model=norm.state_dict(), facts={})
    first, second = (checkpoints.load_weights(checkpoints.verify(of_step(run, step))) for step in (1, 2))
    weights = checkpoints.load_weights(average(run, last=2))
    for name in ("running_mean", "running_var"):
        assert not torch.equal(first[name], second[name])
        torch.testing.assert_close(weights[name], (first[name] + second[name]) / 2)
    assert weights["num_batches_tracked"] == 2


def test_fewer_than_asked(run: RunFolder, save: Save) -> None:
    with pytest.raises(RunError) as caught:
        average(run, last=5)
    assert caught.value.problem == f"{run.path} has 0 checkpoints, fewer than the last 5 to average."
    assert caught.value.remedy == f"Train it first: regard resume {run.path}"
    save(100)
    save(200)
    with pytest.raises(RunError) as caught:
        average(run, last=5)
    assert caught.value.problem == f"{run.path} has 2 checkpoints, fewer than the last 5 to average."
    assert caught.value.remedy == "Ask for at most 2, or train with a larger training.keep."
    with pytest.raises(CheckpointError, match="has no checkpoint of step 300"):
        average(run, steps=[200, 300])


def test_a_damaged_one_is_not_averaged(run: RunFolder, save: Save) -> None:
    save(100)
    os.truncate(save(200).path / "model.safetensors", 5)
    with pytest.raises(CheckpointError, match=r"step-00000200/model.safetensors has 5 bytes"):
        average(run, last=2)


def test_checkpoints_of_different_models(run: RunFolder, save: Save) -> None:
    first = save(100)
    other = checkpoints.write(run, step=200, model={"layer.weight": torch.ones(2, 4)}, facts={})
    with pytest.raises(CheckpointError) as caught:
        average(run, last=2)
    assert caught.value.problem == f"{first.path} and {other.path} have weights of different names or shapes."
    assert caught.value.remedy == "Average checkpoints of one model only."


def test_wrong_requests(run: RunFolder, save: Save) -> None:
    save(100)
    for options in ({}, {"last": 1, "steps": [100]}):
        with pytest.raises(UsageError) as caught:
            average(run, **options)  # type: ignore[arg-type]
        problem = "Averaging needs either the number of last checkpoints or the steps."
        assert (caught.value.problem, caught.value.remedy) == (problem, "Give one of the two.")
    with pytest.raises(UsageError) as caught:
        average(run, last=0)
    assert caught.value.problem == "--last must be at least 1, not 0."
    assert caught.value.remedy == "Ask for 1 or more."
    with pytest.raises(UsageError) as caught:
        average(run, steps=[])
    assert caught.value.problem == "Averaging needs at least one step, and none is given."
    assert caught.value.remedy == "Name the steps to average."


def test_of_a_run_with_a_moving_average_that_is_averaged(run: RunFolder) -> None:
    for step in (1, 2):
        weight = torch.full((2,), float(step))
        model = {"embedding": weight, "output": weight, "count": torch.tensor(step)}
        checkpoints.write(run, step=step, model=model, ema={"embedding": 10 * weight}, facts={})
    weights = checkpoints.load_used_weights(average(run, last=2))
    assert weights["embedding"].tolist() == weights["output"].tolist() == [15.0, 15.0]
    assert weights["count"] == 2
    checkpoints.write(run, step=3, model=model, facts={})
    with pytest.raises(CheckpointError, match="have weights of different names or shapes"):
        average(run, last=2)
