"""A trained model with its vocabulary, ready for use."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import config as configuration
from regard import runtime
from regard.config import DecodingConfig, RunConfig
from regard.data.formats import Pair, read_pairs
from regard.errors import CheckpointError, DataError, UsageError
from regard.evaluation.lengths import LengthBucket, scores_by_length
from regard.evaluation.scores import Score, perplexity, score_translations
from regard.evaluation.statistics import check_tokenizer
from regard.runs import checkpoints, names, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import Reference, RunFolder
from regard.tasks import find_task
from regard.tasks.generating import Generation
from regard.tasks.language import Language
from regard.tasks.task import Progress
from regard.tasks.translate import Translate
from regard.tasks.translating import Translation
from regard.training import run as training

BY_LENGTH = ("bleu", "chrf")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores on a test set; of translation, also what was scored."""

    scores: tuple[Score, ...]
    count: int  # of what `unit` says
    unit: str  # sentences, tokens
    seconds: float
    translations: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
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
        on_bad: str = "",
        progress: Progress = lambda what, done: None,
    ) -> Evaluation:
        """Score a run on a test set: a translator by BLEU, chrF and TER and the perplexity of the references, a language
        model by loss, perplexity and bits per byte.

        source, target: languages or columns of the files; by default those that the run was trained with
        by_length: score the sentences of each range of source lengths apart, too
        on_bad: what becomes of bad lines of a language model's text, by default as in training; of pairs every one counts
        progress: called with what is done now, and how many of it
        """
        if self.config.task == Language.name:
            return self._evaluate_text(files, column=source, on_bad=on_bad, progress=progress)
        check_tokenizer(tokenize)
        data = self.config.data
        pairs = read_test_set(files, source=source or data.source, target=target or data.target)
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        began = time.perf_counter()
        translations = self.translate(sources, decoding=decoding, progress=partial(progress, "translating"))
        outputs = [one.text for one in translations]
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
            count=len(pairs),
            unit="sentences",
            translations=tuple(outputs),
            references=tuple(references),
            seconds=seconds,
        )

    def _evaluate_text(self, files: Sequence[str], *, column: str, on_bad: str, progress: Progress) -> Evaluation:
        task, data = self.language_task, self.config.data
        data = dataclasses.replace(data, source=column or data.source, on_bad=on_bad or data.on_bad)
        text = task.read(files, data, progress=progress)
        began = time.perf_counter()
        scores = task.scores(self.model, text, progress=partial(progress, "reading"))
        seconds = time.perf_counter() - began
        notes = task.notes(text)
        return Evaluation(scores=tuple(scores), count=text.n_predicted, unit="tokens", seconds=seconds, notes=notes)

    def generate(
        self,
        prompts: Sequence[str] = ("",),
        *,
        decoding: DecodingConfig | None = None,
        banned: Sequence[str] = (),
        seed: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> list[Generation]:
        """Go on from prompts; an empty one begins a document. `decoding` in place of the run's own settings."""
        task, settings = self.language_task, decoding or self.config.decoding
        return task.generator(self.model, settings, banned=banned, seed=seed).generate(prompts, progress=progress)

    def stream(
        self,
        prompt: str = "",
        *,
        decoding: DecodingConfig | None = None,
        banned: Sequence[str] = (),
        seed: int = 1,
    ) -> Iterator[str]:
        """Go on from one prompt, and yield the text as it is written, whole characters only."""
        task, settings = self.language_task, decoding or self.config.decoding
        return task.generator(self.model, settings, banned=banned, seed=seed).stream(prompt)

    def expect(self, task: str) -> None:
        """Refuse a run of any other task."""
        if self.config.task != task:
            raise UsageError(
                f"{self.reference} was trained for the task '{self.config.task}', not for '{task}'.",
                f"Name a run of the task {task}.",
            )

    @property
    def translation_task(self) -> Translate:
        """The task, if it is translation."""
        self.expect(Translate.name)
        task: Translate = self.task
        return task

    @property
    def language_task(self) -> Language:
        """The task, if it is language modelling."""
        self.expect(Language.name)
        task: Language = self.task
        return task


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
