"""`regard inspect`: look inside a run while it works on one input; numbers in the terminal, maps as pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.inspect_options import (
    ChangeOptions,
    MapOptions,
    NumberOptions,
    RunOptions,
    refuse_beside_probes,
    refuse_ignored,
)
from regard.cli.inspect_run import inspect_run, show_probes
from regard.cli.loading import load_runs
from regard.cli.options import JsonFlag, RunArgument, SearchOptions, ThreadsOption, given, named
from regard.cli.outputs import refuse_picture
from regard.cli.terminal import busy, note, print_json, print_lines, shell_word, show_table, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.inspection.trace import Trace


def inspect(
    run: RunArgument,
    input: Annotated[str, Parameter(name="INPUT", help="a text, or an image file")] = "",
    /,
    *,
    map: MapOptions | None = None,
    numbers: NumberOptions | None = None,
    changes: ChangeOptions | None = None,
    whole: RunOptions | None = None,
    search: SearchOptions | None = None,
    threads: ThreadsOption = 0,
    json: JsonFlag = False,
) -> None:
    """Look inside a run: every number of the model while it works on one input.

    Without options: what it wrote, how surely, and where it attended meanwhile. All numbers are the model's own, recorded
    while it ran; attention shows routing, not cause: --ablate tests cause.
    """
    map, numbers, changes = map or MapOptions(), numbers or NumberOptions(), changes or ChangeOptions()
    whole = whole or RunOptions()
    if map.png:
        refuse_picture(map.png, whole.data)
    if input:
        refuse_ignored(map, numbers, whole)
    if whole.probes and not input:
        refuse_beside_probes(map, numbers, changes)
        show_probes(run, whole, map, numbers, json=json)
        return
    [loaded] = load_runs([run], threads=threads, engine="torch")
    if not input:
        inspect_run(loaded, whole, png=map.png, json=json)
        return
    with busy("recording"):
        trace = loaded.trace(input, **given(named(search or SearchOptions())))
        before = trace
        if changes.ablate:
            trace = ablated(trace, changes.ablate)
    if changes.save:
        tell(f"written: {trace.save(changes.save)}")
    shown = shows(trace, before, map, numbers, changes, search or SearchOptions(), threads=threads)
    if json:
        print_json({"run": run, **shown.facts})
        return
    for block in shown.blocks:
        block()
    if "overview" in shown.facts:
        tell_more(run, input, trace)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is asked for: as data, and as calls that show it."""

    facts: Mapping[str, Any]
    blocks: Sequence[Any]


def shows(
    trace: "Trace",
    before: "Trace",
    map: MapOptions,
    numbers: NumberOptions,
    changes: ChangeOptions,
    search: SearchOptions,
    *,
    threads: int,
) -> Shown:
    """Everything that is asked for, in the order of the help; the overview where nothing is."""
    facts: dict[str, Any] = {}
    blocks: list[Any] = []

    def add(name: str, data: Any, lines: Sequence[str]) -> None:
        facts[name] = data
        blocks.append(lambda: print_lines(lines))

    if numbers.walk:
        from regard.inspection.walk import walk

        found = walk(trace, numbers.query)
        add("walk", found.to_json(), found.lines())
    if numbers.cell:
        query, key = needed(numbers.query, "--query"), needed(numbers.key, "--key")
        cell = trace.cell(numbers.cell, head=map.head or 0, query=query, key=key)
        add("cell", cell.to_json(), cell.python().splitlines() if numbers.python else cell.lines())
    if numbers.lens:
        lens = trace.lens(top=3 if numbers.top is None else numbers.top)
        add("lens", lens.to_json(), lens.lines(shown=numbers.top or 1))
    if numbers.contributions:
        shares = trace.contributions(position=-1 if numbers.query is None else numbers.query)
        add("contributions", shares.to_json(), shares.lines())
    if numbers.labels:
        from regard.inspection.head_labels import label_table

        labels = trace.head_labels()
        facts["heads"] = [one.to_json() for one in labels]
        blocks.append(lambda: show_table(label_table(labels)))
    if numbers.beam_tree:
        tree = trace.beam_tree()
        add("beam_tree", tree.to_json(), tree.lines())
        if numbers.force is not None:
            from regard.inspection.beam_tree import forced

            followed = forced(trace, tree, numbers.force)
            add(
                "forced",
                {"node": numbers.force, "writes": followed.output},
                ["", f"from node {numbers.force}: {followed.output}"],
            )
    elif numbers.force is not None:
        raise UsageError("--force goes on from a node of the tree.", "Add --beam-tree, which shows their numbers.")
    if numbers.checks:
        checks = trace.checks()
        add("checks", checks.to_json(), checks.lines())
    if numbers.tap:
        add("tap", *tap_numbers(trace, numbers.tap))
    if changes.ablate:
        compared = before.difference(trace)
        rewritten = trace.rewritten()
        lines = [f"without {', '.join(changes.ablate)}", f"writes: {rewritten.output}", *compared.lines()]
        add("ablation", {"ablated": list(changes.ablate), "writes": rewritten.output, **compared.to_json()}, lines)
    if changes.against:
        [other] = load_runs([changes.against], threads=threads, engine="torch")
        subject = before.live("To compare")
        own_task = subject.task.spec.name
        if other.spec.name != own_task:
            raise UsageError(
                f"{changes.against} is a run of the task '{other.spec.name}', and this one of '{own_task}'.",
                "Compare with a run of the same task.",
            )
        theirs = other.trace(subject.input, **given(named(search)))
        compared = before.difference(theirs)
        lines = [f"{changes.against} writes: {theirs.output}", *compared.lines()]
        add("against", {"run": changes.against, "writes": theirs.output, **compared.to_json()}, lines)
    draw(trace, map, numbers)
    if not facts and not map.png and not map.csv:
        overview(trace, facts, blocks)
    return Shown(facts=facts, blocks=blocks)


