"""From the arguments of `regard train` to the settings of a run."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from regard.cli.options import changed
from regard.cli.terminal import note
from regard.cli.train_options import DataOptions, LearningOptions, ModelOptions
from regard.config import ModelTable, RunConfig, default_config, override, read
from regard.errors import UsageError
from regard.runs.folder import CONFIG, RunFolder


def settings(
    what: str, data: DataOptions, model: ModelOptions, learning: LearningOptions | None, sets: Sequence[str]
) -> tuple[RunConfig, Path | None]:
    """Return the resolved settings of a new run, and the folder of a ready vocabulary if it is to use one.

    Options change what the run file says; --set has the last word.
    """
    from regard.api import with_defaults
    from regard.training import init_from

    begun, vocabulary = starting_point(what)
    if model.vocabulary or model.init:
        begun, vocabulary = with_vocabulary_of(model, begun)
    config = begun
    if model.model:
        # The fields of another model go with it: the config.toml of a run has them all.
        config = dataclasses.replace(config, model=ModelTable(preset=model.model))
    how = dataclasses.asdict(learning or LearningOptions())
    trunk = {"freeze_init": model.freeze_init, "init_lr_scale": model.init_lr_scale, "layer_decay": model.layer_decay}
    config = changed(
        config,
        seed=how.pop("seed"),
        data=changed(config.data, **dataclasses.asdict(data)),
        tokenizer=changed(config.tokenizer, vocab_size=model.vocab_size, **kind_or_file(model.tokenizer)),
        training=changed(config.training, init=model.init, **trunk, **how),
    )
    if sets:
        config = override(config, assignments(sets))
    if vocabulary and not (model.vocabulary or model.init) and not reads_the_same(config, begun):
        if not config.training.init:
            note(f"the training data are others than those of {what}: a new vocabulary is learned")
        vocabulary = None
    # A vocabulary that was learned with other settings is not what was asked for.
    ready = vocabulary if config.tokenizer == begun.tokenizer else None
    return init_from.with_vocabulary(with_defaults(config), ready)


def with_vocabulary_of(model: ModelOptions, config: RunConfig) -> tuple[RunConfig, Path | None]:
    """Return the settings with the tokenizer of the run that --vocabulary or --init names, and its vocabulary's folder."""
    from regard.training import init_from

    source = "--vocabulary" if model.vocabulary else "--init"
    for option, value in (("--vocab-size", model.vocab_size), ("--tokenizer", model.tokenizer)):
        if value is not None and value != "":
            raise UsageError(
                f"{source} takes a ready vocabulary, {option} another one.", "Give one of the two options."
            )
    if model.vocabulary:
        folder = RunFolder.open(Path(model.vocabulary))
        return dataclasses.replace(config, tokenizer=folder.read_config().tokenizer), folder.vocabulary
    # What the file says of another vocabulary, or of another run to begin with, goes.
    training = dataclasses.replace(config.training, init=model.init)
    default = default_config(config.task).tokenizer
    return init_from.with_vocabulary(dataclasses.replace(config, training=training, tokenizer=default), None)


def kind_or_file(tokenizer: str) -> dict[str, str]:
    """Return the setting that --tokenizer means: a file has an ending, or lies in a folder."""
    if not tokenizer:
        return {}
    return {"file": tokenizer} if Path(tokenizer).suffix or "/" in tokenizer else {"kind": tokenizer}


def reads_the_same(config: RunConfig, other: RunConfig) -> bool:
    """Tell whether two runs learn from the same text, to which their vocabularies belong."""
    from regard.training.run import with_absolute_paths

    one, two = with_absolute_paths(config).data, with_absolute_paths(other).data
    which = ("train", "source", "target", "text", "text_b", "split_column")
    return all(getattr(one, name) == getattr(two, name) for name in which)


def starting_point(what: str) -> tuple[RunConfig, Path | None]:
    """Return the settings to start from, and the folder of a vocabulary that goes with them.

    `what` is a task's name or a run file. The config.toml of a run brings the run's vocabulary: it repeats that run.
    """
    path = Path(what)
    if path.is_dir() and (path / CONFIG).is_file():
        raise UsageError(
            f"{what} is the folder of a run.",
            f"Go on with it: regard resume {what}. Repeat it: regard train {path / CONFIG}",
        )
    if not (path.suffix == ".toml" or "/" in what or path.is_file()):
        return default_config(what), None
    vocabulary = RunFolder(path.parent).vocabulary
    of_run = path.name == CONFIG and vocabulary.is_dir()
    return read(path, of_run=of_run), vocabulary if of_run else None


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """Read what stands behind --set: KEY=VALUE, the key dotted."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise UsageError(f"--set takes KEY=VALUE, not '{text}'.", "Write, for example: --set training.steps=400")
        found[key.strip()] = value.strip()
    return found


def free_folder(config: RunConfig) -> Path:
    """Name a folder for a run that was given none: runs/TASK-MODEL-1, or the next number that is free."""
    number = 1
    while (path := Path("runs") / f"{config.task}-{config.model.preset}-{number}").exists():
        number += 1
    return path
