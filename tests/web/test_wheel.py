"""The wheel holds the page: built, installed into a folder of its own, served from there."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "src" / "regard" / "web" / "page"
PROGRAM = """
import json, sys, threading, urllib.request
import regard
from regard.web.server import PageServer
from regard.web.session import Session

server = PageServer(Session([sys.argv[1]], threads=1))
thread = threading.Thread(target=server.run)
thread.start()
try:
    found = {}
    for path in ["", *(f"page/{name}" for name in sys.argv[2:]), "api/session"]:
        with urllib.request.urlopen(server.url + path) as answer:
            found[path] = [answer.headers["content-type"], len(answer.read())]
finally:
    server.stop()
    thread.join()
print(json.dumps({"home": regard.__file__, "files": found}))
"""


def test_the_wheel_serves_every_file_of_the_page(watched: Path, tmp_path: Path) -> None:
    if find_spec("hatchling") is None:
        reason = "no hatchling, which builds the wheel: install the development extras"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)

    def run(*command: str, cwd: Path, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment}
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=source)
    [wheel] = tmp_path.glob("*.whl")
    run("-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(site), str(wheel), cwd=tmp_path)
    names = sorted(path.name for path in PAGE.iterdir() if path.suffix in (".html", ".css", ".js"))
    output = run("-c", PROGRAM, str(watched), *names, cwd=tmp_path, PYTHONPATH=str(site), OMP_NUM_THREADS="1")
    found = json.loads(output)
    assert found["home"] == str(site / "regard" / "__init__.py")
    assert found["files"][""][1] == (PAGE / "index.html").stat().st_size
    for name in names:
        assert found["files"][f"page/{name}"][1] == (PAGE / name).stat().st_size
