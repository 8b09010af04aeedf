"""A real browser for the page's tests: the one `$CHROMIUM` names, else Debian's."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.driving import TEXT

import regard
from regard.web.server import PageServer
from regard.web.session import Session

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# For one module at a time: while it runs, no other event loop can run in this thread, which tests of the server need.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        reason = "no Chromium: install it, or let $CHROMIUM name one"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served(watched: Path) -> Iterator[PageServer]:
    """The page of the watched run, served on loopback."""
    server = PageServer(Session([str(watched)], threads=1))
    thread = Thread(target=server.run)
    thread.start()
    yield server
    server.stop()
    thread.join(timeout=60)


@pytest.fixture
def page(browser: Browser, served: PageServer) -> Iterator[Page]:
    """A fresh page, wide enough for one screen, on which an error in a script or a request elsewhere fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.url.rstrip("/"))
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(f"{said.text} {said.location}") if said.type == "error" else None)
    page.on("request", lambda request: None if is_ours(request.url, served) else faults.append(request.url))
    yield page
    context.close()
    assert faults == []


def is_ours(url: str, served: PageServer) -> bool:
    """Whether a request goes to the page's own server, to a saved file, or nowhere."""
    return url.startswith((served.url, "file:", "data:", "blob:"))


@pytest.fixture(scope="session")
def trace(watched: Path) -> Any:
    """What the page of the watched run must show of its text."""
    return regard.load(str(watched)).trace(TEXT, beam=4)


@pytest.fixture(scope="session")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader of some hundred characters, more than a map draws cell by cell. To be read, not changed."""
    folder = tmp_path_factory.mktemp("long")
    rows = [f"the {word} dog number {number},{word}\n" for word in ("good", "bad") for number in range(30)]
    (folder / "train.csv").write_text("text,label\n" + "".join(rows))
    settings = {
        "model.preset": "bert-tiny",
        "model.n_layers": 3,
        "model.n_heads": 4,
        "model.d_model": 32,
        "model.d_ff": 32,
        "model.max_positions": 320,
        "tokenizer.kind": "characters",
        "training.steps": 12,
        "training.learning_rate": 0.05,
        "runtime.device": "cpu",
        "runtime.threads": 1,
    }
    regard.train("classify", train=[str(folder / "train.csv")], run=folder / "run", settings=settings)
    return folder / "run"
