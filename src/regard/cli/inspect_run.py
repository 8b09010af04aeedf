"""`regard inspect RUN` without an input: what is asked of the run itself; importance of heads, probes, neighbours."""

from typing import TYPE_CHECKING, Any

from regard.cli.options import check_number
from regard.cli.terminal import Waiting, note, print_json, print_lines, print_table, tell
from regard.errors import UsageError
from regard.runs.folder import RunFolder
from regard.tasks.results import one_line

if TYPE_CHECKING:
    from regard.cli.inspect_options import MapOptions, NumberOptions, RunOptions
    from regard.inspection.importance import MeasuredBy, Parts

N_NEIGHBOURS = 10
MOST_EXAMPLES = 1_000_000


def inspect_run(run: Any, options: "RunOptions", *, png: str, json: bool) -> None:
    """Show what is asked of a run, one thing at a time; refuse if nothing is."""
    if options.heads or options.sublayers:
        show_importance(run, options, png=png, json=json)
    elif options.neighbours:
        show_neighbours(run, options.neighbours, json=json)
    else:
        raise UsageError(
            "Nothing is given to look at.",
            "Give a text or an image, or --page, --heads --data FILE…, --probes or --neighbours TOKEN.",
        )


def show_probes(run: str, options: "RunOptions", map: "MapOptions", numbers: "NumberOptions", *, json: bool) -> None:
    """Show what was recorded of probe examples while a run trained; the model is not asked for."""
    from regard.inspection.probe_timeline import read_probes
    from regard.runs.folder import Reference

    timeline = read_probes(RunFolder.open(Reference.parse(run).path))
    probes = range(len(timeline.titles)) if options.probe is None else [options.probe]
    if options.probe is not None and not 0 <= options.probe < len(timeline.titles):
        raise UsageError(
            f"There is no probe example {options.probe} in {run}.",
            f"It has {len(timeline.titles)}, which count from 0.",
        )
    if numbers.query is not None and numbers.query < 0:
        raise UsageError(f"Positions count from 0, and none is {numbers.query}.")
    if map.png:
        from regard.inspection.probe_picture import probes_picture
        from regard.inspection.render import save

        figure = probes_picture(timeline, probes[0], kind=map.kind, layer=map.layer, head=map.head)
        tell(f"drawn: {save(figure, map.png)}")
    if json:
        print_json(timeline.to_json())
        return
    if not numbers.lens:
        print_lines(timeline.lines(probes))
        return
    for number, probe in enumerate(probes):
        lines = [f"probe {probe}: {one_line(timeline.titles[probe])}", *timeline.lens_lines(probe, numbers.query)]
        print_lines(lines if number == 0 else ["", *lines])


def show_importance(run: Any, options: "RunOptions", *, png: str, json: bool) -> None:
    """Cut every head, or sublayer, in turn, and tell what that costs on a test set."""
    from regard.inspection.importance import measure_importance, parts_of
    from regard.inspection.importance_folder import Measurement

    if not options.data:
        raise UsageError("The importance of heads is measured on a test set.", "Give one: --data test.en test.de")
    check_number("--examples", options.examples, most=MOST_EXAMPLES)
    parts: Parts = "both" if options.heads and options.sublayers else "heads" if options.heads else "sublayers"
    metric: MeasuredBy = "score" if options.score else "loss"
    folder = RunFolder(run.reference.path)
    asked = Measurement(
        checkpoint=run.checkpoint.path.name,
        metric=metric,
        parts=parts,
        n_examples=options.examples,
        files=tuple(options.data),
    )
    with Waiting(
        "ablating", unit=parts if parts != "both" else "parts", total=len(parts_of(run.model, parts))
    ) as waiting:
        found = measure_importance(
            run.task,
            run.model,
            run.options({}),
            list(options.data),
            metric=metric,
            parts=parts,
            n_examples=options.examples,
            progress=lambda what, done: waiting(done),
            resume_file=asked.parts_file(folder),
        )
    asked.keep(folder, found.to_json())
    if png:
        from regard.inspection.importance_picture import importance_picture
        from regard.inspection.render import save

        tell(f"drawn: {save(importance_picture(found, title=str(run.reference)), png)}")
    if json:
        print_json(found.to_json())
        return
    print_lines(found.lines())
    note("a head can be spared here and matter elsewhere; and two that do the same are each spared alone")


def show_neighbours(run: Any, token: str, *, json: bool) -> None:
    """Show the tokens whose embeddings are nearest to a token's."""
    from regard.inspection.neighbours import nearest_neighbours

    tokenizer = run.task.vocabulary.source if run.spec.name == "translate" else getattr(run.task, "tokenizer", None)
    if tokenizer is None:
        raise UsageError(f"{run.reference} has no tokens.", "Name a run over text.")
    found = nearest_neighbours(run.model, tokenizer, token, N_NEIGHBOURS)
    if json:
        print_json({"token": token, "neighbours": [one.to_json() for one in found]})
        return
    print_table(("token", "cosine"), [(one.token.strip() or "␣", f"{one.similarity:.3f}") for one in found])
