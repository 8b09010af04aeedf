"""The README's commands are commands: each parses, each is in the table, each link leads somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from regard.cli.main import COMMANDS, make_app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [match.strip() for match in re.findall(r"^    (?:[$] )?(?:.*\| )?(regard [^#\n]*)", README, flags=re.MULTILINE)]


def test_the_readme_shows_commands() -> None:
    assert len(LINES) >= 5


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_readme_parses(line: str) -> None:
    tokens = shlex.split(re.split(r" [<>|] ", line)[0])[1:]
    make_app().parse_args(tokens, exit_on_error=False, print_error=False)


def test_every_command_is_in_the_table() -> None:
    table = README.split("## The commands")[1].split("\n## ")[0]
    names = [usage.split()[0] for usage, _ in COMMANDS]
    missing = [name for name in names if not re.search(rf"\b{name}\b", table)]
    assert not missing


def test_pictures_and_links_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
