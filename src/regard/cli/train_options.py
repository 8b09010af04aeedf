"""The options of `regard train`, in the groups in which its help shows them."""

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from regard.cli.options import explained
from regard.config import DataConfig, RunConfig, TokenizerConfig, TrainingConfig

DATA = Group("Data", sort_key=10)
MODEL = Group("Model", sort_key=20)
LEARNING = Group(
    "Learning",
    "Where no end is given (--steps, --epochs or --minutes), a run ends after 10,000 steps, or before them after 10 "
    "validations without a better loss; one of classify, tag, regress, image or caption after 10 epochs, and 500 steps "
    "at least.",
    sort_key=30,
)
RUN = Group("Run", sort_key=40)
FILES: dict[str, Any] = {"consume_multiple": True, "metavar": "FILE…", "group": DATA}


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
            help="a size by name, see: regard models (that of --init; else the task's smallest)",
        ),
    ] = ""
    tokenizer: Annotated[
        str,
        Parameter(
            group=MODEL,
            metavar="KIND|FILE",
            help="how text is cut: bpe, unigram, wordpiece, characters, bytes, words; or a vocabulary brought along, "
            "such as cl100k_base.tiktoken",
        ),
    ] = ""
    vocab_size: Annotated[int | None, explained(TokenizerConfig, "vocab_size", group=MODEL)] = None
    vocabulary: Annotated[
        str, Parameter(group=MODEL, metavar="RUN", help="take the vocabulary of another run, as an ensemble needs")
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
        str, Parameter(group=RUN, metavar="N,N…", help="train once a seed (DIR-seed1, …), report mean and deviation")
    ] = ""
    tensorboard: Annotated[bool, Parameter(group=RUN, help="write scalars into DIR/tensorboard")] = False
    dry_run: Annotated[bool, Parameter(group=RUN, help="report what would be trained and how long, then stop")] = False
    json: Annotated[
        bool,
        Parameter(
            group=RUN, help="write a line of JSON for each event: report, updated, validated, saved, noted, finished"
        ),
    ] = False
