"""`regard inspect --page` and `--html`."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import inspect_page
from regard.runs.folder import RunFolder
from regard.web import server
from regard.web.session import Session

Serve = Callable[..., None]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be served, and opened in a browser; nothing is."""
    seen: list[Any] = []

    def serve(session: Session, *, port: int, on_ready: Callable[[str], Any]) -> None:
        seen.append((session.names, session.input, session.data, port))
        on_ready("http://127.0.0.1:1/")
        session.close()

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(inspect_page, "open_browser", seen.append)
    return seen


def test_the_page_tells_its_address_and_ends_by_ctrl_c(trained: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "inspect", str(trained), "the dog", "--page", "--no-browser"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    url = ""
    while not url:
        line = process.stderr.readline()
        assert line, "it ended before it told its address"
        url = next(iter(re.findall(r"http://127\.0\.0\.1:\d+/", line)), "")
    with urllib.request.urlopen(f"{url}api/session") as answer:
        assert json.load(answer)["input"] == "the dog"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_browser_is_opened_unless_told_not_to(command: Any, served: list[Any], trained: Path) -> None:
    outcome = command("inspect", trained, "--page", "--port", 4000)
    assert outcome.code == 0
    assert served == [([str(trained)], "", (), 4000), "http://127.0.0.1:1/"]
    assert f"The page of {trained}: http://127.0.0.1:1/" in outcome.err.splitlines()
    served.clear()
    assert command("inspect", trained, "the dog", "--page", "--no-browser").code == 0
    assert served == [([str(trained)], "the dog", (), 0)]


def test_another_run_and_a_test_set_go_along(command: Any, served: list[Any], trained: Path, corpus: Any) -> None:
    other = f"{trained}@last"
    outcome = command("inspect", trained, "--page", "--no-browser", "--against", other, "--data", *corpus)
    assert outcome.code == 0, outcome.err
    assert served == [([str(trained), other], "", corpus, 0)]


def test_how_a_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    thread = inspect_page.open_browser("http://127.0.0.1:1/")
    assert thread is not None
    thread.join()
    assert opened == ["http://127.0.0.1:1/"]

    def none(url: str) -> None:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open", none)  # which is no reason to stop
    thread = inspect_page.open_browser("http://127.0.0.1:1/")
    assert thread is not None
    thread.join()


def test_without_a_screen_no_browser_takes_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("a browser was opened"))
    assert inspect_page.open_browser("http://127.0.0.1:1/") is None


def test_a_port_that_is_taken(command: Any, trained: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        outcome = command("inspect", trained, "--page", "--no-browser", "--port", port)
    assert outcome.code == 2
    assert outcome.error == [
        f"error: Port {port} of this machine cannot be used: Address already in use.",
        "Name another: --port 8001, or leave it out.",
    ]


def test_a_run_without_a_checkpoint_is_refused_unless_it_has_probes_to_show(
    command: Any, served: list[Any], own_run: Path
) -> None:
    shutil.rmtree(own_run / "checkpoints")
    (own_run / "checkpoints").mkdir()
    outcome = command("inspect", own_run, "--page", "--no-browser")
    assert (outcome.code, outcome.error[0]) == (1, f"error: {own_run} has no checkpoint yet.")
    (RunFolder(own_run).traces / "step-00000010").mkdir(parents=True)
    outcome = command("inspect", own_run, "--page", "--no-browser")
    assert outcome.code == 0
    assert f"{own_run} is shown without its model: {own_run} has no checkpoint yet." in outcome.err
    assert len(served) == 1
    named = command("inspect", f"{own_run}@40", "--page", "--no-browser")
    assert (named.code, named.error[0]) == (1, f"error: {own_run} has no checkpoint of step 40: it has none yet.")
    assert len(served) == 1


def test_a_run_of_another_version_or_none_is_refused(command: Any, served: list[Any], own_run: Path) -> None:
    assert command("inspect", "nowhere", "--page").error[0] == "error: nowhere is not a run: there is no such folder."
    config = own_run / "config.toml"
    config.write_text(config.read_text() + "\n[holograms]\ndepth = 3\n")
    outcome = command("inspect", own_run, "--page")
    assert outcome.code in (1, 2)
    assert "holograms" in outcome.error[0]
    assert not served


def test_the_page_as_a_file(command: Any, trained: Path) -> None:
    outcome = command("inspect", trained, "the dog sees red", "--html", "look.html", "--beam", 2)
    assert outcome.code == 0, outcome.err
    written = Path("look.html").read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>") and written.rstrip().endswith("</html>")
    assert re.search(r"written: look\.html \(\d+\.\d MB\), which a browser opens from the disk", outcome.err)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--html", "look.html"), "--html is the page of one input, and none is given."),
        (("a dog", "--html", "no/where.html"), "Cannot write no/where.html: there is no folder no."),
        (("a dog", "--html", "a.html", "--page"), "--page serves the page, --html writes it as a file."),
        (("--port", "1"), "--port is about the page in a browser."),
        (("--no-browser",), "--no-browser is about the page in a browser."),
        (("--page", "--port", "70000"), "--port must be at least 0 and at most 65,535, not 70000."),
        (("--page", "--port", "-1"), "--port must be at least 0, not -1."),
        (("a dog", "--page", "--lens"), "--lens does not go with --page."),
        (("--page", "--json"), "--json does not go with --page."),
        (("--page", "--beam", "2"), "--beam does not go with --page."),
        (("a dog", "--html", "a.html", "--against", "x"), "--against does not go with --html."),
        (("a dog", "--html", "a.html", "--png", "a.png"), "--png does not go with --html."),
    ],
)
def test_what_does_not_go_together(
    command: Any, served: list[Any], trained: Path, arguments: tuple[str, ...], error: str
) -> None:
    outcome = command("inspect", trained, *arguments)
    assert outcome.code == 2
    assert outcome.error[0] == f"error: {error}"
    assert not served
    assert not Path("a.html").exists()


def test_the_help_needs_no_server() -> None:
    program = (
        "import sys\nfrom regard.cli.main import main\nmain(['inspect', '--help'])\n"
        "print('loaded:', *sorted({'torch', 'fastapi', 'uvicorn', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
    assert "--page" in done.stdout
