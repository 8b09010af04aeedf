"""The inspector's page in a real browser: each ability driven as a person would, what is seen compared with the trace."""

import json
import re
import shutil
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from tests.browser.driving import TEXT, as_share, look, page_of

import regard
from regard.inspection import maps
from regard.web.server import PageServer
from regard.web.session import Session
from regard.web.single_file import write_single_page

pytestmark = pytest.mark.browser


# --- what is seen is what was recorded ---------------------------------------------------------------------------------


def test_a_text_typed_in_is_looked_into(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, text="a dog")
    page.fill("#text", TEXT)
    page.click("text=Look inside")
    expect(page.locator("#timeline .output")).to_contain_text(trace.output)
    expect(page.locator("#timeline .step")).to_have_count(len(trace.reading.writes))
    assert "text=" in page.url


def test_the_atlas_has_every_head_of_every_kind(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served)
    for tab, kind in (("Encoder", "encoder"), ("Decoder", "decoder"), ("Cross", "cross")):
        page.click(f"#map [role=tab]:has-text('{tab}')")
        n_heads = sum(len(trace[f"{path}.weights"].values) for path in maps.kinds(trace)[kind])
        expect(page.locator(".thumbnail")).to_have_count(n_heads)


def test_every_cell_of_a_head_shows_the_recorded_weight(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "kind=cross&layer=0&head=1&query=0&key=0")
    weights = trace["decoder.0.cross_attention.weights"].values[1]
    for query, key in ((0, 0), (1, 2), (len(weights) - 1, weights.shape[1] - 1)):
        page.goto(f"{served.url}#text={TEXT.replace(' ', '%20')}&kind=cross&layer=0&head=1&query={query}&key={key}")
        page.reload()
        expect(page.locator("#detail .big")).to_have_text(as_share(float(weights[query, key])))


def test_a_cell_is_explained_term_by_term(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "kind=cross&layer=0&head=0&query=1&key=1")
    cell = trace.cell("decoder.0.cross_attention", head=0, query=1, key=1)
    expect(page.locator("#detail .big")).to_have_text(as_share(cell.weight))
    text = page.locator("#detail").inner_text().replace("−", "-")
    assert f"{cell.sum:.3f}" in text
    assert f"{cell.score:.3f}" in text
    assert "differs by" in text
    assert page.locator("#detail .proof.failed").count() == 0
    assert page.locator("#detail canvas.strip").count() >= 7
    page.locator("#detail .vector details summary").first.click()
    numbers = page.locator("#detail .numbers").first.inner_text().replace("−", "-").split()
    assert np.allclose([float(one) for one in numbers], cell.query_vector, atol=6e-3)


def test_a_cell_is_copied_as_python_that_runs(page: Page, served: PageServer) -> None:
    look(page, served, "kind=cross&layer=0&head=0&query=1&key=1")
    page.click("text=Copy as Python")
    expect(page.locator("#live")).to_contain_text("Copied")
    program = page.evaluate("navigator.clipboard.readText()")
    exec(compile(program, "cell.py", "exec"), {})  # it asserts its own numbers


def test_masked_cells_are_said_to_be_masked(page: Page, served: PageServer) -> None:
    look(page, served, "kind=decoder&layer=0&head=0&query=0&key=2")
    expect(page.locator("#detail .big")).to_have_text("masked: 0")


def test_the_map_can_be_read_as_a_table_and_copied(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "kind=cross&layer=0&head=0")
    page.click("text=As a table")
    weights = trace["decoder.0.cross_attention.weights"].values[0]
    rows = page.locator("#map-table tbody tr")
    expect(rows).to_have_count(len(weights))
    cells = [rows.nth(at).locator("td").all_inner_texts() for at in range(len(weights))]
    found = np.array([[float(own.replace("<0.001", "0")) for own in row] for row in cells])
    assert np.allclose(found, weights, atol=2e-3)  # maps travel as float16
    page.click("text=Copy as CSV")
    assert len(page.evaluate("navigator.clipboard.readText()").strip().split("\r\n")) == len(weights) + 1


def test_special_tokens_can_be_hidden_and_that_is_said(page: Page, served: PageServer) -> None:
    look(page, served, "kind=cross&layer=0&head=0")
    page.check("text=hide special tokens")
    expect(page.locator("#stage .footer")).to_contain_text("made to sum to 1 again")
    page.click("text=As a table")
    for row in page.locator("#map-table tbody tr").all():
        assert abs(sum(float(own.replace("<", "")) for own in row.locator("td").all_inner_texts()) - 1) < 0.02


