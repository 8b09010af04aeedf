"""Options that several commands share, and what is given of them. An option's help is the setting's own."""

import dataclasses
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from regard.config import DataConfig, DecodingConfig, RunConfig, check_range
from regard.config.keywords import DataSettings, DecodingSettings
from regard.config.synonyms import keys_of, which
from regard.errors import UsageError, did_you_mean

SEARCH = Group("Search", "Default: the run's own setting, as in its config.toml.", sort_key=20)
SAMPLING = Group("Sampling", "Default: the run's own setting, as in its config.toml.", sort_key=30)
COLUMNS = Group("Data", "Default: as in the run's training data.", sort_key=15)
SCORES = Group("Scores", sort_key=18)

MOST_VOCABULARY = 10_000_000

# Options whose name is not that of the setting that they change.
FLAGS = {"source": "--from", "target": "--to", "banned": "--ban"}
# By command, the tables of a run file whose keys its --set takes.
SETTABLE = {"train": ("",), "resume": ("training.", "runtime."), "plan": ("model.",)}


def flag(name: str) -> str:
    """Return the option for a setting: --max-length for max_length."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def near_option(name: str, options: Collection[str], *, command: str = "", otherwise: str = "") -> str:
    """The sentence that points to an option for what others call `name`, to --set where only that reaches it, or to the
    nearest option; `otherwise` where there is none.
    """
    keys = keys_of(name)
    flags = list(dict.fromkeys(flag(key.rpartition(".")[2]) for key in keys))
    if ours := [one for one in flags if one in options and one != name]:
        return which(ours)
    settable = [f"--set {key}=…" for key in keys if key.startswith(SETTABLE.get(command, ()))]
    return which(settable) if settable else did_you_mean(name, options, otherwise=otherwise)


def explained(table: type, field: str, **others: Any) -> Parameter:
    """Return the option for a field of a settings table, with the field's own help."""
    helps = {one.name: one.metadata.get("help", "") for one in dataclasses.fields(table)}
    return Parameter(help=helps[field], **others)


def _column(field: str, **others: Any) -> Parameter:
    return explained(DataConfig, field, group=COLUMNS, **{"metavar": "COLUMN", **others})


def _search(field: str) -> Parameter:
    return explained(DecodingConfig, field, group=SEARCH)


def _sampling(field: str) -> Parameter:
    return explained(DecodingConfig, field, group=SAMPLING)


RunArgument = Annotated[str, Parameter(name="RUN", help="a run: runs/mine, runs/mine@best, runs/mine@400")]
JsonFlag = Annotated[bool, Parameter(help="print JSON for programs instead of text for people")]
ThreadsOption = Annotated[int, Parameter(help="CPU threads (0: as OMP_NUM_THREADS says, else one per core)")]
SourceOption = Annotated[str, explained(DataConfig, "source", name="--from", metavar="CODE")]
TargetOption = Annotated[str, explained(DataConfig, "target", name="--to", metavar="CODE")]
OnBadOption = Annotated[
    str,
    Parameter(
        metavar="POLICY",
        help="a line of standard input that is not UTF-8: keep-going answers it with an empty line (the default), or stop",
    ),
]
PictureOption = Annotated[
    str, Parameter(metavar="FILE", help="draw the attention to the one text given: a .png, .svg or .pdf file")
]
NBestOption = Annotated[int | None, _search("n_best")]
SeedOption = Annotated[int | None, Parameter(group=SAMPLING, help="random seed of sampling (1)")]
TestSetOption = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=True, metavar="FILE…", help="the test set, in any format that the run's task is trained on"
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Which columns, languages and rows of a test set are meant; "" leaves the run's own setting."""

    source: Annotated[str, _column("source", name="--from", metavar="CODE")] = ""
    target: Annotated[str, _column("target", name="--to", metavar="CODE")] = ""
    text: Annotated[str, _column("text")] = ""
    text_b: Annotated[str, _column("text_b")] = ""
    image: Annotated[str, _column("image")] = ""
    label: Annotated[str, _column("label")] = ""
    split_column: Annotated[str, _column("split_column")] = ""
    split: Annotated[
        str,
        Parameter(
            group=COLUMNS, metavar="SPLIT", help="which rows by --split-column: test (the default), valid, train or all"
        ),
    ] = ""
    on_bad: Annotated[str, _column("on_bad", metavar="POLICY")] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How generated text is scored; None and "" leave the usual."""

    metrics: Annotated[
        str,
        Parameter(
            group=SCORES,
            metavar="NAME,NAME…",
            help="metrics of generated text: bleu, chrf, ter, exact_match, wer, cer (the task's usual ones)",
        ),
    ] = ""
    tokenize: Annotated[
        str, Parameter(group=SCORES, metavar="NAME", help="tokenizer of BLEU: 13a (the default), intl, none, char, zh")
    ] = ""
    lowercase: Annotated[bool, Parameter(group=SCORES, help="ignore case (TER always does)")] = False


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
    """How output is drawn at random; None leaves the run's own setting."""

    sample: Annotated[bool | None, _sampling("sample")] = None
    temperature: Annotated[float | None, _sampling("temperature")] = None
    top_k: Annotated[int | None, _sampling("top_k")] = None
    top_p: Annotated[float | None, _sampling("top_p")] = None


def named(*groups: object, **options: Any) -> dict[str, Any]:
    """Return options by the names of the settings that they change: all fields of groups, and single ones."""
    return {**{name: value for group in groups for name, value in vars(group).items()}, **options}


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options that are given, as settings for a run: None, False, "" and () are not.

    What is not in the range or among the choices of its setting is refused by the name of its option.
    """
    found = {name: value for name, value in options.items() if value not in (None, "", ()) and value is not False}
    for name, value in found.items():
        for table, settings in (("decoding", DecodingSettings), ("data", DataSettings)):
            if name in settings.__annotations__:
                check_option(f"{table}.{name}", value)
        if name == "seed":
            check_option("seed", value)
    return found


def settings_of(options: Mapping[str, Any], *, but: Collection[str] = ()) -> dict[str, Any]:
    """Return those options that are given as settings for a run's evaluation, without those that the command keeps."""
    found = {name: value for name, value in given(options).items() if name not in but}
    if "metrics" in found:
        found["metrics"] = tuple(name for part in found["metrics"].split(",") if (name := part.strip()))
    return found


def check_option(key: str, value: Any, *, place: str = "") -> None:
    """Refuse what is not in the range or among the choices of a key of a run file; `place` is who gave it."""
    table, _, name = key.rpartition(".")
    kind = typing.get_type_hints(RunConfig)[table] if table else RunConfig
    [metadata] = [one.metadata for one in dataclasses.fields(kind) if one.name == name]
    check_range(value, metadata, place or flag(name))


def check_number(option: str, value: float | None, *, least: float | None = 1, most: float) -> None:
    """Refuse a number outside a range, of an option that changes no key of a run file; None is not given."""
    if value is not None:
        check_range(value, {"least": least, "most": most}, option)


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
