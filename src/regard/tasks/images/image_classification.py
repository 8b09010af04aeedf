"""Images named: one of several classes for each, with accuracy, top-5 accuracy and the confusion matrix.

A model is called as `model(images)` with images (B, C, H, W), scaled, and nothing else of it is used, so that a network
of the caller's own serves too.
"""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data.images.augmentation import Augmentation, normalised
from regard.data.images.dataset import ImageDataset, prepare_images, read_images
from regard.data.images.decoding import Pixels, pixels_of, read_image
from regard.data.images.storage import ImageSet
from regard.errors import ConfigError, UsageError
from regard.evaluation import classification as evaluation
from regard.evaluation.confusion_matrix import confusion_counts
from regard.evaluation.scores import Score
from regard.models.presets import decided_by_data, find_preset, usual_image_size
from regard.tasks.images.image_examples import ImageBatch, ImageExamples, ImageList, Logits, read_in_batches
from regard.tasks.images.preprocessing import ImageTable
from regard.tasks.labelling.class_weights import class_weights, weighed, weight_facts, weight_signature
from regard.tasks.labelling.classification import Classified, classified
from regard.tasks.labelling.labels import label_facts
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Prepared, Progress, Validation

N_SAMPLES = 3  # shown at a validation
TOP = 5  # a class among so many likeliest is right for the second accuracy

ImageInput = str | os.PathLike[str] | npt.NDArray[Any]


