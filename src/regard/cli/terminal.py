"""What commands show: results on standard output, everything else on standard error.

On a terminal in colour and with bars, elsewhere as plain lines. rich heeds NO_COLOR. No file can steer the terminal: its
control characters are made visible (`visible`) in all that people read, and in results where they go to a terminal.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from regard.evaluation.table import Table as ResultTable

PATIENCE = 2.0  # what is done after so many seconds needs no bar
LINE_EVERY = 10.0  # seconds between lines where there is no terminal for a bar
PLAIN_WIDTH = 1000  # elsewhere than on a terminal no line is folded

# Characters that a terminal obeys instead of showing: the controls but tab, line and paragraph separators, and those that
# reorder text (Boucher and Anderson 2021, "Trojan Source"); and bytes that are no UTF-8. As escapes they are valid in JSON.
_CONTROLS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) != "\t"}
_ESCAPED = (*range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {**_CONTROLS, **{code: f"\\u{code:04x}" for code in (*_ESCAPED, *range(0xD800, 0xE000))}}


def visible(text: str) -> str:
    """Return a text as one line that a terminal only shows: control characters as ␛, ␊, or escapes such as \\u202e."""
    return text.translate(_VISIBLE)


@cache
def people() -> "Console":
    """Standard error."""
    return _console(stderr=True)


@cache
def results() -> "Console":
    """Standard output."""
    return _console(stderr=False)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    on_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, width=None if on_terminal else PLAIN_WIDTH
    )


def tell(text: str = "", *, style: str = "") -> None:
    """Say a line to whoever sits there."""
    people().print(visible(text), style=style or None, soft_wrap=True)


def note(text: str) -> None:
    """Say what a user should know but need not act on."""
    tell(f"note: {text}", style="yellow")


def print_lines(lines: Sequence[str]) -> None:
    """Write results as they are, without any folding or colour, and at once; a terminal gets no control characters."""
    shown = map(visible, lines) if sys.stdout.isatty() else lines
    sys.stdout.write("".join(f"{line}\n" for line in shown))
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Write a piece of a result that may have several lines, likewise."""
    shown = "\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text
    sys.stdout.write(shown)
    sys.stdout.flush()


def print_json(value: Any) -> None:
    """Write one result as a line of JSON."""
    print_lines([json_line(value)])


def json_line(value: Any) -> str:
    """Return a value as a line of JSON; NaN and infinity become null."""
    from regard.runs.disk import as_json

    return as_json(value).decode()


def print_facts(rows: Sequence[tuple[str, str]], console: "Console") -> None:
    """Show labels and texts in two columns."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(visible(label), visible(text))
    _print_table(table, console)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> None:
    """Show a table of results; all columns but those in `left` are numbers and stand to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(visible(heading), justify="left" if number in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(visible, row))
    _print_table(table, results())


def show_table(table: "ResultTable") -> None:
    """Show a table of results that says itself which of its columns are words."""
    print_table(table.headings, table.rows, left=table.left)


def _print_table(table: "Table", console: "Console") -> None:
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    # rich fills up the last column, which only makes files larger.
    for line in captured.get().splitlines():
        console.print(line.rstrip(), soft_wrap=True)


def shows() -> bool:
    """Whether this process shows anything: of several that torchrun started it is the first."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on a terminal that something is going on whose progress nobody knows."""
    if not (people().is_terminal and shows()):
        yield
        return
    from rich.markup import escape

    with people().status(escape(visible(f"{what} …"))):
        yield


class Waiting:
    """The progress of something that may take long; called with how many are done so far.

    Says nothing for two seconds; then shows a bar on a terminal, or a line now and then elsewhere.
    """

    def __init__(self, what: str, *, unit: str, total: int | None = None, patience: float = PATIENCE) -> None:
        self.what = what
        self.unit = unit
        self.total = total
        self.patience = patience
        self._began = self._said = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> "Waiting":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def hide(self) -> None:
        """Take the bar away while something else is written; the next call brings it back."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if people().is_terminal:
            if self._bar is None and now - self._began >= self.patience and done != self.total:
                self._bar = _start_bar(self.what, self.total)
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=done, state=self._state(done, now))
        elif now - self._said > LINE_EVERY:
            self._said = now
            tell(f"{self.what}: {self._state(done, now)}")

    def after(self, before: int) -> Callable[[int], None]:
        """What to call with how many are done of a part, where so many were done before it."""
        return lambda now: self(before + now)

    def _state(self, done: int, now: float) -> str:
        rate = done / max(now - self._began, 1e-9)
        of = f" of {self.total:,}" if self.total else ""
        left = f", {duration((self.total - done) / rate)} left" if self.total and done else ""
        return f"{done:,}{of} {self.unit}, {rate:,.0f} per second{left}" if done else ""


class Stages:
    """The progress of several things, one after another; called with what is done now, and how many of it.

    unit:      what is counted
    others:    what is counted instead where this or that is done
    patience:  seconds before a stage shows; none by default, as a stage may call only at its beginning
    """

    def __init__(
        self, *, unit: str, others: Mapping[str, str] | None = None, patience: float = 0, hidden: bool = False
    ) -> None:
        self.unit = unit
        self.hidden = hidden
        self.others = others or {}
        self.patience = patience
        self._waiting: Waiting | None = None

    def __enter__(self) -> "Stages":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, what: str, done: int) -> None:
        if self.hidden:
            return
        if self._waiting is None or what != self._waiting.what:
            self.close()
            unit = self.others.get(what.partition(" ")[0], self.unit)  # "encoding", or "encoding with RUN"
            self._waiting = Waiting(what, unit=unit, patience=self.patience)
        self._waiting(done)

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.hide()
            self._waiting = None


def make_bar(columns: Sequence[Any]) -> "Progress":
    """Make a bar on standard error that vanishes at its end."""
    from rich.progress import Progress

    # rich would send standard output to the bar's own console: results must not end up on standard error.
    return Progress(*columns, console=people(), transient=True, redirect_stdout=False)


def _start_bar(what: str, total: int | None) -> "Progress":
    from rich.progress import BarColumn, TextColumn

    texts = [TextColumn(format, markup=False) for format in ("{task.description}", "{task.fields[state]}")]
    bar = make_bar((texts[0], BarColumn(bar_width=24), texts[1]))
    bar.add_task(visible(what), total=total, state="")
    bar.start()
    return bar


def duration(seconds: float) -> str:
    """Write a time as people say it: 8 s, 3 min, 2 h 5 min, 3 days."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return f"{minutes // (24 * 60)} days"


def size(n_bytes: float) -> str:
    """Write a number of bytes as people say it: 28 MB, 1.2 GB."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" or n_bytes >= 10 else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


def decimal(value: float | None, digits: int) -> str:
    """Write a number with so many decimals; a dash where there is none, as for the loss of a run that diverged."""
    return "—" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def shell_word(text: object) -> str:
    """Write a path so that a shell takes it as one word."""
    import shlex

    return shlex.quote(str(text))
