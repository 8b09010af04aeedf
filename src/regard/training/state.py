"""Training state: the cursor in the data, the time, and what validations have found; a checkpoint's state.json.

Loads no tensor library, so that a list of runs is quick.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.config import RunConfig
from regard.errors import ConfigError
from regard.runs.folder import RunFolder
from regard.runs.json_files import MOST_COUNT, is_count, is_number, is_scores

_KEYS = {"cursor": "place", "not_improved": "worse"}  # the fields that state.json calls otherwise
_FIELDS = {key: name for name, key in _KEYS.items()}


@dataclass
class Cursor:
    """Where a run is in its data: updates made, the epoch, batches of it already used, and updates skipped so far."""

    step: int = 0
    epoch: int = 0
    batches: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0


@dataclass
class TrainingState:
    """What a checkpoint keeps beside tensors."""

    cursor: Cursor = field(default_factory=Cursor)
    seconds: float = 0.0
    order: dict[str, int] = field(default_factory=dict)  # the settings on which the order of examples depends
    best: dict[str, Any] = field(default_factory=dict)  # step, loss and scores of the best validation
    validation: dict[str, Any] | None = None  # of this very step
    validated: list[int] = field(default_factory=list)  # the steps of all validations
    best_by: str = "loss"  # the score that decides which is the best
    not_improved: int = 0  # validations in a row without a better one
    lowest: dict[str, Any] = field(default_factory=dict)  # step and loss of the validation with the lowest loss
    overfitted: int = 0  # validations in a row with a clearly higher loss than that

    def as_json(self) -> dict[str, Any]:
        return {_KEYS.get(name, name): value for name, value in dataclasses.asdict(self).items()}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "TrainingState":
        """Read what `as_json` returned; ValueError where it is anything else."""
        fields = {_FIELDS.get(key, key): value for key, value in state.items()}
        try:
            found = cls(**{**fields, "cursor": Cursor(**fields["cursor"])})
        except (TypeError, LookupError):
            raise ValueError("it lacks its cursor, or has other keys") from None
        wrong = [_KEYS.get(name, name) for name, is_right in found._checks().items() if not is_right]
        if wrong:
            raise ValueError(f"its {wrong[0]} is not what training writes")
        return found

    def _checks(self) -> dict[str, bool]:
        """Whether each field has a value that training gives it."""
        return {
            "cursor": all(map(is_count, vars(self.cursor).values())),
            "seconds": is_number(self.seconds) and 0 <= self.seconds < MOST_COUNT,
            "order": is_scores(self.order),
            "best": is_scores(self.best) and (not self.best or "step" in self.best),
            "validation": self.validation is None or is_scores(self.validation),
            "validated": isinstance(self.validated, list) and all(map(is_count, self.validated)),
            "best_by": isinstance(self.best_by, str),
            "not_improved": is_count(self.not_improved),
            "lowest": is_scores(self.lowest) and (not self.lowest or self.lowest.keys() == {"step", "loss"}),
            "overfitted": is_count(self.overfitted),
        }

    def refuse_another_order(self, order: Mapping[str, int], run: RunFolder) -> None:
        """Refuse settings that would change the order of the examples in the middle of an epoch."""
        for key, now in order.items():
            before = self.order.get(key, now)
            if now != before:
                raise ConfigError(
                    f"{key} cannot change on resume: {run} was trained with {before}, and its config now has {now}.",
                    f"Put {before} back in {run.config_file}, or train a new run.",
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
