"""Inputs that are longer than a map draws cell by cell: blocks and zoom, few elements, every cell still to be had."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.driving import as_share, page_of

import regard
from regard.web import session
from regard.web.trace_bundle import trace_bundle

pytestmark = pytest.mark.browser
TEXT = " ".join(f"the good dog number {number} sees the bad one" for number in range(8))[:298]


@pytest.fixture(scope="module")
def weights(long_run: Path) -> Any:
    return regard.load(str(long_run)).trace(TEXT)["encoder.1.self_attention.weights"].values


def read(page: Page, hash: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#text={TEXT.replace(' ', '%20')}&kind=self&layer=1&head=2{hash}")
    page.reload()
    expect(page.locator("#badge .checks")).to_be_visible(timeout=30_000)


def test_a_long_map_is_drawn_in_blocks_and_a_click_zooms_in(browser: Browser, long_run: Path, weights: Any) -> None:
    with page_of(browser, long_run) as page:
        read(page, "&query=10&key=10")
        assert len(weights[2]) == 300
        note = page.locator("#stage .footer")
        expect(note).to_contain_text("300 × 300 in blocks of 3")
        expect(page.locator("#grid")).to_have_attribute("aria-rowcount", "100")
        assert page.evaluate("document.querySelectorAll('*').length") < 3000

        # A click on a block is on its largest weight.
        box = page.locator("#grid").bounding_box()
        assert box
        row, column = 70, 20
        page.mouse.click(box["x"] + (column + 0.5) / 100 * box["width"], box["y"] + (row + 0.5) / 100 * box["height"])
        block = weights[2][row * 3 : row * 3 + 3, column * 3 : column * 3 + 3]
        query, key = np.unravel_index(block.argmax(), block.shape) + np.array([row * 3, column * 3])
        expect(page.locator("#detail .big")).to_have_text(as_share(float(weights[2][query, key])))
        assert f"query={query}&key={key}" in page.url
        expect(note).to_contain_text(f"rows {query - 32} to {query + 31} of 300")
        expect(page.locator("#grid")).to_have_attribute("aria-rowcount", "64")
        page.click("text=Whole map")
        expect(note).to_contain_text("in blocks of 3")


def test_keys_zoom_in_and_what_is_seen_follows_them(browser: Browser, long_run: Path, weights: Any) -> None:
    with page_of(browser, long_run) as page:
        read(page, "&query=200&key=100")
        page.locator("#grid").focus()
        page.keyboard.press("z")
        expect(page.locator("#stage .footer")).to_contain_text("rows 168 to 231 of 300, columns 68 to 131 of 300")
        page.locator("#grid").focus()
        for _ in range(32):
            page.keyboard.press("ArrowDown")
        expect(page.locator("#stage .footer")).to_contain_text("rows 200 to 263 of 300")
        expect(page.locator("#detail .big")).to_have_text(as_share(float(weights[2][232, 100])))
        expect(page.locator("#cell")).to_be_visible()
        expect(page.locator("#timeline .step[data-chosen]")).to_have_attribute("data-at", "232")


def test_what_is_zoomed_in_to_is_in_the_address(browser: Browser, long_run: Path) -> None:
    with page_of(browser, long_run) as page:
        read(page, "&query=200&key=100&part=190%2B90")
        expect(page.locator("#stage .footer")).to_contain_text("rows 190 to 253 of 300, columns 90 to 153 of 300")


def test_maps_that_are_large_together_come_when_they_are_looked_at(
    browser: Browser, long_run: Path, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "trace_bundle", partial(trace_bundle, most_bytes=1000))
    with page_of(browser, long_run) as page:
        read(page, "&query=250&key=40")
        expect(page.locator("#cell")).to_have_attribute(
            "aria-label", f"{cell_of(250, 40)}, {as_share(float(weights[2][250, 40]))}, self, layer 1, head 2"
        )
        page.click("text=Zoom in to the selected cell")
        expect(page.locator("#stage .footer")).to_contain_text("rows 218 to 281 of 300")
        page.click("text=As a table")
        cells = page.locator("#map-table tbody tr").first.locator("td").all_inner_texts()
        expected = weights[2][218, 8:48]  # the first forty of those that are seen
        assert np.allclose([float(own.replace("<0.001", "0")) for own in cells], expected, atol=2e-3)


def cell_of(query: int, key: int) -> str:
    """The two characters of a cell as the page names them; the first position is the special token before the text."""
    names = [TEXT[at - 1].replace(" ", "␣") for at in (query, key)]
    return f"{names[0]} attends to {names[1]}"


def test_rollout_of_a_long_input_is_drawn_in_blocks(browser: Browser, long_run: Path) -> None:
    with page_of(browser, long_run) as page:
        read(page, "&view=rollout&query=30&key=30")
        rolled = regard.load(str(long_run)).trace(TEXT).rollout().values
        expect(page.locator(".reached")).to_contain_text(f": {as_share(float(rolled[30, 30]))}, attention rollout")
        expect(page.locator("#view")).to_contain_text("300 × 300 in blocks of 3")
        page.locator("#view select").first.select_option("flow")
        expect(page.locator("#banner")).to_contain_text("Attention flow is for at most 64 positions, and here are 300")


def test_what_was_cut_off_is_said(browser: Browser, long_run: Path) -> None:
    with page_of(browser, long_run) as page:
        page.fill("#text", TEXT * 2)
        page.click("text=Look inside")
        expect(page.locator("#timeline .truncated")).to_contain_text(
            "longer than the model reads at once: cut at the end"
        )
        page.fill("#text", TEXT)
        page.click("text=Look inside")
        expect(page.locator("#timeline .truncated")).to_have_count(0)
