"""Importance of heads, measured from the page in the background: the numbers are Python's, and stay with the run."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.driving import page_of

import regard
from regard.inspection.importance import Importance, measure_importance
from regard.web.run_inputs import validation_files

pytestmark = pytest.mark.browser
SHOWN = "#view .importance"


def measured(run_path: Path, **settings: Any) -> Importance:
    """What Python says."""
    run = regard.load(str(run_path))
    return measure_importance(run.task, run.model, run.options({}), list(validation_files(run)), **settings)


def number(value: float) -> str:
    """As the page writes any number."""
    size = abs(value)
    text = f"{value:.1e}" if size and size < 0.001 else f"{value:.{3 if size < 10 else 2 if size < 100 else 1}f}"
    return text.replace("e-0", "e-").replace("-", "−")


def assert_shown(page: Page, found: Importance) -> None:
    """The grid has every head's change, and its interval."""
    expect(page.locator(SHOWN)).to_be_visible(timeout=60_000)
    cells = page.locator(f"{SHOWN} td")
    assert cells.all_inner_texts() == [number(one.changes[found.metric].delta) for one in found.parts]
    for cell, one in zip(cells.all(), found.parts, strict=True):
        change = one.changes[found.metric]
        wanted = f"head {one.head}: {number(change.delta)} ({number(change.low)} to {number(change.high)})"
        assert cell.get_attribute("title") == wanted
        assert ("sure" in (cell.get_attribute("class") or "")) == change.is_sure


@pytest.fixture
def own_run(watched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(watched, tmp_path / "run"))


def test_bleu_is_measured_in_the_background_and_kept(browser: Browser, own_run: Path) -> None:
    found = measured(own_run, metric="score", n_examples=100)
    assert found.metric == "bleu"
    with page_of(browser, own_run) as page:
        page.click("#stage >> text=Ablate")
        page.click("text=… and BLEU")
        # Meanwhile the page goes on.
        page.fill("#text", "a dog")
        page.click("text=Look inside")
        expect(page.locator("#timeline .output")).not_to_be_empty()
        assert_shown(page, found)
        expect(page.locator("#view")).to_contain_text(f"BLEU is {number(found.whole['bleu'])} on 12 examples")
    # Another session shows it at once.
    with page_of(browser, own_run) as page:
        page.click("#stage >> text=Ablate")
        assert_shown(page, found)


def test_the_loss_is_measured(browser: Browser, own_run: Path) -> None:
    with page_of(browser, own_run) as page:
        page.click("#stage >> text=Ablate")
        expect(page.locator("#view")).to_contain_text("What each head is worth on held-out data")
        page.click("text=Cut every head in turn: the loss")
        assert_shown(page, measured(own_run, n_examples=100))
