"""How much a trained residual network leans on each of its blocks: its accuracy as they are switched off.

A block that is off hands on what it read (Veit et al. 2016, section 4). First each is switched off alone; then one after
another, those first whose lack harmed least.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import UsageError
from regard.evaluation import classification as evaluation
from regard.models.resnet import ResNet
from regard.tasks.images.image_classification import Image
from regard.tasks.images.image_examples import ImageExamples


@dataclass(frozen=True, kw_only=True)
class BlockOff:
    """A block, the accuracy without it alone, and the accuracy without it and all before it in the list, in percent."""

    name: str
    alone: float
    together: float


def switch_off_blocks(
    run: Any, examples: ImageExamples, *, progress: Callable[[int], None] = lambda done: None
) -> list[BlockOff]:
    """Return the blocks that can be switched off, that first whose lack harms least; `progress` counts images read."""
    task, model = run.task, run.model
    if not isinstance(task, Image) or not isinstance(model, ResNet):
        raise UsageError(
            f"{run.reference} is no network of blocks that could be switched off.",
            "Name a run of the task image with a ResNet, such as resnet-20.",
        )
    rounds = 0

    def accuracy(names: Sequence[str]) -> float:
        nonlocal rounds
        before, rounds = rounds * len(examples), rounds + 1
        with model.without_blocks(names):
            outputs = task.outputs(model, examples, progress=lambda done: progress(before + done))
        return evaluation.accuracy(examples.images.classes, outputs.argmax(1)).value

    alone = {name: accuracy([name]) for name, possible in model.block_names.items() if possible}
    order = sorted(alone, key=lambda name: -alone[name])
    return [
        BlockOff(name=name, alone=alone[name], together=alone[name] if not number else accuracy(order[: number + 1]))
        for number, name in enumerate(order)
    ]


def lasting_blocks(run: Any) -> str:
    """Say which blocks are never switched off."""
    model = run.model
    assert isinstance(model, ResNet)
    names = [name for name, possible in model.block_names.items() if not possible]
    return f"Never switched off, as they change the shape of what they read: {', '.join(names) or 'none'}."
