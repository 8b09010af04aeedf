"""The page as one file: what is in it, and that nothing of it needs a server."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.errors import UsageError
from regard.runs.folder import RunFolder
from regard.web import single_file
from regard.web.packing import unpack
from regard.web.page_files import page_files
from regard.web.session import Session
from regard.web.single_file import NAMES, one_file, write_single_page

TEXT = "the dog sees red"


@pytest.fixture(scope="module")
def written(watched: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("page") / "look.html"
    session = Session([str(watched)], threads=1)
    assert write_single_page(session, str(watched), TEXT, file) == file.stat().st_size
    session.close()
    yield file.read_text(encoding="utf-8")


def bundle_of(html: str) -> Any:
    [kept] = re.findall(r'<script type="application/json" id="bundle">(.*?)</script>', html)
    return json.loads(gzip.decompress(base64.b64decode(json.loads(kept))))


def message(text: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return unpack(base64.b64decode(text))


def test_it_holds_everything_that_the_page_asks_of_a_trace(written: str, watched: Path) -> None:
    found, trace = bundle_of(written), regard.load(watched, threads=1).trace(TEXT)
    facts, _ = message(found["trace"])
    assert (facts["output"], facts["title"]) == (trace.output, TEXT)
    assert found["session"]["live"] is False
    assert found["session"]["input"] == TEXT
    assert found["lens"] == json.loads(json.dumps(trace.lens().to_json()))
    assert found["checks"] == json.loads(json.dumps(trace.checks().to_json()))
    assert found["tree"]["best"] == trace.beam_tree().best
    assert list(found["contributions"]) == [str(place) for place in range(len(trace.reading.writes))]
    assert found["contributions"]["1"] == json.loads(json.dumps(trace.contributions(position=1).to_json()))
    assert message(found["embedding"])[0]["embeddings"][0]["name"] == "source_embedding"
    assert message(found["positions"])[0]["kind"] == "sinusoidal"
    assert "".join(token["text"] for token in found["tokens"]["tokens"]) == TEXT


def test_it_holds_every_row(written: str, watched: Path) -> None:
    found, trace = bundle_of(written), regard.load(watched, threads=1).trace(TEXT)
    shapes = {path: trace[f"{path}.weights"].shape for path in trace.attentions()}
    places = [f"{path}|{head}|{query}" for path, (h, t, _) in shapes.items() for head in range(h) for query in range(t)]
    assert sorted(found["rows"]) == sorted(places)
    assert found["rows_left_out"] == []
    path = trace.attentions()[-1]
    facts, arrays = message(found["rows"][f"{path}|1|2"])
    assert (facts["attention"], facts["head"], facts["query"]) == (path, 1, 2)
    cell = trace.cell(path, head=1, query=2, key=1)
    assert arrays["weights"][1] == pytest.approx(cell.weight)


def test_it_holds_the_time_machine(written: str, watched: Path) -> None:
    found = bundle_of(written)
    assert [step["step"] for step in found["probes"]["steps"]] == [0, 10, 20, 30]
    assert sorted(found["probe_traces"]) == sorted(f"{step}|{probe}" for step in (0, 10, 20, 30) for probe in (0, 1))
    facts, _ = message(found["probe_traces"]["10|1"])
    assert facts["output"] == found["probes"]["steps"][1]["outputs"][1]
    assert facts["run"]["step"] == 10


def test_what_is_too_much_is_left_out_and_said(
    written: str, watched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bundle_of(written)
    first = message(whole["trace"])[0]["overview_attention"]
    sizes = [len(base64.b64decode(row)) for name, row in whole["rows"].items() if name.startswith(first)]
    monkeypatch.setattr(single_file, "MOST_ROWS", 1.05 * sum(sizes))
    monkeypatch.setattr(single_file, "MOST_PROBES", 3_000)
    session = Session([str(watched)], threads=1)
    write_single_page(session, str(watched), TEXT, tmp_path / "small.html")
    session.close()
    found = bundle_of((tmp_path / "small.html").read_text())
    assert {name.split("|")[0] for name in found["rows"]} == {first}
    assert set(found["rows_left_out"]) == {name.split("|")[0] for name in whole["rows"]} - {first}
    assert found["probe_traces_left_out"] == 8 - len(found["probe_traces"]) > 0


def test_damaged_probes_are_left_out(own_watched: Path, tmp_path: Path) -> None:
    damaged = RunFolder(own_watched).traces / "step-00000020" / "probe-1.trace"
    damaged.write_bytes(b"")
    session = Session([str(own_watched)], threads=1)
    write_single_page(session, str(own_watched), TEXT, tmp_path / "page.html")
    session.close()
    found = bundle_of((tmp_path / "page.html").read_text())
    assert "20|1" not in found["probe_traces"] and "20|0" in found["probe_traces"]
    assert found["probes"]["notes"]


def test_a_run_without_attention_probes_or_a_search(image_run: Path, tmp_path: Path) -> None:
    file = str(next((image_run.parent / "train" / "lying").iterdir()))
    session = Session([str(image_run)], input=file, threads=1)
    write_single_page(session, str(image_run), file, tmp_path / "page.html")
    session.close()
    found = bundle_of((tmp_path / "page.html").read_text())
    assert message(found["trace"])[0]["title"] == Path(file).name
    assert found["rows"] == {} and found["probes"] is None and found["positions"] is None
    for name in ("tree", "contributions", "tokens", "lens"):
        assert "refused" in found[name]


def test_no_request_leaves_the_file_and_no_script_runs_but_its_own(written: str) -> None:
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)" />', written)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules  # so the default holds
    inline = re.findall(r'<script type="(?:importmap|module)">(.*?)</script>', written, flags=re.S)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'" for own in inline]
    assert rules["script-src"].split() == [*hashes, "data:"]
    [style] = re.findall(r"<style>(.*?)</style>", written, flags=re.S)
    assert hashlib.sha256(style.encode()).digest() == base64.b64decode(rules["style-src"][len("'sha256-") : -1])
    assert "unsafe" not in policy
    outside = re.sub(r"<style>.*?</style>|<script.*?</script>", "", written, flags=re.S)
    assert not re.findall(r'\b(?:src|href|action)="(?!data:)', outside)


def test_every_module_and_import_is_in_the_map(written: str) -> None:
    [text] = re.findall(r'<script type="importmap">(.*?)</script>', written)
    imports = json.loads(text)["imports"]
    modules = [name for name in page_files() if name.endswith(".js")]
    assert sorted(imports) == sorted(f"{NAMES}{name}" for name in modules)
    for url in imports.values():
        module = base64.b64decode(url.removeprefix("data:text/javascript;base64,")).decode()
        assert not re.findall(r"""(?:\bfrom|\bimport)\s*\(?\s*["']\.""", module)
        assert set(re.findall(rf'\b(?:from|import)\s*\(?\s*"({NAMES}[^"]*)"', module)) <= set(imports)


def test_hostile_text_stays_inside_of_the_data() -> None:
    html = one_file({"title": '</script><script>alert(1)</script>"'})
    assert "alert(1)" not in html
    assert bundle_of(html) == {"title": '</script><script>alert(1)</script>"'}


def test_a_place_that_cannot_be_written_to_is_refused(watched: Path, tmp_path: Path) -> None:
    session = Session([str(watched)], threads=1)
    with pytest.raises(UsageError, match=r"^Cannot write .*nowhere/page.html: there is no folder .*nowhere\.\n"):
        write_single_page(session, str(watched), TEXT, tmp_path / "nowhere" / "page.html")
    with pytest.raises(UsageError, match=r"^Cannot write .*: Is a directory\.\n"):
        write_single_page(session, str(watched), TEXT, tmp_path)
    session.close()
