"""Settings read from TOML and written to it, changed by dotted overrides. Nothing here is evaluated.

A run file may come from somebody else: it is read in bounded time (`bounded_toml.py`), and sizes are held to their ranges.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from regard.config.bounded_toml import parse_toml
from regard.config.synonyms import near_key, near_name
from regard.config.tables import ModelTable, RunConfig
from regard.errors import LONGEST_NAME, ConfigError, did_you_mean
from regard.regular_files import MEGABYTE, read_any, read_regular
from regard.tasks.spec import TaskSpec, find_spec

Table = TypeVar("Table")

MOST_FILE = 4 * MEGABYTE  # with the paths of very many files
MOST_NUMBERS = 100  # in a list, such as the blocks of each stage

# What keys were called once: a run file that says so is told the new name.
RENAMED = {
    "data.hold_out": "data.valid_size",
    "data.second": "data.text_b",
    "data.split": "data.split_column",
    "training.freeze_trunk": "training.freeze_init",
    "training.least_steps": "training.min_steps",
    "training.trunk_rate": "training.init_lr_scale",
    "training.validate_decoded": "training.validate_samples",
}
# What a run did before there was such a key, where that is not what a new run does.
_BEFORE: Mapping[str, Mapping[str, Any]] = {"training": {"optimizer": "adamw"}}


def read(path: Path, *, of_run: bool = False) -> RunConfig:
    """Read a run file; `of_run`: the config.toml of a run's folder, which an earlier version may have written."""
    tables = _read_tables(path, of_run=of_run)
    return from_tables(_translated(tables) if of_run else tables, origin=str(path))


def _read_tables(path: Path, *, of_run: bool) -> dict[str, Any]:
    try:
        # A run file of one's own may be a link or a pipe, that of a run's folder may not.
        content = read_regular(path, most=MOST_FILE) if of_run else read_any(path, most=MOST_FILE)
        return parse_toml(content.decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no run file {path}.", "Give the path of a TOML file, or a task's name.") from None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", "Give the path of a readable TOML file."
        ) from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", "Correct the file at that place.") from None


def names_no_preset(path: Path) -> bool:
    """Whether a run file says that its network is of no preset, as that of a run with a custom network does."""
    model = _read_tables(path, of_run=path.name == "config.toml").get("model")
    return isinstance(model, dict) and model.get("preset") == ""


