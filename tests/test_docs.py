"""The docs say what is: generated blocks are up to date, recipes parse, tensors are named and shaped as in docs/taps.md."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import regard
from regard.config import DecodingConfig, from_tables
from regard.parts.taps import listening

ROOT = Path(__file__).parent.parent
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_generated_parts_are_up_to_date() -> None:
    ended = subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def walked(page: str) -> list[tuple[str, str]]:
    """The stations of a page's walks: a file, and the function in it."""
    return re.findall(r"([\w/]+\.py) (\w+)\(\)", page)


@pytest.mark.parametrize(("file", "function"), walked(ARCHITECTURE), ids=lambda part: part)
def test_a_station_of_the_walks_exists(file: str, function: str) -> None:
    source = (ROOT / "src" / "regard" / file).read_text(encoding="utf-8")
    assert re.search(rf"^ *def {function}\(", source, flags=re.MULTILINE)


def test_there_are_four_walks() -> None:
    walks = ARCHITECTURE.split("## Four walks")[1].split("\n## ")[0].split("\n### ")[1:]
    assert [len(walked(walk)) >= 9 for walk in walks] == [True] * 4


def test_files_of_the_architecture_exist() -> None:
    prose = ARCHITECTURE.split("## The tree")[0]
    files = [file for file in re.findall(r"`([\w/]+/\w+\.py)`", prose) if not file.startswith("tests/")]
    assert files
    assert not [file for file in files if not (ROOT / "src" / "regard" / file.removeprefix("regard/")).exists()]


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_are_valid_run_files(path: Path) -> None:
    from_tables(tomllib.loads(path.read_text(encoding="utf-8")), origin=str(path))


def test_the_example_of_taps_runs(trained: Path) -> None:
    text = (ROOT / "docs" / "taps.md").read_text(encoding="utf-8")
    program = text.split("```python\n")[1].split("```")[0].replace("runs/m30k", str(trained))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("{'decoder.0.cross_attention.weights': (1, ")


def test_the_shapes_of_taps_while_decoding(trained: Path) -> None:
    run = regard.load(trained, threads=1)
    shapes: dict[str, list[tuple[int, ...]]] = {}

    def note(name: str, tensor: torch.Tensor) -> None:
        shapes.setdefault(name.removeprefix("decoder.0."), []).append(tuple(tensor.shape))

    decoding = DecodingConfig(beam=3, max_length=4, min_length=4)
    with listening(run.model, "decoder.0.*", note):
        run.translate(["a dog runs", "the cat"], decoding=decoding)
    n_heads, d_head = shapes["self_attention.query"][1][1::2]
    width = shapes["cross_attention.weights"][1][-1]
    assert shapes["self_attention.query"][1] == (6, n_heads, 1, d_head)
    assert shapes["self_attention.key"][1] == shapes["self_attention.value"][1] == (6, n_heads, 1, d_head)
    assert shapes["self_attention.weights"][1] == (6, n_heads, 1, 2)
    assert shapes["cross_attention.query"][1] == (2, n_heads, 3, d_head)
    assert shapes["cross_attention.weights"][1] == (2, n_heads, 3, width)
    assert len(shapes["cross_attention.key"]) == 1
