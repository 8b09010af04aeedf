"""Write the parts of the docs that follow from the code: `python docs/generate.py`, or with --check, which only compares.

The tree of docs/ARCHITECTURE.md: every file of the package with the first sentence of its docstring.
The fields of [model] in docs/settings.md: of every family of presets, from the config of its model.
"""

import argparse
import ast
import dataclasses
import json
import re
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "regard"
sys.path.insert(0, str(ROOT / "src"))  # this checkout's, whatever is installed


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


def models() -> str:
    """The fields of each family's config, by family, in the order of the presets."""
    from regard.models.presets import PRESETS

    sections = []
    for family, presets in groupby(PRESETS.values(), key=lambda preset: preset.family):
        members = list(presets)
        names = ", ".join(f"`{preset.name}`" for preset in members)
        sections.append(f"### {family}\n\nOf the presets {names}:\n\n{field_table(members[0].config)}")
        for field in dataclasses.fields(members[0].config):
            for kind, usual in (field.metadata["kinds"] or {}).items():
                sections.append(f'`[model.{field.name}]` with `kind = "{kind}"`:\n\n{field_table(usual)}')
    return "\n\n".join(sections)


def field_table(config: Any) -> str:
    """A table of a config's fields; of an instance, its values are the defaults."""
    rows = ["| key | default | values | what it is |", "|---|---|---|---|"]
    for field in dataclasses.fields(config):
        default = field.default if isinstance(config, type) else getattr(config, field.name)
        if field.metadata["kinds"]:
            kind = next(name for name, one in field.metadata["kinds"].items() if one == default)
            shown, values = f'`kind = "{kind}"`', "a table"
        else:
            shown = "—" if default is dataclasses.MISSING else f"`{json.dumps(default)}`"
            values = field_values(field)
        rows.append(f"| `{field.name}` | {shown} | {values} | {field.metadata['help']} |")
    return "\n".join(rows)


def field_values(field: dataclasses.Field[Any]) -> str:
    """What a field may be."""
    if field.metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in field.metadata["choices"])
    limits = {"at least": "least", "above": "above", "below": "below"}
    found = [f"{word} {field.metadata[name]}" for word, name in limits.items() if field.metadata[name] is not None]
    return " and ".join(found) or "`true`, `false`"


# Each generated block of a page stands between <!-- name --> and <!-- end of name -->.
BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "tree": ("docs/ARCHITECTURE.md", lambda: "```\n" + "\n".join(tree()) + "\n```"),
    "models": ("docs/settings.md", models),
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
