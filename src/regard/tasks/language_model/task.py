"""Language modelling: running text, cross entropy of each next token, perplexity, text that goes on.

Works with any model that offers `states(ids, documents)` and an output layer (or plainly returns logits), and, to generate,
`start` and `step`. How prompts become text is in `continuation.py`.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data.documents.dataset import DocumentDataset, encode_documents, prepare_documents
from regard.data.pipeline.encoding import bad_rows_of
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.errors import ConfigError
from regard.evaluation.perplexity import cross_entropy_statistics, text_scores
from regard.evaluation.scores import Score
from regard.models.presets import find_preset
from regard.tasks.batches import summed_loss
from regard.tasks.evaluation import Evaluation
from regard.tasks.language_model.continuation import Continuation, Continuer
from regard.tasks.language_model.corpus_loss import text_costs
from regard.tasks.language_model.examples import WindowBatch, WindowExamples
from regard.tasks.offers import can_decode, device_of
from regard.tasks.options import GenerationOptions, Progress
from regard.tasks.results import Results
from regard.tasks.spec import TASKS
from regard.tasks.task import N_SAMPLES, Examples, Prepared, Validation
from regard.tasks.token_loss import token_loss, token_losses
from regard.tasks.word_vectors import WordVectors

SAMPLE_TOKENS = 32  # that are given, and that are written, in each


class LanguageModelTask:
    """The task of language modelling over one vocabulary."""

    spec: ClassVar = TASKS["language"]
    options: ClassVar = GenerationOptions

    def __init__(self, tokenizer: Tokenizer, config: RunConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None else None
        data = prepare_documents(config.data, config.tokenizer, given=given, progress=progress)
        task = cls(data.tokenizer, config)
        train = task.examples(data.train, config.data.train)
        valid = task.examples(data.valid, config.data.valid or config.data.train)
        vectors = [("vectors", task.word_vectors.about("words"))] if task.word_vectors is not None else []
        facts = (*_facts(data, train, config), *vectors)
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=data.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> "LanguageModelTask":
        return cls(Tokenizer.load(vocabulary / SHARED), config)

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(vocabulary / SHARED)

    def model_fields(self) -> dict[str, int]:
        return {"vocab": self.tokenizer.vocab_size}

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; a word without a vector keeps its random one."""
        if self.word_vectors is not None:
            self.word_vectors.put_into(model, "embedding.tokens.weight", self.config)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """The given vectors, read when first asked for."""
        path = self.config.tokenizer.vectors
        return WordVectors.read(path, self.tokenizer) if path else None

    def loss(self, model: Any, batch: WindowBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the tokens that follow, and their number."""
        return token_loss(model, _inputs(batch), batch.targets, batch.mask, smoothing=smoothing)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Loss, perplexity and bits per byte of all the text; with `n_samples`, a few places gone on from."""
        assert isinstance(examples, WindowExamples)
        loss, *others = self.scores(model, examples)
        samples = self._samples(model, examples, decoding) if n_samples and can_decode(model) else ()
        return Validation(loss=loss.value, scores={score.name: score.value for score in others}, samples=samples)

    def read(self, files: Sequence[str], data: DataConfig, *, progress: Progress) -> WindowExamples:
        """Read text to be scored, as `data` says, and encode it."""
        corpus = encode_documents(files, data, self.tokenizer, progress=progress)
        return self.examples(corpus, files)

    def scores(
        self, model: nn.Module, text: WindowExamples, *, progress: Callable[[int], None] = lambda done: None
    ) -> list[Score]:
        """Score all of a text by loss, perplexity and, where nothing of it is lost, bits per byte."""
        total, n_tokens = summed_loss(
            partial(self.loss, model, smoothing=0.0), _batches(model, text), progress=progress
        )
        n_bytes = text.corpus.facts["n_bytes"] if self.keeps(text) else None
        return text_scores(total, n_tokens=int(n_tokens), n_bytes=n_bytes)

    def losses(
        self, model: nn.Module, text: WindowExamples, *, progress: Callable[[int], None] = lambda done: None
    ) -> npt.NDArray[np.float64]:
        """The cross entropy of each token of a text but the first, in their order."""
        found: list[Tensor] = []
        n_tokens = 0
        with torch.inference_mode():
            for batch in _batches(model, text):
                found.append(token_losses(model, _inputs(batch), batch.targets, batch.mask).cpu().double())
                n_tokens += len(found[-1])
                progress(n_tokens)
        return torch.cat(found).numpy()

    def keeps(self, text: WindowExamples) -> bool:
        """Whether the tokens hold all of a text: what is lost costs nothing, and its bytes would flatter."""
        return self.tokenizer.kind != "words" and not text.corpus.facts["n_unknown"]

    def notes(self, text: WindowExamples) -> tuple[str, ...]:
        """What a reader of a text's scores should know."""
        notes = [f"Left out: {sentence}." for sentence in bad_rows_of(text.corpus, text.files).sentences()]
        n_unknown = text.corpus.facts["n_unknown"]
        if n_unknown:
            of_all = f"{n_unknown:,} of {text.n_predicted:,} tokens"
            notes.append(f"{of_all} are unknown to the vocabulary: there are no bits per byte.")
        return tuple(notes)

    def predict(self, model: nn.Module, inputs: Sequence[str], options: GenerationOptions) -> Results[Continuation]:
        """Go on from prompts; an empty one begins a document."""
        found = self.continuer(model, options).generate(inputs, progress=partial(options.progress, "writing"))
        return Results(found)

    def continuer(self, model: nn.Module, options: GenerationOptions) -> Continuer:
        """What goes on from prompts, with these options."""
        decoding = options.decoding or self.config.decoding
        return Continuer(self.tokenizer, model, decoding, banned=options.banned, seed=options.seed)

    def evaluate(self, model: nn.Module, files: Sequence[str], options: GenerationOptions) -> Evaluation:
        """Read a text: its loss, perplexity and bits per byte."""
        data = options.data or self.config.data
        text = self.read(files, data, progress=options.progress)
        progress = partial(options.progress, "reading")
        if options.paired:
            return self._paired(model, text, data, progress)
        began = time.perf_counter()
        scores = self.scores(model, text, progress=progress)
        seconds = time.perf_counter() - began
        count, notes = text.n_predicted, self.notes(text)
        return Evaluation(scores=tuple(scores), count=count, unit=self.spec.unit, seconds=seconds, notes=notes)

    def _paired(
        self, model: nn.Module, text: WindowExamples, data: DataConfig, progress: Callable[[int], None]
    ) -> Evaluation:
        """The same with what each document, or each stretch of the text, adds to the scores.

        A loss per token compares runs of one vocabulary only, which the signature therefore names.
        """
        costs = text_costs(text, data, self.tokenizer, partial(self.losses, model, text, progress=progress))
        n_bytes = costs.n_bytes if self.keeps(text) else None
        vocabulary = hashlib.sha256(self.tokenizer.to_json().encode()).hexdigest()[:8]
        statistics = [
            replace(one, signature=f"{one.signature}|vocabulary:{vocabulary}")
            if one.metric != "bits_per_byte"
            else replace(one, signature=f"bytes:{costs.n_bytes.sum():.0f}")
            for one in cross_entropy_statistics(costs.nats, costs.n_tokens, n_bytes)
        ]
        return Evaluation(
            scores=tuple(one.score for one in statistics),
            statistics=tuple(statistics),
            paired_unit=costs.unit,
            throughput=("bytes", int(costs.n_bytes.sum())),
            count=text.n_predicted,
            unit=self.spec.unit,
            seconds=costs.seconds,
            notes=self.notes(text),
        )

    def examples(self, corpus: Any, files: Sequence[str]) -> WindowExamples:
        """Windows over an encoded corpus."""
        return WindowExamples(
            corpus,
            files,
            end_id=self.tokenizer.end_id,
            context=context_length(self.config),
            batch_tokens=self.config.training.batch_tokens,
            seed=self.config.seed,
        )

    def _samples(
        self, model: nn.Module, examples: WindowExamples, decoding: DecodingConfig
    ) -> tuple[tuple[str, str, str], ...]:
        """Go on from some places of the text: what was given, what followed, what was written."""
        length = min(SAMPLE_TOKENS, examples.context)
        starts = range(1, max(2, examples.n_predicted - 2 * length), max(1, examples.n_predicted // N_SAMPLES))
        pieces = [examples.stream[start : start + 2 * length].tolist() for start in starts][:N_SAMPLES]
        settings = replace(decoding, n_best=1, max_length=length)
        continuer = self.continuer(model, GenerationOptions(decoding=settings))
        found = continuer.continuations([piece[:length] for piece in pieces])
        decode = self.tokenizer.decode
        return tuple(
            (decode(piece[:length]), decode(piece[length:]), written.text)
            for piece, (written, *_) in zip(pieces, found, strict=True)
        )


def _inputs(batch: WindowBatch) -> tuple[Tensor, ...]:
    """What a model reads; a network of the caller's own need not know of documents where there is one."""
    return (batch.ids,) if batch.documents is None else (batch.ids, batch.documents)


def _batches(model: nn.Module, text: WindowExamples) -> Iterator[WindowBatch]:
    """All of a text, in its order, where the model is."""
    device = device_of(model)
    return (text.batch(indices, device) for indices in text.fixed_order())


def context_length(config: RunConfig) -> int:
    """How many tokens a window has: the model's context; of a network of the caller's own, the longest allowed."""
    if not config.model.preset:
        return config.data.max_length
    context = {**find_preset(config.model.preset).fields, **config.model.fields}.get("context")
    if not isinstance(context, int) or context < 1:
        raise ConfigError(f"model.context is a whole number of at least 1, not {context!r}.", "Correct model.context.")
    return context


def _facts(data: DocumentDataset, train: WindowExamples, config: RunConfig) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of the data."""
    counts = data.train.facts
    valid = ", ".join(filter(None, (f"{data.valid.facts['n_tokens'] - 1:,} tokens", data.held_out)))
    documents = f"{counts['n_documents']:,} document{'s' if counts['n_documents'] != 1 else ''}"
    facts = [
        ("training", f"{train.n_predicted:,} tokens, {documents}, {counts['n_bytes']:,} bytes"),
        ("validation", valid),
        ("vocabulary", f"{data.tokenizer.vocab_size:,} tokens ({data.tokenizer.kind})"),
        ("batches", f"{len(train.order(0)):,} per epoch, {train.batch_size:,} windows of {train.context:,} tokens"),
    ]
    facts += data.notes
    if not data.tokenizer.lossless:
        facts.append(("tokenizer loss", data.tokenizer.loss))
    return tuple(facts)
