"""What Python users call: everything the command does, without the command.

import regard
run = regard.train("translate", train=["a.en", "a.de"], run="runs/mine", settings={"training.steps": 2000})
run = regard.load("runs/mine")
run.translate(["A dog runs."])[0].text
"""

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import config as configuration
from regard import runtime
from regard.config import DecodingConfig, ModelTable, RunConfig
from regard.data.formats import Pair, read_pairs
from regard.errors import CheckpointError, DataError, UsageError
from regard.evaluation.lengths import LengthBucket, scores_by_length
from regard.evaluation.report import Comparison, System, compare_systems
from regard.evaluation.scores import Score, perplexity, score_translations
from regard.evaluation.statistics import check_tokenizer
from regard.models.presets import default_preset
from regard.runs import averaging, checkpoints, names, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import Reference, RunFolder
from regard.runs.lock import locked
from regard.tasks import find_task
from regard.tasks.translate import Translate
from regard.tasks.translating import Translation
from regard.training import run as training
from regard.training.events import Event, Finished

BY_LENGTH = ("bleu", "chrf")
Files = str | Path | Sequence[str | Path]
Watch = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores on a test set, and the translations that were scored."""

    scores: tuple[Score, ...]
    translations: tuple[str, ...]
    references: tuple[str, ...]
    seconds: float
    by_length: tuple[LengthBucket, ...] = ()  # scores by the length of the source, where asked for
    notes: tuple[str, ...] = ()  # what a reader of the scores should know


class Run:
    """A trained model with its vocabulary, ready for use."""

    def __init__(
        self, reference: Reference, config: RunConfig, task: Any, model: nn.Module, checkpoint: Checkpoint
    ) -> None:
        self.reference = reference
        self.config = config
        self.task = task
        self.model = model
        self.checkpoint = checkpoint
        self.notes: tuple[str, ...] = ()

    @property
    def n_parameters(self) -> int:
        """How many numbers the model has learnt; tied ones count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def translate(
        self,
        texts: Sequence[str],
        *,
        decoding: DecodingConfig | None = None,
        align: bool = False,
        prefixes: Sequence[str] = (),
        banned: Sequence[str] = (),
        seed: int = 1,
        ensemble: Sequence["Run"] = (),
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translate lines; `decoding` in place of the run's own settings, `ensemble` for further runs that vote.

        prefixes: a beginning for each translation, empty where it is free; banned: words or phrases that are not written.
        """
        for other in ensemble:
            if other.translation_task.vocabulary.fingerprint() != self.translation_task.vocabulary.fingerprint():
                raise UsageError(
                    f"{other.reference} has another vocabulary than {self.reference}: they cannot vote on tokens.",
                    "Train the runs of an ensemble on one vocabulary (regard train … --vocabulary RUN).",
                )
        return self.translation_task.translate(
            [self.model, *(other.model for other in ensemble)],
            texts,
            decoding or self.config.decoding,
            align=align,
            prefixes=prefixes,
            banned=banned,
            seed=seed,
            progress=progress,
        )

    def evaluate(
        self,
        files: Sequence[str],
        *,
        source: str = "",
        target: str = "",
        decoding: DecodingConfig | None = None,
        tokenize: str = "13a",
        lowercase: bool = False,
        by_length: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Evaluation:
        """Translate a test set and score it: BLEU, chrF and TER, and the perplexity of the references.

        by_length: score the sentences of each range of source lengths apart, too
        `source` and `target` are languages or columns of the files; by default those that the run was trained with.
        """
        check_tokenizer(tokenize)
        data = self.config.data
        pairs = read_test_set(files, source=source or data.source, target=target or data.target)
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        began = time.perf_counter()
        outputs = [one.text for one in self.translate(sources, decoding=decoding, progress=progress)]
        seconds = time.perf_counter() - began
        scores = score_translations(outputs, references, tokenize=tokenize, lowercase=lowercase)
        buckets = (
            scores_by_length(sources, outputs, references, metrics=BY_LENGTH, tokenize=tokenize, lowercase=lowercase)
            if by_length
            else ()
        )
        loss, n_pairs = self.translation_task.mean_loss(self.model, sources, references)
        n_long = len(pairs) - n_pairs
        notes = [f"The perplexity is without {n_long:,} pairs that are longer than the model's positions."]
        return Evaluation(
            scores=(*scores, perplexity(loss)) if n_pairs else tuple(scores),
            by_length=tuple(buckets),
            notes=tuple(notes) if n_long else (),
            translations=tuple(outputs),
            references=tuple(references),
            seconds=seconds,
        )

    @property
    def translation_task(self) -> Translate:
        """The task, if it is translation."""
        if not isinstance(self.task, Translate):
            raise UsageError(
                f"{self.reference} was trained for the task '{self.config.task}', not for translation.",
                "Name a run of the task translate.",
            )
        return self.task


def load(run: str | Path, *, model: nn.Module | None = None, device: str = "auto", threads: int = 0) -> Run:
    """Load a trained run: `runs/m30k`, `runs/m30k@best`, `runs/m30k@400`; `model` if it trained a network of your own."""
    reference = Reference.parse(str(run))
    folder = RunFolder.open(reference.path)
    config = configuration.read(folder.config_file)
    checkpoint, notes = selection.select(reference)
    # Decoding is in full precision, whatever training was in.
    machine = runtime.prepare(dataclasses.replace(config.runtime, device=device, threads=threads, precision="fp32"))
    model = training.rebuild(folder, config) if model is None else model
    _fill(model, checkpoints.load_weights(checkpoint), checkpoint)
    if (checkpoint.path / names.EMA).exists():
        # What was validated. It holds each parameter once, under its first name, and no buffers: they stay the model's.
        model.load_state_dict(checkpoints.load_weights(checkpoint, which="ema"), strict=False)
    task = find_task(config.task).load(config, folder.vocabulary)
    loaded = Run(reference, config, task, model.to(machine.device).eval(), checkpoint)
    loaded.notes = tuple(notes)
    return loaded


def train(
    task: str,
    *,
    train: Files,
    run: str | Path,
    valid: Files = (),
    model: str | nn.Module = "",
    settings: Mapping[str, Any] | None = None,
    vocabulary: str | Path | None = None,
    watch: Watch = lambda event: None,
) -> Run | nn.Module:
    """Train a new run to its end and return it, ready for use.

    model: a preset's name, or a network of your own (which is returned itself, trained)
    settings: dotted keys of a run file, such as {"training.steps": 400}
    vocabulary: another run, whose vocabulary is taken
    watch: called with every event
    """
    tables = {"task": task, "data": {"train": _names(train), "valid": _names(valid)}}
    given = {**({"model.preset": model} if isinstance(model, str) and model else {}), **(settings or {})}
    config = configuration.override(
        configuration.from_tables(tables, origin="regard.train"), given, origin="regard.train"
    )
    config = with_defaults(config)
    own = model if isinstance(model, nn.Module) else None
    if own is not None:
        config = dataclasses.replace(config, model=ModelTable())
    ready = RunFolder.open(vocabulary).vocabulary if vocabulary is not None else None
    _follow(training.train(config, run, model=own, vocabulary=ready), watch)
    loaded = load(run, model=own)
    return loaded if own is None else own


def resume(
    run: str | Path,
    *,
    model: nn.Module | None = None,
    settings: Mapping[str, Any] | None = None,
    watch: Watch = lambda event: None,
) -> Run:
    """Go on with a run that was stopped, to its end; `model` if it trains a network of your own.

    settings: what is changed for good, such as {"training.steps": 8000} to move the end
    """
    _follow(training.resume(run, model=model, settings=settings), watch)
    return load(run, model=model)


def _follow(events: Iterable[Event], watch: Watch) -> None:
    """Show every event; a signal that stopped the run, which is saved by then, reaches the caller after all."""
    stopped = 0
    for event in events:
        watch(event)
        if isinstance(event, Finished):
            stopped = event.signal
    if stopped:
        signal.raise_signal(stopped)


def _names(files: Files) -> list[str]:
    """Return one file or several as a list of names."""
    return [os.fspath(file) for file in ([files] if isinstance(files, str | Path) else files)]


def with_defaults(config: RunConfig) -> RunConfig:
    """Choose what a user need not say: the model, and an end for the run."""
    if not config.model.preset:
        preset = default_preset(config.task)
        config = dataclasses.replace(config, model=dataclasses.replace(config.model, preset=preset))
    end = config.training
    if not (end.steps or end.epochs or end.minutes):
        end = dataclasses.replace(end, steps=10_000, patience=end.patience or 10)
    return dataclasses.replace(config, training=end)


def compare(
    runs: Sequence[Run],
    files: Sequence[str],
    *,
    source: str = "",
    target: str = "",
    decoding: DecodingConfig | None = None,
    tokenize: str = "13a",
    progress: Callable[[str, int], None] = lambda name, done: None,
) -> Comparison:
    """Translate one test set with several runs and compare them with the first: scores, significance, size and speed."""
    check_tokenizer(tokenize)
    data = runs[0].config.data
    pairs = read_test_set(files, source=source or data.source, target=target or data.target)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    systems = []
    for one in runs:
        name = str(one.reference)
        began = time.perf_counter()
        outputs = one.translate(sources, decoding=decoding, progress=partial(progress, name))
        seconds = time.perf_counter() - began
        hypotheses = [output.text for output in outputs]
        systems.append(System(name=name, hypotheses=hypotheses, parameters=one.n_parameters, seconds=seconds))
    return compare_systems(systems, sources=sources, references=references, tokenize=tokenize)


def average(run: str | Path, *, last: int | None = None, steps: Sequence[int] | None = None) -> Checkpoint:
    """Average the weights of the last checkpoints of a run (or of the given steps); `RUN@average` is the result."""
    folder = RunFolder.open(Path(run))
    with locked(folder):
        return averaging.average(folder, last=last, steps=steps)


def read_test_set(files: Sequence[str], *, source: str = "", target: str = "") -> list[Pair]:
    """Read pairs to score on. Nothing is skipped: a score on less than the whole set is another score."""
    pairs = []
    for pair in read_pairs(files, source=source, target=target):
        if not isinstance(pair, Pair):
            raise DataError(f"{pair.file}:{pair.line}: {pair.reason}.", "Mend the test set: every line of it counts.")
        pairs.append(pair)
    return pairs


def _fill(model: nn.Module, weights: Mapping[str, torch.Tensor], checkpoint: Checkpoint) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"{checkpoint.path} does not fit the model of the run's config.toml: {error}.",
            "Put back the config that the run was trained with.",
        ) from None
