"""Write the parts of the docs that follow from the code: `python docs/generate.py`, or with --check, which only compares.

The tree of docs/ARCHITECTURE.md: every file of the package with the first sentence of its docstring.
The keys of docs/settings.md: every table of a run file, and what each task has of its own.
The fields of [model] in docs/settings.md: of every family of presets, from the config of its model.
The commands of docs/cli.md: the help of each, as a terminal of 100 columns shows it.
The tables of docs/taps.md: what small networks of every family show at their taps (docs/tap_tables.py).
"""

import argparse
import ast
import dataclasses
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
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


def settings() -> str:
    """Every table of a run file but [model], whose keys depend on the preset: a section each."""
    from regard.config import RunConfig
    from regard.tasks.spec import SPECIFIC

    sections = [setting_table((field for field in dataclasses.fields(RunConfig) if field.name in ("task", "seed")), {})]
    for table in dataclasses.fields(RunConfig):
        if not dataclasses.is_dataclass(table.default) or table.name == "model":
            continue
        keys = dataclasses.fields(table.default)
        readers = {key: reading_tasks(table.name, key) for key in SPECIFIC.get(table.name, ())}
        about = str(type(table.default).__doc__)
        sections.append(f"## [{table.name}]\n\n{about}\n\n{setting_table(keys, readers)}")
    return "\n\n".join(sections)


def reading_tasks(table: str, key: str) -> str:
    """The tasks that read a key, or those that do not, whichever are fewer."""
    from regard.tasks.spec import TASKS

    reading = [name for name, spec in TASKS.items() if spec.reads_setting(table, key)]
    others = [name for name in TASKS if name not in reading]
    return f"all but {', '.join(others)}" if len(others) < len(reading) else ", ".join(reading)


def setting_table(keys: Iterable[dataclasses.Field[Any]], readers: Mapping[str, str]) -> str:
    """The keys of one table of a run file; `readers`: which tasks read a key, where not all do."""
    rows = ["| key | default | values | tasks | what it is |", "|---|---|---|---|---|"]
    for key in keys:
        default = "—" if key.default is dataclasses.MISSING else f"`{json.dumps(key.default)}`"
        about = key.metadata.get("help", "what is learned: one of the tasks below").replace("|", "\\|")
        tasks = readers.get(key.name, "all")
        rows.append(f"| `{key.name}` | {default} | {setting_values(key)} | {tasks} | {about} |")
    return "\n".join(rows)


def setting_values(key: dataclasses.Field[Any]) -> str:
    """What a key may be: words, a range of numbers, or its type."""
    if key.metadata.get("choices"):
        return ", ".join(f"`{choice}`" for choice in key.metadata["choices"])
    limits = {"at least": "least", "at most": "most", "above": "above", "below": "below"}
    found = [f"{word} {key.metadata[name]:,}" for word, name in limits.items() if key.metadata.get(name) is not None]
    types = {bool: "`true`, `false`", int: "a whole number", float: "a number", str: "text"}
    return " and ".join(found) or types.get(type(key.default), "text" if key.name == "task" else "a list of texts")


def tasks() -> str:
    """What each task has of its own: a section each, from its row in the table of tasks."""
    from regard.models.presets import presets_for
    from regard.tasks.spec import TASKS

    sections = []
    for spec in TASKS.values():
        presets = [preset.name for preset in presets_for(spec.name)]
        defaults = {f"{table}.{key}": value for table, keys in spec.defaults.items() for key, value in keys.items()}
        end = {f"training.{key}": value for key, value in spec.end.items()}
        lines = [
            f"### {spec.name}",
            "",
            f"{spec.about[0].upper()}{spec.about[1:]}.",
            "",
            f"- training files: {spec.files}",
            f"- models: {', '.join(f'`{name}`' for name in presets)}; the first by default",
            f"- `training.best_by`: {', '.join(f'`{name}`' for name in spec.metrics)}",
            f"- ends by default with: {assignments(end)}",
            f"- other defaults: {assignments(defaults) or 'none'}",
        ]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def assignments(values: Mapping[str, Any]) -> str:
    """Settings as a run file has them, in a row."""
    return ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in values.items())


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
            values = setting_values(field)
        rows.append(f"| `{field.name}` | {shown} | {values} | {field.metadata['help']} |")
    return "\n".join(rows)


def commands() -> str:
    """The help of every command, a section each; of `regard train` also that of every task."""
    from regard.cli.main import COMMANDS, DATA_COMMANDS
    from regard.tasks.spec import TASKS

    names = [usage.partition(" ")[0] for usage, _ in COMMANDS]
    called = [[], *([name] for name in names), *(["data", usage.partition(" ")[0]] for usage, _ in DATA_COMMANDS)]
    place = called.index(["train"]) + 1
    called[place:place] = [["train", task] for task in TASKS]
    sections = []
    for words in called:
        level = "###" if words[:1] == ["train"] and len(words) > 1 else "##"
        sections.append(f"{level} {' '.join(['regard', *words])}\n\n```text\n{help_text(words)}\n```")
    return "\n\n".join(sections)


def help_text(words: list[str]) -> str:
    """What `regard … --help` shows on a terminal of 100 columns, without colours."""
    from rich.console import Console

    from regard.cli.main import make_app

    shown = io.StringIO()
    make_app(words).help_print(words, console=Console(file=shown, width=100, force_terminal=False, color_system=None))
    return "\n".join(line.rstrip() for line in shown.getvalue().rstrip().splitlines())


def tap_blocks() -> dict[str, tuple[str, Callable[[], str]]]:
    """A block for each family of networks."""
    from tap_tables import NETWORKS, tap_table

    return {f"taps-{family}": ("docs/taps.md", partial(tap_table, family)) for family in NETWORKS}


# Each generated block of a page stands between <!-- name --> and <!-- end of name -->.
BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "tree": ("docs/ARCHITECTURE.md", lambda: "```\n" + "\n".join(tree()) + "\n```"),
    "settings": ("docs/settings.md", settings),
    "tasks": ("docs/settings.md", tasks),
    "models": ("docs/settings.md", models),
    "commands": ("docs/cli.md", commands),
}


def with_block(page: str, name: str, content: str) -> str:
    """Return the page with the content of one block replaced."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        sys.exit(f"There is no block {begin.strip()} … {end.strip()} in its page.")
    return f"{before}{begin}{content}{end}{after}"


def main() -> int:
    """Write every block, or say which is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare; 1 if a page is out of date")
    check = parser.parse_args().check
    old = []
    for name, (page, content) in {**BLOCKS, **tap_blocks()}.items():
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
