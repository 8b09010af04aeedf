"""Captions: an image to a sentence; cross entropy of the tokens of all its captions, search, BLEU against all of them.

Works with a model that offers `states(images, target, image_of)` and an output layer (or plainly returns logits), and, to
write, `start` and `step`. How images become captions is in `captioning.py`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data.captions.dataset import CaptionDataset, prepare_captions, read_captions
from regard.data.captions.storage import CaptionSet
from regard.data.images.augmentation import Augmentation, normalised
from regard.data.images.decoding import Pixels
from regard.data.images.storage import ImageSet
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.evaluation.generated_text import score_translations
from regard.evaluation.perplexity import perplexity
from regard.evaluation.scores import Score
from regard.models.presets import decided_by_data, find_preset, usual_image_size
from regard.tasks.images.caption_examples import CaptionBatch, CaptionExamples
from regard.tasks.images.caption_generation import Described, Looking, Writer, look
from regard.tasks.images.image_classification import ImageInput, decode, decode_all, image_notes
from regard.tasks.images.image_examples import ReadsImages
from regard.tasks.images.preprocessing import ImageTable
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Prepared, Progress, Validation
from regard.tasks.token_loss import token_loss

N_SAMPLES = 3  # shown at a validation
METRICS = ("bleu", "chrf")


class CaptioningTask:
    """The task of writing captions."""

    spec: ClassVar = TASKS["caption"]

    def __init__(self, tokenizer: Tokenizer, config: RunConfig, table: ImageTable) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.table = table

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None else None
        known = ImageTable.find(vocabulary)
        data = config.data if known is None else known.kept(config.data)
        usual = usual_image_size(config.model)
        found = prepare_captions(data, config.tokenizer, given=given, usual=usual, progress=progress)
        longest = int(found.train.ids.lengths.max())
        table = ImageTable(shape=found.shape, mean=found.mean, deviation=found.deviation, longest=longest)
        task = cls(found.tokenizer, config, table)
        task.augmentation.refuse_small(found.shape.size, found.shape.size)
        train, valid = task.examples(found.train), task.examples(found.valid)
        return Prepared(
            task=task, train=train, valid=valid, facts=task._facts(found, train, valid), hashes=found.hashes
        )

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        return cls(Tokenizer.load(vocabulary / SHARED), config, ImageTable.load(vocabulary))

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(vocabulary / SHARED)
        self.table.save(vocabulary)

    def sizes(self) -> dict[str, int | str]:
        shape = self.table.shape
        sizes: dict[str, int | str] = {
            "vocab": self.tokenizer.vocab_size,
            "n_channels": shape.channels,
            "image_size": shape.size,
        }
        asked = decided_by_data(find_preset(self.config.model.preset))
        return {name: size for name, size in sizes.items() if name in asked}

    def initialise(self, model: nn.Module) -> None:
        """Nothing is given that a new model could begin with."""

    @cached_property
    def augmentation(self) -> Augmentation:
        """What is done to the images that are learned from."""
        return Augmentation(**vars(self.config.augmentation))

    def loss(self, model: Any, batch: CaptionBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the captions' tokens, and their number; learned from images changed at random."""
        images = self.scaled(batch.images)
        if model.training and self.augmentation.changes:
            seed = int(torch.randint(2**62, ()))  # torch's generator has the seed of this very update
            images = self.augmentation.changed(images, seed=seed)
        read, written = batch.target[:, :-1], batch.target[:, 1:]
        real = torch.arange(written.shape[1], device=written.device) < batch.lengths[:, None]
        return token_loss(model, (images, read, batch.image_of), written, real, smoothing=smoothing)

    def scaled(self, images: Tensor) -> Tensor:
        """Bytes (B, H, W, C) as the model reads them, (B, C, H, W)."""
        return normalised(images, self.table.mean, self.table.deviation)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_decoded: int) -> Validation:
        """Loss and perplexity of all captions, BLEU and chrF of the first `n_decoded` images, captioned greedily."""
        assert isinstance(examples, CaptionExamples)
        loss = self.mean_loss(model, examples)
        scores = {"perplexity": perplexity(loss).value}
        samples: tuple[tuple[str, str, str], ...] = ()
        n = len(examples) if n_decoded < 0 else min(n_decoded, len(examples))
        if n and hasattr(model, "step"):  # a network of the caller's own may know nothing of decoding
            greedy = replace(decoding, beam=1, n_best=1, sample=False)
            outputs = [one.text for one in self.write(model, _First(examples.captions.image_set, n), greedy)]
            references = examples.references(n)
            scores |= {score.name: score.value for score in score_translations(outputs, references, metrics=METRICS)}
            shown = range(min(N_SAMPLES, n))
            places = examples.places(np.array(shown))
            samples = tuple((places[row], references[0][row], outputs[row]) for row in shown)
        return Validation(loss=loss, scores=scores, samples=samples)

    def mean_loss(self, model: nn.Module, examples: CaptionExamples) -> float:
        """The mean cross entropy of the captions' tokens, their end tokens among them, in nats."""
        device = next(model.parameters()).device
        total, weight = 0.0, 0.0
        with torch.inference_mode():
            for indices in examples.fixed_order():
                loss, n_tokens = self.loss(model, examples.batch(indices, device), smoothing=0.0)
                total, weight = total + float(loss), weight + n_tokens
        return total / weight if weight else math.nan

    def read(
        self, files: Sequence[str], data: DataConfig, *, split: str = "test", progress: Progress
    ) -> CaptionExamples:
        """Read captioned images to be scored; of a table that tells splits apart, those of one."""
        shape = self.table.shape
        return self.examples(read_captions(files, data, self.tokenizer, shape=shape, split=split, progress=progress))

    def scores(
        self,
        model: nn.Module,
        examples: CaptionExamples,
        outputs: Sequence[str],
        *,
        tokenize: str = "13a",
        lowercase: bool = False,
    ) -> list[Score]:
        """BLEU and chrF of a caption for each image against all that people wrote, and the perplexity of these."""
        references = examples.references(len(examples))
        scores = score_translations(outputs, references, metrics=METRICS, tokenize=tokenize, lowercase=lowercase)
        return [*scores, perplexity(self.mean_loss(model, examples))]

    def notes(self, examples: CaptionExamples) -> tuple[str, ...]:
        """What a reader of the scores should know."""
        return image_notes(examples.captions.image_set, examples.captions.left_out())

    def predict(
        self,
        model: nn.Module,
        images: Sequence[ImageInput],
        decoding: DecodingConfig | None = None,
        *,
        seed: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> list[Described]:
        """Write captions for each image, in their order: files, or arrays of bytes (H, W) or (H, W, C)."""
        decoded = decode_all(images, self.table)
        return self.write(model, decoded, decoding or self.config.decoding, seed=seed, progress=progress)

    def write(
        self,
        model: nn.Module,
        images: ReadsImages,
        decoding: DecodingConfig,
        *,
        seed: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> list[Described]:
        """Write captions; see `captioning.Writer`."""
        writer = Writer(self.tokenizer, model, decoding, scaled=self.scaled, max_length=self.table.longest, seed=seed)
        return writer.write(images, progress=progress)

    def look(self, model: Any, image: ImageInput, ids: Sequence[int]) -> Looking:
        """Return where a model looks in an image while it writes a caption, word by word."""
        pixels = torch.tensor(decode(image, self.table), device=next(model.parameters()).device)
        return look(model, self.tokenizer, self.scaled(pixels[None])[0], ids)

    def examples(self, captions: CaptionSet) -> CaptionExamples:
        """The examples of a set of captions."""
        batch_images, seed = self.config.training.batch_images, self.config.seed
        return CaptionExamples(captions, self.tokenizer, batch_images=batch_images, seed=seed)

    def _facts(
        self, found: CaptionDataset, train: CaptionExamples, valid: CaptionExamples
    ) -> tuple[tuple[str, str], ...]:
        tokenizer = self.tokenizer
        facts = [
            ("training", f"{len(found.train):,} captions of {len(train):,} images, {self.table.pixels}"),
            (
                "validation",
                f"{len(found.valid):,} captions of {len(valid):,} images{', held out' if found.n_held_out else ''}",
            ),
            ("vocabulary", f"{tokenizer.vocab_size:,} tokens ({tokenizer.kind})"),
            (
                "batches",
                f"{len(train.order(0)):,} an epoch, of up to {train.batch_images:,} images with their captions",
            ),
        ]
        if self.augmentation.changes:
            facts.append(("augmentation", str(self.augmentation)))
        return (*facts, *found.notes)


class _First:
    """The first images of a set."""

    def __init__(self, whole: ImageSet, n: int) -> None:
        self.whole = whole
        self.n = n

    def __len__(self) -> int:
        return self.n

    def images(self, indices: npt.ArrayLike, /) -> Pixels:
        return self.whole.images(indices)
