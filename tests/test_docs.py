"""The docs say what is: each key of a run file stands in docs/settings.md with its default and meaning, and no other."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from regard.config import RunConfig, from_tables

ROOT = Path(__file__).parent.parent
TABLES = {
    field.name: type(field.default)
    for field in dataclasses.fields(RunConfig)
    if dataclasses.is_dataclass(field.default) and field.name != "model"
}


@pytest.mark.parametrize("name", TABLES)
def test_settings_of_a_table(name: str) -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    section = text.split(f"## [{name}]")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.*) \|$", section, flags=re.MULTILINE)
    documented = {key: (tomllib.loads(f"value = {default}")["value"], about) for key, default, about in rows}
    expected = {
        field.name: (list(field.default) if isinstance(field.default, tuple) else field.default, field.metadata["help"])
        for field in dataclasses.fields(TABLES[name])
    }
    assert documented == expected


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_are_valid_run_files(path: Path) -> None:
    from_tables(tomllib.loads(path.read_text(encoding="utf-8")), origin=str(path))