def test_the_checks_are_on_the_badge(page: Page, served: PageServer) -> None:
    look(page, served)
    badge = page.locator("#badge summary")
    expect(badge).to_contain_text(re.compile(r"\d+ checks hold, within \d"))
    badge.click()
    assert "rows of weights sum to 1" in page.locator("#badge .sheet").inner_text()


def test_the_lens_ends_with_the_output(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "view=lens")
    expect(page.locator(".lens tbody tr").last).to_be_visible()
    last = page.locator(".lens tbody tr").last.locator("td").all_inner_texts()
    assert last == page.locator(".lens tfoot th").all_inner_texts()[1:]
    written = [trace.reading.outputs(id).strip() for id in trace.reading.writes]
    assert [own.strip() for own in last] == written[: len(last)]


def test_the_stream_shows_norms_and_shares_of_the_logit(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "view=stream&query=1")
    norms = trace.residual_norms()
    row = page.locator("#view table").first.locator("tbody tr").last
    expect(row).to_contain_text(norms.labels["sublayer"][-1])
    assert abs(float(row.locator("td").nth(1).inner_text()) - norms.values[-1, 1]) < 0.01
    shares = trace.contributions(position=1)
    expect(page.locator("#view")).to_contain_text("The logit of")
    assert f"{shares.total:.3f}" in page.locator("#view").inner_text().replace("−", "-")


# --- the beam ------------------------------------------------------------------------------------------------------------


def test_the_tree_ends_in_the_output_and_a_runner_up_can_be_forced(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "below=tree")
    tree = trace.beam_tree()
    best = page.locator(".tree .node.best")
    expect(best).to_have_count(len(tree.path(tree.best)))
    expect(page.locator(".tree-tools .said")).to_contain_text("the output")
    weights = trace.tree_attention(tree).values[
        [node.number for node in tree.nodes].index(tree.path(tree.best)[1].number)
    ]
    page.locator(".tree .node.best").nth(1).dispatch_event("pointerenter")
    shades = page.locator("#timeline .line.key .token").evaluate_all(
        "all => all.map(own => Number(own.style.getPropertyValue('--weight')))"
    )
    np.testing.assert_allclose(shades, weights, atol=1e-6)
    other = next(node for node in tree.nodes if node.step == 0 and node.number != tree.path(tree.best)[0].number)
    forced = trace.forced(tree.ids(other.number))
    page.check("text=show pruned candidates")
    page.locator(f".tree .node[aria-label^='{other.label.strip()},']").first.dispatch_event("click")
    expect(page.locator("#timeline .output")).to_contain_text(forced.output)
    page.click("text=Let it write freely again")
    expect(page.locator("#timeline .output")).to_contain_text(trace.output)


# --- ablation ------------------------------------------------------------------------------------------------------------


def test_a_head_is_cut_and_put_back(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "kind=cross&layer=0&head=0&view=ablate")
    page.locator(".switches:has-text('decoder.0.cross_attention') button", has_text="0").first.click()
    expect(page.locator("#view table").first).to_be_visible()
    changes = trace.difference(trace.without("decoder.0.cross_attention", heads=[0])).tokens
    rows = page.locator("#view table").first.locator("tbody tr")
    expect(rows).to_have_count(len(changes))
    found = [float(row.locator("td").nth(2).inner_text().replace("−", "-")) for row in rows.all()]
    assert np.allclose(found, [one.change for one in changes], atol=6e-3)
    assert page.locator(".thumbnail[data-cut]").count() == 1
    page.click("text=Put back 1 that is cut")
    expect(page.locator("#view")).to_contain_text("Nothing is cut")


# --- the time machine ----------------------------------------------------------------------------------------------------


def test_the_slider_goes_through_training(page: Page, served: PageServer, watched: Path) -> None:
    timeline = json.loads(page.request.get(f"{served.url}api/probes?run={watched}").text())
    look(page, served, "view=time")
    slider = page.locator("input[type=range]")
    expect(slider).to_be_visible()
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#written")).to_have_text(timeline["steps"][0]["outputs"][0] or "–")
    assert f"step={timeline['steps'][0]['step']}" in page.url
    page.click("text=Back to the trained model")
    expect(page.locator("#timeline")).to_contain_text("writes")


# --- for everyone --------------------------------------------------------------------------------------------------------


