"""The commands on the pages are commands: each parses. The README has each of them in its table; links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import ROOT, arguments, code_blocks, shell_lines, table_commands

from regard.cli.main import COMMANDS, make_app

GUIDES = [f"docs/guides/{path.name}" for path in sorted((ROOT / "docs" / "guides").glob("*.md"))]
PAGES = [
    "README.md",
    "recipes/README.md",
    "benchmarks/README.md",
    "docs/ARCHITECTURE.md",
    "docs/settings.md",
    "docs/cli.md",
    *GUIDES,
]
LINES = list(dict.fromkeys(line for page in PAGES for line in (*shell_lines(page), *table_commands(page))))


def test_the_pages_show_commands() -> None:
    assert len(LINES) >= 60
    assert 'regard translate runs/mine --align "A dog runs across the grass."' in LINES
    assert "regard average runs/mine --last 2" in LINES  # in a list item
    assert "regard train language --train book.txt --run RUN" in LINES  # in a table


@pytest.mark.parametrize("line", LINES)
def test_a_command_parses(line: str) -> None:
    tokens, _ = arguments(line)
    make_app(tokens).parse_args(tokens, exit_on_error=False, print_error=False)


def test_every_command_is_in_the_table() -> None:
    table = (ROOT / "README.md").read_text("utf-8").split("## The commands")[1].split("\n## ")[0]
    names = [usage.split()[0] for usage, _ in COMMANDS]
    missing = [name for name in names if not re.search(rf"`regard {name}\b", table)]
    assert not missing


def heading_anchors(page: Path) -> set[str]:
    """What a link to a heading of a page may say behind its #, by GitHub's rule."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_pictures_and_links_exist(page: str) -> None:
    folder = (ROOT / page).parent
    for link, _, anchor in re.findall(r"\]\(([^)#:]*)(#([^)]*))?\)", (ROOT / page).read_text("utf-8")):
        target = folder / link if link else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in heading_anchors(target), f"{link}#{anchor}"


def test_the_readmes_python_runs(corpus: tuple[str, str], tmp_path: Path) -> None:
    for language, file in zip(("en", "de"), corpus, strict=True):
        lines = Path(file).read_text().splitlines(keepends=True)
        (tmp_path / f"train.{language}").write_text("".join(lines[8:]))
        (tmp_path / f"test.{language}").write_text("".join(lines[:8]))
    [program] = code_blocks("README.md", "python")
    program = program.replace("steps=2000", "steps=3, threads=1, batch_tokens=256, vocab_size=300")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "BLEU" in done.stdout
