"""A run's settings: frozen dataclasses, read from TOML and written to it, changed by dotted overrides.

One class a table of the file, one source for each default; a field's `help` is what the command line shows.
Nothing here is evaluated, and no key can name code.
"""

import dataclasses
import math
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import ConfigError, did_you_mean

Table = TypeVar("Table")


def option(default: Any, help: str, *, least: float | None = None, below: float | None = None) -> Any:
    """Declare a field of a table: its default, the sentence that explains it, and the range of a number."""
    return dataclasses.field(default=default, metadata={"help": help, "least": least, "below": below})


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is read, and how strictly."""

    train: tuple[str, ...] = option((), "training files: two aligned text files, or one or more of any known format")
    valid: tuple[str, ...] = option((), "validation files; without them a part of the training data is held out")
    source: str = option("", "language code or column of the source, where a file holds several")
    target: str = option("", "language code or column of the target, where a file holds several")
    hold_out: int = option(
        0, "how many pairs to hold out without validation files; 0 chooses 1 %, 100 to 2,000", least=0
    )
    on_bad: str = option("stop", "stop when more than 1 % of the pairs are bad, or keep-going")
    max_length: int = option(256, "longest sentence in tokens; a longer one is a bad pair", least=1)
    max_ratio: float = option(9.0, "largest ratio of the two sides' lengths in characters", least=1)


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes tokens."""

    kind: str = option("bpe", "bpe (byte-level), unigram, wordpiece, characters, bytes or words")
    vocab_size: int = option(0, "number of tokens; 0 chooses by the size of the corpus", least=0)
    shared: bool = option(True, "one vocabulary for source and target")
    vectors: str = option("", "word vectors in word2vec's text format for the embedding (kind words)")
    freeze_vectors: bool = option(False, "keep given vectors as they are")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, how fast, and what is kept."""

    steps: int = option(0, "stop after so many updates; 0 for no such limit", least=0)
    epochs: int = option(0, "stop after so many passes over the data; 0 for no such limit", least=0)
    minutes: float = option(0.0, "stop after so many minutes; 0 for no such limit", least=0)
    batch_tokens: int = option(4096, "padded tokens of the longer side in a batch", least=1)
    accumulate: int = option(1, "batches whose gradients are added up before an update", least=1)
    learning_rate: float = option(0.003, "the schedule's peak", least=0)
    schedule: str = option("inverse-sqrt", "inverse-sqrt, cosine, linear or constant")
    warmup: int = option(1000, "updates over which the rate rises to its peak", least=0)
    beta1: float = option(0.9, "Adam's decay of the mean", least=0, below=1)
    beta2: float = option(0.98, "Adam's decay of the square", least=0, below=1)
    epsilon: float = option(1e-9, "Adam's epsilon", least=0)
    weight_decay: float = option(0.0, "decoupled weight decay of matrices", least=0)
    clip: float = option(1.0, "largest norm of the gradient; 0 for none", least=0)
    label_smoothing: float = option(
        0.1, "share of the target's probability spread over the vocabulary", least=0, below=1
    )
    validate_every: int = option(0, "updates between validations; 0 for once an epoch, at least 200", least=0)
    validate_decoded: int = option(
        200, "how many validation sentences are decoded and scored; 0 for none, -1 for all", least=-1
    )
    save_every_steps: int = option(0, "updates between saves beside those at validations; 0 for none", least=0)
    save_every_minutes: float = option(10.0, "minutes between saves beside those at validations; 0 for none", least=0)
    patience: int = option(0, "stop after so many validations without a better loss; 0 for never", least=0)
    keep: int = option(5, "how many of the newest checkpoints stay (the best stays too)", least=1)
    average: int = option(0, "average the weights of the last so many validations at the end; 0 for none", least=0)
    ema: float = option(0.0, "decay of the moving average of the weights; 0 for none", least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How output is searched for."""

    beam: int = option(5, "hypotheses kept a sentence; 1 is greedy search", least=1)
    length_penalty: float = option(1.0, "exponent of the length that divides a hypothesis's log-probability")
    n_best: int = option(1, "hypotheses returned a sentence", least=1)
    max_length: int = option(0, "most tokens written; 0 chooses by the length of the input", least=0)
    min_length: int = option(0, "fewest tokens before the end token", least=0)
    sample: bool = option(False, "draw tokens at random instead of searching")
    temperature: float = option(1.0, "divides the logits before sampling")
    top_k: int = option(0, "sample among so many likeliest tokens; 0 for all", least=0)
    top_p: float = option(1.0, "sample among the likeliest tokens that hold this much probability")
    no_repeat_ngram: int = option(0, "no n-gram of this length occurs twice; 0 for no such rule", least=0)
    repetition_penalty: float = option(
        1.0, "divides the logits of tokens already written; above 1 they come less often"
    )
    batch_size: int = option(64, "sentences decoded together", least=1)


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """The machine."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps")
    precision: str = option("auto", "auto, fp32, bf16")
    threads: int = option(0, "threads of the CPU; 0 for one a core", least=0)


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """Which network: a preset's name, then any field of that model's config."""

    preset: str = ""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A whole run file."""

    task: str
    seed: int = option(1, "seed of everything random", least=0)
    data: DataConfig = DataConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelTable = ModelTable()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    runtime: RuntimeConfig = RuntimeConfig()