def test_everything_is_reached_by_keys(page: Page, served: PageServer, trace: Any) -> None:
    look(page, served, "kind=cross&layer=0&head=0&query=0&key=0")
    page.locator("#grid").focus()
    for key in ("ArrowRight", "ArrowDown", ".", "2"):
        page.keyboard.press(key)
    assert "kind=decoder" in page.url
    assert "key=1" in page.url and "query=1" in page.url and "head=1" in page.url
    page.keyboard.press("3")
    weight = float(trace["decoder.0.cross_attention.weights"].values[1, 1, 1])
    expect(page.locator("#live")).to_contain_text(f"{as_share(weight)}, cross, layer 0, head 1")
    page.keyboard.press("n")
    assert "query=2" in page.url
    page.keyboard.press("a")
    expect(page.locator(".thumbnail[data-cut]")).to_have_count(1)
    page.keyboard.press("a")
    expect(page.locator(".thumbnail[data-cut]")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"


def test_the_map_is_a_grid_with_one_tab_stop(page: Page, served: PageServer) -> None:
    look(page, served, "kind=cross&layer=0&head=0&query=1&key=1")
    grid = page.locator("[role=grid]")
    assert grid.get_attribute("tabindex") == "0"
    assert grid.locator("[tabindex='0']").count() == 0
    cell = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    assert "attends to" in (cell.get_attribute("aria-label") or "")
    assert (cell.get_attribute("aria-rowindex"), cell.get_attribute("aria-colindex")) == ("2", "2")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["attention", "lens", "stream", "tokens", "ablate", "time"])
def test_axe_finds_no_serious_fault(page: Page, served: PageServer, view: str, theme: str) -> None:
    look(page, served, f"view={view}&theme={theme}&below=tree")
    page.wait_for_timeout(300)
    # Not run inside the page, whose policy forbids it.
    found = Axe().run(page)
    serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in serious] == []


def test_all_of_it_has_few_nodes(page: Page, served: PageServer) -> None:
    look(page, served, "below=tree")
    assert page.evaluate("document.querySelectorAll('*').length") < 3000


def test_the_lessons_drive_the_page(page: Page, served: PageServer) -> None:
    look(page, served)
    page.click("text=Lessons")
    titles = []
    while True:
        titles.append(page.locator("#lesson h2").inner_text())
        following = page.locator("#lesson button.primary")
        if not following.count():
            break
        following.click()
    assert len(titles) >= 8
    assert titles[-1].endswith("Attention is not cause")
    page.click("#lesson >> text=Close")
    expect(page.locator("#lesson")).to_be_hidden()


# --- safe ----------------------------------------------------------------------------------------------------------------


def test_hostile_tokens_stay_text(page: Page, served: PageServer) -> None:
    look(page, served)
    page.fill("#text", "<img src=x onerror=document.title='owned'> <script>document.title='owned'</script>")
    page.click("text=Look inside")
    page.wait_for_timeout(1500)
    assert page.locator("img, main script").count() == 0
    assert page.title() != "owned"


def test_an_empty_text_is_refused_in_words_and_the_page_goes_on(page: Page, served: PageServer) -> None:
    look(page, served)
    page.fill("#text", "   ")
    page.click("text=Look inside")
    expect(page.locator("#banner")).to_contain_text("There is nothing to read.")
    page.fill("#text", "a dog")
    page.click("text=Look inside")
    expect(page.locator("#banner")).to_be_hidden()
    assert page.locator(".thumbnail").count() > 0


def test_a_small_screen_stacks_the_panels(page: Page, served: PageServer) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    look(page, served)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tops = [page.locator(f"#{name}").bounding_box() for name in ("map", "stage", "detail", "timeline")]
    heights = [box["y"] for box in tops if box]
    assert heights == sorted(heights)


# --- compare -------------------------------------------------------------------------------------------------------------


def test_two_checkpoints_are_compared_and_one_with_itself_is_zero(
    page: Page, served: PageServer, watched: Path, trace: Any
) -> None:
    look(page, served, f"view=compare&kind=cross&layer=0&head=0&against={watched}@20")
    other = regard.load(f"{watched}@20").trace(TEXT, beam=4)
    expect(page.locator("#other-output")).to_have_text(other.output)
    difference = trace.difference(other)
    said = "write the same" if difference.diverges is None else f"diverge at position {difference.diverges}"
    expect(page.locator("#view .facts")).to_contain_text(said)
    look(page, served, f"view=compare&kind=cross&layer=0&head=0&against={watched}")
    page.reload()
    expect(page.locator("#view")).to_contain_text("No number differs")


