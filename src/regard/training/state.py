"""Where a run stands and how it has done: what a checkpoint keeps beside tensors."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.config import RunConfig
from regard.errors import ConfigError
from regard.runs.folder import RunFolder
from regard.training.loop import Place


@dataclass
class Standing:
    """The place, the time, and what validations have found."""

    place: Place = field(default_factory=Place)
    seconds: float = 0.0
    order: dict[str, int] = field(default_factory=dict)  # the settings on which the order of examples depends
    best: dict[str, Any] = field(default_factory=dict)  # step, loss and scores of the best validation
    validation: dict[str, Any] | None = None  # of this very step
    validated: list[int] = field(default_factory=list)  # the steps of all validations
    best_by: str = "loss"  # the score that decides which is the best
    worse: int = 0  # validations in a row without a better one

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Standing":
        return cls(**{**state, "place": Place(**state["place"])})

    def refuse_another_order(self, order: Mapping[str, int], run: RunFolder) -> None:
        """The examples of an epoch come in an order that must not change in its middle."""
        for key, now in order.items():
            before = self.order.get(key, now)
            if now != before:
                raise ConfigError(
                    f"{run} was trained with {key} = {before} so far, and its config now has {now}.",
                    f"Put it back in {run.config_file}, or train a new run.",
                )


def order_settings(config: RunConfig) -> dict[str, int]:
    """The settings on which the order of examples depends."""
    training = config.training
    return {
        "seed": config.seed,
        "training.batch_tokens": training.batch_tokens,
        "training.batch_images": training.batch_images,
        "training.accumulate": training.accumulate,
    }
