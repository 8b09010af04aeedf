"""How tests call the command: in this process, with what it wrote and its exit code as the outcome."""

import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regard import runtime
from regard.cli import terminal
from regard.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def error(self) -> list[str]:
        """The two lines of an error, whatever was said before it."""
        lines = self.err.splitlines()
        return lines[[line.startswith("error: ") for line in lines].index(True) :]


LANGUAGE = (
    "tokenizer.kind=characters",
    "model.preset=gpt-nano",
    "model.n_layers=1",
    "model.n_heads=2",
    "model.d_model=16",
    "model.context=16",
    "training.batch_tokens=64",
    "runtime.threads=1",
)

Command = Callable[..., Outcome]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Outcome]:
    """Call the command in an empty folder, on one core: command("translate", run, stdin=b"…")."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime, "cores", lambda: 1)
    monkeypatch.setattr(terminal, "LINE_EVERY", float("inf"))  # a slow machine says nothing more than a quick one

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def train_language(tmp_path_factory: pytest.TempPathFactory, corpus: tuple[str, str]) -> Callable[..., str]:
    """Train a tiny language model on the English side of the corpus: train_language("tokenizer.kind=bytes")."""

    def train(*settings: str, steps: int = 12) -> str:
        folder = tmp_path_factory.mktemp("language") / "run"
        sets = [part for setting in (*LANGUAGE, *settings) for part in ("--set", setting)]
        assert (
            main(["train", "language", "--train", corpus[0], "--steps", str(steps), "--run", str(folder), *sets]) == 0
        )
        return str(folder)

    return train


@pytest.fixture(scope="session")
def language_run(train_language: Callable[..., str]) -> str:
    """A language model of characters. To be read, not changed."""
    return train_language()


@pytest.fixture
def tiny_flags(tiny: dict[str, Any]) -> list[str]:
    """The settings of a tiny run as options."""
    return [word for key, value in tiny.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture
def own_run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run, to be changed or damaged."""
    return Path(shutil.copytree(trained, tmp_path / "runs" / "own"))
