"""Tasks of imported networks: joined from what came along with the weights, where nothing is learned from files."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.config import RunConfig
from regard.data.images.decoding import ImageShape
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer import Tokenizer
from regard.tasks import find_task
from regard.tasks.images.preprocessing import ImageTable
from regard.tasks.labelling.labels import LabelTable
from regard.tasks.task import UsableTask


def text_task(
    config: RunConfig,
    source: Tokenizer,
    target: Tokenizer,
    *,
    labels: Sequence[str],
    pooling: str = "mean",
    normalised: bool = False,
) -> UsableTask[Any]:
    """The task that a run's settings name, over text; source and target are one where nothing sets them apart.

    pooling, normalised: of the vectors of texts, where texts are compared
    """
    kind: Any = find_task(config.task)
    task: UsableTask[Any]
    if config.task == "translate":
        task = kind(Vocabulary(source, target), config)
    elif kind.spec.reads == "table" or config.task == "tag":
        table = LabelTable(labels=tuple(labels), counts=_unknown(labels))
        if config.task == "similarity":
            table = replace(table, pairs=True, pooling=pooling, normalised=normalised)
        task = kind(source, config, table)
    else:
        task = kind(source, config)
    return task


def image_task(
    config: RunConfig, size: int, *, mean: tuple[float, ...], deviation: tuple[float, ...], labels: Sequence[str]
) -> UsableTask[Any]:
    """The task that a run's settings name, over images of one size, whose pixels are normalised channel by channel."""
    kind: Any = find_task(config.task)
    shape = ImageShape(size, len(mean))
    table = ImageTable(shape=shape, mean=mean, deviation=deviation, labels=tuple(labels), counts=_unknown(labels))
    task: UsableTask[Any] = kind(config, table)
    return task


def _unknown(labels: Sequence[str]) -> tuple[int, ...]:
    """How often each label was learned from: nobody told."""
    return (0,) * len(labels)
