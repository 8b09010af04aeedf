"""A progress bar for `regard.train` from Python: on a terminal and in a notebook, unless told not to."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.training.events import Event

Show = Callable[["Event"], None]


@contextmanager
def progress_bar(*, show: bool | None = None) -> Iterator[Show]:
    """What to call with each event of a training run; `show` None lets a terminal or a notebook decide."""
    if not (_has_audience() if show is None else show):
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from regard.evaluation.metrics import find_metric
    from regard.training.events import Report, Updated, Validated

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        steps = bar.add_task("training", total=None)

        def shown(event: "Event") -> None:
            if isinstance(event, Report):
                bar.update(steps, total=event.total_steps or None, completed=event.step)
            elif isinstance(event, Updated):
                bar.update(steps, completed=event.update.step, description=f"loss {event.update.loss:.3f}")
            elif isinstance(event, Validated):
                scores = {"loss": event.validation.loss, **event.validation.scores}
                texts = (
                    f"{find_metric(name).label} {find_metric(name).format(value)}" for name, value in scores.items()
                )
                bar.console.print(f"step {event.step:,}: {', '.join(texts)}", highlight=False, markup=False)

        yield shown


def _has_audience() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
