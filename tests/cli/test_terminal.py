import io
import time

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
    shell_word,
    size,
)


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
