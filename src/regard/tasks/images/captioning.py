"""Image captioning: a sentence for each image; cross entropy of the tokens of all its captions, beam search, BLEU.

Works with a model that offers `states(images, target, image_of)` and an output layer (or plainly returns logits), and, to
write, `start` and `step` (`tasks/offers.py`). How images become captions is in `caption_generation.py`.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data.captions.dataset import CaptionDataset, prepare_captions, read_captions
from regard.data.captions.storage import CaptionSet
from regard.data.images.augmentation import Augmentation
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.evaluation.baselines.baseline import Baseline, Floats
from regard.evaluation.baselines.nearest_caption import NearestCaption, TypicalCaption
from regard.evaluation.baselines.thumbnails import thumbnails
from regard.evaluation.generated_text import check_metrics, check_tokenizer, text_statistics
from regard.evaluation.perplexity import perplexity
from regard.evaluation.scores import Score
from regard.models.presets import usual_image_size
from regard.tasks.baseline_inputs import MOST_TOKENS, bounded_rows, evenly, in_parts, sequences
from regard.tasks.baselines import scored_baseline
from regard.tasks.batches import fixed_batches, mean_loss
from regard.tasks.evaluation import Evaluation, Generated
from regard.tasks.generation import Generator
from regard.tasks.images.caption_examples import CaptionBatch, CaptionExamples
from regard.tasks.images.caption_generation import (
    AttentionMaps,
    Caption,
    CaptionOptions,
    attention_maps,
    caption_limit,
    generate_captions,
)
from regard.tasks.images.image_examples import ImageList, ReadsImages
from regard.tasks.images.preprocessing import ImageInput, ImageTable, decode_inputs, image_notes, split_to_score
from regard.tasks.offers import can_decode, device_of
from regard.tasks.options import Options, Progress
from regard.tasks.probe_example import ProbeExample, probe_rows
from regard.tasks.reading import Reading, decoder_reading, image_positions, patch_positions
from regard.tasks.results import Results, one_line
from regard.tasks.spec import TASKS
from regard.tasks.task import N_SAMPLES, Examples, Indices, Prepared, Validation
from regard.tasks.token_loss import row_costs, token_loss
from regard.tasks.translation.alignment import words_of_ids
from regard.tasks.word_vectors import WordVectors

MOST_IMAGES = 4000  # among which the nearest is searched for
THUMBNAIL = 8  # pixels wide is an image there


class CaptioningTask:
    """The task of image captioning."""

    spec: ClassVar = TASKS["caption"]
    options: ClassVar[type[Options]] = CaptionOptions
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]] = (TypicalCaption, NearestCaption)

    def __init__(self, tokenizer: Tokenizer, config: RunConfig, table: ImageTable) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.table = table

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None else None
        known = ImageTable.find(vocabulary)
        data = config.data if known is None else known.with_shape(config.data)
        usual = usual_image_size(config.model)
        found = prepare_captions(data, config.tokenizer, given=given, usual=usual, progress=progress)
        images, longest = found.train.image_set, int(found.train.ids.lengths.max())
        mean, deviation = images.statistics()
        table = ImageTable(shape=images.shape, mean=mean, deviation=deviation, longest=longest)
        task = cls(found.tokenizer, config, table)
        task.augmentation.refuse_small(table.shape.size, table.shape.size)
        train, valid = task.examples(found.train), task.examples(found.valid)
        facts = task._report(found, train, valid)
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=found.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        return cls(Tokenizer.load(vocabulary / SHARED), config, ImageTable.load(vocabulary))

    def save(self, vocabulary: Path) -> None:
        self.table.save(vocabulary)
        self.tokenizer.save(vocabulary / SHARED)

    def model_fields(self) -> dict[str, int | str]:
        return self.table.model_fields(self.config.model, vocab=self.tokenizer.vocab_size)

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; a word without a vector keeps its random one."""
        if self.word_vectors is not None:
            name, width = "text.target_embedding.tokens.weight", "model.decoder.d_model"
            self.word_vectors.put_into(model, name, self.config, width=width)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """The given vectors, read when first asked for."""
        return WordVectors.given(self.config, self.tokenizer)

    @cached_property
    def augmentation(self) -> Augmentation:
        """What is done to the images that are learned from."""
        return Augmentation(**vars(self.config.augmentation))

    def examples(self, captions: CaptionSet) -> CaptionExamples:
        """The examples of a set of captions."""
        batch_images, seed = self.config.training.batch_images, self.config.seed
        return CaptionExamples(captions, self.tokenizer, batch_images=batch_images, seed=seed)

    def loss(self, model: Any, batch: CaptionBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the captions' tokens, and their number; in training images are augmented."""
        images = self.table.normalise(batch.images)
        if model.training and self.augmentation.changes:
            seed = int(torch.randint(2**62, ()))  # torch's generator has the seed of this very update
            images = self.augmentation.changed(images, seed=seed)
        read, written, mask = batch.teacher_forced()
        return token_loss(model, (images, read, batch.image_of), written, mask, smoothing=smoothing)

    def costs(self, model: Any, batch: CaptionBatch) -> NDArray[np.float64]:
        """The loss of all captions of each image, and their tokens: (I, 2)."""
        read, written, mask = batch.teacher_forced()
        rows = row_costs(model, (self.table.normalise(batch.images), read, batch.image_of), written, mask)
        found = np.zeros((len(batch.images), 2))
        np.add.at(found, batch.image_of.cpu().numpy(), rows)
        return found

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Loss and perplexity of all captions, BLEU and chrF of the first `n_samples` images, captioned greedily."""
        assert isinstance(examples, CaptionExamples)
        loss = self._mean_loss(model, examples)
        scores = {"perplexity": perplexity(loss).value}
        samples: tuple[tuple[str, str, str], ...] = ()
        n_samples = len(examples) if n_samples < 0 else min(n_samples, len(examples))
        if n_samples and can_decode(model):
            names, references = examples.places(np.arange(n_samples)), examples.references(n_samples)
            greedy = CaptionOptions(decoding=replace(decoding, beam=1, n_best=1, sample=False))
            outputs = [one.text for one in self._generate(model, examples.captions.image_set, names, greedy)]
            statistics = text_statistics(outputs, references, metrics=greedy.metrics)
            scores |= {one.metric: one.value for one in statistics}
            samples = tuple(zip(names, references[0], outputs, strict=True))[:N_SAMPLES]
        return Validation(loss=loss, scores=scores, samples=samples)

    @property
    def thumbnail_side(self) -> int:
        """How many pixels wide an image is for the baseline."""
        return min(THUMBNAIL, self.table.shape.size)

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        return self.thumbnail_side**2 * self.table.shape.channels, self.tokenizer.vocab_size

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The most typical caption, and that of the nearest image."""
        assert isinstance(train, CaptionExamples)
        captions, n_tokens = train.captions, self.tokenizer.vocab_size
        typical = sequences(captions.ids, bounded_rows(captions.ids.lengths, MOST_TOKENS // 2))
        images = evenly(len(train), MOST_IMAGES)
        first = np.array([captions.rows_of(image)[0] for image in images.tolist()])
        features = self._thumbnails(captions, images)
        return [
            TypicalCaption.fit(typical, n_tokens),
            NearestCaption.fit(features, sequences(captions.ids, first), n_tokens),
        ]

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """BLEU and chrF of the first `n_samples` images."""
        assert isinstance(examples, CaptionExamples)
        count = len(examples) if n_samples < 0 else min(n_samples, len(examples))
        return self._baseline_scores(baseline, examples, count, CaptionOptions()) if count else []

    def _baseline_scores(
        self, baseline: Baseline, examples: CaptionExamples, count: int, options: CaptionOptions
    ) -> list[Score]:
        assert isinstance(baseline, TypicalCaption | NearestCaption)
        written = baseline.captions(self._thumbnails(examples.captions, np.arange(count)))
        outputs = [self.tokenizer.decode(ids.tolist()) for ids in written]
        found = text_statistics(
            outputs,
            examples.references(count),
            metrics=options.metrics,
            tokenize=options.tokenize,
            lowercase=options.lowercase,
        )
        return [one.score for one in found]

    def _thumbnails(self, captions: CaptionSet, images: Indices) -> Floats:
        """The features (N, D) of some images."""
        parts = in_parts(images)
        return np.concatenate([thumbnails(captions.image_set.images(own), self.thumbnail_side) for own in parts])

    def predict(self, model: nn.Module, inputs: Sequence[ImageInput], options: CaptionOptions) -> Results[Caption]:
        """Write captions for each image, in their order: files, or arrays of bytes (H, W) or (H, W, C)."""
        decoded = decode_inputs(inputs, self.table, skip_unreadable=options.skip_unreadable)
        readable = [(one.name, one.pixels) for one in decoded if one.pixels is not None]
        images, names = ImageList([pixels for _, pixels in readable]), [name for name, _ in readable]
        captions = iter(self._generate(model, images, names, options))
        return Results(
            Caption(image=one.name, problem=one.problem) if one.pixels is None else next(captions) for one in decoded
        )

    def read(self, files: Sequence[str], options: CaptionOptions) -> CaptionExamples:
        """Read images with captions to be scored."""
        split, asked = split_to_score(options.split)
        captions = read_captions(
            files,
            options.data or self.config.data,
            self.tokenizer,
            shape=self.table.shape,
            split=split,
            asked=asked,
            progress=options.progress,
        )
        return self.examples(captions)

    def evaluate(self, model: nn.Module, files: Sequence[str], options: CaptionOptions) -> Evaluation:
        """Write a caption for each image: BLEU and chrF against all of its captions, and the perplexity of these."""
        check_metrics(options.metrics)
        check_tokenizer(options.tokenize)
        examples = self.read(files, options)
        captions, count = examples.captions, len(examples)
        names, references = examples.places(np.arange(count)), examples.references(count)
        began = time.perf_counter()
        predictions = self._generate(model, captions.image_set, names, options)
        seconds = time.perf_counter() - began
        outputs = [one.text for one in predictions]
        statistics = text_statistics(
            outputs, references, metrics=options.metrics, tokenize=options.tokenize, lowercase=options.lowercase
        )
        return Evaluation(
            scores=(*(one.score for one in statistics), perplexity(self._mean_loss(model, examples))),
            statistics=tuple(statistics),
            count=count,
            unit=self.spec.unit,
            seconds=seconds,
            predictions=Results(predictions),
            expected=tuple(tuple(captions.captions_of(image)) for image in range(count)),
            generated=Generated(sources=tuple(names), references=tuple(map(tuple, references)), outputs=tuple(outputs)),
            output=tuple(f"{one_line(name)}\t{one_line(text)}" for name, text in zip(names, outputs, strict=True)),
            baselines=tuple(
                scored_baseline(one, self._baseline_scores(one, examples, count, options)) for one in options.baselines
            ),
            notes=image_notes(captions.image_set, captions.left_out()),
        )

    def reading(self, model: Any, image: ImageInput, result: Caption, options: CaptionOptions) -> Reading:
        """An image and its best caption, to look into."""
        pixels, output = self.table.decode(image), result.outputs[0]
        generator = self._generator(model, options)
        images = self.table.normalise(torch.tensor(pixels, device=generator.device)[None])
        places, memory = image_positions(model.image), patch_positions(model.grid)
        return decoder_reading(
            model,
            generator,
            output.written(self.tokenizer),
            forward=lambda target: model(images, target),
            inputs=images,
            limit=caption_limit(generator, self.table.longest),
            result=lambda decoded: replace(result, outputs=tuple(map(generator.output, decoded.hypotheses))),
            source=(("image", places), ("memory", memory)),
            memory=memory,
            words=words_of_ids(self.tokenizer, output.ids),
            image=pixels,
        )

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """Some images, to be captioned while the model learns."""
        assert isinstance(examples, CaptionExamples)
        rows = np.array(probe_rows(np.zeros(len(examples)), n), np.int64)
        captions = [examples.captions.captions_of(row)[0] for row in rows.tolist()]
        found = zip(examples.places(rows), examples.images.images(rows), captions, strict=True)
        return [ProbeExample(title=place, input=pixels, expected=caption) for place, pixels, caption in found]

    def attention_maps(self, model: nn.Module, image: ImageInput, ids: Sequence[int]) -> AttentionMaps:
        """Return where a model attends to in an image while it writes the tokens of a caption, word by word."""
        pixels = torch.tensor(self.table.decode(image), device=device_of(model))
        return attention_maps(model, self.tokenizer, self.table.normalise(pixels[None])[0], ids)

    def _generate(
        self, model: Any, images: ReadsImages, names: Sequence[str], options: CaptionOptions
    ) -> list[Caption]:
        """Write captions for the first images, as many as there are names."""
        return generate_captions(
            self._generator(model, options),
            images,
            names,
            normalise=self.table.normalise,
            max_length=self.table.longest,
            progress=partial(options.progress, "writing"),
        )

    def _generator(self, model: Any, options: CaptionOptions) -> Generator:
        decoding = options.decoding or self.config.decoding
        return Generator(self.tokenizer, model, decoding, options, network=model)

    def _mean_loss(self, model: nn.Module, examples: CaptionExamples) -> float:
        """The mean cross entropy of the captions' tokens, their end tokens among them, in nats."""
        return mean_loss(partial(self.loss, model, smoothing=0.0), fixed_batches(model, examples))

    def _report(
        self, data: CaptionDataset, train: CaptionExamples, valid: CaptionExamples
    ) -> tuple[tuple[str, str], ...]:
        """What the report before the first step says of the data."""
        held_out = ", held out" if data.n_held_out else ""
        batches = f"{len(train.order(0)):,} per epoch, of up to {train.batch_images:,} images with their captions"
        facts = [
            ("training", f"{len(data.train):,} captions of {len(train):,} images, {self.table.pixels}"),
            ("validation", f"{len(data.valid):,} captions of {len(valid):,} images{held_out}"),
            ("vocabulary", f"{self.tokenizer.vocab_size:,} tokens ({self.tokenizer.kind})"),
            ("batches", batches),
        ]
        if self.augmentation.changes:
            facts.append(("augmentation", str(self.augmentation)))
        if self.tokenizer.loss:
            facts.append(("tokenizer loss", self.tokenizer.loss))
        if self.word_vectors is not None:
            facts.append(("vectors", self.word_vectors.about("words")))
        return (*facts, *data.notes)