def overview(trace: "Trace", facts: dict[str, Any], blocks: list[Any]) -> None:
    """What the model did, in one screen."""
    from regard.inspection import overview as screen

    facts["overview"] = screen.to_json(trace)
    table, classes, path = screen.step_table(trace), screen.class_guesses(trace), screen.overview_attention(trace)
    output = [f"output  {line}" for line in trace.output.splitlines()]
    said = [f"        {one.text} {one.probability:.3f}" for one in classes]
    blocks.append(lambda: print_lines([f"input   {trace.title}", *output, *said, ""]))
    if table.rows:
        blocks.append(lambda: show_table(table))
    if path:
        blocks.append(lambda: print_lines(["", f"attends to: the mean over the heads of {path}"]))


def tell_more(run: str, input: str, trace: "Trace") -> None:
    """How to see more."""
    call = f"regard inspect {shell_word(run)} {shell_word(input)}"
    tell()
    for options, about in (
        ("--atlas --png heads.png", "all heads as small maps"),
        ("--walk", "one position, from its token to what is written"),
        ("--lens", "what each layer would write"),
        ("--labels", "what each head attends to"),
        ("--beam-tree", "the search as a tree"),
        ("--checks", "whether these numbers hold"),
    ):
        if options in ("--beam-tree",) and trace.reading.watch is None:
            continue
        tell(f"{call} {options}   # {about}")


def ablated(trace: "Trace", parts: Sequence[str]) -> "Trace":
    """The trace with parts cut."""
    from regard.inspection.interventions import Cut

    for part in parts:
        cut = Cut.parse(part)
        trace = trace.without(cut.module, cut.heads)
    return trace


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


def draw(trace: "Trace", map: MapOptions, numbers: NumberOptions) -> None:
    """Write the picture and the table that are asked for."""
    if not map.png and not map.csv:
        if map.atlas:
            raise UsageError("--atlas is a picture, and no file is named for it.", "Give one: --png heads.png")
        return
    from regard.evaluation.table import records_to_csv
    from regard.inspection import maps
    from regard.inspection.axis_labels import without_glyph
    from regard.inspection.map_blocks import Part
    from regard.inspection.render import save

    path = maps.find_attention(trace, map.kind, map.layer) if not numbers.beam_tree else ""
    part = {"queries": Part.parse(map.queries, "--queries"), "keys": Part.parse(map.keys, "--keys")}
    if map.csv:
        records = maps.as_records(trace, path, map.head or 0, **part)
        try:
            records_to_csv(records, map.csv)
        except OSError as error:
            raise UsageError(
                f"Cannot write {map.csv}: {error.strerror}.", "Choose a place that can be written to."
            ) from error
        tell(f"written: {map.csv}")
    if not map.png:
        return
    if numbers.beam_tree:
        from regard.inspection.tree_picture import tree_picture

        figure = tree_picture(trace.beam_tree())
    elif map.atlas:
        figure = maps.atlas_picture(trace, map.kind, gamma=0.5 if map.sqrt else 1.0)
    elif trace.reading.image is not None:
        figure = maps.image_picture(trace, path, map.head)
    else:
        figure = maps.map_picture(trace, path, map.head, gamma=0.5 if map.sqrt else 1.0, **part)
    tell(f"drawn: {save(figure, map.png)}")
    labels = (label for _, positions in trace.reading.places for label in positions.labels)
    if missing := without_glyph([trace.title, trace.output, *labels]):
        note(f"no font here has {missing[:20]}, drawn as boxes: install one, such as Noto Sans CJK, or Noto Emoji (Symbola)")
    if map.kind and trace.reading.writes:
        note("attention shows routing, not cause; --ablate tests cause")