# --- as one file ---------------------------------------------------------------------------------------------------------


def test_a_saved_page_works_from_the_disk_with_the_network_off(
    page: Page, watched: Path, tmp_path: Path, trace: Any
) -> None:
    session = Session([str(watched)], threads=1)
    file = tmp_path / "look.html"
    write_single_page(session, str(watched), TEXT, file, beam=4)
    session.close()
    page.context.set_offline(True)
    page.goto(f"{file.as_uri()}#kind=cross&layer=0&head=1&query=1&key=2")
    weight = float(trace["decoder.0.cross_attention.weights"].values[1, 1, 2])
    expect(page.locator("#detail .big")).to_have_text(as_share(weight))
    expect(page.locator("#badge summary")).to_contain_text("checks hold")
    expect(page.locator("#text")).to_be_disabled()
    page.click("#stage >> text=Lens")
    expect(page.locator(".lens tfoot")).to_be_visible()
    page.click("text=Beam tree")
    expect(page.locator(".tree .node.best").first).to_be_visible()
    page.click("#stage >> text=Training")
    slider = page.locator("input[type=range]")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#written")).to_be_visible()
    assert "step=0" in page.url
    # What is known of the trained model alone is not shown as that of an earlier step.
    expect(page.locator("#badge")).to_contain_text("only maps and probabilities")
    page.click("#stage >> text=Lens")
    expect(page.locator("#view")).to_contain_text("only maps and probabilities")


# --- the time machine, while a trainer is at work ------------------------------------------------------------------------


def test_a_trainer_killed_in_mid_write_leaves_a_page_that_loads(
    browser: Browser, watched: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(watched, run)
    traces = run / "traces"
    last = sorted(traces.glob("step-*"))[-1]
    half = traces / f".{last.name}.tmp-1"
    shutil.copytree(last, half)
    next(half.glob("*.trace")).write_bytes(b"half")
    next(last.glob("*.trace")).write_bytes(b"torn")
    server = PageServer(Session([str(run)], threads=1))
    thread = Thread(target=server.run)
    thread.start()
    try:
        page = browser.new_page()
        page.goto(f"{server.url}#text={TEXT.replace(' ', '%20')}&view=time")
        expect(page.locator("input[type=range]")).to_be_visible(timeout=20_000)
        expect(page.locator("#view")).to_contain_text("skipped")
        # Steps that are recorded meanwhile appear by themselves.
        newest = traces / "step-00000040"
        shutil.copytree(sorted(traces.glob("step-*"))[0], newest)
        expect(page.locator("input[type=range]")).to_have_attribute("max", "4", timeout=20_000)
        page.close()
    finally:
        server.stop()
        thread.join(timeout=60)


# --- every kind of run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classify_run", "pairs_run", "tag_run", "regress_run", "mask_run", "denoise_run"])
def test_runs_over_text_open_with_an_example(browser: Browser, kind: str, request: pytest.FixtureRequest) -> None:
    with page_of(browser, request.getfixturevalue(kind)) as page:
        expect(page.locator("#run strong")).to_be_visible(timeout=20_000)
        if page.locator("#text").input_value() == "":
            blank = re.search(r"with (\S+) in", page.locator("#text").get_attribute("placeholder") or "")
            page.fill("#text", f"a {blank[1] if blank else 'good'} day")
            if page.locator("#second").is_visible():
                page.fill("#second", "a bad day")
            page.click("text=Look inside")
        expect(page.locator("#badge .checks")).to_be_visible(timeout=20_000)
        expect(page.locator(".thumbnail").first).to_be_visible()
        for tab in page.locator("#stage [role=tab]").all_inner_texts():
            page.locator("#stage [role=tab]", has_text=tab).first.click()
            expect(page.locator("#view")).not_to_be_empty()


@pytest.mark.parametrize("kind", ["image_run", "caption_run"])
def test_runs_over_images_read_a_file_of_the_disk(
    browser: Browser, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    picture = tmp_path / "stripes.png"
    Image.fromarray(np.tile(np.arange(0, 240, 10, np.uint8), (24, 1))).save(picture)
    with page_of(browser, request.getfixturevalue(kind)) as page:
        expect(page.locator("#image")).to_be_visible(timeout=20_000)
        page.set_input_files("#image", str(picture))
        expect(page.locator("#badge .checks")).to_be_visible(timeout=20_000)
        expect(page.locator("canvas.photo")).to_be_visible()
        expect(page.locator("#timeline .output")).not_to_be_empty()
