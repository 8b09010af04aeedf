"""Translation: sentence pairs, cross entropy of the target's tokens (teacher forcing), beam search, BLEU.

Works with any model that takes (source, lengths, target) and returns logits; to translate it needs `start` and `step`
(`tasks/offers.py`). How lines become translations is in `translator.py`.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data import batching
from regard.data.formats.rows import Bad
from regard.data.pairs.dataset import Vocabulary, prepare_pairs
from regard.data.pairs.rows import Pair, header_columns, read_pairs
from regard.data.pipeline.bad_rows import BadRows
from regard.errors import ConfigError, UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.copied_source import CopiedSource
from regard.evaluation.baselines.dictionary import UNKNOWN, Dictionary
from regard.evaluation.generated_text import check_metrics, check_tokenizer, text_statistics
from regard.evaluation.lengths import buckets_by_length, length_table
from regard.evaluation.perplexity import perplexity
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.models.presets import FOR_MANY_PAIRS, NARROW, find_preset
from regard.tasks.baseline_inputs import bounded_rows, sequences
from regard.tasks.baselines import scored_baseline
from regard.tasks.batches import fixed_batches, mean_loss
from regard.tasks.evaluation import Evaluation, Generated, Section
from regard.tasks.offers import can_decode, device_of, max_length
from regard.tasks.options import Progress
from regard.tasks.probe_example import ProbeExample, probe_rows
from regard.tasks.reading import Reading
from regard.tasks.results import Results, one_line
from regard.tasks.spec import TASKS
from regard.tasks.task import N_SAMPLES, Examples, Prepared, Validation
from regard.tasks.token_loss import row_costs, token_loss
from regard.tasks.translation.examples import PairBatch, PairExamples, PairList, pair_batch, pair_facts
from regard.tasks.translation.lengths import UsualSource
from regard.tasks.translation.translator import LineTranslator, Translation, TranslationOptions
from regard.tasks.word_vectors import WordVectors

BY_LENGTH = ("bleu", "chrf")
MOST_LINKS = 2_000_000  # between the tokens of pairs that the dictionary is learned from: a few seconds
MANY = 100_000  # pairs; fewer need more dropout
LONGEST = 60  # tokens of such a pair, where there are shorter ones


class TranslationTask:
    """The task of translation over one vocabulary."""

    spec: ClassVar = TASKS["translate"]
    options: ClassVar = TranslationOptions
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]] = (CopiedSource, Dictionary)

    def __init__(self, vocabulary: Vocabulary, config: RunConfig, *, usual: UsualSource | None = None) -> None:
        self.vocabulary = vocabulary
        self.config = config
        self.usual = usual or UsualSource()

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Vocabulary.load(vocabulary) if vocabulary is not None else None
        data = prepare_pairs(config.data, config.tokenizer, vocabulary=given, progress=progress)
        train, valid = (
            PairExamples(corpus, files, data.vocabulary, batch_tokens=config.training.batch_tokens, seed=config.seed)
            for corpus, files in ((data.train, data.train_files), (data.valid, data.valid_files))
        )
        task = cls(data.vocabulary, config, usual=UsualSource.of(data.train, data.vocabulary.source))
        vectors = [("vectors", found.about(f"{side} words")) for side, found in task.word_vectors.items()]
        columns = header_columns(config.data.train, source=config.data.source, target=config.data.target)
        facts = (*pair_facts(data, train), *columns, *vectors)
        suited = task.suited_fields(len(train))
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=data.hashes, suited=suited)

    def suited_fields(self, n_pairs: int) -> dict[str, Any]:
        """Fields of a model that suit so many pairs, where nobody chose them; measured in docs/LOG.md."""
        fields = find_preset(self.config.model.preset).fields if self.config.model.preset else {}
        is_small = 0 < int(fields.get("d_model", 0)) <= NARROW
        many = n_pairs >= MANY and is_small and fields.get("dropout", 0) > FOR_MANY_PAIRS["dropout"]
        return dict(FOR_MANY_PAIRS) if many else {}

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> "TranslationTask":
        return cls(Vocabulary.load(vocabulary), config, usual=UsualSource.load(vocabulary))

    def save(self, vocabulary: Path) -> None:
        self.vocabulary.save(vocabulary)
        self.usual.save(vocabulary)

    def model_fields(self) -> dict[str, int]:
        source, target = self.vocabulary.source.vocab_size, self.vocabulary.target.vocab_size
        return {"source_vocab": source, "target_vocab": target}

    @property
    def n_given(self) -> int:
        """How many tokens stand in front of every text, of a source or a target."""
        return max(len(self.vocabulary.source.prefix), len(self.vocabulary.target.prefix))

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embeddings; a word without a vector keeps its random one.

        Learned positions must reach as far as the longest example may, its end token counted.
        """
        longest, limit = self.config.data.max_length, max_length(model)
        if limit is not None and longest + self.n_given >= limit:
            around = "one of them for the end" if not self.n_given else f"{1 + self.n_given} of them around a text"
            raise ConfigError(
                f"data.max_length is {longest:,}, but the model has positions for {limit:,} tokens, {around}.",
                f"Set data.max_length={limit - 1 - self.n_given}, or model.max_positions={longest + 1 + self.n_given}.",
            )
        for side, vectors in self.word_vectors.items():
            vectors.put_into(model, f"{side}_embedding.tokens.weight", self.config)

    @cached_property
    def word_vectors(self) -> dict[str, WordVectors]:
        """The given vectors of each side, read when first asked for."""
        path = self.config.tokenizer.vectors
        if not path:
            return {}
        source = WordVectors.read(path, self.vocabulary.source)
        target = source if self.vocabulary.shared else WordVectors.read(path, self.vocabulary.target)
        return {"source": source, "target": target}

    def loss(self, model: Any, batch: PairBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the target's tokens, and their number."""
        inputs, targets, mask = batch.teacher_forced()
        return token_loss(model, inputs, targets, mask, smoothing=smoothing)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Loss and perplexity on all pairs, BLEU and chrF on the first `n_samples`, decoded greedily."""
        assert isinstance(examples, PairExamples)
        loss = mean_loss(partial(self.loss, model, smoothing=0.0), fixed_batches(model, examples))
        scores = {"perplexity": perplexity(loss).value}
        samples: tuple[tuple[str, str, str], ...] = ()
        n_samples = len(examples) if n_samples < 0 else n_samples
        if n_samples and can_decode(model):
            sources, references = examples.texts(n_samples)
            greedy = TranslationOptions(decoding=replace(decoding, beam=1, n_best=1, sample=False))
            outputs = [one.text for one in self.predict(model, sources, greedy)]
            found = text_statistics(outputs, references, metrics=("bleu", "chrf"))
            scores |= {one.metric: one.value for one in found}
            samples = tuple(zip(sources, references, outputs, strict=True))[:N_SAMPLES]
        return Validation(loss=loss, scores=scores, samples=samples)

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        return self.vocabulary.source.vocab_size, self.vocabulary.target.vocab_size

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The source as it is, and a dictionary."""
        assert isinstance(train, PairExamples)
        sources, targets = train.corpus.ragged["source"], train.corpus.ragged["target"]
        short = np.flatnonzero(train.lengths.max(axis=1) <= max(LONGEST, int(train.lengths.max(axis=1).min())))
        rows = short[bounded_rows(np.prod(train.lengths[short], axis=1, dtype=np.int64), MOST_LINKS)]
        n_sources, n_targets = self.baseline_sizes
        pairs = sequences(sources, rows), sequences(targets, rows)
        return [
            CopiedSource(np.array([n_targets])),
            Dictionary.fit(*pairs, n_sources=n_sources, n_targets=n_targets),
        ]

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """BLEU and chrF of the first `n_samples` pairs."""
        assert isinstance(examples, PairExamples)
        sources, references = examples.texts(len(examples) if n_samples < 0 else n_samples)
        if not sources:
            return []
        found = text_statistics(self.baseline_outputs(baseline, sources), references, metrics=BY_LENGTH)
        return [one.score for one in found]

    def baseline_outputs(self, baseline: Baseline, sources: Sequence[str]) -> list[str]:
        """What a baseline writes for sources; a token without a translation stays where both sides have the same tokens."""
        if isinstance(baseline, CopiedSource):
            return list(sources)
        assert isinstance(baseline, Dictionary)
        outputs = []
        for ids in map(np.array, self.vocabulary.source.encode_batch([text.strip() for text in sources])):
            written = baseline.translate(ids)
            if self.vocabulary.shared:
                written = np.where(written == UNKNOWN, ids, written)
            outputs.append(self.vocabulary.target.decode(written[written != UNKNOWN].tolist()))
        return outputs

    def predict(self, model: nn.Module, inputs: Sequence[str], options: TranslationOptions) -> Results[Translation]:
        """Translate lines with one model, or with the ensemble of the options; see `LineTranslator`."""
        translator = self._translator(model, options)
        return Results(translator.translate(inputs, progress=partial(options.progress, "translating")))

    def reading(self, model: nn.Module, text: str, result: Translation, options: TranslationOptions) -> Reading:
        """A text of one part and its best translation, to look into."""
        if result.n_parts > 1:
            raise UsageError(
                f"The text was translated in {result.n_parts} parts, and one is looked into at a time.",
                "Give one sentence.",
            )
        return self._translator(model, options).reading(text, result.outputs[0])

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """Some pairs, to be traced while the model learns."""
        assert isinstance(examples, PairExamples | PairList)
        rows = np.array(probe_rows(examples.lengths, n), np.int64)
        pairs = zip(examples.inputs(rows), examples.references(rows)[0], strict=True)
        return [ProbeExample(title=source, input=source, expected=target) for source, target in pairs]

    def _translator(self, model: nn.Module, options: TranslationOptions) -> LineTranslator:
        decoding, limit = options.decoding or self.config.decoding, self.config.data.max_length
        models = [model, *options.ensemble]
        return LineTranslator(self.vocabulary, models, decoding, options, max_length=limit, usual=self.usual)

    def read(self, files: Sequence[str], options: TranslationOptions) -> PairList:
        """Read pairs to be scored; bad ones are left out."""
        rows, _ = read_test_set(files, options.data or self.config.data)
        pairs = [row for row in rows if isinstance(row, Pair)]
        return PairList(pairs, self.vocabulary, batch_tokens=self.config.training.batch_tokens)

    def costs(self, model: Any, batch: PairBatch) -> Floats:
        """The loss of each target's tokens, and their number: (B, 2)."""
        return row_costs(model, *batch.teacher_forced())

    def evaluate(self, model: nn.Module, files: Sequence[str], options: TranslationOptions) -> Evaluation:
        """Translate a test set: BLEU, chrF and TER, or other metrics, and the perplexity of the references."""
        check_metrics(options.metrics)
        check_tokenizer(options.tokenize)
        data = options.data or self.config.data
        rows, left_out = read_test_set(files, data)
        pairs = [row for row in rows if isinstance(row, Pair)]
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        began = time.perf_counter()
        predictions = self.predict(model, sources, options)
        seconds = time.perf_counter() - began
        outputs = [one.text for one in predictions]
        count = partial(text_statistics, references=references, tokenize=options.tokenize, lowercase=options.lowercase)
        statistics = count(outputs, metrics=options.metrics)
        sections = []
        if options.by_length:
            buckets = buckets_by_length(sources, count(outputs, metrics=BY_LENGTH))
            sections = [Section(name="by_length", table=length_table(buckets), data=[one.to_json() for one in buckets])]
        loss, n_pairs = self.reference_loss(model, sources, references)
        n_long = len(pairs) - n_pairs
        notes = [f"Left out: {sentence}." for sentence in left_out.sentences()]
        if n_long:
            notes.append(f"The perplexity is without {n_long:,} pairs that are longer than the model's positions.")
        return Evaluation(
            scores=(*(one.score for one in statistics), *([perplexity(loss)] if n_pairs else [])),
            statistics=tuple(statistics),
            count=len(pairs),
            unit=self.spec.unit,
            seconds=seconds,
            sections=tuple(sections),
            predictions=Results(predictions),
            expected=tuple(references),
            generated=Generated(sources=tuple(sources), references=(tuple(references),), outputs=tuple(outputs)),
            output=tuple(aligned_lines(rows, outputs)),
            baselines=tuple(
                scored_baseline(one, [found.score for found in count(written, metrics=options.metrics)])
                for one in options.baselines
                for written in [self.baseline_outputs(one, sources)]
            ),
            notes=tuple(notes),
        )

    def reference_loss(self, model: nn.Module, sources: Sequence[str], targets: Sequence[str]) -> tuple[float, int]:
        """The mean cross entropy of the targets' tokens, their end tokens among them, in nats, and over how many pairs.

        Pairs that are longer than the model's positions have none.
        """
        device, limit = device_of(model), max_length(model) or sys.maxsize
        encoded = zip(
            self.vocabulary.source.encode_batch(sources), self.vocabulary.target.encode_batch(targets), strict=True
        )
        around = 1 + self.n_given
        pairs = [(source, target) for source, target in encoded if max(len(source), len(target)) + around <= limit]
        lengths = np.array([[len(source), len(target)] for source, target in pairs]).reshape(-1, 2) + around
        batches = (
            pair_batch([pairs[i][0] for i in rows], [pairs[i][1] for i in rows], self.vocabulary, device)
            for rows in batching.fixed_batches(lengths, self.config.training.batch_tokens)
        )
        return mean_loss(partial(self.loss, model, smoothing=0.0), batches), len(pairs)


def read_test_set(files: Sequence[str], data: DataConfig) -> tuple[list[Pair | Bad], BadRows]:
    """Read pairs to score on, bad ones in their places, and which are bad; DataError if these are too many."""
    bad_rows = BadRows("pair")
    rows = list(read_pairs(files, source=data.source, target=data.target))
    for _ in bad_rows.good(rows):
        pass
    bad_rows.enforce(data.on_bad, files)
    return rows, bad_rows


def aligned_lines(rows: Sequence[Pair | Bad], outputs: Sequence[str]) -> Iterator[str]:
    """A line for each row, so that lines stay aligned with the test set: its translation, or nothing for a bad one."""
    waiting = map(one_line, outputs)
    return ("" if isinstance(row, Bad) else next(waiting) for row in rows)
