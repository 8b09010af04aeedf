"""`regard inspect --page` and `--html`: the page in a browser, served on this machine, or as one file that opens offline."""

import contextlib
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.options import check_number, check_option
from regard.cli.terminal import busy, note, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.inspect_options import PageOptions
    from regard.web.session import Session

MOST_PORT = 65_535


def show_page(run: str, input: str, against: str, options: "PageOptions", *, threads: int) -> None:
    """Serve the page of a run, and of another one to compare with, until Ctrl-C."""
    check_number("--port", options.port, least=0, most=MOST_PORT)
    session = open_session(run, input, against, threads=threads)
    from regard.web.server import serve

    def ready(url: str) -> None:
        tell(f"The page of {run}: {url}")
        tell("Ctrl-C ends it.")
        if not options.no_browser:
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(url)

    # Ctrl-C is how a server ends: no failure.
    with contextlib.suppress(KeyboardInterrupt):
        serve(session, port=options.port, on_ready=ready)


def open_session(run: str, input: str, against: str, *, threads: int) -> "Session":
    """The runs of a page, loaded; one without a checkpoint is shown for its probe examples, else refused."""
    check_option("runtime.threads", threads)
    names = [run, *([against] if against else [])]
    with busy(f"loading {', '.join(names)}"):
        from regard.runtime import keep_freed_memory
        from regard.web.session import Session

        keep_freed_memory()
        session = Session(names, input=input, threads=threads)
        notes = session.load()
    for text in notes:
        note(text)
    return session


def write_page(run: str, input: str, against: str, file: str, *, threads: int) -> None:
    """Write the page of one input as a file."""
    if not input:
        raise UsageError("--html is the page of one input, and none is given.", f'Give one: regard inspect {run} "…"')
    session = open_session(run, input, against, threads=threads)
    from regard.web.single_file import write_single_page

    with busy("recording"):
        size = write_single_page(session, run, input, Path(file))
    tell(f"written: {file} ({size / 1e6:.1f} MB), which any browser opens, offline too")
