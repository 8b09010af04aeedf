"""The progress bar of `regard.train`: shown to people, and to nobody else."""

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.api.progress import progress_bar


def test_nobody_looks_at_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as bar:
        bar(object())  # type: ignore[arg-type]
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_run_is_shown_where_it_is_asked_for(
    corpus: tuple[str, str], tiny: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {**tiny, "training.validate_samples": 0}
    run = regard.train("translate", train=corpus, run=tmp_path / "run", settings=settings, steps=3, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "step 3: loss " in captured.err
    assert "3/3" in captured.err
    assert run.checkpoint.step == 3
