"""Benchmarks that need no peer run to their end, and tell what they found."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks import attention, cost, rounds, scaling


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--quick", "--threads", "1"])
    for module in (rounds, cost):
        monkeypatch.setattr(module, "BUILD", tmp_path)
    monkeypatch.setattr(rounds, "REPOSITORY", tmp_path)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_what_layers_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cost.main()
    layers = json.loads((tmp_path / "cost-quick.json").read_text())["layers"]
    assert layers["self-attention"]["path"] == [1, 1, 1]
    assert layers["recurrent"]["path"] == [64, 128, 256]
    assert layers["within a window"]["path"] == [2, 4, 8]
    steps = layers["recurrent"]["steps"]
    assert steps[2] > 1.9 * steps[1] > 3 * steps[0]
    assert len(set(layers["convolution"]["steps"])) == 1
    square, line = (layers[name]["memory"] for name in ("by the formula", "recurrent"))
    assert square[2] > 2.2 * square[1]
    assert line[2] < 2.1 * line[1]
    assert (tmp_path / "cost-quick.png").stat().st_size > 10_000
    assert "quick: no measurement" in capsys.readouterr().out


def test_formula_against_kernel(tmp_path: Path) -> None:
    chosen = attention.attention_kernels.formula_is_faster
    attention.main()
    cases = json.loads((tmp_path / "attention-quick.json").read_text())["cases"]
    assert {case["taken"] for case in cases} == {"formula", "fused"}
    assert all(case["formula_ms"] > 0 and case["fused_ms"] > 0 for case in cases)
    assert attention.attention_kernels.formula_is_faster is chosen


def test_predicted_and_real_steps_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(scaling.step_timing, "BATCH_SECONDS", 0.05)  # which the benchmark changes
    scaling.main()
    steps = json.loads((tmp_path / "scaling-quick.json").read_text())["steps"]
    assert list(steps) == ["gpt-nano, 1", "gpt-nano, 2"]
    assert all(min(seconds["predicted"] + seconds["measured"]) > 0 for seconds in steps.values())
    assert "quick: no measurement" in capsys.readouterr().out
