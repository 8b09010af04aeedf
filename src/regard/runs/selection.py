"""Checkpoint selection: which one is meant (`RUN@400`, `@best`, `@last`, `@average`, plain `RUN`), and which may go.

A damaged checkpoint is skipped for the next that fits, and the reason is returned so that the caller says so. One that
whoever trains the run has just deleted is no damage: the run is looked at again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import CheckpointError
from regard.runs.checkpoints import Checkpoint, OtherModelError, VanishedError, read_state, verify
from regard.runs.disk import discard
from regard.runs.folder import Reference, RunFolder, Word
from regard.runs.names import STATE, find
from regard.runs.ranking import UNRANKED, RankKey, prefers_average, rank_key

ATTEMPTS = 50
N_NOTES = 3  # that an error repeats
Read = TypeVar("Read")


def select(reference: Reference) -> tuple[Checkpoint, list[str]]:
    """Return the checkpoint that a reference means, and a note for each that was skipped because it is damaged."""
    return read_selected(reference, verify)


def read_selected(reference: Reference, read: Callable[[Path], Read]) -> tuple[Read, list[str]]:
    """Return what `read` makes of the checkpoint that a reference means, and a note for each that was skipped.

    read: verifies and loads; the run may be in training, and a checkpoint may be deleted before all of it is read
    """
    run = RunFolder.open(reference.path)
    for _ in range(ATTEMPTS):
        with suppress(VanishedError):
            if isinstance(reference.selector, int):
                return read(of_step(run, reference.selector)), []
            return first_intact(run, candidates(run, reference.selector), read)
    raise CheckpointError(
        f"The checkpoints of {run} are deleted faster than they can be read.",
        "Wait until its training has ended, or train with a larger training.keep.",
    )


def newest_intact(run: RunFolder) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint of a step that is intact, and a note for each newer one."""
    return first_intact(run, candidates(run, "last"), verify)


def candidates(run: RunFolder, word: Word | None) -> list[Path]:
    """Return the folders that a word may mean, the likeliest first; None stands for average, else best, else last.

    An average that the run has been trained beyond, or that was scored worse than the best, is meant only by its own word.
    """
    steps, averaged = find(run), find(run, kind="average")
    averages = list(averaged.values())[::-1]
    best_one = next((_read_state(steps[step]) or {} for step in by_validation(steps)), {})
    newest_step = max(steps, default=0)
    current = [path for step, path in averaged.items() if step >= newest_step and _is_preferred(path, best_one)]
    # One whose state is damaged may have been the best: it is looked at first, so that its damage is told.
    best = [path for path in steps.values() if _read_state(path) is None]
    best += [steps[step] for step in by_validation(steps)]
    newest = list(steps.values())[::-1]
    if not steps and not averages:
        raise CheckpointError(f"{run} has no checkpoint yet.", f"Train it: regard resume {run}")
    if word is None:
        # A folder can be in two of the lists; one look at it is enough.
        return list(dict.fromkeys(current + best + newest))
    if word == "average" and not averages:
        raise CheckpointError(f"{run} has no average.", f"Make one with: regard average {run} --last 5")
    if word == "best" and not best:
        raise CheckpointError(f"No checkpoint of {run} has been validated.", f"Use the newest: {run}@last")
    if word == "last" and not newest:
        raise CheckpointError(f"{run} has no checkpoint but an average.", f"Use it: {run}@average")
    return {"average": averages, "best": best, "last": newest}[word]


def _is_preferred(average: Path, best_one: Mapping[str, Any]) -> bool:
    scores = (_read_state(average) or {}).get("validation") or {}
    return prefers_average(scores, best_one.get("validation") or {}, best_one.get("best_by", "loss"))


def first_intact(run: RunFolder, paths: Iterable[Path], read: Callable[[Path], Read]) -> tuple[Read, list[str]]:
    """Return what `read` makes of the first checkpoint that it accepts, and a note for each before it."""
    errors: list[CheckpointError] = []
    notes: list[str] = []
    for path in paths:
        try:
            return read(path), notes
        except VanishedError:
            raise
        except CheckpointError as error:
            errors.append(error)
            notes.append(f"{path.name} is skipped. {error.problem}")
    if all(isinstance(error, OtherModelError) for error in errors):
        raise errors[0]  # not the checkpoints are wrong, but the config
    more = [f"So are {len(notes) - N_NOTES} others."] if len(notes) > N_NOTES else []
    raise CheckpointError(
        f"No checkpoint of {run} is intact. {' '.join(notes[:N_NOTES] + more)}",
        f"Copy the run again, or repeat it: regard train {run.config_file} --run ANOTHER",
    )


def of_step(run: RunFolder, step: int) -> Path:
    """Return the folder of one step's checkpoint; say which steps there are where it is missing."""
    steps = find(run)
    if step in steps:
        return steps[step]
    if not steps:
        raise CheckpointError(
            f"{run} has no checkpoint of step {step}: it has none yet.", f"Train it: regard resume {run}"
        )
    raise CheckpointError(f"{run} has no checkpoint of step {step}.", f"There is one of: {', '.join(map(str, steps))}.")


def by_validation(steps: dict[int, Path]) -> list[int]:
    """Return the validated steps, the best validation first; the earlier first where two are equal."""
    ranks = {step: validation_rank(path) for step, path in steps.items()}
    validated = [step for step, found in ranks.items() if found != UNRANKED]
    return sorted(validated, key=lambda step: (ranks[step], -step), reverse=True)


def validation_rank(path: Path) -> RankKey:
    """Return how good the validation in a checkpoint's state is."""
    state = _read_state(path) or {}
    return rank_key(state.get("validation") or {}, state.get("best_by", "loss"))


def _read_state(path: Path) -> dict[str, Any] | None:
    """Return a checkpoint's state: empty if it has none, None if it is damaged."""
    if not (path / STATE).exists():
        return {}
    try:
        return read_state(path)
    except VanishedError:
        return {}
    except CheckpointError:
        return None


def prune(run: RunFolder, *, keep: int, protect: Collection[int] = ()) -> list[int]:
    """Delete the oldest checkpoints beyond the `keep` newest, and return their steps.

    The best one, the newest one and the steps in `protect` stay. Averages are not touched. Only for the holder of the
    run's lock, after a new checkpoint is in place.
    """
    steps = find(run)
    staying = {*list(steps)[-max(keep, 1) :], *by_validation(steps)[:1], *protect}
    return discard_all(steps, [step for step in steps if step not in staying])


def drop_after(run: RunFolder, *, step: int) -> list[int]:
    """Delete the checkpoints after a step from which the run goes on, and return their steps.

    They are damaged, or of a future that will be trained again; `prune` must not count them among the newest. Only for
    the holder of the run's lock.
    """
    steps = find(run)
    return discard_all(steps, [later for later in steps if later > step])


def discard_all(steps: dict[int, Path], going: list[int]) -> list[int]:
    """Delete the folders of the steps in `going`, oldest first, and return these steps."""
    for step in going:
        discard(steps[step])
    return going
