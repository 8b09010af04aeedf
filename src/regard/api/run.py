"""A trained model with its vocabulary, ready for use."""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import runtime
from regard.api.evaluate import Evaluation, evaluate_captions, evaluate_labels, evaluate_text, evaluate_translation
from regard.api.predict import Prediction, check_list, predict
from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.errors import CheckpointError, UsageError
from regard.evaluation.generated_text import check_tokenizer
from regard.models.presets import rebuild_model
from regard.runs import checkpoints, names, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import Reference, RunFolder
from regard.tasks import find_task
from regard.tasks.embedding import Embedder, Embedding
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.images.image_classification import ImageClassificationTask, ImageInput
from regard.tasks.labelling.base import SequenceTask
from regard.tasks.labelling.inputs import Inputs
from regard.tasks.language_model.continuation import Generation
from regard.tasks.language_model.task import LanguageModelTask
from regard.tasks.task import Progress
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.translator import Translation

ALL = "all"  # instead of a split of a table


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
        """How many numbers the model has learned; tied ones count once."""
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

    def predict(
        self,
        inputs: Inputs | Sequence[Sequence[str]] | Sequence[ImageInput],
        *,
        texts_b: Sequence[str] = (),
        top: int = 5,
        decoding: DecodingConfig | None = None,
        seed: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> Sequence[Prediction]:
        """Say what texts are: a `Classified`, `TaggedText` or `Measured` each; or fill their blanks, [MASK]: a `Filled`.

        Of images a `Classified` or, of a captioner, a `Described`.

        inputs: texts; words of sentences, where they are tagged; arrays (T, F), where a run learned from vectors; of images
            their files, or arrays (H, W, C)
        texts_b: the second text of each, where a run was trained on pairs; empty where there is none
        top: how many guesses for each blank, of a run of the task mask
        decoding, seed: how captions are searched for, in place of the run's own settings
        """
        return predict(
            self,
            inputs,
            texts_b=texts_b,
            top=top,
            decoding=decoding or self.config.decoding,
            seed=seed,
            progress=progress,
        )

    def embed(
        self,
        texts: Sequence[str],
        *,
        tokens: bool = False,
        pooling: str = "mean",
        progress: Callable[[int], None] | None = None,
    ) -> list[Embedding]:
        """Turn texts into vectors, by the states of the model's encoder, or of a language model; see `Embedder`.

        tokens: a vector for each word, too; pooling: mean, class or last
        """
        check_list(texts)
        if isinstance(self.task, ImageClassificationTask | CaptioningTask):
            raise UsageError(f"{self.reference} reads images, no text.", "Name a run over text.")
        translates, language = (self.config.task == task.spec.name for task in (TranslationTask, LanguageModelTask))
        tokenizer = self.task.vocabulary.source if translates else self.task.tokenizer
        if tokenizer is None:
            raise UsageError(f"{self.reference} was trained on vectors: it reads no text.", "Name a run over text.")
        longest = sys.maxsize if language else self.config.data.max_length
        embedder = Embedder(tokenizer, self.model, max_length=longest, pooling=pooling)
        return embedder.embed(texts, words=tokens, progress=progress)

    def evaluate(
        self,
        files: Sequence[str],
        *,
        source: str = "",
        target: str = "",
        text: str = "",
        text_b: str = "",
        label: str = "",
        split_column: str = "",
        split: str = "",
        decoding: DecodingConfig | None = None,
        tokenize: str = "13a",
        lowercase: bool = False,
        by_length: bool = False,
        on_bad: str = "",
        blocks: bool = False,
        progress: Progress = lambda what, done: None,
    ) -> Evaluation:
        """Score a run on a test set: a translator by BLEU, chrF and TER and the perplexity of the references, a model of
        running text by loss and perplexity, one of labels by what its task is judged by.

        source, target, text, text_b, label, split_column: languages or columns; by default those the run was trained with
        split: which rows of a table with a `split_column`, or which split of images: test, valid, train, or all; by
            default test
        by_length: score the translations of each range of source lengths apart, too
        on_bad: what becomes of bad lines or rows, by default as in training; of pairs every one counts
        blocks: of a residual network, its accuracy as blocks are switched off, too
        progress: called with what is done now, and how many of it
        """
        columns = {
            "source": source,
            "target": target,
            "text": text,
            "text_b": text_b,
            "label": label,
            "split_column": split_column,
        }
        given: dict[str, Any] = {name: value for name, value in {**columns, "on_bad": on_bad}.items() if value}
        data = dataclasses.replace(self.config.data, **given)
        if self.config.task == TranslationTask.spec.name:
            check_tokenizer(tokenize)
            return evaluate_translation(
                self,
                files,
                data,
                decoding=decoding,
                tokenize=tokenize,
                lowercase=lowercase,
                by_length=by_length,
                progress=progress,
            )
        if isinstance(self.task, SequenceTask):
            data, split = _split_of(data, split)
            return evaluate_labels(self, files, data, split=split, progress=progress)
        if isinstance(self.task, ImageClassificationTask):
            split = "" if split == ALL else split or "test"
            return evaluate_labels(self, files, data, split=split, blocks=blocks, progress=progress)
        if isinstance(self.task, CaptioningTask):
            check_tokenizer(tokenize)
            return evaluate_captions(
                self,
                files,
                data,
                split="" if split == ALL else split or "test",
                decoding=decoding,
                tokenize=tokenize,
                lowercase=lowercase,
                progress=progress,
            )
        return evaluate_text(self, files, data, progress=progress)

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
    def translation_task(self) -> TranslationTask:
        """The task, if it is translation."""
        self.expect(TranslationTask.spec.name)
        task: TranslationTask = self.task
        return task

    @property
    def language_task(self) -> LanguageModelTask:
        """The task, if it is language modelling."""
        self.expect(LanguageModelTask.spec.name)
        task: LanguageModelTask = self.task
        return task


def load(run: str | Path, *, model: nn.Module | None = None, device: str = "auto", threads: int = 0) -> Run:
    """Load a trained run: `runs/m30k`, `runs/m30k@best`, `runs/m30k@400`; `model` if it trained a network of your own."""
    reference = Reference.parse(str(run))
    folder = RunFolder.open(reference.path)
    config = folder.read_config()
    checkpoint, notes = selection.select(reference)
    # Decoding is in full precision, whatever training was in.
    machine = runtime.prepare(dataclasses.replace(config.runtime, device=device, threads=threads, precision="fp32"))
    model = rebuild_model(config, origin=str(folder.config_file)) if model is None else model
    _fill(model, checkpoints.load_weights(checkpoint), checkpoint)
    if (checkpoint.path / names.EMA).exists():
        # What was validated. It holds each parameter once, under its first name, and no counts: they stay the model's.
        model.load_state_dict(checkpoints.load_weights(checkpoint, which="ema"), strict=False)
    task = find_task(config.task).load(config, folder.vocabulary)
    loaded = Run(reference, config, task, model.to(machine.device).eval(), checkpoint)
    loaded.notes = tuple(notes)
    return loaded


def _split_of(data: DataConfig, split: str) -> tuple[DataConfig, str]:
    """How a test set is read, and which split of it; all of it where no column tells splits apart."""
    if split == ALL:
        return dataclasses.replace(data, split_column=""), ""
    if split and not data.split_column:
        raise UsageError(
            f"No column says which rows are of the split '{split}'.", "Name the column with --split-column."
        )
    return data, split or "test"


def _fill(model: nn.Module, weights: Mapping[str, torch.Tensor], checkpoint: Checkpoint) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"{checkpoint.path} does not fit the model of the run's config.toml: {error}.",
            "Put back the config that the run was trained with.",
        ) from None
