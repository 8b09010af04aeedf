"""What tests of the page do with it: open it on a text, open the page of any run, read a weight as it is written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect

from regard.web.server import PageServer
from regard.web.session import Session

TEXT = "a small dog sees"


def look(page: Page, served: PageServer, hash: str = "", text: str = TEXT) -> None:
    """Open the page and wait until it shows the text."""
    page.goto(f"{served.url}#text={quote(text)}{'&' if hash else ''}{hash}")
    expect(page.locator("#badge .checks, #badge [title]")).to_have_count(1, timeout=20_000)


def as_share(value: float) -> str:
    """As the page writes a weight."""
    return "<0.001" if 0 < value < 0.0005 else f"{value:.3f}"


@contextmanager
def page_of(browser: Browser, run: Path, **settings: Any) -> Iterator[Page]:
    """The page of any run; an error in one of its scripts fails the test."""
    server = PageServer(Session([str(run)], threads=1, **settings))
    thread = Thread(target=server.run)
    thread.start()
    faults: list[str] = []
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(server.url)
        yield page
        page.close()
    finally:
        server.stop()
        thread.join(timeout=60)
    assert faults == []
