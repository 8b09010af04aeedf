"""Masked language modelling: some tokens of a text are hidden, and an encoder predicts them from all others (BERT).

Works with any model that offers `encode(ids, lengths)` and a head of words (`transform` and an `output` layer), or plainly
returns logits (B, T, V) for (ids, lengths). BERT's second task, whether a sentence follows another, is left out: models are
no worse without it (Liu et al. 2019, 4.2).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import DecodingConfig
from regard.data.text.masking import MASKED, REPLACED, Choices, mask_tokens
from regard.data.text.roles import MASK
from regard.decoding.batches import run_in_batches
from regard.errors import UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.neighbours import Neighbours, neighbours
from regard.evaluation.classification import share_correct
from regard.evaluation.perplexity import text_scores
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.parts.losses import CHUNK_ELEMENTS, output_cross_entropy
from regard.tasks.baseline_inputs import MOST_TOKENS, stretches
from regard.tasks.batches import padded
from regard.tasks.denoising.base import HiddenTextTask, batches
from regard.tasks.denoising.examples import SegmentBatch, SegmentExamples
from regard.tasks.denoising.fill_mask import (
    Blanks,
    Filled,
    Guess,
    find_blanks,
    list_texts,
    most_tokens,
    only_window,
    show_blanks,
)
from regard.tasks.offers import device_of, has_masked_head
from regard.tasks.options import Count, Options, no_count
from regard.tasks.reading import Reading, read_positions, token_label
from regard.tasks.results import Results
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices, Sample

Likeliest = list[tuple[int, float]]  # tokens for a blank, and how likely each is, the likeliest first
Inputs = tuple[Tensor, Tensor, Tensor]  # ids (B, T), lengths (B,), and the places (N,) among B·T of what is hidden


@dataclass(frozen=True, kw_only=True)
class MaskOptions(Options):
    """How a masked language model is used; top: how many guesses for each blank."""

    top: int = 5


class MaskedLMTask(HiddenTextTask):
    """The task of masked language modelling."""

    spec: ClassVar = TASKS["mask"]
    options: ClassVar = MaskOptions
    specials = (MASK,)
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]] = (Neighbours,)

    def model_fields(self) -> dict[str, int | str]:
        return {**super().model_fields(), "head": self.spec.head}

    def task_facts(self) -> list[tuple[str, str]]:
        shares = f"{MASKED:.0%} of them as {MASK}, {REPLACED:.0%} as any other token, the rest as they are"
        return [("hidden", f"{self.config.corruption.rate:.0%} of the tokens, drawn anew each time: {shares}")]

    @cached_property
    def mask_id(self) -> int:
        return self.tokenizer.id_of(MASK)

    @cached_property
    def ordinary(self) -> Choices:
        """Which tokens (V,) stand for text."""
        ordinary = np.ones(self.tokenizer.vocab_size, dtype=np.bool_)
        ordinary[list(self.tokenizer.specials.values())] = False
        ordinary[self.tokenizer.n_tokens :] = False
        return ordinary

    def hide(self, batch: SegmentBatch, *, anew: bool) -> tuple[Indices, Choices]:
        """Hide tokens of a batch: what the model sees, and where something is hidden, both (B, T)."""
        shown, hidden = batch.ids.copy(), np.zeros(batch.ids.shape, np.bool_)
        for rows, random in batch.draws(anew=anew):
            shown[rows], hidden[rows] = mask_tokens(
                batch.ids[rows],
                ordinary=self.ordinary,
                rate=self.config.corruption.rate,
                mask_id=self.mask_id,
                random=random,
            )
        return shown, hidden

    def loss(self, model: Any, batch: SegmentBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the hidden tokens, and their number."""
        inputs, targets = self._inputs(batch, *self.hide(batch, anew=model.training))
        if has_masked_head(model):
            states, output = _states(model, *inputs), model.head.output
            loss = output_cross_entropy(states, output.weight, output.bias, targets, smoothing=smoothing)
            return loss, len(targets)
        logits = _logits(model, *inputs)
        return F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum"), len(targets)

    def scores(self, model: nn.Module, text: SegmentExamples, *, progress: Count = no_count) -> list[Score]:
        """Score the hidden tokens by loss, perplexity, and the share of them that is predicted right."""
        total, n_hidden, n_correct = 0.0, 0, 0
        with torch.inference_mode():
            for batch in batches(model, text, progress=progress):
                inputs, targets = self._inputs(batch, *self.hide(batch, anew=False))
                for logits, wanted in _in_chunks(model, inputs, targets):
                    total += float(F.cross_entropy(logits, wanted, reduction="sum"))
                    n_correct += int((logits.argmax(dim=1) == wanted).sum())
                n_hidden += len(targets)
        accuracy = share_correct(n_correct, n_hidden, unit="tokens", name="masked_accuracy")
        return self.signed([*text_scores(total, n_tokens=n_hidden, n_bytes=None), accuracy])

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """Each token by its neighbours."""
        assert isinstance(train, SegmentExamples)
        stream = stretches(train.stream, MOST_TOKENS)
        places = 1 + np.flatnonzero(self.ordinary[stream[1:-1]])
        before = neighbours(stream[None], np.zeros_like(places), places)
        return [Neighbours.fit(stream[places], before, self.tokenizer.vocab_size)]

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """Score the tokens that are hidden from a model, by those that it sees beside them."""
        assert isinstance(examples, SegmentExamples) and isinstance(baseline, Neighbours)
        total, n_hidden, n_correct = 0.0, 0, 0
        for indices in examples.fixed_order():
            batch = examples.batch(indices, torch.device("cpu"))
            shown, hidden = self.hide(batch, anew=False)
            # In the text that was learned from, the end of a document stands also before the next.
            ended = np.where(shown == self.tokenizer.start_id, self.tokenizer.end_id, shown)
            rows, columns = hidden.nonzero()
            before, wanted = neighbours(ended, rows, columns), batch.ids[hidden]
            total += baseline.cross_entropy(wanted, before)
            n_correct += int((baseline.guesses(before) == wanted).sum())
            n_hidden += len(wanted)
        accuracy = share_correct(n_correct, n_hidden, unit="tokens", name="masked_accuracy")
        return self.signed([*text_scores(total, n_tokens=n_hidden, n_bytes=None), accuracy])

    def costs(self, model: Any, batch: SegmentBatch) -> Floats:
        shown, hidden = self.hide(batch, anew=False)
        costs = []
        for logits, wanted in _in_chunks(model, *self._inputs(batch, shown, hidden)):
            losses, correct = F.cross_entropy(logits, wanted, reduction="none"), logits.argmax(dim=1) == wanted
            costs.append(torch.stack((losses.double(), torch.ones_like(losses), correct), dim=1).cpu().numpy())
        found = np.zeros((len(hidden), 3))
        np.add.at(found, hidden.nonzero()[0], np.concatenate(costs))
        return found

    def guesses(self, model: nn.Module, batch: SegmentBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        shown, hidden = self._masked(batch)
        inputs, _ = self._inputs(batch, shown, hidden)
        guessed = _logits(model, *inputs).argmax(dim=1).split(hidden.sum(axis=1).tolist())
        samples = zip(self.blanked(batch), guessed, strict=True)
        return tuple((text, was, self._list(own.tolist())) for (text, was), own in samples)

    def blanked(self, batch: SegmentBatch) -> Iterator[tuple[str, str]]:
        for ids, shown, hidden, length in zip(batch.ids, *self._masked(batch), batch.lengths, strict=True):
            text = show_blanks(shown[1 : length - 1].tolist(), (self.mask_id,), self.tokenizer)
            yield text, self._list(ids[hidden].tolist())

    def _masked(self, batch: SegmentBatch) -> tuple[Indices, Choices]:
        """What is hidden of a batch, all of it as masks: people cannot look for what was replaced."""
        _, hidden = self.hide(batch, anew=False)
        return np.where(hidden, self.mask_id, batch.ids), hidden

    def predict(self, model: nn.Module, inputs: Sequence[str], options: MaskOptions) -> Results[Filled]:
        """Fill the blanks of texts, each with one token: the `top` likeliest for each, and the text with the best."""
        if options.top < 1:
            raise UsageError(f"At least 1 guess is made for each blank, not {options.top}.", "Ask for 1 or more.")
        found = [find_blanks(text, self.tokenizer) for text in inputs]
        most = most_tokens(model, n_specials=2)
        read = [blanks.windows(most) for blanks in found]
        windows = [window for own in read for window in own]
        rows = [self._row(window.blanks) for window in windows]

        def run(numbers: list[int]) -> list[list[Likeliest]]:
            guessed = self._guess(model, [rows[number] for number in numbers], top=options.top)
            return [own[windows[number].own] for number, own in zip(numbers, guessed, strict=True)]

        batch_size, progress = self.config.decoding.batch_size, partial(options.progress, "reading")
        with torch.inference_mode():
            guesses = iter(run_in_batches([len(row) for row in rows], run, batch_size=batch_size, progress=progress))
        return Results(
            self._filled(blanks, [one for window in islice(guesses, len(own)) for one in window], cut=own[0].cut)
            for blanks, own in zip(found, read, strict=True)
        )

    def reading(self, model: Any, text: str, result: Filled, options: MaskOptions) -> Reading:
        """A text with blanks, to look into."""
        ids = self._row(only_window(find_blanks(text, self.tokenizer), most_tokens(model, n_specials=2)))
        inputs, lengths = padded([ids], self.tokenizer.pad_id, device_of(model))
        return Reading(
            forward=lambda: model(inputs, lengths),
            places=(("", read_positions(self.tokenizer, ids, text, name="token")),),
            outputs=partial(token_label, self.tokenizer),
        )

    def _row(self, blanks: Blanks) -> list[int]:
        """What an encoder reads of a text with blanks."""
        return [self.tokenizer.start_id, *blanks.row([self.mask_id] * blanks.count), self.tokenizer.end_id]

    def _guess(self, model: nn.Module, rows: list[list[int]], *, top: int) -> list[list[Likeliest]]:
        """The likeliest tokens for each blank of each row."""
        ids, lengths = padded(rows, self.tokenizer.pad_id, device_of(model))
        places = (ids == self.mask_id).flatten().nonzero()[:, 0]
        probabilities = _logits(model, ids, lengths, places).softmax(dim=1)
        # What no training text hides must not be guessed either.
        ordinary = torch.from_numpy(self.ordinary).to(ids.device)
        values, tokens = (probabilities * ordinary).topk(min(top, int(ordinary.sum())), dim=1)
        found = (list(zip(*one, strict=True)) for one in zip(tokens.tolist(), values.tolist(), strict=True))
        return [list(islice(found, row.count(self.mask_id))) for row in rows]

    def _filled(self, blanks: Blanks, guesses: Sequence[Likeliest], *, cut: bool) -> Filled:
        best = blanks.guesses([[own[0][0]] for own in guesses])
        named = tuple(
            tuple(Guess(text=self.tokenizer.piece_text(token), probability=value) for token, value in own)
            for own in guesses
        )
        return Filled(source=blanks.text, text=blanks.filled(best), guesses=named, cut=cut)

    def _inputs(self, batch: SegmentBatch, shown: Indices, hidden: Choices) -> tuple[Inputs, Tensor]:
        """What a model reads of a batch, and the targets (N,)."""
        arrays = shown, batch.lengths, np.flatnonzero(hidden), batch.ids[hidden]
        ids, lengths, places, targets = (torch.from_numpy(array).to(batch.device) for array in arrays)
        return (ids, lengths, places), targets

    def _list(self, ids: Sequence[int]) -> str:
        return list_texts(map(self.tokenizer.piece_text, ids))


def _states(model: Any, ids: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
    """The states (N, D) of the hidden tokens, ready for the output layer."""
    states: Tensor = model.head.transform(_at(model.encode(ids, lengths), places))
    return states


def _logits(model: Any, ids: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
    """The logits (N, V) of the hidden tokens."""
    if not has_masked_head(model):
        return _at(model(ids, lengths), places).float()
    logits: Tensor = model.head.output(_states(model, ids, lengths, places))
    return logits.float()


def _at(x: Tensor, places: Tensor) -> Tensor:
    """(B, T, D) to (N, D). Not by a mask of booleans: how many there are would have to be waited for."""
    return x.flatten(0, 1).index_select(0, places)


def _in_chunks(model: Any, inputs: Inputs, targets: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the logits (n, V) of some hidden tokens at a time, with their targets (n,)."""
    if not has_masked_head(model):
        yield _logits(model, *inputs), targets
        return
    output = model.head.output
    rows = max(1, CHUNK_ELEMENTS // len(output.weight))
    for states, wanted in zip(_states(model, *inputs).split(rows), targets.split(rows), strict=True):
        yield output(states).float(), wanted
