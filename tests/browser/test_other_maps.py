"""Maps that are no weights of a head, gradients, and the norms of two models: each as Python has it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from tests.browser.driving import TEXT, as_share, look

import regard
from regard.web.server import PageServer

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("kind", ["rollout", "flow"])
def test_rollout_and_flow_are_named_as_what_they_are(page: Page, served: PageServer, trace: Any, kind: str) -> None:
    look(page, served, f"view=rollout&passing={kind}&stack=decoder&query=2&key=1")
    expected = trace.rollout("decoder").values if kind == "rollout" else trace.flow("decoder").values
    said = page.locator(".reached")
    expect(said).to_contain_text(f": {as_share(float(expected[2, 1]))}, attention {kind}")
    page.click("text=As a table")
    rows = page.locator("#map-table tbody tr")
    expect(rows).to_have_count(len(expected))
    found = [[float(own.replace("<", "")) for own in row.locator("td").all_inner_texts()] for row in rows.all()]
    assert np.allclose(found, expected, atol=1.1e-3)
    page.locator("#view select").nth(1).select_option("encoder")
    own = trace.rollout("encoder").values if kind == "rollout" else trace.flow("encoder").values
    expect(said).to_contain_text(as_share(float(own[2, 1])))


def test_gradients_of_a_logit_are_told_by_sublayer(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "view=stream&query=1")
    gradients = trace.gradients(position=1)
    rows = page.locator("table.gradients tbody tr")
    expect(rows).to_have_count(len(gradients.values))
    lengths = [float(row.locator("td").nth(1).inner_text()) for row in rows.all()]
    assert np.allclose(lengths, np.linalg.norm(gradients.values, axis=1), rtol=2e-2, atol=1e-3)
    assert rows.first.locator("th").inner_text() == gradients.labels["sublayer"][0]


def test_norms_of_two_checkpoints_are_compared(page: Page, served: PageServer, watched: Path, trace: Any) -> None:
    look(page, served, f"view=compare&query=1&against={watched}@20")
    other = regard.load(f"{watched}@20").trace(TEXT, beam=4)
    if other.residual_norms().shape != trace.residual_norms().shape:
        expect(page.locator("details.norms")).to_have_count(0)  # they wrote outputs of other lengths
        return
    page.click("text=Lengths of the residual stream")
    last = page.locator("details.norms tbody tr").last.locator("td").all_inner_texts()
    a, b = (float(one.residual_norms().values[-1, 1]) for one in (trace, other))
    shown = [float(own.replace("−", "-")) for own in (last[0], last[1], last[3])]
    assert np.allclose(shown, [a, b, b - a], atol=6e-3)
