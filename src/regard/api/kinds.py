"""The kinds of runs: what a `Translator`, a `LanguageModel`, a `Classifier` … can do, and nothing else.

Every method takes settings by the names they have in a run file, in place of the run's own: `translate(texts, beam=5)`.
One input gives one result, a list gives a list of results.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from regard.api.run import Files, Run
from regard.config import DecodingConfig
from regard.config.keywords import DataSettings, DecodingSettings
from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.tasks.denoising.fill_mask import Filled
from regard.tasks.denoising.masked_lm import MaskedLMTask
from regard.tasks.denoising.span_corruption import DenoisingTask
from regard.tasks.embedding import Embedder, Embedding
from regard.tasks.evaluation import Evaluation
from regard.tasks.images.caption_generation import Caption
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.images.classified_image import ClassifiedImage
from regard.tasks.images.image_classification import ImageClassificationTask
from regard.tasks.labelling.classification import ClassificationTask, Classified
from regard.tasks.labelling.regression import Measured, RegressionTask
from regard.tasks.labelling.similarity import SimilarityTask
from regard.tasks.labelling.tagging import TaggedText, TaggedVectors, TaggingTask
from regard.tasks.language_model.continuation import Continuation, prompt_ids
from regard.tasks.language_model.task import LanguageModelTask, context_length
from regard.tasks.options import GenerationOptions, Options, Progress
from regard.tasks.results import Results
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.translator import Translation

if TYPE_CHECKING:
    from regard.inspection.trace import Trace

TRACED_TOKENS = 32  # that are written, where nobody says how many
Told = Callable[[int], None] | None  # who is told how many are done
Texts = list[str] | tuple[str, ...]
Vectors = npt.NDArray[np.floating]
Image = str | os.PathLike[str] | npt.NDArray[Any]
Images = list[str] | list[Path] | list[npt.NDArray[Any]] | tuple[Image, ...]  # lists are invariant


class UseSettings(DataSettings, total=False):
    """What every run takes by name: how a test set is read, and who is told of progress."""

    split: str
    paired: bool
    progress: Progress


class GenerationSettings(UseSettings, DecodingSettings, total=False):
    """What every run that generates takes by name; decoding: all settings of the search at once."""

    decoding: DecodingConfig
    seed: int
    banned: Sequence[str]
    log_probs: bool


class TextMetricSettings(GenerationSettings, total=False):
    """How generated text is scored."""

    metrics: Sequence[str]
    tokenize: str
    lowercase: bool


class TranslationSettings(TextMetricSettings, total=False):
    """What a translator takes by name."""

    prefixes: Sequence[str]
    align: bool
    by_length: bool
    ensemble: Sequence["Translator"]


class LabelSettings(UseSettings, total=False):
    """What a classifier, a regressor or a tagger takes by name; texts_b: the second text of each pair."""

    texts_b: str | Sequence[str]


class MaskSettings(UseSettings, total=False):
    """What a masked language model takes by name; top: how many guesses for each blank."""

    top: int


class ImageSettings(UseSettings, total=False):
    """What an image classifier takes by name."""

    blocks: bool
    skip_unreadable: bool


class CaptionSettings(TextMetricSettings, total=False):
    """What a captioner takes by name."""

    skip_unreadable: bool


class TextRun(Run[Any]):
    """A run that reads text, and so can embed it."""

    @overload
    def embed(self, texts: str, *, tokens: bool = ..., pooling: str = ..., progress: Told = ...) -> Embedding: ...
    @overload
    def embed(
        self, texts: Texts, *, tokens: bool = ..., pooling: str = ..., progress: Told = ...
    ) -> list[Embedding]: ...
    def embed(
        self, texts: str | Texts, *, tokens: bool = False, pooling: str = "", progress: Told = None
    ) -> Embedding | list[Embedding]:
        """Turn texts into vectors by the states of the model's encoder, or of a language model; see `Embedder`.

        tokens:   a vector for each word, too
        pooling:  mean, class or last; by default mean, or that of an imported sentence encoder
        """
        tokenizer, longest = self._reading()
        if tokenizer is None:
            raise UsageError(f"{self.reference} was trained on vectors: it reads no text.", "Name a run over text.")
        embedder = Embedder(
            tokenizer,
            self._network,
            encoder=self.encoder(),
            max_length=longest,
            pooling=pooling or self._pooling,
            normalised=self._normalised,
        )
        found = embedder.embed([texts] if isinstance(texts, str) else list(texts), words=tokens, progress=progress)
        return found[0] if isinstance(texts, str) else found

    @property
    def _pooling(self) -> str:
        return "mean"

    @property
    def _normalised(self) -> bool:
        return False

    def _reading(self) -> tuple[Tokenizer | None, int]:
        """The tokenizer of what is read, and the most tokens of it."""
        return self.task.tokenizer, self.config.data.max_length


class Translator(TextRun):
    """A run of the task translate."""

    task: TranslationTask

    @overload
    def translate(self, texts: str, **settings: Unpack[TranslationSettings]) -> Translation: ...
    @overload
    def translate(self, texts: Texts, **settings: Unpack[TranslationSettings]) -> Results[Translation]: ...
    def translate(
        self, texts: str | Texts, **settings: Unpack[TranslationSettings]
    ) -> Translation | Results[Translation]:
        """Translate lines; `ensemble`: further translators that vote on every token."""
        found: Translation | Results[Translation] = self._predict(texts, settings, is_one=isinstance(texts, str))
        return found

    def evaluate(self, files: Files, **settings: Unpack[TranslationSettings]) -> Evaluation:
        """Translate a test set and score it: BLEU, chrF and TER (or other `metrics`), perplexity of the references."""
        return self.evaluate_with(files, self.options(settings))

    def options(self, settings: Mapping[str, Any]) -> Options:
        """The same with the models of an ensemble, which must share a vocabulary."""
        ensemble: Sequence[Translator] = settings.get("ensemble", ())
        for other in ensemble:
            if other.task.vocabulary.fingerprint() != self.task.vocabulary.fingerprint():
                raise UsageError(
                    f"{other.reference} has another vocabulary than {self.reference}: they cannot vote on tokens.",
                    "Train the runs of an ensemble on one vocabulary (regard train … --vocabulary RUN).",
                )
        return super().options({**settings, "ensemble": tuple(other.model for other in ensemble)})

    def _reading(self) -> tuple[Tokenizer | None, int]:
        return self.task.vocabulary.source, self.config.data.max_length


class LanguageModel(TextRun):
    """A run of the task language."""

    task: LanguageModelTask

    @overload
    def generate(self, prompts: str = "", **settings: Unpack[GenerationSettings]) -> Continuation: ...
    @overload
    def generate(self, prompts: Texts, **settings: Unpack[GenerationSettings]) -> Results[Continuation]: ...
    def generate(
        self, prompts: str | Texts = "", **settings: Unpack[GenerationSettings]
    ) -> Continuation | Results[Continuation]:
        """Go on from prompts; an empty one begins a document."""
        found: Continuation | Results[Continuation] = self._predict(prompts, settings, is_one=isinstance(prompts, str))
        return found

    def stream(self, prompt: str = "", **settings: Unpack[GenerationSettings]) -> Iterator[str]:
        """Go on from one prompt, and yield the text as it is written, whole characters only."""
        options = self.with_engine(self.options(settings))
        assert isinstance(options, GenerationOptions)
        return self.task.continuer(self._network, options).stream(prompt)

    def evaluate(self, files: Files, **settings: Unpack[GenerationSettings]) -> Evaluation:
        """Read a text: its loss, perplexity and bits per byte."""
        return self.evaluate_with(files, self.options(settings))

    def options(self, settings: Mapping[str, Any]) -> Options:
        """The same, but a beam that is asked for is searched with, although a language model samples by itself."""
        if settings.get("beam", 1) > 1:
            settings = {"sample": False, **settings}
        return super().options(settings)

    def trace(self, input: Any, **settings: Any) -> "Trace":
        """Look inside, while some tokens are written: 32 unless `max_length` says how many, and no more than have room in
        the model's context beside the prompt."""
        if isinstance(input, str) and not settings.get("max_length"):
            room = context_length(self.config) - len(prompt_ids(self.task.tokenizer, input))
            own = self.config.decoding.max_length or TRACED_TOKENS
            settings["max_length"] = min(own, TRACED_TOKENS, max(1, room))
        return super().trace(input, **settings)

    def _reading(self) -> tuple[Tokenizer | None, int]:
        return self.task.tokenizer, sys.maxsize


