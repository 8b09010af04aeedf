"""The proof: a run that was stopped, killed or damaged, and resumed, ends with the same bytes as one left alone.

The run has all that could go wrong: dropout, accumulation, a moving average, records of gradients, saves between
validations, epochs that end between saves, early stopping, and an average at its end. Its validation sentences hold words
that training never has, so that the loss on them soon rises: the fourth validation is the best, and patience ends the run
at step 32.
"""

import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import draw_stripes
from tests.training.conftest import at_step
from torch import Tensor, nn

import regard
from regard import config as configuration
from regard.config import ModelTable, RunConfig, to_tables
from regard.errors import RunError
from regard.runs import checkpoints, metrics
from regard.runs.folder import RunFolder
from regard.training.events import Event, Finished, Noted, Report, Saved, Updated, Validated
from regard.training.run import resume, train

LAST = 32
REASON = "early stopping: no better loss in 4 validations"
SETTINGS = {
    "model.dropout": 0.2,
    "training.steps": 100,
    "training.accumulate": 2,
    "training.batch_tokens": 96,
    "training.optimizer": "muon",
    "training.muon_learning_rate": 0.08,
    "training.learning_rate": 0.04,
    "training.schedule": "inverse-sqrt",
    "training.warmup": 1,
    "training.validate_every": 4,
    "training.validate_samples": 2,
    "training.save_every_steps": 5,
    "training.save_every_minutes": 0.0,
    "training.patience": 4,
    "training.average": 3,
    "training.ema": 0.7,
    "training.record_gradients": 3,
    "training.keep": 50,
}

# Starting an interpreter with torch takes seconds, a fork takes none: one parent forks a trainer for each line it reads.
# The line says when the trainer dies: so many seconds after so many updates, or when it opens a file of such a name (what
# is being written is called .tmp-new-…, and opened to be synced). It kills itself, so that a busy machine does not let it
# run on meanwhile.
TRAINER = """
import json, os, re, signal, sys, threading
from pathlib import Path
import torch
from regard import config as configuration
from regard.training.events import Finished, Updated
from regard.training.run import resume, train

torch.set_num_threads(1)
# What torch imports at the first step of an optimizer takes seconds as well.
weight = torch.nn.Parameter(torch.ones(2))
weight.grad = torch.ones(2)
torch.optim.AdamW([weight], fused=True).step()
path = Path(sys.argv[1])
config = configuration.from_tables(json.loads(sys.argv[2]), origin="test")

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def die_at_file(pattern):
    open_file = os.open
    def open_or_die(path, *rest, **options):
        if re.search(pattern, str(path)):
            die()
        return open_file(path, *rest, **options)
    os.open = open_or_die

def live(n_updates=0, seconds=0.0, pattern=""):
    if pattern:
        die_at_file(pattern)
    for event in resume(path) if (path / "config.toml").exists() else train(config, path):
        if isinstance(event, Updated):
            n_updates -= 1
            if n_updates == 0:
                threading.Timer(seconds, die).start()
        elif isinstance(event, Finished):
            os.write(1, b"finished ")

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            live(**json.loads(line))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    os.write(1, f"{os.waitstatus_to_exitcode(status)}\\n".encode())
"""


