import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from regard.cli import terminal
from regard.cli.terminal import (
    PATIENCE,
    Stages,
    Waiting,
    busy,
    decimal,
    duration,
    print_json,
    print_lines,
    print_table,
    print_text,
    shell_word,
    size,
    visible,
)

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # all but tab and line end
HOSTILE = "a\x1b]0;owned\x07\x9b2J\u202eb\nc"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal in place of standard error."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    monkeypatch.setattr(terminal, "people", lambda: console)
    return file


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (42, "42 s"),
        (200, "3 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (3 * 86400, "3 days"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(17, "17 bytes"), (1500, "1.5 kB"), (28_400_000, "28 MB"), (1.25e9, "1.2 GB"), (5e12, "5000.0 GB")],
)
def test_size(n_bytes: float, text: str) -> None:
    assert size(n_bytes) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.25, "1.2"), (0, "0.0"), (float("inf"), "inf"), (float("nan"), "—"), (None, "—")]
)
def test_decimal(value: float | None, text: str) -> None:
    assert decimal(value, 1) == text


def test_a_path_stays_one_word() -> None:
    assert shell_word("runs/my run") == "'runs/my run'"


def test_json_is_one_line_and_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "größer\n", "score": float("inf")})
    assert capsys.readouterr().out == '{"text": "größer\\n", "score": null}\n'


def test_lines_are_neither_folded_nor_read_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    line = "[bold]" + "word " * 100 + ":smile:"
    print_lines([line])
    assert capsys.readouterr().out == line + "\n"


def test_a_table_in_a_file_is_not_folded_or_filled_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "value", "about"], [["[a]", "1.5", "long " * 60], ["b", "12.25", "x"]], left=(0, 2))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name  value  about"
    assert lines[1] == "[a]     1.5  " + ("long " * 60).rstrip()
    assert lines[2] == "b     12.25  x"


def test_quick_work_shows_nothing(screen: io.StringIO) -> None:
    with Waiting("translating", unit="lines", total=10) as waiting:
        waiting(5)
    assert screen.getvalue() == ""


