"""The page's pure functions (formats, scales, layouts, the address), by Node's own test runner where Node is."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "page"


def test_the_pages_functions_pass_their_own_tests() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node: the page's functions are tested where it is installed")
    environment = {"PATH": os.environ["PATH"], "NODE_NO_WARNINGS": "1"}
    files = sorted(map(str, FOLDER.glob("*.test.mjs")))
    ran = subprocess.run([node, "--test", *files], capture_output=True, text=True, env=environment, timeout=120)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert len(files) >= 5
    assert "# fail 0" in ran.stdout
