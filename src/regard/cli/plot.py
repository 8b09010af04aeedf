"""`regard plot`: learning curves of runs as a picture, or their gradient norms per layer."""

from typing import Annotated

from cyclopts import Parameter

from regard.cli.terminal import busy, print_lines
from regard.errors import UsageError
from regard.runs import metrics
from regard.runs.folder import Reference, RunFolder


def plot(
    *runs: Annotated[str, Parameter(name="RUN", help="the folders of one run or more")],
    gradients: Annotated[
        bool,
        Parameter(help="instead, the gradient norm per layer of runs that recorded it (training.record_gradients)"),
    ] = False,
    output: Annotated[
        str, Parameter(metavar="FILE", help="a .png, .svg or .pdf file (curves.png, gradients.png)")
    ] = "",
) -> None:
    """Draw the learning curves of runs: losses, the task's score and the learning rate by step."""
    if not runs:
        raise UsageError("No run was named.", "Name the runs to draw: regard plot RUN")
    folders = [RunFolder.open(Reference.parse(run).path) for run in runs]
    with busy("drawing"):
        from regard.inspection.curves import curves_picture, gradients_picture
        from regard.inspection.render import save

        records = {str(folder): metrics.read(folder) for folder in folders}
        picture = gradients_picture(records) if gradients else curves_picture(records)
        path = save(picture, output or ("gradients.png" if gradients else "curves.png"))
    print_lines([str(path)])