@pytest.fixture(scope="module")
def config(make_config: Callable[..., RunConfig], tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    unseen = tmp_path_factory.mktemp("unseen")
    (unseen / "valid.en").write_text("seven quiet birds\nnine quick mice\nfew birds\n")
    (unseen / "valid.de").write_text("sieben stille Vögel\nneun flinke Mäuse\nwenige Vögel\n")
    return make_config({**SETTINGS, "data.valid": [str(unseen / "valid.en"), str(unseen / "valid.de")]})


@pytest.fixture(scope="module")
def undisturbed(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody stopped."""
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    events = list(train(config, path))
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == REASON
    assert events[-1].step == LAST
    notes = [event.text for event in events if isinstance(event, Noted)]
    assert len(notes) == 1, "that it overfits is said once"
    assert notes[0].startswith("the validation loss rises: ")
    assert " at step 16. The model overfits: " in notes[0]
    weights = [event.update.weight for event in events if isinstance(event, Updated)]
    assert min(weights) < 0.8 * max(weights), "no epoch ended with an update of fewer batches"
    return path


def without_clock(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("seconds", "per_second")}


def records(run: Path) -> list[dict[str, Any]]:
    return [without_clock(record) for record in metrics.read(RunFolder(run))]


def states(run: Path) -> dict[str, dict[str, Any]]:
    return {
        file.parent.name: without_clock(json.loads(file.read_bytes())) for file in run.glob("checkpoints/*/state.json")
    }


@pytest.fixture
def is_same(undisturbed: Path, tensors_of: Callable[[Path], dict[str, bytes]]) -> Callable[[Path], None]:
    """Hold everything that a run has written against what the undisturbed one has, to the byte."""

    def compare(run: Path) -> None:
        expected, found = tensors_of(undisturbed), tensors_of(run)
        assert f"checkpoints/average-{LAST:08d}/model.safetensors" in expected
        assert found.keys() == expected.keys()
        assert [name for name in expected if found[name] != expected[name]] == []
        assert states(run) == states(undisturbed)
        assert records(run) == records(undisturbed)

    return compare


def test_the_undisturbed_run_has_each_step_once(undisturbed: Path) -> None:
    found = records(undisturbed)
    assert [record["step"] for record in found if record["kind"] == "train"] == list(range(1, LAST + 1))
    assert [record["step"] for record in found if record["kind"] == "valid"] == list(range(4, LAST + 1, 4))
    assert [(record["step"], record["steps"]) for record in found if record["kind"] == "average"] == [
        (LAST, [LAST - 8, LAST - 4, LAST])
    ]
    norms = {record["step"]: record["norms"] for record in found if record["kind"] == "gradients"}
    assert list(norms) == list(range(1, LAST + 1, 3))
    assert all(list(one) == ["source_embedding", "encoder.0", "decoder.0"] for one in norms.values())
    saved = {path.name for path in undisturbed.glob("checkpoints/step-*")}
    assert saved == {f"step-{step:08d}" for step in range(1, LAST + 1) if step % 4 == 0 or step % 5 == 0}


class Lives:
    """One run in the hands of processes that are killed, one after another."""

    def __init__(self, parent: subprocess.Popen[str], path: Path) -> None:
        self.parent = parent
        self.checkpoints = path / "checkpoints"
        self.cut_short: list[str] = []  # what was being written when a kill fell

    def live(self, **death: Any) -> str:
        """Let a process go on with the run until it dies; return its exit code, after "finished" if it came so far."""
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write(json.dumps(death) + "\n")
        self.parent.stdin.flush()
        code = self.parent.stdout.readline().strip()
        self.cut_short += [path.name for path in self.checkpoints.glob(".tmp-new-*")]
        return code

    def kill(self, **death: Any) -> None:
        assert self.live(**death) == str(-signal.SIGKILL)

    def finish(self) -> None:
        assert self.live() == "finished 0"


@contextlib.contextmanager
def lives(path: Path, config: RunConfig) -> Iterator[Lives]:
    command = [sys.executable, "-c", TRAINER, str(path), json.dumps(to_tables(config))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        try:
            yield Lives(parent, path)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


def test_killed_at_random_instants_and_in_saves(
    config: RunConfig, tmp_path: Path, is_same: Callable[[Path], None]
) -> None:
    path = tmp_path / "run"
    chance = random.Random(11)
    with lives(path, config) as run:
        run.kill(n_updates=2)  # before the first save: nothing is there but a few records
        run.kill(pattern="new-step-.*/model")  # in the very first save
        run.kill(n_updates=chance.randint(3, 5), seconds=chance.uniform(0, 0.05))
        run.kill(pattern="new-step-.*/manifest")  # all is written, nothing has its name yet
        run.kill(n_updates=chance.randint(3, 5), seconds=chance.uniform(0, 0.05))
        run.kill(pattern="/checkpoints$")  # it has its name, and old ones are still there
        run.kill(n_updates=chance.randint(3, 5), seconds=chance.uniform(0, 0.05))
        run.kill(pattern="new-average-.*/model")
        run.kill(pattern="README")  # all but the model card
        run.finish()
    assert sum("step" in name for name in run.cut_short) >= 2
    assert sum("average" in name for name in run.cut_short) == 1
    is_same(path)
    assert not list(path.rglob(".tmp-*"))


def test_closed_in_the_middle_of_an_epoch_and_resumed(
    config: RunConfig, tmp_path: Path, drive: Callable[..., list[Event]], is_same: Callable[[Path], None]
) -> None:
    path = tmp_path / "run"
    drive(train(config, path), at_step(11))
    drive(resume(path), at_step(14))  # nothing was saved since step 12: these updates are made again
    events = drive(resume(path))
    assert isinstance(events[0], Report)
    assert events[0].step == 12
    is_same(path)


def test_with_batches_read_ahead_and_resumed_with_more_workers(
    config: RunConfig, tmp_path: Path, drive: Callable[..., list[Event]], is_same: Callable[[Path], None]
) -> None:
    path = tmp_path / "run"
    ahead = dataclasses.replace(config, runtime=dataclasses.replace(config.runtime, workers=1))
    drive(train(ahead, path), at_step(14))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]
    events = drive(resume(path, settings={"runtime.workers": 3}))
    assert events[0].step == 12
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]
    is_same(path)


@pytest.mark.parametrize(
    ("number", "step"),
    [(signal.SIGTERM, 7), (signal.SIGINT, 12), (signal.SIGTERM, LAST)],
    ids=["between saves", "where a validation was due", "where the run was about to end"],
)
def test_stopped_by_a_signal_and_resumed(
    number: int,
    step: int,
    config: RunConfig,
    tmp_path: Path,
    drive: Callable[..., list[Event]],
    is_same: Callable[[Path], None],
) -> None:
    path = tmp_path / "run"
    events = []
    for event in train(config, path):
        events.append(event)
        if at_step(step)(event):
            os.kill(os.getpid(), number)
    *_, saved, finished = events
    assert isinstance(saved, Saved)
    assert isinstance(finished, Finished)
    assert saved.step == finished.step == step
    assert finished.reason == "stopped by a signal"
    assert finished.signal == number
    resumed = drive(resume(path))
    assert resumed[-1].signal == 0
    assert resumed[-1].reason == REASON
    # The validation that the signal left out comes first.
    assert isinstance(resumed[1], Updated if step == 7 else Validated)
    if step == 7:
        shutil.rmtree(saved.path)  # which the undisturbed run had no cause to write
    is_same(path)


def test_a_damaged_checkpoint_is_skipped_and_the_end_is_the_same(
    undisturbed: Path, tmp_path: Path, drive: Callable[..., list[Event]], is_same: Callable[[Path], None]
) -> None:
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    for step in (LAST, 30):
        file = path / "checkpoints" / f"step-{step:08d}" / "optimizer.safetensors"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    events = drive(resume(path), at_step(29))
    notes = [event.text for event in events if isinstance(event, Noted)]
    assert notes[0].startswith(f"step-{LAST:08} is skipped. The checkpoint is damaged: the bytes of ")
    assert notes[1].startswith("step-00000030 is skipped. ")
    assert [event.step for event in events if isinstance(event, Report)] == [28]
    newest = sorted(folder.name for folder in path.glob("checkpoints/step-*"))[-1]
    assert newest == "step-00000028", "what is damaged is not kept among the newest"
    drive(resume(path))
    is_same(path)


def test_an_average_whose_scores_were_not_written_is_made_again(
    undisturbed: Path, tmp_path: Path, drive: Callable[..., list[Event]], is_same: Callable[[Path], None]
) -> None:
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    lines = (path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (path / "metrics.jsonl").write_bytes(b"".join(lines[:-1]))
    drive(resume(path))
    is_same(path)


def test_a_run_that_was_stopped_early_stays_stopped(
    undisturbed: Path, tmp_path: Path, drive: Callable[..., list[Event]], is_same: Callable[[Path], None]
) -> None:
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    report, finished = drive(resume(path))
    assert report.step == finished.step == LAST
    assert finished.reason == REASON
    (average,) = [record for record in records(path) if record["kind"] == "average"]
    assert finished.average["loss"] == average["loss"]
    assert (path / "README.md").read_text() == (undisturbed / "README.md").read_text()
    is_same(path)


def test_what_a_kill_before_pruning_left_is_pruned_on_resume(
    undisturbed: Path, tmp_path: Path, drive: Callable[..., list[Event]]
) -> None:
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    drive(resume(path, settings={"training.keep": 1}))
    kept = {int(folder.name.removeprefix("step-")) for folder in path.glob("checkpoints/step-*")}
    assert kept == {16, LAST - 8, LAST - 4, LAST}, "the best, and those that were averaged"


def test_more_steps_go_on_where_fewer_ended(
    undisturbed: Path,
    make_config: Callable[..., RunConfig],
    config: RunConfig,
    tmp_path: Path,
    drive: Callable[..., list[Event]],
    tensors_of: Callable[[Path], dict[str, bytes]],
) -> None:
    path = tmp_path / "run"
    shorter = dataclasses.replace(config, training=dataclasses.replace(config.training, steps=7, average=0))
    assert drive(train(shorter, path))[-1].reason == "7 steps are done"
    assert drive(resume(path))[-1].step == 7
    assert drive(resume(path, settings={"training.steps": 12}))[-1].reason == "12 steps are done"
    assert "steps = 12\n" in (path / "config.toml").read_text()
    found, expected = tensors_of(path), tensors_of(undisturbed)
    for file in ("model", "optimizer", "ema"):
        name = f"checkpoints/step-00000012/{file}.safetensors"
        assert found[name] == expected[name]
    assert [one["step"] for one in records(path) if one["kind"] == "train"] == list(range(1, 13))


class OwnNetwork(nn.Module):
    """A caller's own: plain logits, with torch's dropout and a batch norm, whose statistics every batch changes."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(6)
            self.embedding = nn.Embedding(320, 8)
            self.norm = nn.BatchNorm1d(8)
            self.dropout = nn.Dropout(0.3)
            self.top = nn.Linear(8, 320)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        mean = self.embedding(source).mean(1, keepdim=True)
        x = self.embedding(target) + mean
        return self.top(self.dropout(self.norm(x.transpose(1, 2)).transpose(1, 2)))


def test_a_network_of_the_callers_own_is_resumed_to_the_same_bytes(
    make_config: Callable[..., RunConfig],
    tmp_path: Path,
    drive: Callable[..., list[Event]],
    tensors_of: Callable[[Path], dict[str, bytes]],
) -> None:
    settings = {"training.save_every_steps": 3, "training.ema": 0.7}
    config = dataclasses.replace(make_config(settings), model=ModelTable())
    drive(train(config, tmp_path / "whole", model=OwnNetwork()))
    drive(train(config, tmp_path / "parts", model=OwnNetwork()), at_step(5))
    with pytest.raises(RunError) as caught:
        drive(resume(tmp_path / "parts"))
    assert caught.value.problem == (
        f"{tmp_path / 'parts' / 'config.toml'} names no preset: the run was trained with a custom network, which its "
        "config cannot rebuild."
    )
    assert caught.value.remedy == (
        "Pass the network from Python: regard.load(run, model=…), regard.resume(run, model=…)."
    )
    torch.manual_seed(99)
    drive(resume(tmp_path / "parts", model=OwnNetwork()))
    assert tensors_of(tmp_path / "parts") == tensors_of(tmp_path / "whole")


def test_a_residual_network_is_resumed_to_the_same_bytes(
    tmp_path: Path, drive: Callable[..., list[Event]], tensors_of: Callable[[Path], dict[str, bytes]]
) -> None:
    tables = {
        "task": "image",
        "data": {"train": [draw_stripes(tmp_path / "images")], "valid_size": 12},
        "model": {"preset": "resnet-20", "n_blocks": [2, 1], "width": 4},
        "augmentation": {"crop": 1, "mirror": True},
        "training": {
            "steps": 9,
            "batch_images": 16,
            "schedule": "constant",
            "warmup": 1,
            "validate_every": 3,
            "ema": 0.7,
            "average": 2,
            "record_gradients": 2,
        },
        "runtime": {"device": "cpu", "threads": 1, "workers": 0},
    }
    config = configuration.from_tables(tables, origin="test")
    drive(train(config, tmp_path / "whole"))
    ahead = dataclasses.replace(config, runtime=dataclasses.replace(config.runtime, workers=2))
    drive(train(ahead, tmp_path / "parts"), at_step(5))
    drive(resume(tmp_path / "parts"))
    assert tensors_of(tmp_path / "parts") == tensors_of(tmp_path / "whole")
    assert records(tmp_path / "parts") == records(tmp_path / "whole")
    norms = [record for record in records(tmp_path / "whole") if record["kind"] == "gradients"]
    assert [record["step"] for record in norms] == [1, 3, 5, 7, 9]
    assert "stage.1.block.0.layers.1" in norms[0]["norms"]


def test_what_is_loaded_has_the_averaged_statistics(
    make_config: Callable[..., RunConfig], tmp_path: Path, drive: Callable[..., list[Event]]
) -> None:
    config = dataclasses.replace(make_config({"training.ema": 0.7}), model=ModelTable())
    drive(train(config, tmp_path / "run", model=OwnNetwork()))
    loaded = regard.load(tmp_path / "run", model=OwnNetwork(), threads=1)
    own, average = (checkpoints.load_weights(loaded.checkpoint, which=which) for which in ("model", "ema"))
    assert average.keys() == own.keys() - {"norm.num_batches_tracked"}
    state = loaded.model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in average.items())
    assert not torch.equal(average["norm.running_var"], own["norm.running_var"])
    assert state["norm.num_batches_tracked"] == own["norm.num_batches_tracked"] == 8
