"""Image classification: one of several classes for each image; accuracy, top-5 accuracy and the confusion matrix.

A model is called as `model(images)` with images (B, C, H, W), normalised, and nothing else of it is used, so that a
network of the caller's own serves too.
"""

import math
import time
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data.images.augmentation import Augmentation
from regard.data.images.dataset import ImageDataset, prepare_images, read_images
from regard.data.images.storage import ImageSet
from regard.errors import ConfigError
from regard.evaluation import classification as metrics
from regard.evaluation.baselines.baseline import MOST_ENTRIES, Baseline
from regard.evaluation.baselines.constant import MajorityClass
from regard.evaluation.baselines.nearest_mean import NearestMean
from regard.evaluation.baselines.thumbnails import MOST_SIDE, thumbnails
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, Statistics
from regard.models.presets import usual_image_size
from regard.parts.taps import recording
from regard.tasks.attention import SELF_ATTENTION
from regard.tasks.baseline_inputs import evenly, in_parts
from regard.tasks.baselines import score_baselines
from regard.tasks.batches import read_in_batches
from regard.tasks.class_evaluation import class_costs, class_sections, class_statistics
from regard.tasks.evaluation import Evaluation
from regard.tasks.images.block_ablation import ablate_blocks, ablation_note, ablation_section, check_ablatable
from regard.tasks.images.caption_generation import AttentionMaps
from regard.tasks.images.classified_image import ClassifiedImage, ImageOptions, classify
from regard.tasks.images.image_examples import ImageBatch, ImageExamples, ImageList, ReadsImages, in_order
from regard.tasks.images.preprocessing import ImageInput, ImageTable, decode_inputs, image_notes, split_to_score
from regard.tasks.labelling.class_weights import class_weights, weighed, weight_facts, weight_signature
from regard.tasks.labelling.labels import label_facts
from regard.tasks.offers import device_of
from regard.tasks.options import Count, Options, Progress, no_count
from regard.tasks.probe_example import ProbeExample, probe_rows
from regard.tasks.reading import Reading, image_positions
from regard.tasks.results import Results, one_line
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices, Prepared, Validation, sample_rows

MOST_IMAGES = 10_000  # that the baseline is learned from
TOP = 5  # a class among so many likeliest is right for the second accuracy

Logits = npt.NDArray[np.float32]


