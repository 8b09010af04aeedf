"""What the pages of the docs show: their blocks of code, and the `regard` commands in them."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent


def code_blocks(page: str, language: str) -> list[str]:
    """The blocks of code of a page, in their order; of a list item, without its indent."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)
    return [re.sub(rf"^{indent}", "", code, flags=re.M) for indent, code in found]


def shell_lines(page: str) -> list[str]:
    """The lines of a page's shell blocks that call regard."""
    lines = (line for block in code_blocks(page, "sh") for line in block.splitlines())
    return [line for line in lines if line.startswith("regard ")]


def table_commands(page: str) -> list[str]:
    """The commands in the cells of a page's tables that are complete: those without an ellipsis or an optional part."""
    rows = re.findall(r"^\|.*\|$", (ROOT / page).read_text("utf-8"), flags=re.M)
    spans = (span for row in rows for span in re.findall(r"`(regard [^`]+)`", row))
    return [span for span in spans if not re.search(r"[…\[|]|\b(RUN RUN|TASK|MODEL|N)\b", span)]


def arguments(line: str) -> tuple[list[str], str]:
    """What a shell line gives the command `regard`, without redirections; and the file that is its standard input."""
    command, _, _ = line.partition(" > ")
    command, _, read = command.partition(" < ")
    return shlex.split(command, comments=True)[1:], read.strip()
