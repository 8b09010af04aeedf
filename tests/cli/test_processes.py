"""Several processes that predict with one run: the same output as of one, in the same order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.api import process_pool
from regard.cli import lines as module

TEXT = b"".join(
    b"%s\n" % line for line in (b"the dog runs", b"a cat", b"", b"the red tree", b"man", b"old house", b"\xff")
)
SETTINGS = ("--threads", 1, "--engine-workers", 1, "--engine-threads", 1)
TWO = ("--processes", 2)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)


@pytest.mark.parametrize(
    "options",
    [
        ("--json", "--n-best", 2, "--prefix", "der"),
        ("--n-best", 3, "--align", "--engine", "torch"),
        ("--sample", "--temperature", 5, "--seed", 4),
    ],
    ids=["json", "n-best", "sampled"],
)
def test_translations_are_those_of_one_process(command: Any, trained: Path, options: tuple[Any, ...]) -> None:
    one = command("translate", trained, *SETTINGS, *options, stdin=TEXT)
    two = command("translate", trained, *TWO, *options, stdin=TEXT)
    assert one.code == two.code == 0
    assert two.out == one.out
    assert two.err.splitlines()[1:] == one.err.splitlines()[1:]  # the first is about the engine, which is there now


def test_an_ensemble_is_one_in_each_process(command: Any, trained: Path) -> None:
    runs = (trained, "--with", f"{trained}@best", "--json")
    assert command("translate", *runs, *TWO, stdin=TEXT).out == command("translate", *runs, *SETTINGS, stdin=TEXT).out


def test_continuations_are_those_of_one_process(command: Any, language_run: str) -> None:
    options = (language_run, "--lines", "--max-length", 8, "--seed", 3)
    one = command("generate", *options, *SETTINGS, stdin=b"the\ndog\n\n\xff\na\n")
    two = command("generate", *options, *TWO, stdin=b"the\ndog\n\n\xff\na\n")
    assert one.code == two.code == 0
    assert (two.out, two.err) == (one.out, one.err)


def test_predictions_are_those_of_one_process(command: Any, classify_run: str, tag_run: str, pairs_run: str) -> None:
    for run, stdin, more in (
        (classify_run, b"a good dog\na bad film\n\na bad day\n\xff\n", ("--json",)),
        (tag_run, b"Anna visits Rome\n\nBen visits Oslo\n", ()),
        (pairs_run, b"a dog\ta cat\na dog\ta dog\nthe sun\ta dog\n", ("--json",)),
    ):
        one, two = (command("predict", run, *kind, *more, stdin=stdin) for kind in (("--threads", 1), TWO))
        assert one.code == two.code == 0
        assert (two.out, two.err) == (one.out, one.err)


def test_tables_are_those_of_one_process(command: Any, classify_run: str) -> None:
    Path("films.csv").write_text("text,stars\na good film,5\na bad film,1\nbroken\na bad song,2\na fine day,4\n")
    arguments = ("predict", classify_run, "--data", "films.csv", "--on-bad", "keep-going")
    one, two = (command(*arguments, *kind) for kind in (("--threads", 1), TWO))
    assert one.code == two.code == 0
    assert (two.out, two.err) == (one.out, one.err)
    assert command(*arguments, *TWO, "--output", "out.csv").code == 0
    assert Path("out.csv").read_text() == one.out


def test_an_error_comes_after_the_answers_before_it(command: Any, trained: Path) -> None:
    one, two = (
        command("translate", trained, "--on-bad", "stop", *kind, stdin=TEXT + b"a tree\n") for kind in (SETTINGS, TWO)
    )
    assert one.code == two.code == 1
    assert (two.out, two.error) == (one.out, one.error)
    assert len(two.lines) == 6


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        (("translate", "RUN", "a dog"), "--processes is for files and standard input.", "Leave it out."),
        (
            ("generate", "LANGUAGE"),
            "--processes is for files and standard input.",
            "Leave it out, or add --lines for prompts of standard input.",
        ),
        (("predict", "CLASSIFY", "a dog"), "--processes is for files and standard input.", "Leave it out."),
    ],
)
def test_few_inputs_need_one_process(
    command: Any,
    trained: Path,
    language_run: str,
    classify_run: str,
    arguments: tuple[str, ...],
    problem: str,
    remedy: str,
) -> None:
    runs = {"RUN": trained, "LANGUAGE": language_run, "CLASSIFY": classify_run}
    outcome = command(*(runs.get(one, one) for one in arguments), *TWO)
    assert (outcome.code, outcome.err.splitlines()) == (2, [f"error: {problem}", remedy])


@pytest.mark.parametrize(("number", "bound"), [(0, "at least 1"), (257, "at least 1 and at most 256")])
def test_a_number_of_processes_that_cannot_be(command: Any, trained: Path, number: int, bound: str) -> None:
    outcome = command("translate", trained, "--processes", number, stdin=b"a dog\n")
    assert outcome.code == 2
    assert outcome.error[0] == f"error: --processes must be {bound}, not {number}."


def test_a_process_that_dies_is_named(command: Any, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = process_pool.ProcessPool.__init__

    def kill_the_second(pool: Any, *arguments: Any) -> None:
        opened(pool, *arguments)
        os.kill(pool._workers[1].process.pid, signal.SIGKILL)

    monkeypatch.setattr(process_pool.ProcessPool, "__init__", kill_the_second)
    outcome = command("translate", trained, *TWO, stdin=TEXT)
    assert outcome.code == 1
    assert outcome.error == [
        "error: Process 2 of 2 was killed by signal 9 (SIGKILL) at inputs 3 to 4.",
        "If memory ran out, give fewer --processes: each holds the model.",
    ]
    assert len(outcome.lines) == 2, "what stands before them is answered"


# -- a command of its own, which is stopped -----------------------------------------------------------------------------


@pytest.fixture
def waiting_command(trained: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command with two processes that has answered a line and waits for the next, in a session of its own."""
    command = [sys.executable, "-m", "regard", "translate", str(trained), "--processes", "2", "--engine", "torch"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        # Where tests run in the background of a shell, it is ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"the dog runs\n")
        process.stdin.flush()
        assert process.stdout.readline().strip(), "it answers in time, while its input goes on"
        yield process
        process.kill()


def members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, _, _, own = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(own) == session and state != "Z":
                found.append(int(folder.name))
    return found


def left(session: int, *, patience: float = 20) -> list[int]:
    """The processes that are still there after some time."""
    until = time.monotonic() + patience
    while (found := members(session)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def said(errors: bytes) -> list[str]:
    """What a command said, but for its progress, of which a slow machine tells."""
    return [line for line in errors.decode().splitlines() if not line.startswith("translating: ")]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("number", "to_all", "code"),
    [
        (signal.SIGINT, True, 130),
        (signal.SIGINT, False, 130),
        (signal.SIGTERM, False, -signal.SIGTERM),
        (signal.SIGKILL, False, -signal.SIGKILL),
    ],
    ids=["Ctrl-C", "SIGINT", "SIGTERM", "SIGKILL"],
)
def test_nobody_is_left_behind(
    waiting_command: subprocess.Popen[bytes], number: signal.Signals, to_all: bool, code: int
) -> None:
    assert len(members(waiting_command.pid)) >= 3
    (os.killpg if to_all else os.kill)(waiting_command.pid, number)
    assert waiting_command.wait(20) == code
    assert left(waiting_command.pid) == []
    assert waiting_command.stderr is not None
    assert said(waiting_command.stderr.read()) == (["stopped"] if number == signal.SIGINT else [])


def test_the_end_of_the_input_ends_all(waiting_command: subprocess.Popen[bytes]) -> None:
    answers, errors = waiting_command.communicate(b"a cat\nthe red tree\n", timeout=60)
    assert (waiting_command.returncode, len(answers.splitlines()), said(errors)) == (0, 2, [])
