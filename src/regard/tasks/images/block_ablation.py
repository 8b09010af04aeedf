"""Block ablation: the accuracy of a trained residual network without each of its blocks, alone and cumulatively.

A block that is ablated hands on what it read (Veit et al. 2016, section 4). First each is ablated alone; then one after
another, those first whose lack harmed least.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from torch import nn

from regard.errors import UsageError
from regard.evaluation.classification import accuracy
from regard.evaluation.confusion_matrix import Classes
from regard.evaluation.table import Table
from regard.models.resnet import ResNet
from regard.tasks.evaluation import Section
from regard.tasks.options import Count, no_count


@dataclass(frozen=True, kw_only=True)
class BlockAblation:
    """A block, the accuracy without it alone, and the accuracy without it and all before it in the list, in percent."""

    name: str
    alone: float
    cumulative: float


def ablate_blocks(
    resnet: ResNet,
    predict: Callable[[Count], Classes],
    gold: Classes,
    *,
    progress: Count = no_count,
) -> list[BlockAblation]:
    """Return the blocks that can be ablated, that first whose lack harms least.

    predict:  the class of every image by the network as it is; it is given whom to tell how many of them are done
    gold:     the classes expected
    """
    rounds = itertools.count()

    def without(names: Sequence[str]) -> float:
        before = next(rounds) * len(gold)
        with resnet.without_blocks(names):
            return accuracy(gold, predict(lambda done: progress(before + done))).value

    alone = {name: without([name]) for name, possible in resnet.block_names.items() if possible}
    order = sorted(alone, key=lambda name: -alone[name])
    return [
        BlockAblation(
            name=name, alone=alone[name], cumulative=alone[name] if not number else without(order[: number + 1])
        )
        for number, name in enumerate(order)
    ]


def ablation_section(ablations: Sequence[BlockAblation], *, whole: float) -> Section:
    """The table of an evaluation: the accuracy of the whole network, then without each block."""
    rows = [(one.name, f"{one.alone:.2f}", f"{one.cumulative:.2f}") for one in ablations]
    headings = ("block removed", "accuracy, alone", "cumulative")
    table = Table(headings=headings, rows=(("nothing", f"{whole:.2f}", ""), *rows))
    return Section(name="blocks", table=table, data=[asdict(one) for one in ablations])


def ablation_note(resnet: ResNet) -> str:
    """Say which blocks are never ablated."""
    names = [name for name, possible in resnet.block_names.items() if not possible]
    return f"Blocks not ablated, because they change the shape: {', '.join(names) or 'none'}."


def check_ablatable(model: nn.Module) -> ResNet:
    """Refuse a network without residual blocks."""
    if isinstance(model, ResNet):
        return model
    raise UsageError(
        f"Block ablation needs a ResNet, and the model of this run is a {type(model).__name__}.",
        "Name a run of the task image with a ResNet, such as resnet-20.",
    )
