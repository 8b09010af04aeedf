"""The page as one HTML file, which opens from the disk, offline: modules, style and all numbers of one trace inside.

Browsers refuse module imports from `file:`, so the modules stand in an import map as `data:` URLs, under names of their own.
The file has a policy of its own: no request goes anywhere, and no inline script runs but the two whose hashes it names.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import RegardError, UsageError
from regard.inspection.probe_timeline import read_probes
from regard.runs.disk import as_json
from regard.web.answers import refused
from regard.web.packing import pack
from regard.web.page_files import INDEX, page_files
from regard.web.position_bundle import position_bundle
from regard.web.row_bundle import row_bundle
from regard.web.run_routes import token_facts
from regard.web.session import KeptTrace, Session
from regard.web.trace_bundle import Bundle, trace_bundle
from regard.web.trace_parts import embedding_bundle, gradient_facts, passing_bundle, tree_facts
from regard.web.trace_request import OtherInput, TraceRequest

MOST_ROWS, MOST_PROBES = 24 * 2**20, 24 * 2**20  # bytes of the arithmetic of cells, and of probes' traces
N_POSITIONS, D_POSITIONS = 100, 64  # of the explorer of positional encodings
NAMES = "regard/"  # before the names of modules in the import map
_IMPORT = re.compile(r'(\bfrom\s*|\bimport\s*\(?\s*)"\./([\w.-]+\.js)"')
_STYLE = re.compile(r'<link rel="stylesheet" href="page/([\w.-]+)"\s*/?>')
_SCRIPT = re.compile(r'<script type="module" src="page/([\w.-]+)"></script>')


def write_single_page(session: Session, run: str, input: str, path: Path, *, beam: int | None = None) -> int:
    """Trace an input, and write its page; return how many bytes it has."""
    if not path.parent.is_dir():  # before the model is at work
        raise UsageError(f"Cannot write {path}: there is no folder {path.parent}.", "Make it first, or name another.")
    given: str | OtherInput = OtherInput(example=0) if session.input_is_example(run) else input
    kept = session.trace(TraceRequest(run=run, input=given, beam=beam))
    content = single_page(session, kept).encode()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.", "Choose a place that can be written to.") from error
    return len(content)


def single_page(session: Session, kept: KeptTrace) -> str:
    """The page of a trace as the text of an HTML file."""
    return one_file(bundle(session, kept))


def bundle(session: Session, kept: KeptTrace) -> dict[str, Any]:
    """Everything that the page could ask of a trace, as far as it is not too large."""
    trace, work = kept.trace, session.work
    facts, arrays = session.bundle(kept)
    run = session.opened(kept.run).run()
    found: dict[str, Any] = {
        "session": {**session.facts(), "live": False, "input": trace.title},
        "trace": _text(facts, arrays),
        "lens": work(lambda: _or_refused(lambda: trace.lens().to_json())),
        "tree": work(lambda: _or_refused(lambda: tree_facts(trace))),
        "checks": work(lambda: _or_refused(lambda: trace.checks().to_json())),
        "contributions": work(lambda: _by_position(kept, lambda at: trace.contributions(position=at).to_json())),
        "gradients": work(lambda: _by_position(kept, lambda at: gradient_facts(trace, "", at))),
        "rollout": work(lambda: {stack: _text(*passing_bundle(trace, "rollout", stack)) for stack in facts["stacks"]}),
        "embedding": work(lambda: _text(*embedding_bundle(trace))),
        "tokens": work(lambda: _or_refused(lambda: token_facts(run, trace.title))),
    }
    found["rows"], found["rows_left_out"] = work(lambda: _rows(kept, facts["attentions"], facts["overview_attention"]))
    try:
        found["positions"] = work(
            lambda: _text(*position_bundle(run, "", length=N_POSITIONS, width=D_POSITIONS, base=10000.0))
        )
    except RegardError:
        found["positions"] = None
    found |= work(lambda: _probes(session, kept))
    return found


def _text(facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    return base64.b64encode(pack(facts, arrays)).decode()


def _or_refused(of: Callable[[], Any]) -> Any:
    try:
        return of()
    except RegardError as error:
        return refused(error)


def _by_position(kept: KeptTrace, of: Callable[[int], Any]) -> Any:
    """What there is of the logit of what is written at each position; or why there is no such thing."""
    reading = kept.trace.reading
    places = range(reading.n_given, len(reading.writes)) if reading.writes else [-1]
    return _or_refused(lambda: {str(place): of(place) for place in places})


def _rows(kept: KeptTrace, attentions: Mapping[str, Any], first: str) -> tuple[dict[str, str], list[str]]:
    """The arithmetic of all cells, attention by attention as far as there is room; and those that are left out."""
    found: dict[str, str] = {}
    left_out: list[str] = []
    n_bytes = 0
    for path in sorted(attentions, key=lambda path: path != first):
        if not attentions[path]["has_rows"]:
            continue
        n_heads, n_queries, _ = attentions[path]["shape"]
        size = n_heads * n_queries * len(pack(*row_bundle(kept.trace, path, head=0, query=0)))
        if n_bytes + size > MOST_ROWS:
            left_out.append(path)
            continue
        n_bytes += size
        for head in range(n_heads):
            for query in range(n_queries):
                found[f"{path}|{head}|{query}"] = _text(*row_bundle(kept.trace, path, head=head, query=query))
    return found, left_out


def _probes(session: Session, kept: KeptTrace) -> dict[str, Any]:
    """The timeline of probe examples, and their traces, the last steps first, as far as there is room."""
    opened = session.opened(kept.run)
    if not opened.has_probes:
        return {"probes": None, "probe_traces": {}, "probe_traces_left_out": 0}
    timeline = read_probes(opened.folder)
    found: dict[str, str] = {}
    n_bytes = n_left_out = 0
    for step in reversed(timeline.steps):
        for probe, output in enumerate(timeline.outputs[step]):
            if output is None:
                continue
            try:
                trace = timeline.trace(step, probe)
            except RegardError:  # damaged, or gone meanwhile
                continue
            facts, arrays = _probe_bundle(session, kept.run, step, probe, trace)
            size = sum(array.nbytes for array in arrays.values())
            if n_bytes + size > MOST_PROBES:
                n_left_out += 1
                continue
            n_bytes += size
            found[f"{step}|{probe}"] = _text(facts, arrays)
    return {"probes": timeline.to_json(), "probe_traces": found, "probe_traces_left_out": n_left_out}


def _probe_bundle(session: Session, run: str, step: int, probe: int, trace: Any) -> Bundle:
    facts, arrays = trace_bundle(trace)
    return {**facts, **session.own_facts(run, step), "id": f"probe-{step}-{probe}"}, arrays


# --- the file ---------------------------------------------------------------------------------------------------------


def one_file(content: Mapping[str, Any]) -> str:
    """The page's files and a bundle as one HTML file."""
    files = page_files()
    modules = {name: own.decode() for name, own in files.items() if name.endswith(".js")}
    imports = {f"{NAMES}{name}": _data_url(_renamed(module)) for name, module in modules.items()}
    import_map = as_json({"imports": imports}).decode()
    html = files[INDEX].decode()
    [main] = _SCRIPT.findall(html)
    starter = f'import "{NAMES}{main}";'
    styles = [files[name].decode() for name in _STYLE.findall(html)]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(import_map)} {_hash(starter)} data:",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    scripts = f'<script type="importmap">{import_map}</script>\n    <script type="module">{starter}</script>'
    packed = base64.b64encode(gzip.compress(as_json(content), mtime=0)).decode()
    for style in styles:
        html = _STYLE.sub(lambda _, own=style: f"<style>{own}</style>", html, count=1)  # type: ignore[misc]
    html = _SCRIPT.sub(lambda _: scripts, html)
    html = html.replace("<head>", f'<head>\n    <meta http-equiv="Content-Security-Policy" content="{policy}" />', 1)
    return html.replace("</body>", f'  <script type="application/json" id="bundle">"{packed}"</script>\n  </body>', 1)


def _renamed(module: str) -> str:
    """A module whose imports of the others go by the names of the import map."""
    return _IMPORT.sub(lambda found: f'{found[1]}"{NAMES}{found[2]}"', module)


def _data_url(module: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(module.encode()).decode()}"


def _hash(text: str) -> str:
    """How a policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
