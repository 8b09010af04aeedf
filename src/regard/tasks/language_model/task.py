"""Language modelling: running text, cross entropy of each next token, perplexity, text that goes on.

Works with any model that offers `states(ids, documents)` and an output layer (or plainly returns logits), and, to generate,
`start` and `step`. How prompts become text is in `continuation.py`.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data.pipeline.corpus import Corpus, Integers
from regard.errors import ConfigError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.kneser_ney import KneserNey, windows
from regard.evaluation.perplexity import cross_entropy_statistics, text_scores
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.models.presets import find_preset
from regard.tasks.baseline_inputs import MOST_TOKENS, ngram_order, stretches
from regard.tasks.baselines import score_baselines
from regard.tasks.batches import fixed_batches, summed_loss
from regard.tasks.evaluation import Evaluation
from regard.tasks.language_model.continuation import Continuation, Continuer, prompt_ids
from regard.tasks.language_model.corpus_loss import text_costs
from regard.tasks.language_model.examples import WindowBatch, WindowExamples
from regard.tasks.offers import can_decode, device_of
from regard.tasks.options import Count, GenerationOptions, no_count
from regard.tasks.probe_example import ProbeExample
from regard.tasks.reading import Reading, step_by_step, token_label, written_positions
from regard.tasks.results import Results
from regard.tasks.running_text import RunningTextTask
from regard.tasks.spec import TASKS
from regard.tasks.task import N_SAMPLES, Examples, Sample
from regard.tasks.token_loss import row_costs, token_loss, token_losses
from regard.tasks.translation.alignment import words_of_ids

SAMPLE_TOKENS = 32  # that are given, and that are written, in each
PROBE_TOKENS = 16  # that are given, and that follow, in each probe example


class LanguageModelTask(RunningTextTask):
    """The task of language modelling."""

    spec: ClassVar = TASKS["language"]
    options: ClassVar = GenerationOptions
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]] = (KneserNey,)

    def loss(self, model: Any, batch: WindowBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the tokens that follow, and their number."""
        return token_loss(model, _inputs(batch), batch.targets, batch.mask, smoothing=smoothing)

    def costs(self, model: Any, batch: WindowBatch) -> Floats:
        """The loss of each window, and its tokens: (B, 2)."""
        return row_costs(model, _inputs(batch), batch.targets, batch.mask)

    def scores(self, model: nn.Module, text: WindowExamples, *, progress: Count = no_count) -> list[Score]:
        """Score all of a text by loss, perplexity and, where nothing of it is lost, bits per byte."""
        total, n_tokens = summed_loss(
            partial(self.loss, model, smoothing=0.0), fixed_batches(model, text), progress=progress
        )
        n_bytes = text.corpus.facts["n_bytes"] if self.keeps(text) else None
        return text_scores(total, n_tokens=int(n_tokens), n_bytes=n_bytes)

    @property
    def ngram_order(self) -> int:
        """How many tokens an n-gram of the baseline has."""
        return ngram_order(self.tokenizer.vocab_size, few=3, many=6)

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """An n-gram model."""
        assert isinstance(train, WindowExamples)
        stream = stretches(train.stream, MOST_TOKENS)
        return [KneserNey.fit(*self._ngrams(train, stream), self.tokenizer.vocab_size)]

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """Score all of a text, in the unit of the model."""
        assert isinstance(examples, WindowExamples) and isinstance(baseline, KneserNey)
        nats = baseline.cross_entropy(*self._ngrams(examples, examples.stream))
        n_bytes = examples.corpus.facts["n_bytes"] if self.keeps(examples) else None
        return text_scores(nats, n_tokens=examples.n_tokens, n_bytes=n_bytes)

    def _ngrams(self, text: WindowExamples, stream: Integers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """What is predicted of a stream, and the tokens before it; see `windows`."""
        tokens, before = windows(stream, self.ngram_order)
        if not text.given:
            return tokens, before
        predicted = ~np.isin(tokens, text.given)
        return tokens[predicted], before[predicted]

    def losses(self, model: nn.Module, text: WindowExamples, *, progress: Count = no_count) -> npt.NDArray[np.float64]:
        """The cross entropy of each token of a text but the first, in their order."""
        found: list[Tensor] = []
        n_tokens = 0
        with torch.inference_mode():
            for batch in fixed_batches(model, text):
                found.append(token_losses(model, _inputs(batch), batch.targets, batch.mask).cpu().double())
                n_tokens += len(found[-1])
                progress(n_tokens)
        return torch.cat(found).numpy()

    def keeps(self, text: WindowExamples) -> bool:
        """Whether the tokens hold all of a text: what is lost costs nothing, and its bytes would flatter."""
        facts = text.corpus.facts
        return self.tokenizer.keeps_spaces and not facts["n_unknown"] and not facts["n_changed"]

    def notes(self, text: WindowExamples) -> tuple[str, ...]:
        """What a reader of a text's scores should know."""
        n_unknown, notes = text.corpus.facts["n_unknown"], list(super().notes(text))
        if n_unknown:
            of_all = f"{n_unknown:,} of {text.n_tokens:,} tokens"
            notes.append(f"{of_all} are unknown to the vocabulary: there are no bits per byte.")
        elif text.corpus.facts["n_changed"]:
            form = self.tokenizer.normalisation
            changed = f"normalised ({form.upper()})" if form != "none" else "changed"
            changed = "lower-cased" if self.tokenizer.lowercase else changed
            notes.append(f"The text is {changed} when it is read: there are no bits per byte of it as it stands.")
        return tuple(notes)

    def predict(self, model: nn.Module, inputs: Sequence[str], options: GenerationOptions) -> Results[Continuation]:
        """Go on from prompts; an empty one begins a document."""
        found = self.continuer(model, options).generate(inputs, progress=partial(options.progress, "writing"))
        return Results(found)

    def reading(self, model: Any, text: str, result: Continuation, options: GenerationOptions) -> Reading:
        """A prompt and its first continuation, to look into; the last of it that fits the model's context."""
        device, output = device_of(model), result.outputs[0]
        prompt = prompt_ids(self.tokenizer, text)
        ids = [*prompt, *output.ids]
        cut = max(0, len(ids) - context_length(self.config))
        reads, writes = ids[cut:], [*ids, *output.written(self.tokenizer)[len(output.ids) :]][cut + 1 :]
        inputs = torch.tensor([reads], device=device)
        n_before = 0 if cut else len(prompt) - len(self.tokenizer.encode(text))
        words = words_of_ids(self.tokenizer, reads[n_before:])
        continuer = self.continuer(model, options)
        return Reading(
            forward=lambda: model(inputs),
            places=(("", written_positions(self.tokenizer, reads, name="token", n_before=n_before, words=words)),),
            outputs=partial(token_label, self.tokenizer),
            writes=tuple(writes),
            n_given=max(0, len(prompt) - 1 - cut),
            cached=lambda ends: step_by_step(model, 1, reads, device, ends),
            watch=lambda beginning: continuer.watch(text, beginning),
            result=lambda decoded: continuer.continuation(text, decoded),
            causal=True,
        )

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """Beginnings of some stretches of the text, to be gone on from while the model learns."""
        assert isinstance(examples, WindowExamples)
        length = min(PROBE_TOKENS, max(1, examples.context // 2))
        stream = examples.stream
        starts = [number * max(0, len(stream) - 2 * length) // n for number in range(n)]
        pieces = [stream[start : start + 2 * length].tolist() for start in dict.fromkeys(starts)]
        # A character that is cut has no text.
        texts = [
            tuple(self.tokenizer.decode(ids).strip("\ufffd") for ids in (own[:length], own[length:])) for own in pieces
        ]
        return [ProbeExample(title=given, input=given, expected=followed) for given, followed in texts]

    def continuer(self, model: nn.Module, options: GenerationOptions) -> Continuer:
        """What goes on from prompts, with these options."""
        return Continuer(self.tokenizer, model, options.decoding or self.config.decoding, options)

    def evaluate(self, model: nn.Module, files: Sequence[str], options: GenerationOptions) -> Evaluation:
        """Read a text: its loss, perplexity and bits per byte."""
        text = self.read(files, options)
        progress = partial(options.progress, "reading")
        if options.paired:
            return self._paired(model, text, options.data or self.config.data, progress)
        began = time.perf_counter()
        scores = self.scores(model, text, progress=progress)
        seconds = time.perf_counter() - began
        return Evaluation(
            scores=tuple(scores),
            count=text.n_tokens,
            unit=self.spec.unit,
            seconds=seconds,
            baselines=score_baselines(self, options.baselines, text),
            notes=self.notes(text),
        )

    def _paired(self, model: nn.Module, text: WindowExamples, data: DataConfig, progress: Count) -> Evaluation:
        """The same with what each document, or each stretch of the text, adds to the scores.

        A loss per token compares runs of one vocabulary only, which the signature therefore names.
        """
        costs = text_costs(text, data, self.tokenizer, partial(self.losses, model, text, progress=progress))
        n_bytes = costs.n_bytes if self.keeps(text) else None
        statistics = [
            replace(one, signature=f"{one.signature}|{self.vocabulary_signature}")
            if one.metric != "bits_per_byte"
            else replace(one, signature=f"bytes:{costs.n_bytes.sum():.0f}")
            for one in cross_entropy_statistics(costs.nats, costs.n_tokens, n_bytes)
        ]
        return Evaluation(
            scores=tuple(one.score for one in statistics),
            statistics=tuple(statistics),
            paired_unit=costs.unit,
            throughput=("bytes", int(costs.n_bytes.sum())),
            count=text.n_tokens,
            unit=self.spec.unit,
            seconds=costs.seconds,
            notes=self.notes(text),
        )

    def examples(self, corpus: Corpus, files: Sequence[str]) -> WindowExamples:
        """Windows over an encoded corpus."""
        return WindowExamples(
            corpus,
            files,
            tokenizer=self.tokenizer,
            context=context_length(self.config),
            batch_tokens=self.config.training.batch_tokens,
            seed=self.config.seed,
        )

    def samples(self, model: nn.Module, text: WindowExamples, decoding: DecodingConfig) -> tuple[Sample, ...]:
        """Go on from some places of the text: what was given, what followed, what was written."""
        if not can_decode(model):
            return ()
        length = min(SAMPLE_TOKENS, text.context)
        starts = range(1, max(2, text.n_tokens - 2 * length), max(1, text.n_tokens // N_SAMPLES))
        pieces = [text.stream[start : start + 2 * length].tolist() for start in starts][:N_SAMPLES]
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


def context_length(config: RunConfig) -> int:
    """How many tokens a window has: the model's context; of a network of the caller's own, the longest allowed."""
    if not config.model.preset:
        return config.data.max_length
    context = {**find_preset(config.model.preset).fields, **config.model.fields}.get("context")
    if not isinstance(context, int) or context < 1:
        raise ConfigError(f"model.context is a whole number of at least 1, not {context!r}.", "Correct model.context.")
    return context
