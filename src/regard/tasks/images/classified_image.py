"""The result of image classification, and the options: the class of an image, or why it could not be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.tasks.class_evaluation import class_probabilities
from regard.tasks.labelling.classification import Classified
from regard.tasks.options import Options
from regard.tasks.results import one_line


@dataclass(frozen=True, kw_only=True)
class ImageOptions(Options):
    """How an image classifier is used.

    blocks:           of a ResNet, evaluate also with its blocks ablated
    skip_unreadable:  of an image that cannot be read, return a result that names the problem; else it is an error
    """

    blocks: bool = False
    skip_unreadable: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class ClassifiedImage(Classified):
    """The likeliest class of an image; or the problem for which it could not be read."""

    image: str
    problem: str = ""
    label: str = ""
    probability: float = 0.0
    probabilities: Mapping[str, float] = field(default_factory=dict)

    def lines(self, *, top: int = 0) -> list[str]:
        lines = [] if self.problem else super().lines(top=top)
        return [f"{one_line(self.image)}\t{line}" for line in lines]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"image": self.image, **({"problem": self.problem} if self.problem else super().cells(top=top))}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        facts = {"problem": self.problem} if self.problem else super().to_json(top=top)
        facts.pop("cut", None)  # which texts may be, and images never are
        return {"image": self.image, **facts}


def classify(image: str, logits: npt.NDArray[np.float32], labels: Sequence[str]) -> ClassifiedImage:
    """What logits (K,) say of an image of this name."""
    probabilities = class_probabilities(logits, labels)
    label, probability = next(iter(probabilities.items()))
    return ClassifiedImage(image=image, label=label, probability=probability, probabilities=probabilities)
