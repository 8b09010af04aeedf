"""`regard inspect`: look inside a run while it works on one input; numbers in the terminal, maps as pictures."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.inspect_options import (
    ChangeOptions,
    MapOptions,
    NumberOptions,
    PageOptions,
    RunOptions,
    refuse_beside_page,
    refuse_beside_probes,
    refuse_ignored,
)
from regard.cli.inspect_run import inspect_run, show_probes
from regard.cli.inspect_views import Asked, overview, shown_views
from regard.cli.loading import load_runs
from regard.cli.options import JsonFlag, RunArgument, SearchOptions, ThreadsOption, given, named
from regard.cli.outputs import refuse_picture
from regard.cli.terminal import busy, note, print_json, shell_word, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.inspection.trace import Trace

MOST_SHOWN = 120  # characters of an input that is repeated in what could be asked next
TREE_BEAM = 4  # of a run that samples by itself


def inspect(
    run: RunArgument,
    input: Annotated[str, Parameter(name="INPUT", help="a text, or an image file")] = "",
    /,
    *,
    page: PageOptions | None = None,
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
    whole, page = whole or RunOptions(), page or PageOptions()
    refuse_beside_page(page, (map, numbers, changes, whole, search or SearchOptions()), json=json)
    if page.page or page.html:
        beam = None if search is None else search.beam
        open_page(run, input, page, against=changes.against, data=whole.data, beam=beam, threads=threads)
        return
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
    settings = given(named(search or SearchOptions()))
    if numbers.beam_tree and loaded.spec.generates and loaded.config.decoding.sample and "beam" not in settings:
        settings["beam"] = TREE_BEAM
        note(f"this run samples, which has no tree: searched with a beam of {TREE_BEAM} instead (--beam)")
    with busy("recording"):
        whole_trace = loaded.trace(input, **settings)
        trace = ablated(whole_trace, changes.ablate)
    if whole_trace.result and whole_trace.result.truncation:
        note(f"the input is longer than the model reads at once: {whole_trace.result.truncation}")
    if changes.save:
        tell(f"written: {trace.save(changes.save)}")
    asked = Asked(trace=trace, before=whole_trace, numbers=numbers, changes=changes, head=map.head or 0)
    found = shown_views(asked, lambda: other_trace(changes.against, whole_trace, settings, threads=threads))
    draw(trace, map, numbers)
    if not found and not map.png and not map.csv:
        found = [overview(asked)]
    if json:
        print_json({"run": run, **{one.name: one.data for one in found}})
        return
    for one in found:
        one.show()
    if [one.name for one in found] == ["overview"]:
        tell_more(run, input, trace)


def open_page(
    run: str, input: str, page: PageOptions, *, against: str, data: Sequence[str], beam: int | None, threads: int
) -> None:
    """Serve the page, or write it as a file."""
    from regard.cli.inspect_page import show_page, write_page

    if page.page:
        show_page(run, input, page, against=against, data=data, threads=threads)
    else:
        write_page(run, input, page.html, beam=beam, threads=threads)


def tell_more(run: str, input: str, trace: "Trace") -> None:
    """How to see more."""
    shown = shell_word(input) if len(input) <= MOST_SHOWN else "…"
    call = f"regard inspect {shell_word(run)} {shown}"
    tell()
    attends, has_stream = bool(trace.attentions()), bool(trace.names("*_residual.output"))
    for is_there, options, about in (
        (True, "--page", "all of it in a browser"),
        (attends, "--atlas --png heads.png", "all heads as small maps"),
        (len(trace.reading.own), "--walk", "one position, from its token to what is written"),
        (has_stream, "--lens", "what each layer would write"),
        (attends, "--labels", "what each head attends to"),
        (trace.reading.watch, "--beam-tree", "the search as a tree"),
        (not attends, "--tap '*'", "all that the model shows of itself"),
        (True, "--checks", "whether these numbers hold"),
    ):
        if is_there:
            tell(f"{call} {options}   # {about}")


def ablated(trace: "Trace", parts: Sequence[str]) -> "Trace":
    """The trace with parts cut."""
    from regard.inspection.interventions import Cut

    for part in parts:
        cut = Cut.parse(part)
        trace = trace.without(cut.module, cut.heads)
    return trace


def other_trace(run: str, trace: "Trace", settings: Mapping[str, Any], *, threads: int) -> "Trace":
    """The trace of the same input by another run of the same task."""
    [other] = load_runs([run], threads=threads, engine="torch")
    subject = trace.live("To compare")
    own_task = subject.task.spec.name
    if other.spec.name != own_task:
        raise UsageError(
            f"{run} is a run of the task '{other.spec.name}', and this one of '{own_task}'.",
            "Compare with a run of the same task.",
        )
    found: Trace = other.trace(subject.input, **settings)
    return found


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
        note(
            f"no font here has {missing[:20]}, drawn as boxes: install one, such as Noto Sans CJK, or Noto Emoji (Symbola)"
        )
    if map.kind and trace.reading.writes:
        note("attention shows routing, not cause; --ablate tests cause")
