"""How quick the inspector's page is: what it asks the server, the first paint of a saved page, a redraw of many heads.

What is wanted: a new sentence on the demo's model within 300 ms, the first paint of a saved page within a second, a redraw
of 12 × 12 heads at length 128 within 100 ms, with fewer than 3,000 elements. The browser's part needs a Chromium.
"""

import argparse
import http.client
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

from benchmarks.rounds import BUILD, options, report, table, tell, threads_of

import regard
from regard import runtime
from regard.cli.demo import SENTENCE, settings, write_corpus
from regard.web.packing import unpack
from regard.web.server import PageServer
from regard.web.session import Session
from regard.web.single_file import write_single_page

FOLDER = BUILD / "page"
SENTENCES = (
    "The small dog sees a red house.",
    "The old woman gives the child a book.",
    "Peter believes that the old woman gave the child a new book.",
    "A girl who talks with eight bakers is very tall.",
)
MOST_MS = {"a new sentence": 300, "first paint of the saved page": 1000, "redraw of 12 × 12 heads, length 128": 100}
MOST_ELEMENTS = 3000
LENGTH = 128


def main() -> None:
    parser = options("How quick the page is.", rounds=9)
    parser.add_argument(
        "--run", default="", help="a finished run of `regard demo`; without it one is trained, and kept"
    )
    arguments = parser.parse_args()
    threads, n_rounds = threads_of(arguments), 1 if arguments.quick else arguments.rounds
    runtime.keep_freed_memory()
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    run, wide = demo_run(arguments), wide_run(threads)
    found = served(run, threads=threads, n_rounds=n_rounds)
    saved = FOLDER / "saved.html"
    found["saved page, bytes"] = saved_page(run, saved, threads=threads)
    found |= in_browser(saved, wide, threads=threads, n_rounds=n_rounds)
    rows = []
    for name, value in found.items():
        wanted = MOST_ELEMENTS if name.startswith("elements") else MOST_MS.get(name)
        shown = f"{value:,.0f}" if name.endswith("bytes") or name.startswith("elements") else f"{value:.0f} ms"
        rows.append([name, shown, "" if wanted is None else f"{wanted:,}"])
    text = f"The page; {threads} threads, medians of {n_rounds} rounds.\n\n{table(['', 'found', 'at most'], rows)}"
    report("page", text, {"threads": threads, "found": found}, quick=arguments.quick)


def demo_run(arguments: argparse.Namespace) -> str:
    """The run that is looked into."""
    if arguments.run:
        return str(arguments.run)
    folder = FOLDER / ("demo-quick" if arguments.quick else "demo")
    if not (folder / "config.toml").exists():
        tell(f"training {folder}")
        write_corpus(folder / "corpus")
        for _ in regard_training(folder, steps=4 if arguments.quick else 0):
            pass
    return str(folder)


def regard_training(folder: Path, *, steps: int) -> Iterator[object]:
    """The demo's training, without its report."""
    from regard.training import run as training

    return training.train(settings(folder / "corpus", steps), folder)


def wide_run(threads: int) -> str:
    """An encoder of 12 × 12 heads, as good as untrained: what it says does not matter here."""
    folder = FOLDER / "wide"
    if not (folder / "config.toml").exists():
        rows = FOLDER / "rows.csv"
        lines = [f"{sentence},{label}\n" for sentence in SENTENCES * 20 for label in ("a", "b")]
        rows.write_text("text,label\n" + "".join(lines), encoding="utf-8")
        tell(f"training {folder}")
        regard.train(
            "classify",
            train=str(rows),
            run=folder,
            settings={
                "model.preset": "bert-tiny",
                "model.n_layers": 12,
                "model.n_heads": 12,
                "model.d_model": 96,
                "model.d_ff": 96,
                "tokenizer.kind": "characters",
                "training.steps": 1,
                "training.batch_tokens": 256,
                "runtime.threads": threads,
            },
        )
    return str(folder)


@contextmanager
def server_of(run: str, *, threads: int) -> Iterator[PageServer]:
    server = PageServer(Session([run], threads=threads))
    thread = Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def served(run: str, *, threads: int, n_rounds: int) -> dict[str, float]:
    """Milliseconds of what the page asks the server, through a socket."""
    with server_of(run, threads=threads) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)

        def ask(method: str, path: str, body: Any = None) -> tuple[float, bytes]:
            content = None if body is None else json.dumps(body).encode()
            began = time.perf_counter()
            connection.request(method, path, body=content, headers={"Content-Type": "application/json"})
            answer = connection.getresponse().read()
            return 1000 * (time.perf_counter() - began), answer

        found: dict[str, list[float]] = {}
        for number in range(n_rounds + 1):
            for sentence in SENTENCES:
                took, answer = ask("POST", "/api/trace", {"run": run, "input": sentence})
                facts, _ = unpack(answer)
                place = f"trace={facts['id']}&attention={facts['overview_attention']}&head=0&query=1"
                own = {"a new sentence": took, "a row of cells": ask("GET", f"/api/row?{place}")[0]}
                for name, path in (("the beam's tree", "tree"), ("the lens", "lens"), ("all checks", "checks")):
                    own[name], _ = ask("GET", f"/api/{path}?trace={facts['id']}")
                for name, took in own.items() if number else ():
                    found.setdefault(name, []).append(took)
        connection.close()
    return {name: median(own) for name, own in found.items()}


def saved_page(run: str, file: Path, *, threads: int) -> int:
    session = Session([run], threads=threads)
    try:
        return write_single_page(session, run, SENTENCE, file)
    finally:
        session.close()


def in_browser(saved: Path, wide: str, *, threads: int, n_rounds: int) -> dict[str, float]:
    """The first paint of a saved page, a redraw of many heads, and how many elements there are; none without a browser."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        tell("no Chromium: what happens in a browser is not measured")
        return {}
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright, server_of(wide, threads=threads) as server:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        paints = []
        for _ in range(n_rounds):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(saved.absolute().as_uri())
            page.wait_for_selector("#stage canvas")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            page.close()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(server.url)
        page.fill("#text", " ".join(SENTENCES)[: LENGTH - 2])  # characters, between two special tokens
        page.press("#text", "Enter")
        page.locator(".thumbnail").nth(143).wait_for()
        page.wait_for_timeout(1000)
        redraws = [page.evaluate(REDRAW) for _ in range(2 * n_rounds)]
        n_elements = page.evaluate("document.querySelectorAll('*').length")
        browser.close()
    return {
        "first paint of the saved page": median(paints),
        "redraw of 12 × 12 heads, length 128": median(redraws),
        "elements on the page": n_elements,
    }


REDRAW = """() => new Promise((done) => {
  const boxes = [...document.querySelectorAll("#map label")];
  const box = boxes.find((own) => /square root/.test(own.textContent)).querySelector("input");
  const began = performance.now();
  box.click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""


if __name__ == "__main__":
    main()