class ImageClassificationTask:
    """The task of naming images."""

    spec: ClassVar = TASKS["image"]
    unit = spec.unit

    def __init__(self, config: RunConfig, table: ImageTable) -> None:
        self.config = config
        self.table = table

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        known = ImageTable.find(vocabulary)
        data = config.data if known is None else known.kept(config.data)
        found = prepare_images(
            data,
            size=data.image_size,
            channels=data.channels,
            usual=usual_image_size(config.model),
            labels=known.labels if known is not None else None,
            progress=progress,
        )
        counts = tuple(found.counts[label] for label in found.labels)
        table = ImageTable(
            shape=found.shape, mean=found.mean, deviation=found.deviation, labels=found.labels, counts=counts
        )
        task = cls(config, table)
        task.augmentation.refuse_small(table.shape.size, table.shape.size)
        if config.training.best_by == "top_5" and task.n_outputs <= TOP:
            raise ConfigError(
                f"training.best_by is top_5, a score among more than {TOP} classes, and there are {task.n_outputs}.",
                "Choose another: --set training.best_by=accuracy",
            )
        train, valid = task.examples(found.train), task.examples(found.valid)
        return Prepared(
            task=task, train=train, valid=valid, facts=task._facts(found, train, valid), hashes=found.hashes
        )

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        return cls(config, ImageTable.load(vocabulary))

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        self.table.save(vocabulary)

    @property
    def n_outputs(self) -> int:
        return len(self.table.labels)

    def sizes(self) -> dict[str, int | str]:
        shape = self.table.shape
        sizes: dict[str, int | str] = {
            "n_channels": shape.channels,
            "image_size": shape.size,
            "n_outputs": self.n_outputs,
        }
        asked = decided_by_data(find_preset(self.config.model.preset))  # a convolution asks for no size of images
        return {name: size for name, size in sizes.items() if name in asked}

    def initialise(self, model: nn.Module) -> None:
        """Nothing is given that a new model could begin with."""

    @cached_property
    def augmentation(self) -> Augmentation:
        """What is done to the images that are learned from."""
        return Augmentation(**vars(self.config.augmentation))

    @cached_property
    def class_weights(self) -> Tensor | None:
        """How much an image of each class counts, (K,); None where all count the same."""
        return class_weights(self.config, self.table.counts)

    def loss(self, model: Any, batch: ImageBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the cross entropies of a batch, and its weight; while a model learns, of images changed at random."""
        images, goals = self.scaled(batch.images), batch.labels
        if model.training and self.augmentation.changes:
            seed = int(torch.randint(2**62, ()))  # torch's generator has the seed of this very update
            images, goals = self.augmentation(images, goals, n_classes=self.n_outputs, seed=seed)
        return self.loss_of(self.answer(model, images), goals, smoothing=smoothing)

    def loss_of(self, outputs: Tensor, goals: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """What outputs (B, K) cost where goals are right, classes (B,) or shares of them (B, K), and the weight."""
        losses = F.cross_entropy(outputs.float(), goals.to(outputs.device), label_smoothing=smoothing, reduction="none")
        return weighed(losses, goals, self.class_weights)

    def scaled(self, images: Tensor) -> Tensor:
        """Bytes (B, H, W, C) as the model reads them, (B, C, H, W)."""
        return normalised(images, self.table.mean, self.table.deviation)

    def answer(self, model: Any, images: Tensor) -> Tensor:
        """What a model says of images (B, C, H, W): (B, K)."""
        outputs: Tensor = model(images)
        wanted = (len(images), self.n_outputs)
        if outputs.shape != wanted:
            raise ConfigError(
                f"The network returned {tuple(outputs.shape)} for a batch, and {wanted} was expected: "
                f"{self.n_outputs:,} numbers for each image.",
                "Let its forward(images) return that.",
            )
        return outputs

    def outputs(
        self, model: nn.Module, examples: ImageExamples, *, progress: Callable[[int], None] | None = None
    ) -> Logits:
        """What a model says of each example, (N, K), in their order."""
        return self._read(model, examples.images, progress=progress)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_decoded: int) -> Validation:
        """Score all examples; with `n_decoded`, show a few."""
        assert isinstance(examples, ImageExamples)
        outputs = self.outputs(model, examples)
        loss, *others = self.scores_of(examples, outputs)
        rows = range(0, len(examples), max(1, len(examples) // N_SAMPLES))[:N_SAMPLES] if n_decoded else ()
        samples = tuple(self._sample(examples, row, outputs[row]) for row in rows)
        return Validation(loss=loss.value, scores={score.name: score.value for score in others}, samples=samples)

    def read(self, files: Sequence[str], data: DataConfig, *, split: str = "test", progress: Progress) -> ImageExamples:
        """Read images to be scored; of what is divided into splits, those of one."""
        shape, labels = self.table.shape, self.table.labels
        return self.examples(read_images(files, data, shape=shape, labels=labels, split=split, progress=progress))

    def scores_of(self, examples: ImageExamples, outputs: Logits) -> list[Score]:
        """The loss, the accuracy, that of the five likeliest where there are more classes, and the macro F1."""
        gold = examples.images.classes
        loss, weight = self.loss_of(torch.from_numpy(outputs), torch.from_numpy(gold), smoothing=0.0)
        found = outputs.argmax(1)
        top = [evaluation.top_accuracy(gold, outputs, TOP, unit=self.spec.unit)] if self.n_outputs > TOP else []
        return [
            Score(
                name="loss", value=float(loss) / weight, signature=f"unit:image{weight_signature(self.class_weights)}"
            ),
            evaluation.accuracy(gold, found, unit=self.spec.unit),
            *top,
            evaluation.macro_f1(gold, found, self.n_outputs, unit=self.spec.unit),
        ]

    def confusion(self, examples: ImageExamples, outputs: Logits) -> npt.NDArray[np.int64]:
        """How often each class (a row) was taken for which (a column), in the order of `table.labels`."""
        return confusion_counts(examples.images.classes, outputs.argmax(1), self.n_outputs)

    def answers(self, examples: ImageExamples, outputs: Logits) -> list[Classified]:
        """What was said of each example, as `predict` says it."""
        return [self.said(output) for output in outputs]

    def expected(self, examples: ImageExamples) -> list[str]:
        """The class of each example."""
        return [self.table.labels[number] for number in examples.images.classes.tolist()]

    def notes(self, examples: ImageExamples) -> tuple[str, ...]:
        """What a reader of the scores should know."""
        return image_notes(examples.images, examples.images.left_out())

    def said(self, output: Logits) -> Classified:
        """What an output (K,) says of an image."""
        return classified(output, self.table.labels)

    def predict(
        self, model: nn.Module, images: Sequence[ImageInput], *, progress: Callable[[int], None] | None = None
    ) -> list[Classified]:
        """Name images, in their order: files, or arrays of bytes (H, W) or (H, W, C)."""
        decoded = decode_all(images, self.table)
        if not len(decoded):
            return []
        return [self.said(output) for output in self._read(model, decoded, progress=progress)]

    def examples(self, images: Any) -> ImageExamples:
        """The examples of a set of images."""
        return ImageExamples(images, batch_images=self.config.training.batch_images, seed=self.config.seed)

    def _read(self, model: nn.Module, images: Any, *, progress: Callable[[int], None] | None = None) -> Logits:
        return read_in_batches(
            images,
            lambda pixels: self.answer(model, self.scaled(pixels)),
            batch_images=self.config.training.batch_images,
            device=next(model.parameters()).device,
            progress=progress,
        )

    def _sample(self, examples: ImageExamples, row: int, output: Logits) -> tuple[str, str, str]:
        [place] = examples.places(np.array([row]))
        found = self.said(output)
        expected = self.table.labels[examples.images.classes[row]]
        return place, expected, f"{found.label} ({100 * found.probability:.0f} %)"

    def _facts(self, found: ImageDataset, train: ImageExamples, valid: ImageExamples) -> tuple[tuple[str, str], ...]:
        facts = [
            ("training", f"{len(train):,} images, {self.table.pixels}"),
            ("validation", f"{len(valid):,} images{', held out' if found.n_held_out else ''}"),
            ("batches", f"{len(train.order(0)):,} an epoch, of up to {train.batch_images:,} images"),
            *label_facts(self.table.labels, self.table.counts, "class"),
            *weight_facts(self.class_weights, self.table.labels),
        ]
        if self.augmentation.changes:
            facts.append(("augmentation", str(self.augmentation)))
        return (*facts, *found.notes)


def image_notes(images: ImageSet, left_out: Sequence[str]) -> tuple[str, ...]:
    """What a reader of scores should know of the images that were scored."""
    fitted = [f"{images.fitted}."] if images.fitted else []
    return (*fitted, *(f"Left out: {sentence}." for sentence in left_out))


def decode_all(images: Sequence[ImageInput], table: ImageTable) -> ImageList:
    """Decode images, in their order; one that stands in no list is refused, as its rows would be taken for images."""
    alone = isinstance(images, os.PathLike)
    if isinstance(images, np.ndarray):
        alone = images.ndim < 3 or (images.ndim == 3 and images.shape[2] in (1, 3))
    if alone:
        raise UsageError("A list of images was expected, and one came.", "Write it in brackets: [image].")
    return ImageList([decode(image, table) for image in images])


def decode(image: ImageInput, table: ImageTable) -> Pixels:
    """Return the pixels of a file or an array as a run reads them, (size, size, channels)."""
    if isinstance(image, np.ndarray):
        return pixels_of(image, table.shape)
    if not isinstance(image, str | os.PathLike):
        raise UsageError(
            f"An image is the name of a file or an array, not {type(image).__name__}.",
            "An array of it is numpy.asarray(image).",
        )
    if Path(image).is_dir():
        raise UsageError(f"{os.fspath(image)} is a folder.", "Name its images: FOLDER/*.jpg")
    return read_image(image, table.shape)
