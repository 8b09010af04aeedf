"""Held-out examples, on which a changed network is measured example by example: the loss, and the task's score.

The examples and their batches are the same for every measurement, so that two of them can be paired.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import DataError, UsageError
from regard.evaluation.generated_text import text_statistics
from regard.evaluation.perplexity import cross_entropy_statistics
from regard.evaluation.sufficient_statistics import Floats, Statistics, share_statistics
from regard.tasks.baseline_inputs import evenly
from regard.tasks.offers import can_decode, device_of, max_length
from regard.tasks.options import GenerationOptions, Options
from regard.tasks.task import Examples, Indices, UsableTask


@runtime_checkable
class Generating(Protocol):
    """Examples for which texts are generated."""

    def inputs(self, indices: Indices) -> Sequence[Any]:
        """Some of them as `predict` takes them."""
        ...

    def references(self, indices: Indices) -> list[list[str]]:
        """What is to be generated, in one list or several."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """So many examples of a test set, in batches of like lengths, and the task whose they are."""

    task: UsableTask[Any]
    options: Options
    examples: Examples
    batches: tuple[Indices, ...]

    @classmethod
    def read(
        cls, task: UsableTask[Any], model: nn.Module, options: Options, files: Sequence[str], *, n_examples: int
    ) -> Self:
        """Read a test set, and take examples in equal distances; 0 for all. What is too long for the model is left out."""
        if isinstance(options, GenerationOptions):
            options = replace(options, engine=None)  # no other engine knows of a changed network
        examples = task.read(files, options)
        numbers = np.sort(np.concatenate([np.empty(0, np.int64), *examples.fixed_order()])).astype(np.int64)
        lengths, limit = getattr(examples, "lengths", None), max_length(model)
        if lengths is not None and limit is not None:
            numbers = numbers[(lengths[numbers].reshape(len(numbers), -1) <= limit).all(1)]
        chosen = numbers[evenly(len(numbers), n_examples or len(numbers))]
        if not len(chosen):
            raise DataError(
                f"{', '.join(files)}: there is no example to measure on.", "Give a test set that the model can read."
            )
        return cls(task=task, options=options, examples=examples, batches=tuple(_batches(examples, chosen)))

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @torch.inference_mode()
    def statistics(self, model: nn.Module, *, score: bool) -> list[Statistics]:
        """What each example adds to the loss of a model and, if asked for, to the score of the task."""
        device = device_of(model)
        costs = [self.task.costs(model, self.examples.batch(numbers, device)) for numbers in self.batches]
        joined = np.concatenate(costs)
        found: list[Statistics] = [cross_entropy_statistics(joined[:, 0], joined[:, 1])[0]]
        return [*found, self._score(model, joined)] if score else found

    def _score(self, model: nn.Module, costs: Floats) -> Statistics:
        """BLEU of what is generated; else the accuracy."""
        if isinstance(self.examples, Generating) and can_decode(model):
            numbers = np.concatenate(self.batches)
            outputs = self.task.predict(model, self.examples.inputs(numbers), self.options)
            texts = [str(getattr(one, "text", "")) for one in outputs]
            settings = {name: getattr(self.options, name) for name in ("tokenize", "lowercase")}
            return text_statistics(texts, self.examples.references(numbers), metrics=["bleu"], **settings)[0]
        if costs.shape[1] < 3:
            raise UsageError(
                f"The task '{self.task.spec.name}' has no score beside its loss that ablation could change.",
                "Measure the loss.",
            )
        return share_statistics("accuracy", costs[:, 2], costs[:, -1] if costs.shape[1] > 3 else costs[:, 1], unit="")

    def fingerprint(self, model: nn.Module) -> str:
        """What a measurement depends on: the weights, the examples, and how output is searched for."""
        digest = hashlib.sha256()
        for name, weight in model.state_dict().items():
            digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
            digest.update(weight.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        for numbers in self.batches:
            batch = self.examples.batch(numbers, torch.device("cpu"))
            for fact in vars(batch).values():
                digest.update(_content(fact))
            if isinstance(self.examples, Generating):
                digest.update(repr(self.examples.references(numbers)).encode())
        if isinstance(self.options, GenerationOptions):
            searched = self.options.decoding or self.task.config.decoding
            digest.update(repr((searched, self.options.seed, self.options.banned)).encode())
        return digest.hexdigest()


def _content(fact: object) -> bytes:
    if isinstance(fact, Tensor):
        fact = fact.cpu().numpy()
    if isinstance(fact, np.ndarray):
        return repr((fact.shape, fact.dtype)).encode() + fact.tobytes()
    return repr(fact).encode()


def _batches(examples: Examples, chosen: Indices) -> list[Indices]:
    """The chosen examples in the order of the fixed batches, joined again up to the size of the largest of these."""
    order = examples.fixed_order()
    most = max(map(examples.size, order))
    found: list[Indices] = []
    for own in (numbers[np.isin(numbers, chosen)] for numbers in order):
        if found and len(own) and examples.size(together := np.concatenate((found[-1], own))) <= most:
            found[-1] = together
        elif len(own):
            found.append(own)
    return found