def _translated(tables: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's config.toml says in the keys of today: earlier versions wrote every key, whatever the task."""
    found = dict(tables)
    spec = find_spec(str(tables.get("task", "")))
    for name in [name for name, table in tables.items() if isinstance(table, Mapping) and name != "model"]:
        found[name] = {}
        for key, value in tables[name].items():
            new = _new_name(f"{name}.{key}", spec).partition(".")[2] or key
            if spec.reads_setting(name, new) and (
                value or new not in found[name]
            ):  # under both names, one may be empty
                found[name][new] = value
    for name, before in _BEFORE.items():
        if isinstance(given := found.get(name, {}), Mapping):
            found[name] = {**before, **given}
    return found


def _new_name(key: str, spec: TaskSpec) -> str:
    """What a key is called today in a run file of a task, "" for one that was not renamed."""
    return spec.renamed.get(key, RENAMED.get(key, ""))


def default_config(task: str) -> RunConfig:
    """Return the settings of a task where nothing is said about them."""
    return from_tables({"task": task}, origin=task)


def from_tables(tables: Mapping[str, Any], *, origin: str) -> RunConfig:
    """Build a RunConfig from parsed TOML; `origin` names the file in messages."""
    tables = dict(tables)
    if "task" not in tables:
        raise ConfigError(f"{origin} does not say which task it is for.", 'Add a line such as: task = "translate"')
    spec = find_spec(str(tables["task"]))
    for name, table in tables.items():
        if isinstance(table, Mapping) and name != "model":
            _refuse_other_keys(name, table, spec, origin)
    for name, defaults in spec.defaults.items():
        if isinstance(tables.get(name, {}), Mapping):
            tables[name] = {**defaults, **tables.get(name, {})}
    model = tables.pop("model", {})
    if not isinstance(model, Mapping):
        raise ConfigError(
            f"{origin}: model must be a table, not {model!r}.", 'Write: [model] and below it preset = "…"'
        )
    model_table = ModelTable(
        preset=str(model.get("preset", "")), fields={key: value for key, value in model.items() if key != "preset"}
    )
    return dataclasses.replace(build(RunConfig, tables, origin=origin), model=model_table)


def _refuse_other_keys(name: str, table: Mapping[str, Any], spec: TaskSpec, origin: str) -> None:
    """Refuse keys that were renamed, and those that mean nothing to the task."""
    applying = {field.name: field for field in _fields(name) if spec.reads_setting(name, field.name)}
    for key in table:
        if new := _new_name(f"{name}.{key}", spec):
            raise ConfigError(f"{origin}: {name}.{key} is now called {new}.", f"Write {new} instead.")
        if not spec.reads_setting(name, key):
            remedy = near_name(key, applying, otherwise="Leave it out.")
            raise ConfigError(f"{origin}: {name}.{key} does not apply to the task {spec.name}.", remedy)
        if applying and key not in applying:
            raise _unknown(key, {}, applying, origin=origin, path=name)


def _fields(table: str) -> tuple[dataclasses.Field[Any], ...]:
    """The keys of a table of the run file; none where there is no such table."""
    kind = _type_hints(RunConfig).get(table)
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def refuse_unread(config: RunConfig) -> None:
    """Refuse settings that differ from their defaults and mean nothing to the task, so that none is thought to."""
    spec, usual = find_spec(config.task), default_config(config.task)
    for name in (field.name for field in dataclasses.fields(config)):
        for field in _fields(name) if name != "model" else ():
            value = getattr(getattr(config, name), field.name)
            if value != getattr(getattr(usual, name), field.name) and not spec.reads_setting(name, field.name):
                raise ConfigError(f"{name}.{field.name} does not apply to the task {spec.name}.", "Leave it out.")


def build(table: type[Table], values: Mapping[str, Any], *, origin: str, path: str = "") -> Table:
    """Build the dataclass `table` from `values`, checking every key and type; `path` is the key's place, dotted."""
    arguments = _checked(table, values, origin=origin, path=path)
    for field in dataclasses.fields(typing.cast(Any, table)):
        if field.default is dataclasses.MISSING is field.default_factory and field.name not in arguments:
            place = f"{path}.{field.name}" if path else field.name
            raise ConfigError(
                f"{origin} does not say {place}.", "Put the file back that training wrote, or add the key."
            )
    return table(**arguments)


def _checked(table: type[Any], values: Mapping[str, Any], *, origin: str, path: str = "") -> dict[str, Any]:
    """The values as the fields of a dataclass take them, every key and type checked."""
    hints = _type_hints(typing.cast(Any, table))
    options = {field.name: field.metadata for field in dataclasses.fields(typing.cast(Any, table))}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        place = f"{path}.{key}" if path else key
        if key not in options:
            raise _unknown(key, getattr(table, "renamed", {}), options, origin=origin, path=path)
        hint, kinds = hints[key], options[key].get("kinds")
        if kinds:
            arguments[key] = _build_kind(kinds, value, origin=origin, place=place)
        elif dataclasses.is_dataclass(hint):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{origin}: {place} must be a table, not {value!r}.", f"Write: [{place}]")
            arguments[key] = build(typing.cast(type, hint), value, origin=origin, path=place)
        else:
            arguments[key] = _fit(value, hint, origin=origin, place=place)
            check_range(arguments[key], options[key], f"{origin}: {place}")
    return arguments


_type_hints = cache(typing.get_type_hints)  # which take long, and settings change with every call from Python


def _build_kind(kinds: Mapping[str, Any], value: Any, *, origin: str, place: str) -> Any:
    """Build a table whose key `kind` says which of several it is; what it does not say is as that kind has it."""
    first = next(iter(kinds))
    if not isinstance(value, Mapping):
        kind = value if value in kinds else first
        raise ConfigError(
            f"{origin}: {place} must be a table, not {value!r}.", f'Write: [{place}] and below it kind = "{kind}"'
        )
    kind = _fit(value.get("kind", first), str, origin=origin, place=f"{place}.kind")
    check_range(kind, {"choices": list(kinds)}, f"{origin}: {place}.kind")
    usual = {field.name: getattr(kinds[kind], field.name) for field in dataclasses.fields(kinds[kind])}
    given = {key: one for key, one in value.items() if key != "kind"}
    return build(type(kinds[kind]), {**usual, **given}, origin=origin, path=place)


def _unknown(key: str, renamed: Mapping[str, str], known: Mapping[str, Any], *, origin: str, path: str) -> ConfigError:
    """A key that there is not: what it is called now, or the near name."""
    place = f"{path}.{key}" if path else key
    if key in renamed:
        new = " and ".join(f"{path}.{name}" for name in renamed[key].split(" and "))
        return ConfigError(f"{origin}: {place} is now called {new}.", f"Write {new} instead.")
    shown = place if len(place) <= LONGEST_NAME else f"{place[:LONGEST_NAME]}…"
    return ConfigError(f"{origin}: there is no key {shown}.", near_key(key, path, known))


def as_table(config: Any) -> dict[str, Any]:
    """Return a dataclass as the table that `build` makes it of; a field of several kinds says which it is."""
    table = {}
    for field in dataclasses.fields(config):
        value, kinds = getattr(config, field.name), field.metadata.get("kinds")
        if kinds:
            kind = next(name for name, one in kinds.items() if type(one) is type(value))
            value = {"kind": kind, **as_table(value)}
        table[field.name] = list(value) if isinstance(value, tuple) else value  # as TOML has it
    return table


def override(config: RunConfig, assignments: Mapping[str, Any], *, origin: str = "--set") -> RunConfig:
    """Apply dotted assignments such as {"training.steps": 400}; text for anything but text is read as TOML."""
    tables = to_tables(config)
    for path, value in assignments.items():
        *rooms, key = path.split(".")
        table = tables
        for depth, room in enumerate(rooms):
            # Which tables a model has inside, its preset says.
            may_lack = _fields(room) if depth == 0 else rooms[0] == "model"
            inner = table.setdefault(room, {}) if may_lack else table.get(room)
            if not isinstance(inner, dict):
                names = [name for name, value in table.items() if isinstance(value, dict)]
                remedy = did_you_mean(room, names) if names else f"{room} is a key and holds no others."
                raise ConfigError(f"{origin}: there is no table {room} in {path}.", remedy)
            table = inner
        table[key] = _parse_value(value, is_text=isinstance(table.get(key), str)) if isinstance(value, str) else value
    return from_tables(tables, origin=origin)


def changed(table: Table, settings: Mapping[str, Any], *, origin: str) -> Table:
    """Return a table with those keys changed, checked as in a run file; `origin` names the caller in messages."""
    new: Table = dataclasses.replace(typing.cast(Any, table), **_checked(type(table), settings, origin=origin))
    return new


def to_tables(config: RunConfig) -> dict[str, Any]:
    """Return the config as nested dictionaries, in the order of the file: what its task reads, and nothing else."""
    spec, tables = find_spec(config.task), dataclasses.asdict(config)
    tables["model"] = {"preset": config.model.preset, **tables["model"]["fields"]}
    for name in [name for name, table in tables.items() if isinstance(table, dict) and name != "model"]:
        tables[name] = {key: value for key, value in tables[name].items() if spec.reads_setting(name, key)}
        if not tables[name]:
            del tables[name]
    return tables


def to_toml(config: RunConfig) -> str:
    """Write the config as TOML, every key with its resolved value."""
    return "\n".join(_toml_lines(to_tables(config))) + "\n"


def _toml_lines(table: Mapping[str, Any], path: str = "") -> list[str]:
    """The keys of a table, then the tables inside it, each under its dotted name."""
    lines = [f"{key} = {_toml(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    for name, inner in table.items():
        if isinstance(inner, Mapping):
            place = f"{path}.{name}" if path else name
            lines += ["", f"[{place}]", *_toml_lines(inner, place)]
    return lines


def _parse_value(text: str, *, is_text: bool) -> Any:
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
    return text if is_text and not isinstance(value, str) else value


def _fit(value: Any, hint: Any, *, origin: str, place: str) -> Any:
    """Return `value` as the type `hint` asks for, or say what was expected."""
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_fit(one, item, origin=origin, place=place) for one in values)
    if isinstance(hint, types.UnionType):
        choices = typing.get_args(hint)
        if bool in choices and value in ("true", "false"):  # --set cannot tell the word from the text
            return value == "true"
        for choice in choices:
            if isinstance(value, choice):
                return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    kinds = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    wanted = " or ".join(kinds.get(one, str(one)) for one in typing.get_args(hint) or (hint,))
    raise ConfigError(
        f"{origin}: {place} must be {wanted}, not {value!r}.",
        f"Correct {place} and run the command again.",
    )


def check_fields(table: Any, *, path: str, most: float | None = None) -> None:
    """Hold every field of a dataclass to the range and the choices that it declares; `path` is its place, dotted.

    most: the largest whole number of a field that declares none
    """
    for field in dataclasses.fields(table):
        value, limits = getattr(table, field.name), dict(field.metadata)
        if isinstance(value, int) and limits.get("most") is None:
            limits["most"] = most
        check_range(value, limits, f"{path}.{field.name}")


def check_range(value: Any, metadata: Mapping[str, Any], place: str) -> None:
    """Refuse a number that is none or outside what its field declares, and a word that is not among its choices."""
    if isinstance(value, tuple):
        if len(value) > MOST_NUMBERS and not isinstance(value[0], str):
            raise ConfigError(
                f"{place} must have at most {MOST_NUMBERS} numbers, not {len(value):,}.",
                f"Shorten {_last_word(place)}.",
            )
        for one in value:
            check_range(one, metadata, place)
    elif isinstance(value, str):
        choices = metadata.get("choices")
        if choices and value not in choices:
            *others, last = choices
            known = f"{', '.join(others)} or {last}" if others else last
            raise ConfigError(f"{place} must be {known}, not '{value}'.", did_you_mean(value, choices))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, metadata, place)


def _check_number(value: float, metadata: Mapping[str, Any], place: str) -> None:
    least, most, above, below = (metadata.get(name) for name in ("least", "most", "above", "below"))
    limits = [
        *([f"at least {least}"] if least is not None else []),
        *([f"at most {most:,}"] if most is not None and value > most else []),
        *([f"above {above}"] if above is not None else []),
        *([f"below {below}"] if below is not None else []),
    ]
    fits = (least is None or value >= least) and (above is None or value > above) and (below is None or value < below)
    is_finite = isinstance(value, int) or math.isfinite(value)
    if not (fits and is_finite and (most is None or value <= most)):
        wanted = " and ".join(limits) if is_finite else "a finite number"
        raise ConfigError(
            f"{place} must be {wanted}, not {value}.", f"Correct {_last_word(place)} and run the command again."
        )


def _last_word(place: str) -> str:
    return place.rpartition(" ")[2]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value):  # bytes that are no UTF-8
        escaped = "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in value)
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    raise ConfigError(f"{value!r} cannot be written into a run file.", "Use numbers, text and lists of them.")


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