class MaskedLM(TextRun):
    """A run of the task mask."""

    task: MaskedLMTask

    @overload
    def predict(self, texts: str, **settings: Unpack[MaskSettings]) -> Filled: ...
    @overload
    def predict(self, texts: Texts, **settings: Unpack[MaskSettings]) -> Results[Filled]: ...
    def predict(self, texts: str | Texts, **settings: Unpack[MaskSettings]) -> Filled | Results[Filled]:
        """Fill the blanks of texts, each [MASK] with one token: the `top` likeliest for each."""
        found: Filled | Results[Filled] = self._predict(texts, settings, is_one=isinstance(texts, str))
        return found

    def evaluate(self, files: Files, **settings: Unpack[MaskSettings]) -> Evaluation:
        """Hide tokens of a text: their loss and perplexity, and how many of a hundred are guessed right."""
        return self.evaluate_with(files, self.options(settings))


class Denoiser(TextRun):
    """A run of the task denoise."""

    task: DenoisingTask

    @overload
    def predict(self, texts: str, **settings: Unpack[GenerationSettings]) -> Filled: ...
    @overload
    def predict(self, texts: Texts, **settings: Unpack[GenerationSettings]) -> Results[Filled]: ...
    def predict(self, texts: str | Texts, **settings: Unpack[GenerationSettings]) -> Filled | Results[Filled]:
        """Fill the blanks of texts, each [MASK] with as many tokens as the model writes."""
        found: Filled | Results[Filled] = self._predict(texts, settings, is_one=isinstance(texts, str))
        return found

    def evaluate(self, files: Files, **settings: Unpack[GenerationSettings]) -> Evaluation:
        """Hide spans of a text: their loss and perplexity."""
        return self.evaluate_with(files, self.options(settings))


