"""A small run folder, and a quick way to give it checkpoints."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.runs import checkpoints
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with no checkpoint, as training finds it after writing the config."""
    folder = RunFolder.create(tmp_path / "runs" / "m30k")
    folder.config_file.write_text('task = "translate"\n')
    return folder


@pytest.fixture
def save(run: RunFolder) -> Callable[..., Checkpoint]:
    """Write the checkpoint of a step, all of whose weights are the step's number."""

    def write(step: int, loss: float | None = None, *, best_by: str = "loss", **scores: float) -> Checkpoint:
        return checkpoints.write(
            run,
            step=step,
            model={"layer.weight": torch.full((2, 3), float(step))},
            optimizer={"layer.weight.mean": torch.full((2, 3), step / 10)},
            state={"validation": None if loss is None else {"loss": loss, **scores}, "best_by": best_by},
            facts={"threads": 2},
        )

    return write
