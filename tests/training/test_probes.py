"""Recording probe examples changes nothing of a run: the same bytes with and without, resumed, killed, or where it fails."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.training.conftest import at_step, of
from torch import Tensor, nn

from regard.config import ModelTable, RunConfig, from_tables, to_tables
from regard.inspection.probe_folder import recorded_steps, trace_files
from regard.inspection.probe_timeline import read_probes
from regard.runs.folder import RunFolder
from regard.training.events import Event, Finished, Noted
from regard.training.run import resume, train

PROBES = {"inspection.probes": 2, "inspection.every": 3}
Make = Callable[..., RunConfig]
Drive = Callable[..., list[Event]]
Tensors = Callable[[Path], dict[str, bytes]]


@pytest.fixture(scope="module")
def language_config(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], RunConfig]:
    """The config of a tiny language model, with tables to add."""
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("".join(f"the dog number {number} sees a red house\n" for number in range(200)))

    def make(tables: dict[str, Any]) -> RunConfig:
        sizes = {"n_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 32, "context": 16, "dropout": 0.1}
        training = {"steps": 8, "batch_tokens": 128, "validate_every": 4, "save_every_steps": 3, "warmup": 2}
        given = {
            "task": "language",
            "data": {"train": [str(file)]},
            "tokenizer": {"vocab_size": 300},
            "model": {"preset": "llama-nano", **sizes},
            "training": training,
            "runtime": {"device": "cpu", "threads": 1},
        }
        return from_tables({**given, **tables}, origin="test")

    return make


def traces_of(run: Path) -> dict[str, bytes]:
    """All that was recorded, by its place in the run folder."""
    files = sorted(path for path in (run / "traces").rglob("*") if path.is_file())
    return {str(file.relative_to(run)): file.read_bytes() for file in files}


@pytest.mark.parametrize("ema", [0.0, 0.7])
def test_a_translator_has_the_same_bytes_with_and_without(
    make_config: Make, drive: Drive, tensors_of: Tensors, tmp_path: Path, ema: float
) -> None:
    settings = {"training.ema": ema, "training.average": 2, "model.dropout": 0.2}
    without = drive(train(make_config(settings), tmp_path / "without"))
    events = drive(train(make_config({**settings, **PROBES}), tmp_path / "with"))
    assert tensors_of(tmp_path / "with") == tensors_of(tmp_path / "without")
    assert of(Noted, events) == of(Noted, without)
    assert not (tmp_path / "without" / "traces").exists()
    found = read_probes(RunFolder(tmp_path / "with"))
    assert found.steps == (0, 3, 6, 8)
    assert found.losses.keys() == {3, 6, 8}
    assert found.valid_losses.keys() == {8}
    assert found.notes == ()
    assert all(None not in own for own in found.outputs.values())


def test_a_language_model_has_the_same_bytes_with_and_without(
    language_config: Make, drive: Drive, tensors_of: Tensors, tmp_path: Path
) -> None:
    drive(train(language_config({}), tmp_path / "without"))
    drive(train(language_config({"inspection": {"probes": 2, "every": 3}}), tmp_path / "with"))
    assert tensors_of(tmp_path / "with") == tensors_of(tmp_path / "without")
    assert read_probes(RunFolder(tmp_path / "with")).steps == (0, 3, 6, 8)


@pytest.mark.parametrize("stopped", [2, 5, 7])
def test_a_resumed_run_has_the_same_traces(
    make_config: Make, drive: Drive, tensors_of: Tensors, tmp_path: Path, stopped: int
) -> None:
    config = make_config({**PROBES, "training.save_every_steps": 5})
    drive(train(config, tmp_path / "whole"))
    drive(train(config, tmp_path / "parts"), at_step(stopped))
    drive(resume(tmp_path / "parts"))
    assert tensors_of(tmp_path / "parts") == tensors_of(tmp_path / "whole")
    assert traces_of(tmp_path / "parts") == traces_of(tmp_path / "whole")


def test_traces_after_the_checkpoint_are_dropped_and_missing_ones_made_up_for(
    make_config: Make, drive: Drive, tmp_path: Path
) -> None:
    config = make_config({"inspection.probes": 1, "inspection.every": 1, "training.save_every_steps": 4})
    drive(train(config, tmp_path / "run"), at_step(7))
    run = RunFolder(tmp_path / "run")
    assert list(recorded_steps(run)) == [0, 1, 2, 3, 4, 5, 6]
    (trace,) = trace_files(recorded_steps(run)[4]).values()
    before = trace.read_bytes()
    trace.unlink()
    trace.parent.rmdir()
    events = resume(tmp_path / "run")
    drive(events, at_step(5))
    assert list(recorded_steps(run)) == [0, 1, 2, 3, 4]
    assert trace.read_bytes() == before


def test_probes_may_be_switched_on_when_a_run_is_resumed(make_config: Make, drive: Drive, tmp_path: Path) -> None:
    drive(train(make_config({}), tmp_path / "run"))
    drive(resume(tmp_path / "run", settings={"training.steps": 12, **PROBES}))
    assert read_probes(RunFolder(tmp_path / "run")).steps == (9, 12)


def test_a_network_that_cannot_be_traced_is_trained_all_the_same(
    make_config: Make, drive: Drive, tmp_path: Path
) -> None:
    class OwnNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.output = nn.Embedding(320, 8), nn.Linear(8, 320)

        def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
            return self.output(self.embedding(target))

    config = make_config({**PROBES, "training.validate_samples": 0})
    config = dataclasses.replace(config, model=ModelTable())
    events = drive(train(config, tmp_path / "run", model=OwnNetwork()))
    assert isinstance(events[-1], Finished)
    notes = [event.text for event in of(Noted, events) if "probe" in event.text]
    assert [note.split(":")[0] for note in notes] == [
        "probe example 0 cannot be traced",
        "probe example 1 cannot be traced",
    ]


# A trainer that kills itself when it has written so much of a trace.
TRAINER = """
import json, os, signal, sys
from pathlib import Path
from regard.config import from_tables
from regard.inspection.trace import Trace
from regard.training.run import train

save, count = Trace.save, [0]

def save_and_die(self, path, **options):
    save(self, path, **options)
    count[0] += 1
    if count[0] == int(sys.argv[3]):
        content = Path(path).read_bytes()
        Path(path).write_bytes(content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return path

Trace.save = save_and_die
list(train(from_tables(json.loads(sys.argv[2]), origin="test"), Path(sys.argv[1])))
"""


def test_a_trainer_killed_in_mid_write_leaves_whole_files(
    make_config: Make, drive: Drive, tensors_of: Tensors, tmp_path: Path
) -> None:
    config = make_config({**PROBES, "training.save_every_steps": 2})
    path = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", TRAINER, str(path), json.dumps(to_tables(config)), "6"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    run = RunFolder(path)
    assert [file.name for file in run.traces.glob(".tmp-new-step-*")], "nothing was being written"
    found = read_probes(run)
    assert found.steps == (0, 3)
    assert found.notes == ()
    assert all(None not in own for own in found.outputs.values())
    drive(resume(path))
    drive(train(config, tmp_path / "whole"))
    assert tensors_of(path) == tensors_of(tmp_path / "whole")
    assert traces_of(path) == traces_of(tmp_path / "whole")
    assert not list(run.traces.glob(".tmp-*"))