class LabelRun(TextRun):
    """A run that says something of each text, pair of texts, or sequence of vectors (T, F)."""

    def evaluate(self, files: Files, **settings: Unpack[LabelSettings]) -> Evaluation:
        """Score the run on labelled examples."""
        return self.evaluate_with(files, self.options(settings))

    def _label(self, inputs: Any, settings: LabelSettings, *, is_one: bool) -> Any:
        second = settings.get("texts_b", ())
        texts_b = (second,) if isinstance(second, str) else tuple(second)
        return self._predict(inputs, {**settings, "texts_b": texts_b if any(texts_b) else ()}, is_one=is_one)


class Classifier(LabelRun):
    """A run of the task classify."""

    task: ClassificationTask

    @overload
    def predict(self, inputs: str | Vectors, **settings: Unpack[LabelSettings]) -> Classified: ...
    @overload
    def predict(self, inputs: Texts | list[Vectors], **settings: Unpack[LabelSettings]) -> Results[Classified]: ...
    def predict(
        self, inputs: str | Vectors | Texts | list[Vectors], **settings: Unpack[LabelSettings]
    ) -> Classified | Results[Classified]:
        """The class of each text (with `texts_b`, of each pair), or of each sequence of vectors."""
        found: Classified | Results[Classified] = self._label(inputs, settings, is_one=_is_one(inputs))
        return found


class Regressor(LabelRun):
    """A run of the task regress."""

    task: RegressionTask

    @overload
    def predict(self, inputs: str | Vectors, **settings: Unpack[LabelSettings]) -> Measured: ...
    @overload
    def predict(self, inputs: Texts | list[Vectors], **settings: Unpack[LabelSettings]) -> Results[Measured]: ...
    def predict(
        self, inputs: str | Vectors | Texts | list[Vectors], **settings: Unpack[LabelSettings]
    ) -> Measured | Results[Measured]:
        """The number of each text (with `texts_b`, of each pair), or of each sequence of vectors."""
        found: Measured | Results[Measured] = self._label(inputs, settings, is_one=_is_one(inputs))
        return found