class ImageClassificationTask:
    """The task of image classification."""

    spec: ClassVar = TASKS["image"]
    options: ClassVar[type[Options]] = ImageOptions
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]] = (MajorityClass, NearestMean)

    def __init__(self, config: RunConfig, table: ImageTable) -> None:
        self.config = config
        self.table = table

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        known = ImageTable.find(vocabulary)
        data = config.data if known is None else known.with_shape(config.data)
        found = prepare_images(
            data,
            usual=usual_image_size(config.model),
            labels=known.labels if known is not None else None,
            progress=progress,
        )
        counts = tuple(found.counts[label] for label in found.labels)
        mean, deviation = found.train.statistics()
        table = ImageTable(shape=found.train.shape, mean=mean, deviation=deviation, labels=found.labels, counts=counts)
        task = cls(config, table)
        task.augmentation.refuse_small(table.shape.size, table.shape.size)
        if config.training.best_by == "top_5" and task.n_classes <= TOP:
            raise ConfigError(
                f"training.best_by is top_5, a score among more than {TOP} classes, and there are {task.n_classes}.",
                "Choose another: --set training.best_by=accuracy",
            )
        train, valid = task.examples(found.train), task.examples(found.valid)
        facts = task._report(found, train, valid)
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=found.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        return cls(config, ImageTable.load(vocabulary))

    def save(self, vocabulary: Path) -> None:
        self.table.save(vocabulary)

    @property
    def n_classes(self) -> int:
        return len(self.table.labels)

    def model_fields(self) -> dict[str, int | str]:
        return self.table.model_fields(self.config.model, n_outputs=self.n_classes)

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

    def examples(self, images: ImageSet) -> ImageExamples:
        """The examples of a set of images."""
        return ImageExamples(images, batch_images=self.config.training.batch_images, seed=self.config.seed)

    def loss(self, model: Any, batch: ImageBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the cross entropies of a batch, and its weight; in training images are augmented."""
        images, targets = self.table.normalise(batch.images), batch.labels
        if model.training and self.augmentation.changes:
            seed = int(torch.randint(2**62, ()))  # torch's generator has the seed of this very update
            images, targets = self.augmentation(images, targets, n_classes=self.n_classes, seed=seed)
        return self.cross_entropy(self._forward(model, images), targets, smoothing=smoothing)

    def cross_entropy(self, logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the cross entropies of logits (B, K), and its weight; targets: classes (B,) or shares (B, K)."""
        losses = F.cross_entropy(logits.float(), targets.to(logits.device), label_smoothing=smoothing, reduction="none")
        return weighed(losses, targets, self.class_weights)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Score all examples; with `n_samples`, show a few."""
        assert isinstance(examples, ImageExamples)
        images = examples.images
        logits = self.logits(model, images)
        rows = np.array(sample_rows(len(images)) if n_samples else (), np.int64)
        found = zip(self._labels(images.classes[rows]), self._predictions(images, rows, logits[rows]), strict=True)
        samples = ((one.image, label, f"{one.label} ({100 * one.probability:.0f} %)") for label, one in found)
        return Validation.of(self._scores(images, logits), samples)

    @property
    def thumbnail_side(self) -> int:
        """How many pixels wide an image is for the baseline; fewer where a mean of each class would be too much to keep."""
        most = math.isqrt(MOST_ENTRIES // (max(1, self.n_classes) * self.table.shape.channels))
        return max(1, min(MOST_SIDE, self.table.shape.size, most))

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        return self.thumbnail_side**2 * self.table.shape.channels, self.n_classes

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The majority class, and the nearest class mean of pixels."""
        assert isinstance(train, ImageExamples)
        rows = evenly(len(train), min(MOST_IMAGES, 10 * MOST_ENTRIES // self.baseline_sizes[0]))
        features = np.concatenate([thumbnails(train.images.images(own), self.thumbnail_side) for own in in_parts(rows)])
        nearest = NearestMean.fit(features, train.images.classes[rows], self.n_classes)
        return [MajorityClass.fit(self.table.counts), nearest]

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """Score all images."""
        assert isinstance(examples, ImageExamples)
        images = examples.images
        if isinstance(baseline, MajorityClass):
            return self._scores(images, np.array(baseline.repeated(len(images))))
        assert isinstance(baseline, NearestMean)
        parts = in_parts(np.arange(len(images)))
        logits = [baseline.logits(thumbnails(images.images(own), self.thumbnail_side)) for own in parts]
        return self._scores(images, np.concatenate(logits))

    def predict(
        self, model: nn.Module, inputs: Sequence[ImageInput], options: ImageOptions
    ) -> Results[ClassifiedImage]:
        """Classify images, in their order: files, or arrays of bytes (H, W) or (H, W, C)."""
        decoded = decode_inputs(inputs, self.table, skip_unreadable=options.skip_unreadable)
        images = ImageList([one.pixels for one in decoded if one.pixels is not None])
        logits = iter(self.logits(model, images, progress=partial(options.progress, "reading")))
        return Results(
            ClassifiedImage(image=one.name, problem=one.problem)
            if one.pixels is None
            else classify(one.name, next(logits), self.table.labels)
            for one in decoded
        )

    def read(self, files: Sequence[str], options: Options) -> ImageExamples:
        """Read labelled images to be scored."""
        split, asked = split_to_score(options.split)
        images = read_images(
            files,
            options.data or self.config.data,
            shape=self.table.shape,
            labels=self.table.labels,
            split=split,
            asked=asked,
            progress=options.progress,
        )
        return self.examples(images)

    def costs(self, model: Any, batch: ImageBatch) -> Floats:
        """The loss of each image, its weight, whether its class is predicted right, and 1: (B, 4)."""
        logits = self._forward(model, self.table.normalise(batch.images)).cpu()
        return class_costs(logits, batch.labels, partial(self.cross_entropy, smoothing=0.0))

    def evaluate(self, model: nn.Module, files: Sequence[str], options: ImageOptions) -> Evaluation:
        """Classify the images of a test set: loss, accuracy, top-5 accuracy among more than five classes, macro F1."""
        resnet = check_ablatable(model) if options.blocks else None
        images = self.read(files, options).images
        began = time.perf_counter()
        logits = self.logits(model, images, progress=partial(options.progress, "reading"))
        seconds = time.perf_counter() - began
        predicted, labels, unit = logits.argmax(1), self.table.labels, self.spec.unit
        confusion, sections = class_sections(images.classes, predicted, labels, unit=unit)
        accuracy, macro_f1 = class_statistics(images.classes, predicted, labels, unit=unit)
        notes = image_notes(images, images.left_out())
        if resnet is not None:
            ablations = ablate_blocks(
                resnet,
                lambda progress: self.logits(model, images, progress=progress).argmax(1),
                images.classes,
                progress=partial(options.progress, "ablating blocks"),
            )
            sections += (ablation_section(ablations, whole=accuracy.value),)
            notes += (ablation_note(resnet),)
        predictions = self._predictions(images, np.arange(len(images)), logits)
        expected = self._labels(images.classes)
        return Evaluation(
            scores=tuple(self._scores(images, logits)),
            statistics=(accuracy, *self._top_statistics(images, logits), macro_f1),
            count=len(images),
            unit=unit,
            seconds=seconds,
            sections=sections,
            confusion=confusion,
            predictions=Results(predictions),
            expected=expected,
            output=tuple(
                f"{one_line(one.image)}\t{one_line(label)}\t{one_line(one.label)}\t{one.probability:.4f}"
                for label, one in zip(expected, predictions, strict=True)
            ),
            baselines=score_baselines(self, options.baselines, self.examples(images)),
            notes=notes,
        )

    def reading(self, model: nn.Module, image: ImageInput, result: ClassifiedImage, options: Options) -> Reading:
        """An image, to look into."""
        pixels = self.table.decode(image)
        images = self.table.normalise(torch.tensor(pixels, device=device_of(model))[None])
        return Reading(
            forward=lambda: self._forward(model, images),
            places=(("", image_positions(model)),),
            outputs=lambda number: self.table.labels[number],
            image=pixels,
        )

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """Some images, to be classified while the model learns."""
        assert isinstance(examples, ImageExamples)
        rows = np.array(probe_rows(np.zeros(len(examples)), n), np.int64)
        found = zip(
            examples.places(rows),
            examples.images.images(rows),
            self._labels(examples.images.classes[rows]),
            strict=True,
        )
        return [ProbeExample(title=place, input=pixels, expected=label) for place, pixels, label in found]

    def attention_maps(self, model: nn.Module, image: ImageInput) -> AttentionMaps:
        """Where the class token attends to in an image, layer by layer, the mean over heads; nothing without attention."""
        pixels = torch.tensor(self.table.decode(image), device=device_of(model))
        with recording(model, SELF_ATTENTION) as record, torch.inference_mode():
            self._forward(model, self.table.normalise(pixels[None]))
        layers = [record[name][0, :, 0, 1:].mean(0).float().cpu().numpy() for name in record]  # (P,) each
        side = math.isqrt(len(layers[0])) if layers else 0
        weights = np.array(layers, np.float32).reshape(len(layers), side, side)
        return AttentionMaps(words=tuple(f"layer {number}" for number in range(len(layers))), weights=weights)

    def logits(self, model: nn.Module, images: ReadsImages, *, progress: Count = no_count) -> Logits:
        """The logits (N, K) of images, in their order; `progress` is called with how many are done."""
        device = device_of(model)

        def read(indices: Indices) -> Logits:
            batch = self.table.normalise(torch.from_numpy(images.images(indices)).to(device))
            logits: Logits = self._forward(model, batch).float().cpu().numpy()
            return logits

        batches = in_order(len(images), self.config.training.batch_images)
        return np.array(read_in_batches(batches, read, progress=progress), np.float32).reshape(-1, self.n_classes)

    def _forward(self, model: Any, images: Tensor) -> Tensor:
        """The logits (B, K) of normalised images; a network of the caller's own may return another shape."""
        logits: Tensor = model(images)
        expected = (len(images), self.n_classes)
        if logits.shape != expected:
            raise ConfigError(
                f"The network returned {tuple(logits.shape)} for a batch, and {expected} was expected: "
                f"{self.n_classes:,} numbers for each image.",
                "Let its forward(images) return that.",
            )
        return logits

    def _scores(self, images: ImageSet, logits: Logits) -> list[Score]:
        """The loss, the accuracy, top-5 accuracy where there are more classes, and the macro F1."""
        gold, predicted, unit = images.classes, logits.argmax(1), self.spec.unit
        loss, weight = self.cross_entropy(torch.from_numpy(logits), torch.from_numpy(gold), smoothing=0.0)
        signature = f"unit:image{weight_signature(self.class_weights)}"
        return [
            Score(name="loss", value=float(loss) / weight, signature=signature),
            metrics.accuracy(gold, predicted, unit=unit),
            *(one.score for one in self._top_statistics(images, logits)),
            metrics.macro_f1(gold, predicted, self.n_classes, unit=unit),
        ]

    def _top_statistics(self, images: ImageSet, logits: Logits) -> list[Statistics]:
        if self.n_classes <= TOP:
            return []
        return [metrics.top_statistics(images.classes, logits, TOP, unit=self.spec.unit)]

    def _predictions(self, images: ImageSet, rows: Indices, logits: Logits) -> list[ClassifiedImage]:
        names = images.places(rows)
        return [classify(name, own, self.table.labels) for name, own in zip(names, logits, strict=True)]

    def _labels(self, classes: Indices) -> tuple[str, ...]:
        return tuple(self.table.labels[number] for number in classes.tolist())

    def _report(self, data: ImageDataset, train: ImageExamples, valid: ImageExamples) -> tuple[tuple[str, str], ...]:
        """What the report before the first step says of the data."""
        facts = [
            ("training", f"{len(train):,} images, {self.table.pixels}"),
            ("validation", f"{len(valid):,} images{', held out' if data.n_held_out else ''}"),
            ("batches", f"{len(train.order(0)):,} per epoch, of up to {train.batch_images:,} images"),
            *label_facts(self.table.labels, self.table.counts, "class"),
            *weight_facts(self.class_weights, self.table.labels),
        ]
        if self.augmentation.changes:
            facts.append(("augmentation", str(self.augmentation)))
        return (*facts, *data.notes)