def read(path: Path) -> RunConfig:
    """Read a run file."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no run file {path}.", "Give the path of a TOML file, or a task's name.") from None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", "Give the path of a readable TOML file."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", "Correct the file at that place.") from None
    return from_tables(tables, origin=str(path))


def from_tables(tables: Mapping[str, Any], *, origin: str) -> RunConfig:
    """Build a RunConfig from parsed TOML; `origin` names the file in messages."""
    tables = dict(tables)
    if "task" not in tables:
        raise ConfigError(f"{origin} does not say which task it is for.", 'Add a line such as: task = "translate"')
    model = tables.pop("model", {})
    if not isinstance(model, Mapping):
        raise ConfigError(f"{origin}: model is a table, not {model!r}.", 'Write: [model] and below it preset = "…"')
    model_table = ModelTable(
        preset=str(model.get("preset", "")), fields={key: value for key, value in model.items() if key != "preset"}
    )
    return dataclasses.replace(build(RunConfig, tables, origin=origin), model=model_table)


def build(table: type[Table], values: Mapping[str, Any], *, origin: str, path: str = "") -> Table:
    """Build the dataclass `table` from `values`, checking every key and type; `path` is the key's place, dotted."""
    hints = typing.get_type_hints(table)
    ranges = {field.name: field.metadata for field in dataclasses.fields(typing.cast(Any, table))}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        place = f"{path}.{key}" if path else key
        if key not in ranges:
            raise ConfigError(f"{origin}: there is no key {place}.", did_you_mean(key, ranges))
        hint = hints[key]
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{origin}: {place} is a table, not {value!r}.", f"Write: [{place}]")
            arguments[key] = build(typing.cast(type, hint), value, origin=origin, path=place)
        else:
            arguments[key] = _fit(value, hint, origin=origin, place=place)
            check_range(arguments[key], ranges[key], f"{origin}: {place}")
    return table(**arguments)


def override(config: RunConfig, assignments: Mapping[str, Any], *, origin: str = "--set") -> RunConfig:
    """Apply dotted assignments such as {"training.steps": 400}; text for anything but text is read as TOML."""
    tables = to_tables(config)
    for path, value in assignments.items():
        *rooms, key = path.split(".")
        table = tables
        for room in rooms:
            inner = table.get(room)
            if not isinstance(inner, dict):
                names = [name for name, value in table.items() if isinstance(value, dict)]
                remedy = did_you_mean(room, names) if names else f"{room} is a key and holds no others."
                raise ConfigError(f"{origin}: there is no table {room} in {path}.", remedy)
            table = inner
        table[key] = _parse_value(value, is_text=isinstance(table.get(key), str)) if isinstance(value, str) else value
    return from_tables(tables, origin=origin)


def to_tables(config: RunConfig) -> dict[str, Any]:
    """Return the config as nested dictionaries, in the order of the file."""
    tables = dataclasses.asdict(config)
    tables["model"] = {"preset": config.model.preset, **config.model.fields}
    return tables


def to_toml(config: RunConfig) -> str:
    """Write the config as TOML, every key with its resolved value."""
    tables = to_tables(config)
    lines = [f"{key} = {_toml(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    for name, table in tables.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]"] + [f"{key} = {_toml(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _parse_value(text: str, *, is_text: bool) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return text if is_text and not isinstance(value, str) else value


def _fit(value: Any, hint: Any, *, origin: str, place: str) -> Any:
    """Return `value` as the type `hint` asks for, or say what was expected."""
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_fit(one, item, origin=origin, place=place) for one in values)
    if isinstance(hint, types.UnionType):
        for choice in typing.get_args(hint):
            if isinstance(value, choice):
                return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    kinds = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    raise ConfigError(
        f"{origin}: {place} is {kinds.get(hint, hint)}, not {value!r}.", f"Correct {place} and run the command again."
    )


def check_range(value: Any, metadata: Mapping[str, Any], place: str) -> None:
    """Refuse a number that is none, or outside what its field declares."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    least, below = metadata.get("least"), metadata.get("below")
    remedy = f"Correct {place.rpartition(' ')[2]} and run the command again."
    if not math.isfinite(value):
        raise ConfigError(f"{place} is a finite number, not {value}.", remedy)
    too_small, too_large = least is not None and value < least, below is not None and value >= below
    if too_small or too_large:
        wanted = f"is at least {least}, not" if below is None else f"lies from {least} to below {below}, not at"
        raise ConfigError(f"{place} {wanted} {value}.", remedy)


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
