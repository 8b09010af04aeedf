"""Block ablation: the accuracy of a trained residual network without each of its blocks, alone and cumulatively.

A block that is ablated hands on what it read (Veit et al. 2016, section 4). First each is ablated alone; then one after
another, those first whose lack harmed least.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from regard.errors import UsageError
from regard.evaluation import classification as evaluation
from regard.models.resnet import ResNet
from regard.tasks.images.image_classification import ImageClassificationTask
from regard.tasks.images.image_examples import ImageExamples


@dataclass(frozen=True, kw_only=True)
class BlockAblation:
    """A block, the accuracy without it alone, and the accuracy without it and all before it in the list, in percent."""

    name: str
    alone: float
    cumulative: float


def ablate_blocks(
    model: nn.Module,
    examples: ImageExamples,
    *,
    task: ImageClassificationTask,
    run: str,
    progress: Callable[[int], None] = lambda done: None,
) -> list[BlockAblation]:
    """Return the blocks that can be ablated, that first whose lack harms least.

    run: what errors call it; progress: called with how many images are read
    """
    resnet = _resnet(model, run)
    rounds = 0

    def accuracy(names: Sequence[str]) -> float:
        nonlocal rounds
        before, rounds = rounds * len(examples), rounds + 1
        with resnet.without_blocks(names):
            outputs = task.outputs(resnet, examples, progress=lambda done: progress(before + done))
        return evaluation.accuracy(examples.images.classes, outputs.argmax(1)).value

    alone = {name: accuracy([name]) for name, possible in resnet.block_names.items() if possible}
    order = sorted(alone, key=lambda name: -alone[name])
    return [
        BlockAblation(
            name=name, alone=alone[name], cumulative=alone[name] if not number else accuracy(order[: number + 1])
        )
        for number, name in enumerate(order)
    ]


def kept_blocks(model: nn.Module, *, run: str) -> str:
    """Say which blocks are never ablated."""
    names = [name for name, possible in _resnet(model, run).block_names.items() if not possible]
    return f"Blocks not ablated, because they change the shape: {', '.join(names) or 'none'}."


def _resnet(model: nn.Module, run: str) -> ResNet:
    if isinstance(model, ResNet):
        return model
    raise UsageError(
        f"--blocks needs a ResNet run; {run} is a {type(model).__name__}.",
        "Name a run of the task image with a ResNet, such as resnet-20.",
    )
