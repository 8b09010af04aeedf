import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.cli import main as entry
from regard.cli.main import COMMANDS, main
from regard.errors import DataError

HEAVY = ("torch", "numpy", "matplotlib", "sacrebleu", "tokenizers")


def modules_after(*arguments: str) -> set[str]:
    """The modules that a process has loaded when the command has ended."""
    program = "import sys; from regard.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [(), ("--help",), ("translate", "--help"), ("train", "--help"), ("train", "image", "--help"), ("trian",)],
)
def test_help_and_typos_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    loaded = modules_after(*arguments)
    assert "regard.cli.main" in loaded
    assert not loaded.intersection(HEAVY)


def test_counting_parameters_loads_no_compiler() -> None:
    loaded = modules_after("models")
    assert "torch" in loaded
    assert "torch._dynamo" not in loaded


def test_python_runs_the_package_as_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "regard", "trian"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "Did you mean train?" in ended.stderr


def test_alone_it_shows_examples(command: Any) -> None:
    outcome = command()
    assert outcome.code == 0
    assert "  regard train translate --train train.en train.de --run runs/mine" in outcome.lines
    assert "  regard demo" in outcome.lines


def test_help_lists_every_command_in_the_order_people_meet_them(command: Any) -> None:
    outcome = command("--help")
    assert outcome.code == 0
    names = [usage.split()[0] for usage, _ in COMMANDS]
    listed = [line.split()[1] for line in outcome.lines if line.startswith("│ ") and line[2] not in " -"]
    assert listed == [*names, "data"]


@pytest.mark.parametrize("name", [usage.split()[0] for usage, _ in COMMANDS])
def test_every_command_explains_itself(command: Any, name: str) -> None:
    outcome = command(name, "--help")
    assert outcome.code == 0
    assert outcome.lines[0].startswith(f"Usage: regard {name}")


def test_a_command_called_explains_more_than_its_line_in_the_list(command: Any) -> None:
    outcome = command("translate", "--help")
    assert "One line of output per line of input." in outcome.out
    assert "beam width; 1 is greedy search" in outcome.out  # the setting's own help


def test_version(command: Any) -> None:
    outcome = command("--version")
    assert (outcome.code, outcome.out) == (0, f"regard {regard.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        (("trian",), "There is no command 'regard trian'.", "Did you mean train?"),
        (("xyz",), "There is no command 'regard xyz'.", "See: regard --help"),
        (("data", "chck"), "There is no command 'regard data chck'.", "Did you mean check?"),
        (("--hepl",), "regard has no option --hepl.", "Did you mean --help?"),
        (("translate", "runs/x", "--bem", "3"), "regard translate has no option --bem.", "Did you mean --beam?"),
        (("translate", "runs/x", "--bem=3"), "regard translate has no option --bem.", "Did you mean --beam?"),
        (("translate", "runs/x", "--lr", "3"), "regard translate has no option --lr.", "See: regard translate --help"),
        (
            ("translate", "runs/x", "--num-beams", "3"),
            "regard translate has no option --num-beams.",
            "Did you mean --beam?",
        ),
        (("train", "translate", "--lr", "3"), "regard train has no option --lr.", "Did you mean --learning-rate?"),
        (("train", "image", "--src", "de"), "regard train has no option --src.", "Did you mean --from?"),
        (
            ("train", "translate", "--batch-size", "3"),
            "regard train has no option --batch-size.",
            "Did you mean --batch-tokens or --batch-images?",
        ),
        (
            ("train", "translate", "--warmup", "3"),
            "regard train has no option --warmup.",
            "Did you mean --set training.warmup=…?",
        ),
        (
            ("resume", "runs/x", "--lr", "3"),
            "regard resume has no option --lr.",
            "Did you mean --set training.learning_rate=…?",
        ),
        (("plan", "gpt2", "--lr", "3"), "regard plan has no option --lr.", "See: regard plan --help"),
        (
            ("plan", "gpt2", "--num-heads", "3"),
            "regard plan has no option --num-heads.",
            "Did you mean --set model.n_heads=…?",
        ),
        (("show",), "regard show needs RUN.", "See: regard show --help"),
        (("evaluate", "runs/x"), "regard evaluate needs --data.", "See: regard evaluate --help"),
        (("resume", "runs/x", "--steps"), "--steps needs a value.", "See: regard resume --help"),
        (("resume", "runs/x", "--steps", "x"), "--steps must be a whole number, not 'x'.", "See: regard resume --help"),
        (("translate", "runs/x", "--top-p", "x"), "--top-p must be a number, not 'x'.", "See: regard translate --help"),
        (("show", "runs/x", "y"), "regard show has no place for 'y'.", "See: regard show --help"),
        (
            ("resume", "runs/x", "--steps", "1", "--steps", "2"),
            "Parameter --steps specified multiple times.",
            "See: regard resume --help",
        ),
    ],
)
def test_wrong_usage(command: Any, arguments: tuple[str, ...], problem: str, remedy: str) -> None:
    outcome = command(*arguments)
    assert outcome.err.splitlines() == [f"error: {problem}", remedy]
    assert (outcome.code, outcome.out) == (2, "")


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code when a command raises this."""

    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr(entry, "run", run)
    return main(["anything"])


def test_an_error_for_people_is_two_lines_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Brackets and long lines come through as they are.
    problem = "a[b].en:3: " + "x " * 80 + "[/bold]."
    assert raising(DataError(problem, "Fix it."), monkeypatch) == 1
    assert capsys.readouterr().err == f"error: {problem}\nFix it.\n"


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_defect_shows_where_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(ZeroDivisionError("oops"), monkeypatch) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "ZeroDivisionError: oops" in shown
    assert shown.endswith("error: This is a defect of regard. Please report it with the lines above.\n")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: …"),
    ],
)
def test_too_little_memory_is_no_defect(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error, monkeypatch) == 1
    problem, remedy = capsys.readouterr().err.splitlines()
    assert problem == "error: There is not enough memory."
    assert remedy.startswith("Lower what is asked for at once: --batch-tokens")


def test_a_reader_that_has_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-c", "import sys; from regard.cli.main import main; sys.exit(main(['--help']))"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_completion_can_be_installed(command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    outcome = command("--install-completion", "--shell", "bash")
    assert outcome.code == 0
    [script] = tmp_path.rglob("completions/regard")
    assert "translate" in script.read_text()
