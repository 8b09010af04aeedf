"""The options of `regard train`, in the groups in which its help shows them, and the keys of a run file they change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from regard.cli.options import explained
from regard.config import DataConfig, RunConfig, TokenizerConfig, TrainingConfig
from regard.config.keywords import HOMES
from regard.tasks.spec import TaskSpec

TASK = "TASK"
DATA = Group("Data", sort_key=10)
MODEL = Group("Model", sort_key=20)
LEARNING = Group("Training", sort_key=30)
RUN = Group("Run", sort_key=40)
Processes = Annotated[
    int | None, Parameter(group=RUN, help="processes of this machine that share each batch, started by torchrun")
]
FILES: dict[str, Any] = {"consume_multiple": True, "metavar": "FILE…", "group": DATA}
_KEYS = {**HOMES, "train": "data.train", "valid": "data.valid"}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What is read."""

    train: Annotated[tuple[str, ...], explained(DataConfig, "train", **FILES)] = ()
    valid: Annotated[tuple[str, ...], explained(DataConfig, "valid", **FILES)] = ()
    source: Annotated[str, explained(DataConfig, "source", name="--from", metavar="CODE", group=DATA)] = ""
    target: Annotated[str, explained(DataConfig, "target", name="--to", metavar="CODE", group=DATA)] = ""
    text: Annotated[str, explained(DataConfig, "text", metavar="COLUMN", group=DATA)] = ""
    text_b: Annotated[str, explained(DataConfig, "text_b", metavar="COLUMN", group=DATA)] = ""
    image: Annotated[str, explained(DataConfig, "image", metavar="COLUMN", group=DATA)] = ""
    label: Annotated[str, explained(DataConfig, "label", metavar="COLUMN", group=DATA)] = ""
    split_column: Annotated[str, explained(DataConfig, "split_column", metavar="COLUMN", group=DATA)] = ""
    image_size: Annotated[int | None, explained(DataConfig, "image_size", group=DATA)] = None
    on_bad: Annotated[str, explained(DataConfig, "on_bad", metavar="POLICY", group=DATA)] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which network, over which vocabulary, and which weights it begins with."""

    model: Annotated[
        str,
        Parameter(
            group=MODEL,
            metavar="PRESET",
            help="a preset, see: regard models (default: that of --init, else the smallest of the task)",
        ),
    ] = ""
    tokenizer: Annotated[
        str,
        Parameter(
            group=MODEL,
            metavar="KIND|FILE",
            help="bpe, unigram, wordpiece, sentencepiece, characters, bytes, words; or a file, such as cl100k_base.tiktoken",
        ),
    ] = ""
    vocab_size: Annotated[int | None, explained(TokenizerConfig, "vocab_size", group=MODEL)] = None
    vocabulary: Annotated[
        str, Parameter(group=MODEL, metavar="RUN", help="use the vocabulary of another run, as ensembles need")
    ] = ""
    init: Annotated[str, explained(TrainingConfig, "init", group=MODEL, metavar="RUN")] = ""
    freeze_init: Annotated[bool | None, explained(TrainingConfig, "freeze_init", group=MODEL)] = None
    init_lr_scale: Annotated[float | None, explained(TrainingConfig, "init_lr_scale", group=MODEL)] = None
    layer_decay: Annotated[float | None, explained(TrainingConfig, "layer_decay", group=MODEL)] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """How long and how fast."""

    steps: Annotated[int | None, explained(TrainingConfig, "steps", group=LEARNING)] = None
    epochs: Annotated[int | None, explained(TrainingConfig, "epochs", group=LEARNING)] = None
    minutes: Annotated[float | None, explained(TrainingConfig, "minutes", group=LEARNING)] = None
    batch_tokens: Annotated[int | None, explained(TrainingConfig, "batch_tokens", group=LEARNING)] = None
    batch_images: Annotated[int | None, explained(TrainingConfig, "batch_images", group=LEARNING)] = None
    learning_rate: Annotated[float | None, explained(TrainingConfig, "learning_rate", group=LEARNING)] = None
    class_weights: Annotated[str, explained(TrainingConfig, "class_weights", metavar="HOW", group=LEARNING)] = ""
    seed: Annotated[int | None, explained(RunConfig, "seed", group=LEARNING)] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where it goes, and how it is shown."""

    run: Annotated[
        str, Parameter(group=RUN, metavar="DIR", help="folder of the new run (runs/TASK-MODEL-1, or the next number)")
    ] = ""
    set: Annotated[
        tuple[str, ...],
        Parameter(group=RUN, metavar="KEY=VALUE", help="any key of a run file, such as training.clip=0.5; repeatable"),
    ] = ()
    seeds: Annotated[
        str,
        Parameter(
            group=RUN, metavar="N,N…", help="train one run per seed (DIR-seed1, …), report mean and standard deviation"
        ),
    ] = ""
    processes: Processes = None
    tensorboard: Annotated[bool, Parameter(group=RUN, help="write scalars into DIR/tensorboard")] = False
    dry_run: Annotated[bool, Parameter(group=RUN, help="report what would be trained and how long, then stop")] = False
    json: Annotated[
        bool,
        Parameter(
            group=RUN, help="print one JSON object per event: report, updated, validated, saved, noted, finished"
        ),
    ] = False


def key_of(option: str, value: Any = "") -> str:
    """Return the key of a run file that an option changes, "" for none; --tokenizer names a kind, or a file.

    A file has an ending, or lies in a folder.
    """
    if option == "tokenizer":
        return "tokenizer.file" if Path(value).suffix or "/" in value else "tokenizer.kind"
    return _KEYS.get(option, "")


def applies(spec: TaskSpec, option: str) -> bool:
    """Whether an option of `regard train` means anything to a task."""
    table, _, key = ("tokenizer.kind" if option == "vocabulary" else key_of(option)).rpartition(".")
    return spec.reads_setting(table, key)
