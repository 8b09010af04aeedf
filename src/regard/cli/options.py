"""Options that several commands share, and how they change settings. An option's help is the setting's own."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from cyclopts import Group, Parameter

from regard.config import DataConfig, DecodingConfig, check_range
from regard.errors import UsageError

Settings = TypeVar("Settings")

SEARCH = Group("Search", "Without an option the run's own setting holds, as in its config.toml.", sort_key=20)
SAMPLING = Group("Sampling", sort_key=30)
COLUMNS = Group("Labelled data", "Without an option the column is the one that the run was trained with.", sort_key=15)

JsonFlag = Annotated[bool, Parameter(help="write JSON for programs instead of text for people")]
SourceOption = Annotated[
    str,
    Parameter(
        name="--from",
        metavar="CODE",
        help="language code or column of the source, or of the text, where a file holds several",
    ),
]
TargetOption = Annotated[
    str,
    Parameter(name="--to", metavar="CODE", help="language code or column of the target, where a file holds several"),
]


def explained(table: type, field: str, **others: Any) -> Parameter:
    """Return the option for a field of a settings table, with the field's own help."""
    helps = {one.name: one.metadata.get("help", "") for one in dataclasses.fields(table)}
    return Parameter(help=helps[field], **others)


def _column(field: str) -> Parameter:
    return explained(DataConfig, field, group=COLUMNS, metavar="COLUMN")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Which columns and rows of labelled data are meant; "" leaves the run's own setting."""

    text: Annotated[str, _column("text")] = ""
    text_b: Annotated[str, _column("text_b")] = ""
    label: Annotated[str, _column("label")] = ""
    split_column: Annotated[str, _column("split_column")] = ""
    split: Annotated[
        str,
        Parameter(
            group=COLUMNS,
            metavar="SPLIT",
            help="rows that --split-column calls test (the default), valid or train; or all",
        ),
    ] = ""


def _search(field: str, **others: Any) -> Parameter:
    return explained(DecodingConfig, field, group=SEARCH, **others)


def _sampling(field: str) -> Parameter:
    return explained(DecodingConfig, field, group=SAMPLING)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How output is searched for; None leaves the run's own setting."""

    beam: Annotated[int | None, _search("beam")] = None
    length_penalty: Annotated[float | None, _search("length_penalty")] = None
    max_length: Annotated[int | None, _search("max_length")] = None
    min_length: Annotated[int | None, _search("min_length")] = None
    no_repeat_ngram: Annotated[int | None, _search("no_repeat_ngram")] = None
    repetition_penalty: Annotated[float | None, _search("repetition_penalty")] = None
    batch_size: Annotated[int | None, _search("batch_size")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """How output is drawn at random."""

    sample: Annotated[bool | None, _sampling("sample")] = None
    temperature: Annotated[float | None, _sampling("temperature")] = None
    top_k: Annotated[int | None, _sampling("top_k")] = None
    top_p: Annotated[float | None, _sampling("top_p")] = None


def changed(settings: Settings, **fields: Any) -> Settings:
    """Return the settings with those fields changed that are given: None and "" and () are not.

    A number outside its field's range is refused by the name of its option.
    """
    given = {name: value for name, value in fields.items() if value is not None and value != "" and value != ()}
    for name, value in given.items():
        check_option(type(settings), name, value)
    return dataclasses.replace(settings, **given)  # type: ignore[type-var]


def check_option(table: type, field: str, value: Any, *, place: str = "") -> None:
    """Refuse a number outside the range that a field of a settings table declares; `place` is who gave it."""
    [metadata] = [one.metadata for one in dataclasses.fields(table) if one.name == field]
    check_range(value, metadata, place or f"--{field.replace('_', '-')}")


def as_fields(options: SearchOptions | SamplingOptions | ColumnOptions | None) -> dict[str, Any]:
    """Return a group's options by name, for `changed`."""
    return {} if options is None else dataclasses.asdict(options)


def whole_numbers(text: str, *, option: str) -> tuple[int, ...]:
    """Read a list such as 1,2,3."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or len(set(numbers)) < len(numbers):
        raise UsageError(
            f"{option} takes different whole numbers with commas between them, not '{text}'.",
            f"Write them, for example, as {option} 1,2,3",
        )
    return numbers
