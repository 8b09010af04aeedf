"""A run's scores on a test set: of translations, of running text, of labelled examples and images."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.api.predict import Prediction
from regard.config import DataConfig, DecodingConfig
from regard.data.pairs.rows import Pair, read_pairs
from regard.errors import DataError
from regard.evaluation.generated_text import score_translations
from regard.evaluation.lengths import LengthBucket, scores_by_length
from regard.evaluation.perplexity import perplexity
from regard.evaluation.scores import Score
from regard.inspection.block_ablation import BlockAblation, ablate_blocks, kept_blocks
from regard.tasks.denoising.base import HiddenText
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.images.image_classification import ImageClassificationTask
from regard.tasks.labelling.base import SequenceTask
from regard.tasks.labelling.classification import ClassificationTask
from regard.tasks.language_model.examples import WindowExamples
from regard.tasks.language_model.task import LanguageModelTask
from regard.tasks.task import Progress

if TYPE_CHECKING:
    from regard.api.run import Run

BY_LENGTH = ("bleu", "chrf")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores on a test set, and what was scored.

    translations, references:  of a translator; of a captioner the captions, an image each
    predictions, gold:         of labelled examples: what a run's `predict` says of each, and what was expected
    confusion:                 how often each class of `labels` (a row) was taken for which (a column)
    """

    scores: tuple[Score, ...]
    count: int  # of what `unit` says
    unit: str  # sentences, tokens, texts
    seconds: float
    translations: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    by_length: tuple[LengthBucket, ...] = ()  # scores by the length of the source, where asked for
    predictions: tuple[Prediction, ...] = ()
    gold: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    blocks: tuple[BlockAblation, ...] = ()  # the accuracy without each block, where asked for
    places: tuple[str, ...] = ()  # the files of images, in the order of what was said of them
    notes: tuple[str, ...] = ()  # what a reader of the scores should know


def evaluate_translation(
    run: "Run",
    files: Sequence[str],
    data: DataConfig,
    *,
    decoding: DecodingConfig | None,
    tokenize: str,
    lowercase: bool,
    by_length: bool,
    progress: Progress,
) -> Evaluation:
    """Translate a test set: BLEU, chrF and TER, and the perplexity of the references."""
    pairs = read_test_set(files, source=data.source, target=data.target)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    began = time.perf_counter()
    translations = run.translate(sources, decoding=decoding, progress=partial(progress, "translating"))
    outputs = [one.text for one in translations]
    seconds = time.perf_counter() - began
    scores = score_translations(outputs, references, tokenize=tokenize, lowercase=lowercase)
    buckets = (
        scores_by_length(sources, outputs, references, metrics=BY_LENGTH, tokenize=tokenize, lowercase=lowercase)
        if by_length
        else ()
    )
    loss, n_pairs = run.translation_task.mean_loss(run.model, sources, references)
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


def evaluate_captions(
    run: "Run",
    files: Sequence[str],
    data: DataConfig,
    *,
    split: str,
    decoding: DecodingConfig | None,
    tokenize: str,
    lowercase: bool,
    progress: Progress,
) -> Evaluation:
    """Write a caption for each image: BLEU and chrF against all of its captions, and the perplexity of these."""
    task: CaptioningTask = run.task
    examples = task.read(files, data, split=split, progress=progress)
    began = time.perf_counter()
    images, settings = examples.captions.image_set, decoding or run.config.decoding
    found = task.write(run.model, images, settings, progress=partial(progress, "writing"))
    seconds = time.perf_counter() - began
    outputs = [one.text for one in found]
    return Evaluation(
        scores=tuple(task.scores(run.model, examples, outputs, tokenize=tokenize, lowercase=lowercase)),
        count=len(examples),
        unit=task.spec.unit,
        seconds=seconds,
        translations=tuple(outputs),
        places=tuple(examples.places(np.arange(len(examples)))),
        notes=task.notes(examples),
    )


def evaluate_text(run: "Run", files: Sequence[str], data: DataConfig, *, progress: Progress) -> Evaluation:
    """Let a model read running text: its loss and perplexity, bits per byte, or how much of what is hidden it guesses."""
    task: LanguageModelTask | HiddenText = run.task
    text: Any = task.read(files, data, progress=progress)
    began = time.perf_counter()
    scores = task.scores(run.model, text, progress=partial(progress, "reading"))
    seconds = time.perf_counter() - began
    count = text.n_predicted if isinstance(text, WindowExamples) else text.n_tokens
    return Evaluation(scores=tuple(scores), count=count, unit="tokens", seconds=seconds, notes=task.notes(text))


def evaluate_labels(
    run: "Run", files: Sequence[str], data: DataConfig, *, split: str, blocks: bool = False, progress: Progress
) -> Evaluation:
    """Let a model label examples: accuracy and F1, or correlation and error; and which class was taken for which."""
    task: SequenceTask | ImageClassificationTask = run.task
    examples: Any = task.read(files, data, split=split, progress=progress)
    began = time.perf_counter()
    outputs: Any = task.outputs(run.model, examples, progress=partial(progress, "reading"))
    seconds = time.perf_counter() - began
    matrix = (
        task.confusion(examples, outputs).tolist()
        if isinstance(task, ClassificationTask | ImageClassificationTask)
        else []
    )
    ablations: list[BlockAblation] = []
    if blocks and isinstance(task, ImageClassificationTask):
        name, ablating = str(run.reference), partial(progress, "ablating blocks")
        ablations = ablate_blocks(run.model, examples, task=task, run=name, progress=ablating)
    return Evaluation(
        scores=tuple(task.scores_of(examples, outputs)),
        count=len(examples),
        unit=task.unit,
        seconds=seconds,
        predictions=tuple(task.answers(examples, outputs)),
        gold=tuple(task.expected(examples)),
        labels=task.table.labels,
        confusion=tuple(map(tuple, matrix)),
        blocks=tuple(ablations),
        places=tuple(examples.places(np.arange(len(examples)))) if isinstance(task, ImageClassificationTask) else (),
        notes=(*task.notes(examples), *([kept_blocks(run.model, run=str(run.reference))] if blocks else [])),
    )


def read_test_set(files: Sequence[str], *, source: str = "", target: str = "") -> list[Pair]:
    """Read pairs to score on. Nothing is skipped: a score on less than the whole set is another score."""
    pairs = []
    for pair in read_pairs(files, source=source, target=target):
        if not isinstance(pair, Pair):
            raise DataError(f"{pair.file}:{pair.line}: {pair.reason}.", "Fix the test set: every line of it counts.")
        pairs.append(pair)
    return pairs
