import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.runs.folder import RunFolder
from regard.training.stopping import End
from regard.training.summary import count_parameters, summarise


@pytest.fixture
def own_run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "own"))


def test_a_finished_run(trained: Path) -> None:
    summary = summarise(RunFolder(trained))
    assert (summary.state, summary.end, summary.step) == ("finished", End("steps", "120 steps are done"), 120)
    assert summary.seconds > 0
    assert summary.n_parameters == regard.load(trained).n_parameters
    assert [one.name for one in summary.checkpoints][-2:] == ["step-00000120", "average-00000120"]
    assert summary.checkpoints[0].scores["step"] == 40
    assert summary.best["loss"] == min(one.scores["loss"] for one in summary.checkpoints[:3])
    assert set(summary.average) == {"step", "loss", "perplexity", "bleu", "chrf"}


def test_a_run_without_a_checkpoint(own_run: Path) -> None:
    shutil.rmtree(own_run / "checkpoints")
    summary = summarise(RunFolder(own_run))
    assert (summary.state, summary.step, summary.best, summary.n_parameters) == ("stopped", 0, {}, None)


def test_damage_is_passed_over(own_run: Path) -> None:
    newest = own_run / "checkpoints" / "step-00000120"
    (newest / "state.json").write_text("{")
    (own_run / "checkpoints" / "average-00000120" / "model.safetensors").write_bytes(b"\xff" * 20)
    summary = summarise(RunFolder(own_run))
    assert (summary.step, summary.n_parameters) == (80, None)


def test_no_tensor_library_is_loaded(trained: Path) -> None:
    program = (
        "import sys; from regard.runs.folder import RunFolder; from regard.training.summary import summarise;"
        "summarise(RunFolder(__import__('pathlib').Path(sys.argv[1])));"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(trained)], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_a_file_of_another_kind_has_no_parameters(tmp_path: Path) -> None:
    assert count_parameters(tmp_path / "none") is None
    file = tmp_path / "other"
    file.write_bytes((5).to_bytes(8, "little") + b"[1,2]")
    assert count_parameters(file) is None


def test_an_average_that_took_the_place_of_the_scored_one_has_no_scores(own_run: Path) -> None:
    regard.average(own_run, last=2)
    summary = summarise(RunFolder(own_run))
    assert summary.checkpoints[-1].name == "average-00000120"
    assert summary.average == {}


def test_what_batch_norms_track_is_not_counted(image_run: Path) -> None:
    assert summarise(RunFolder(image_run)).n_parameters == regard.load(image_run).n_parameters
