"""`regard inspect --page` and `--html`: the page in a browser, served on this machine, or as one file that opens offline."""

import contextlib
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from regard.cli.options import check_number, check_option
from regard.cli.terminal import busy, note, shell_word, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.inspect_options import PageOptions
    from regard.web.session import Session

MOST_PORT = 65_535


def show_page(run: str, input: str, options: "PageOptions", *, against: str, data: Sequence[str], threads: int) -> None:
    """Serve the page of a run, and of another one to compare with, until Ctrl-C; `data`: a test set to measure heads on."""
    check_number("--port", options.port, least=0, most=MOST_PORT)
    session = open_session([run, *([against] if against else [])], input, data=data, threads=threads)
    from regard.web.server import serve

    def ready(url: str) -> None:
        tell(f"The page of {run}: {url}")
        tell("Ctrl-C ends it.")
        if not options.no_browser:
            open_browser(url)

    # Ctrl-C is how a server ends: no failure.
    with contextlib.suppress(KeyboardInterrupt):
        serve(session, port=options.port, on_ready=ready)


def open_browser(url: str) -> Thread | None:
    """Open the page in the user's browser, aside, since some of them keep whoever starts them; none without a screen."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None  # there may still be a browser for terminals, which would take this one

    def open_it() -> None:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(url)

    thread = Thread(target=open_it, name="browser", daemon=True)
    thread.start()
    return thread


def open_session(names: Sequence[str], input: str, *, data: Sequence[str] = (), threads: int) -> "Session":
    """The runs of a page, loaded; one without a checkpoint is shown for its probe examples, else refused."""
    check_option("runtime.threads", threads)
    with busy(f"loading {', '.join(names)}"):
        from regard.runtime import keep_freed_memory
        from regard.web.session import Session

        keep_freed_memory()
        session = Session(names, input=input, data=data, threads=threads)
        notes = session.load()
    for text in notes:
        note(text)
    return session


def write_page(run: str, input: str, file: str, *, beam: int | None, threads: int) -> None:
    """Write the page of one input as a file."""
    if not input:
        raise UsageError(
            "--html is the page of one input, and none is given.", f'Give one: regard inspect {shell_word(run)} "…"'
        )
    session = open_session([run], input, threads=threads)
    from regard.web.single_file import write_single_page

    try:
        with busy("recording"):
            n_bytes = write_single_page(session, run, input, Path(file), beam=beam)
    finally:
        session.close()
    tell(f"written: {file} ({n_bytes / 1e6:.1f} MB), which a browser opens from the disk")