class Similarity(Regressor):
    """A run of the task similarity: a number for each pair of texts, and vectors that compare by cosine."""

    task: SimilarityTask

    def trace(self, input: Any, **settings: Any) -> "Trace":
        """Look inside, while the vector of a text comes about; without `texts_b` it is compared with itself."""
        return super().trace(input, **{"texts_b": (input,), **settings})

    @property
    def _pooling(self) -> str:
        return self.task.table.pooling

    @property
    def _normalised(self) -> bool:
        return self.task.table.normalised


class Tagger(LabelRun):
    """A run of the task tag."""

    task: TaggingTask

    @overload
    def predict(self, sentences: str, **settings: Unpack[LabelSettings]) -> TaggedText: ...
    @overload
    def predict(self, sentences: Vectors, **settings: Unpack[LabelSettings]) -> TaggedVectors: ...
    @overload
    def predict(self, sentences: Texts | list[list[str]], **settings: Unpack[LabelSettings]) -> Results[TaggedText]: ...
    @overload
    def predict(self, sentences: list[Vectors], **settings: Unpack[LabelSettings]) -> Results[TaggedVectors]: ...
    def predict(
        self, sentences: str | Vectors | Texts | list[list[str]] | list[Vectors], **settings: Unpack[LabelSettings]
    ) -> TaggedVectors | Results[TaggedText] | Results[TaggedVectors]:
        """The tag of each word, where a sentence is its words, or one text that white space divides; or of each vector."""
        found: TaggedVectors | Results[TaggedText] = self._label(sentences, settings, is_one=_is_one(sentences))
        return found


class ImageClassifier(Run[ImageClassificationTask]):
    """A run of the task image."""

    @overload
    def predict(self, images: Image, **settings: Unpack[ImageSettings]) -> ClassifiedImage: ...
    @overload
    def predict(self, images: Images, **settings: Unpack[ImageSettings]) -> Results[ClassifiedImage]: ...
    def predict(
        self, images: Image | Images, **settings: Unpack[ImageSettings]
    ) -> ClassifiedImage | Results[ClassifiedImage]:
        """The class of each image: a file, or an array of bytes (H, W) or (H, W, C)."""
        found: ClassifiedImage | Results[ClassifiedImage] = self._predict(
            images, settings, is_one=_is_one_image(images)
        )
        return found

    def evaluate(self, files: Files, **settings: Unpack[ImageSettings]) -> Evaluation:
        """Score the run on images with classes; `blocks`: of a ResNet, also as blocks are ablated."""
        return self.evaluate_with(files, self.options(settings))


class Captioner(Run[CaptioningTask]):
    """A run of the task caption."""

    @overload
    def predict(self, images: Image, **settings: Unpack[CaptionSettings]) -> Caption: ...
    @overload
    def predict(self, images: Images, **settings: Unpack[CaptionSettings]) -> Results[Caption]: ...
    def predict(self, images: Image | Images, **settings: Unpack[CaptionSettings]) -> Caption | Results[Caption]:
        """A caption for each image: a file, or an array of bytes (H, W) or (H, W, C)."""
        found: Caption | Results[Caption] = self._predict(images, settings, is_one=_is_one_image(images))
        return found

    def evaluate(self, files: Files, **settings: Unpack[CaptionSettings]) -> Evaluation:
        """Write a caption for each image of a test set: BLEU and chrF against all of its captions, and their perplexity."""
        return self.evaluate_with(files, self.options(settings))


def _is_one(inputs: object) -> bool:
    """Whether what is given is one text, or one sequence of vectors, and no list of them."""
    return isinstance(inputs, str) or (isinstance(inputs, np.ndarray) and inputs.ndim == 2)


def _is_one_image(images: object) -> bool:
    """Whether what is given is one image, and no list of them."""
    if isinstance(images, np.ndarray):
        return images.ndim < 3 or (images.ndim == 3 and images.shape[2] in (1, 3))
    return isinstance(images, str | os.PathLike)