def test_long_work_shows_a_bar_with_speed_and_time_left(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    with Waiting("translating", unit="lines", total=400) as waiting:
        monkeypatch.setattr(time, "monotonic", lambda: now + 4)
        waiting(100)
    assert "translating" in screen.getvalue()
    assert "100 of 400 lines, 25 per second, 12 s left" in screen.getvalue()


def test_the_parts_of_long_work_add_up(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    with Waiting("translating", unit="lines", total=400) as waiting:
        monkeypatch.setattr(time, "monotonic", lambda: now + 4)
        waiting.after(80)(20)
    assert "100 of 400 lines" in screen.getvalue()


def test_without_a_terminal_long_work_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    with Waiting("reading", unit="pairs") as waiting:
        for seconds, done in ((5, 100), (11, 220), (12, 240), (22, 440)):
            monkeypatch.setattr(time, "monotonic", lambda seconds=seconds: now + seconds)
            waiting(done)
    assert capsys.readouterr().err.splitlines() == [
        "reading: 220 pairs, 20 per second",
        "reading: 440 pairs, 20 per second",
    ]


def test_stages_follow_each_other(screen: io.StringIO) -> None:
    stages = Stages(unit="pairs")
    stages("reading", 4096)
    stages("learning the vocabulary", 0)
    stages.close()
    shown = screen.getvalue()
    assert "4,096 pairs" in shown
    assert shown.index("reading") < shown.index("learning the vocabulary")


def test_stages_may_count_different_things(screen: io.StringIO) -> None:
    stages = Stages(unit="tokens", others={"encoding": "lines"})
    stages("encoding", 70)
    stages("reading", 4096)
    stages.close()
    assert "70 lines" in screen.getvalue()
    assert "4,096 tokens" in screen.getvalue()


def test_quick_stages_show_nothing_where_patience_is_asked_for(screen: io.StringIO) -> None:
    with Stages(unit="tokens", patience=PATIENCE) as stages:
        stages("encoding", 70)
        stages("reading", 4096)
    assert screen.getvalue() == ""


def test_busy_says_what_is_going_on(screen: io.StringIO) -> None:
    with busy("loading runs/[x]"):
        pass
    assert "loading runs/[x] …" in screen.getvalue()


def test_what_a_terminal_would_obey_is_made_visible() -> None:
    assert visible(HOSTILE) == "a␛]0;owned␇\\u009b2J\\u202eb␊c"
    assert visible("a\tb größer 日本 שלום") == "a\tb größer 日本 שלום"
    assert visible("a\udcff") == "a\\udcff"


def test_results_keep_their_characters_in_a_file_but_steer_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_lines([HOSTILE])
    assert capsys.readouterr().out == f"{HOSTILE}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_lines([HOSTILE])
    print_json({"text": HOSTILE})
    print_text(f"{HOSTILE}\n")
    shown = capsys.readouterr().out
    assert not CONTROL.search(shown)
    assert shown.splitlines()[2:] == visible(HOSTILE).split("␊")
    assert json.loads(shown.splitlines()[1]) == {"text": HOSTILE}


def test_bars_show_names_as_they_are_without_steering_the_terminal(screen: io.StringIO) -> None:
    stages = Stages(unit="pairs")
    stages(f"encoding with {HOSTILE}[red]", 3)
    stages.close()
    with busy(HOSTILE):
        pass
    assert "owned␇\\u009b2J\\u202eb␊c[red]" in screen.getvalue()
    assert not re.search("\x1b]|[\x07\x9b\u202e]", screen.getvalue())


def steers(outcome: Any) -> bool:
    """Whether anything that a command said could steer a terminal."""
    return bool(CONTROL.search(outcome.out + outcome.err))


def test_no_settings_file_steers_the_terminal(command: Any, own_run: Path, corpus: tuple[str, str]) -> None:
    config = own_run / "config.toml"
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in HOSTILE)
    text = config.read_text()
    config.write_text(re.sub("train = .*", lambda _: f'train = ["{escaped}"]', text, count=1))
    shown = command("show", own_run)
    assert "training    " + visible(HOSTILE) in shown.out
    assert not steers(shown)
    config.write_text(text.replace('preset = "transformer-tiny"', f'preset = "{escaped}"'))
    for words in (
        ("show", own_run),
        ("runs", own_run.parent),
        ("plot", own_run),
        ("translate", own_run, "a dog"),
        ("compare", own_run, own_run, "--data", *corpus),
        ("train", config, "--run", "new"),
        ("resume", own_run),
    ):
        assert not steers(command(*words)), words
    config.write_text(text.replace("[training]", f'[training]\n"{escaped}" = 1'))
    refused = command("show", own_run)
    assert refused.code != 0
    assert not steers(refused)


def test_no_checkpoint_steers_the_terminal(command: Any, own_run: Path) -> None:
    from torch import ones

    from regard.runs import checkpoints
    from regard.runs.folder import RunFolder

    state = json.loads((own_run / "checkpoints" / "step-00000120" / "state.json").read_bytes())
    state["best"][HOSTILE] = 1.0
    checkpoints.write(RunFolder(own_run), step=999, model={HOSTILE: ones(2)}, facts={}, state=state)
    assert visible(HOSTILE) + " 1.0" in command("show", own_run).out
    for words in (("show", own_run), ("runs", own_run.parent), ("translate", f"{own_run}@999", "a"), ("plot", own_run)):
        assert not steers(command(*words)), words
    refused = command("translate", f"{own_run}@999", "a")
    assert (
        f"config.toml: {visible(HOSTILE)} is of shape (2,) in the checkpoint and missing in the model." in refused.err
    )
    assert len(refused.error) == 2


def test_no_table_steers_the_terminal(
    command: Any, classify_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / f"{HOSTILE}.csv"
    header = HOSTILE.replace("\n", "")
    table.write_text(f"{header},label\na dog,{header}\na cat,neg\n")
    for words in (
        ("train", "classify", "--train", table, "--text", "x"),
        ("train", "classify", "--train", table, "--dry-run"),
        ("evaluate", classify_run, "--data", table),
        ("predict", classify_run, "--data", table, "--text", "x"),
        ("data", "check", table),
        ("plan", HOSTILE),
        ("train", HOSTILE),
        ("translate", HOSTILE),
        (HOSTILE,),
        ("train", f"--{HOSTILE}"),
    ):
        outcome = command(*words)
        assert outcome.code != 0
        assert len(outcome.error) == 2
        assert not steers(outcome), words
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    predicted = command("predict", classify_run, "--data", table, "--text", header)
    assert predicted.code == 0
    assert not steers(predicted)
