"""Write the parts of the docs that follow from the code: `python docs/generate.py`, or with --check, which only compares.

The tree of docs/ARCHITECTURE.md: every file of the package with the first sentence of its docstring.
"""

import argparse
import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "regard"


def phrase(path: Path) -> str:
    """The first sentence of a file's docstring, without its full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)`\d])\. ", first)[0].rstrip(".")


def tree(folder: Path = PACKAGE, depth: int = 0) -> list[str]:
    """The lines of the tree below a folder: its files, then its folders."""
    indent = "  " * depth
    lines = [f"{indent}{folder.name}/".ljust(30) + phrase(folder / "__init__.py")]
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            lines.append(f"{indent}  {path.name}".ljust(30) + phrase(path))
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        lines += tree(inner, depth + 1)
    return lines


# Each generated block of a page stands between <!-- name --> and <!-- end of name -->.
BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "tree": ("docs/ARCHITECTURE.md", lambda: "```\n" + "\n".join(tree()) + "\n```"),
}


def with_block(page: str, name: str, content: str) -> str:
    """Return the page with the content of one block replaced."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}{content}{end}{after}"


def main() -> int:
    """Write every block, or say which is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare; 1 if a page is out of date")
    check = parser.parse_args().check
    old = []
    for name, (page, content) in BLOCKS.items():
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        new = with_block(text, name, content())
        if new != text:
            old.append(page)
            if not check:
                path.write_text(new, encoding="utf-8")
    if check and old:
        sys.stderr.write(f"Out of date: {', '.join(old)}. Run: python docs/generate.py\n")
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
