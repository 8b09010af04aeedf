"""Tasks of runs that are exported: what stands beside the network, so that other programs can use it.

Numbers that a network learned as (number - offset) / scale are put back into its last layer, so that it gives the numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.data.text.tokenizer import Tokenizer
from regard.tasks.images.preprocessing import ImageTable
from regard.tasks.labelling.labels import LabelTable
from regard.tasks.task import UsableTask
from regard.tasks.translation.task import TranslationTask

_HEAD = "head.output"


@dataclass(frozen=True, kw_only=True)
class TaskParts:
    """source, target: the tokenizers, one and the same but for some translators; None where there is no text.

    labels: of classes or tags; images: how pixels become inputs; weights: the network's, with numbers in the data's unit
    longest, unit, pooling, normalised: as an `Exportable` has them
    """

    source: Tokenizer | None
    target: Tokenizer | None
    labels: tuple[str, ...]
    longest: int | None
    unit: tuple[float, float]
    pooling: str
    normalised: bool
    images: ImageTable | None
    weights: Mapping[str, Tensor]


def parts_of(task: UsableTask[Any], weights: Mapping[str, Tensor]) -> TaskParts:
    """Take a task apart."""
    table = getattr(task, "table", None)
    if isinstance(task, TranslationTask):
        source, target = task.vocabulary.source, task.vocabulary.target
    else:
        source = target = getattr(task, "tokenizer", None)
    if isinstance(table, LabelTable) and task.spec.name == "regress":
        weights = _in_the_datas_unit(weights, table)
    compared = table if isinstance(table, LabelTable) and task.spec.name == "similarity" else LabelTable()
    return TaskParts(
        source=source,
        target=target,
        labels=table.labels if isinstance(table, LabelTable | ImageTable) else (),
        longest=getattr(task, "longest", None),
        unit=(compared.offset, compared.scale),
        pooling=compared.pooling,
        normalised=compared.normalised,
        images=table if isinstance(table, ImageTable) else None,
        weights=weights,
    )


def _in_the_datas_unit(weights: Mapping[str, Tensor], table: LabelTable) -> dict[str, Tensor]:
    weight, bias = f"{_HEAD}.weight", f"{_HEAD}.bias"
    return {**weights, weight: weights[weight] * table.scale, bias: weights[bias] * table.scale + table.offset}
