"""`regard plot`: learning curves of runs as a picture, or their gradient norms per layer; positional encodings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from regard.cli.options import check_number
from regard.cli.terminal import busy, note, print_lines
from regard.errors import UsageError
from regard.runs import metrics
from regard.runs.folder import Reference, RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POSITIONS = Group("Positional encodings", sort_key=25)
LENGTH, WIDTH, HEAD_WIDTH = 100, 512, 64
MOST_UPDATES = 100_000  # of a run: many more than a picture has pixels
MOST_POSITIONS = 4096  # and features: more than a picture shows


def plot(
    *runs: Annotated[str, Parameter(name="RUN", help="the folders of one run or more")],
    gradients: Annotated[
        bool,
        Parameter(help="instead, the gradient norm per layer of runs that recorded it (training.record_gradients)"),
    ] = False,
    score: Annotated[
        str, Parameter(metavar="NAME,NAME…", help="scores to draw, a panel each: bleu, chrf (the one that says most)")
    ] = "",
    positions: Annotated[
        str,
        Parameter(
            group=POSITIONS,
            metavar="KIND",
            help="instead, an encoding: sinusoidal, rotary, index, fraction; of a run, learned or relative (T5's bias)",
        ),
    ] = "",
    length: Annotated[
        int | None, Parameter(group=POSITIONS, help="how many positions (100; of a run all that it has)")
    ] = None,
    width: Annotated[
        int | None, Parameter(group=POSITIONS, help="how many features (512; of a rotary head 64)")
    ] = None,
    output: Annotated[
        str, Parameter(metavar="FILE", help="a .png, .svg or .pdf file (curves.png, gradients.png, positions.png)")
    ] = "",
) -> None:
    """Draw the learning curves of runs: losses, the task's score and the learning rate by step.

    Runs of different tasks, whose losses do not compare, have panels of their own.
    With --positions a positional encoding: its values, and the dot products of positions by their distance.
    """
    if score and (positions or gradients):
        raise UsageError("--score is of learning curves.", "Leave it out, or --gradients and --positions.")
    if positions:
        if gradients:
            raise UsageError("--gradients and --positions are two pictures.", "Leave one of them out.")
        picture, name = draw_positions(positions, runs, length, width), "positions.png"
    else:
        if length is not None or width is not None:
            raise UsageError("--length and --width are of a positional encoding.", "Say which: --positions sinusoidal")
        picture = draw_curves(runs, gradients=gradients, scores=[one for one in score.split(",") if one])
        name = "gradients.png" if gradients else "curves.png"
    from regard.inspection.render import save

    print_lines([str(save(picture, output or name))])


def draw_curves(runs: tuple[str, ...], *, gradients: bool, scores: Sequence[str]) -> "Figure":
    """Draw what runs recorded; runs of different tasks apart."""
    if not runs:
        raise UsageError("No run was named.", "Name the runs to draw: regard plot RUN")
    folders = [RunFolder.open(Reference.parse(run).path) for run in runs]
    with busy("drawing"):
        from regard.inspection.curves import curves_picture, gradients_picture

        records = {}
        for folder in folders:
            records[str(folder)], stride = metrics.read_some(folder, most=MOST_UPDATES)
            if stride > 1:
                note(f"{folder}: one of every {stride:,} updates is drawn")
        tasks = {str(folder): folder.read_config().task for folder in folders}
        return gradients_picture(records) if gradients else curves_picture(records, tasks=tasks, scores=scores)


def draw_positions(kind: str, runs: tuple[str, ...], length: int | None, width: int | None) -> "Figure":
    """Draw a positional encoding, or that which a run has learned."""
    for option, number in (("--length", length), ("--width", width)):
        check_number(option, number, least=2, most=MOST_POSITIONS)
    from regard.inspection.position_picture import LEARNED, encoding_panels, model_panels, positions_picture

    if not runs:
        if kind in LEARNED:
            raise UsageError(f"{kind} positions are those of a run.", f"Name one: regard plot RUN --positions {kind}")
        width = width or (HEAD_WIDTH if kind == "rotary" else WIDTH)
        return positions_picture([encoding_panels(kind, length or LENGTH, width)])
    if len(runs) > 1 or width is not None:
        problem = "The width is the run's own." if width is not None else "Positions are drawn of one run."
        raise UsageError(problem, "Leave --width out." if width is not None else "Name one run.")
    from regard.cli.loading import load_runs

    [run] = load_runs(runs)
    return positions_picture(model_panels(run.model, kind, length or 0), title=str(run.reference))
