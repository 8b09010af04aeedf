"""Views of `regard inspect RUN INPUT`: each thing that can be asked of a trace, as data and as text for a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.cli.inspect_options import ChangeOptions, NumberOptions
from regard.cli.terminal import print_lines, show_table
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.inspection.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked, of which trace.

    before: the trace without the ablation
    """

    trace: "Trace"
    before: "Trace"
    numbers: NumberOptions
    changes: ChangeOptions
    head: int


@dataclass(frozen=True, kw_only=True)
class View:
    """One thing that is asked for: its name and its data for programs, and the call that shows it."""

    name: str
    data: Any
    show: Callable[[], None]

    @classmethod
    def of_lines(cls, name: str, data: Any, lines: Sequence[str]) -> "View":
        return cls(name=name, data=data, show=lambda: print_lines(lines))


def shown_views(asked: Asked, other: Callable[[], "Trace"]) -> list[View]:
    """Everything that is asked for, in the order of the help; `other`: the trace of another run, to compare with."""
    numbers, changes = asked.numbers, asked.changes
    if numbers.force is not None and not numbers.beam_tree:
        raise UsageError("--force goes on from a node of the tree.", "Add --beam-tree, which shows their numbers.")
    table: tuple[tuple[object, Callable[[Asked], list[View]]], ...] = (
        (numbers.walk, walk_view),
        (numbers.cell, cell_view),
        (numbers.lens, lens_view),
        (numbers.contributions, contributions_view),
        (numbers.labels, labels_view),
        (numbers.beam_tree, tree_views),
        (numbers.checks, checks_view),
        (numbers.tap, tap_view),
        (changes.ablate, ablation_view),
        (changes.against, lambda asked: against_view(asked, other())),
    )
    return [view for is_asked, views in table if is_asked for view in views(asked)]


def walk_view(asked: Asked) -> list[View]:
    from regard.inspection.walk import walk

    found = walk(asked.trace, asked.numbers.query)
    return [View.of_lines("walk", found.to_json(), found.lines())]


def cell_view(asked: Asked) -> list[View]:
    numbers = asked.numbers
    query, key = needed(numbers.query, "--query"), needed(numbers.key, "--key")
    cell = asked.trace.cell(numbers.cell, head=asked.head, query=query, key=key)
    lines = cell.python().splitlines() if numbers.python else cell.lines()
    return [View.of_lines("cell", cell.to_json(), lines)]


def lens_view(asked: Asked) -> list[View]:
    top = asked.numbers.top
    lens = asked.trace.lens(top=3 if top is None else top)
    return [View.of_lines("lens", lens.to_json(), lens.lines(shown=top or 1))]


def contributions_view(asked: Asked) -> list[View]:
    shares = asked.trace.contributions(position=-1 if asked.numbers.query is None else asked.numbers.query)
    return [View.of_lines("contributions", shares.to_json(), shares.lines())]


def labels_view(asked: Asked) -> list[View]:
    from regard.inspection.head_labels import label_table

    labels = asked.trace.head_labels()
    data = [one.to_json() for one in labels]
    return [View(name="heads", data=data, show=lambda: show_table(label_table(labels)))]


def tree_views(asked: Asked) -> list[View]:
    from regard.inspection.beam_tree import forced

    tree, node = asked.trace.beam_tree(), asked.numbers.force
    found = [View.of_lines("beam_tree", tree.to_json(), tree.lines())]
    if node is not None:
        writes = forced(asked.trace, tree, node).output
        found.append(View.of_lines("forced", {"node": node, "writes": writes}, ["", f"from node {node}: {writes}"]))
    return found


def checks_view(asked: Asked) -> list[View]:
    checks = asked.trace.checks()
    return [View.of_lines("checks", checks.to_json(), checks.lines())]


def tap_view(asked: Asked) -> list[View]:
    data, lines = tap_numbers(asked.trace, asked.numbers.tap)
    return [View.of_lines("tap", data, lines)]


def ablation_view(asked: Asked) -> list[View]:
    parts, rewritten = asked.changes.ablate, asked.trace.rewritten()
    compared = asked.before.difference(asked.trace)
    lines = [f"without {', '.join(parts)}", f"writes: {rewritten.output}", *compared.lines()]
    data = {"ablated": list(parts), "writes": rewritten.output, **compared.to_json()}
    return [View.of_lines("ablation", data, lines)]


def against_view(asked: Asked, other: "Trace") -> list[View]:
    run, compared = asked.changes.against, asked.before.difference(other)
    lines = [f"{run} writes: {other.output}", *compared.lines()]
    return [View.of_lines("against", {"run": run, "writes": other.output, **compared.to_json()}, lines)]


def overview(asked: Asked) -> View:
    """What the model did, in one screen: where nothing else is asked for."""
    from regard.inspection import overview as screen

    trace = asked.trace
    table, classes, path = screen.step_table(trace), screen.class_guesses(trace), screen.overview_attention(trace)

    def show() -> None:
        output = [f"output  {line}" for line in trace.output.splitlines()]
        said = [f"        {one.text} {one.probability:.3f}" for one in classes]
        print_lines([f"input   {trace.title}", *output, *said, ""])
        if table.rows:
            show_table(table)
        if path:
            print_lines(["", f"attends to: the mean over the heads of {path}"])

    return View(name="overview", data=screen.to_json(trace), show=show)


def needed(value: int | None, flag: str) -> int:
    """An option that --cell cannot do without."""
    if value is None:
        raise UsageError(f"--cell needs {flag}.", f"Give a position, counted from 0: {flag} 2")
    return value


def tap_numbers(trace: "Trace", name: str) -> tuple[Any, list[str]]:
    """The numbers of a tap, or which taps match a pattern."""
    import numpy as np

    if "*" in name:
        return matching_taps(trace, name)
    array = trace[name]
    with np.printoptions(precision=4, suppress=True, threshold=400, linewidth=110):
        lines = [f"{name} {array!r}", *str(array.values).splitlines()]
    return {"name": name, "axes": list(array.axes), "values": array.values.tolist()}, lines


def matching_taps(trace: "Trace", pattern: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The taps that match a pattern: their axes, and what they show."""
    from regard.evaluation.table import Table
    from regard.inspection.tap_names import tap_phrase

    left_out = trace.left_out
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "axes": None if name in left_out else list(trace[name].axes),
            "shape": list(left_out[name] if name in left_out else trace[name].shape),
            "about": tap_phrase(name),
        }
        for name in trace.names(pattern)
    ]
    if not found:
        raise UsageError(f"No tap of this model matches '{pattern}'.", "--tap '*' shows all of them.")
    rows = tuple((one["name"], axes_text(one["axes"], one["shape"]), one["about"]) for one in found)
    return found, Table(headings=("tap", "axes", "what it is"), rows=rows, left=(0, 1, 2)).lines()


def axes_text(axes: Sequence[str] | None, shape: Sequence[int]) -> str:
    """The axes with their sizes; of what was not kept, sizes alone."""
    if axes is None:
        return f"{' × '.join(map(str, shape))} (large: recorded when asked for by name)"
    return ", ".join(f"{axis} {size}" for axis, size in zip(axes, shape, strict=True))
