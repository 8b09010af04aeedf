"""A program at the other end of a pipe: it writes a line, and reads its answer before it writes the next."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regard import runtime
from regard.cli.main import main

Converse = Callable[..., list[str]]


class Partner(io.BufferedReader):
    """The reading end of a pipe into which each line is written when the command asks for more."""

    def __init__(self, blocks: list[bytes], heard: Callable[[], None]) -> None:
        reading, self._writing = os.pipe()
        super().__init__(io.FileIO(reading))
        self._blocks = list(blocks)
        self._heard = heard

    def read1(self, size: int = -1) -> bytes:
        self._heard()
        if self._blocks:
            os.write(self._writing, self._blocks.pop(0))
        elif self._writing >= 0:
            os.close(self._writing)
            self._writing = -1
        return super().read1(size)


@pytest.fixture
def converse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Converse:
    """Call a command and write blocks to it: what it answers to each before it is given the next, and behind the last."""
    monkeypatch.setattr(runtime, "cores", lambda: 1)

    def call(*arguments: object, blocks: list[bytes]) -> list[str]:
        answers: list[str] = []
        with Partner(blocks, lambda: answers.append(capsys.readouterr().out)) as partner:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(partner))
            assert main(list(map(str, arguments))) == 0
        before, *others = answers
        assert not before
        return [*others, capsys.readouterr().out]

    return call


@pytest.fixture
def commands(trained: Path, language_run: str, classify_run: Path) -> dict[str, list[object]]:
    return {
        "translate": [trained],
        "generate": [language_run, "--lines", "--max-length", 5],
        "predict": [classify_run],
        "embed": [trained],
    }


@pytest.mark.parametrize("name", ["translate", "generate", "predict", "embed"])
def test_each_line_is_answered_when_it_is_there(
    name: str, commands: dict[str, list[object]], converse: Converse
) -> None:
    lines = [b"a dog\n", b"the old man\n", b"a cat\n"]
    answers = converse(name, *commands[name], blocks=lines)
    assert [answer.count("\n") for answer in answers] == [1, 1, 1, 0]
    together = converse(name, *commands[name], blocks=[b"".join(lines)])
    assert [answer.count("\n") for answer in together] == [3, 0], "what waits is answered together"
    assert name == "embed" or "".join(together) == "".join(answers)  # vectors of a batch differ in their last bits


def test_what_is_drawn_depends_on_the_line_and_not_on_when_it_came(trained: Path, converse: Converse) -> None:
    lines = [b"a dog. The cat\n", b"\n", b"a dog. The cat\n", b"man\n"]
    sampling = ("translate", trained, "--sample", "--temperature", 2)
    alone = converse(*sampling, blocks=lines)
    assert converse(*sampling, blocks=[b"".join(lines)]) == ["".join(alone), ""]
    assert alone[0] != alone[2], "equal lines are drawn independently"


def test_a_line_without_an_end_is_answered_at_the_end(trained: Path, converse: Converse) -> None:
    answers = converse("translate", trained, blocks=[b"a dog\nthe", b" cat\na", b" man"])
    assert [text.count("\n") for text in answers] == [1, 1, 0, 1]
