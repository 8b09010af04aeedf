"""`regard compare`: several runs on one test set, side by side, with significance tests."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.engine import EngineOptions
from regard.cli.loading import load_runs
from regard.cli.options import (
    JsonFlag,
    ReadingOptions,
    ScoreOptions,
    SearchOptions,
    TestSetOption,
    ThreadsOption,
    named,
    settings_of,
)
from regard.cli.outputs import refuse_picture
from regard.cli.refusals import check_runs
from regard.cli.terminal import Stages, note, print_facts, print_json, print_lines, results, show_table, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.evaluation.comparison import Comparison


def compare(
    *runs: Annotated[str, Parameter(name="RUN", help="two runs or more; the first is the baseline")],
    data: TestSetOption,
    reading: ReadingOptions | None = None,
    scores: ScoreOptions | None = None,
    search: SearchOptions | None = None,
    by_length: Annotated[bool, Parameter(help="also show the first metric by source length")] = False,
    picture: Annotated[
        str, Parameter(metavar="FILE", help="draw the first metric by source length into a .png, .svg or .pdf file")
    ] = "",
    engine: EngineOptions | None = None,
    threads: ThreadsOption = 0,
    json: JsonFlag = False,
) -> None:
    """Compare runs of one task on a test set: size, throughput, scores, and whether differences are significant.

    Each run is tested against the first by paired bootstrap and by approximate randomisation (and by McNemar's test where
    an example is right or wrong); p < 0.05 is the usual mark of a significant difference. Of generated text, the examples
    on which the runs differ most are shown. Language models are paired over the documents of the text, or, where these
    are fewer than 100, over stretches of 1,000 characters; models with different vocabularies are compared by bits per
    byte only. Outputs are searched for by our own search, the reference, unless --engine names another.
    """
    if len(runs) < 2:
        raise UsageError("A comparison needs at least two runs.", "Name them: regard compare RUN RUN --data FILE…")
    options = named(reading or ReadingOptions(), scores or ScoreOptions(), search or SearchOptions())
    options |= {"by_length": by_length, "picture": picture}
    spec = check_runs("compare", runs, options)
    if picture:
        refuse_picture(picture, data)  # now, not after the work
    settings = settings_of(options, but=("by_length", "picture"))
    loaded = load_runs(runs, threads=threads, **(engine or EngineOptions()).loading("torch"))
    from regard import api

    with Stages(unit=spec.unit, others={"encoding": "lines", "decoding": "images"}) as stages:
        found = api.compare(loaded, data, **settings, progress=stages)
    if picture:
        draw_lengths(found, picture)
    show_comparison(found, json=json, by_length=by_length)


def show_comparison(found: "Comparison", *, json: bool, by_length: bool) -> None:
    """Show the tables of a comparison and the examples on which the runs differ most."""
    for text in found.notes:
        note(text)
    if json:
        print_json(found.to_json())
        return
    if found.unit != found.throughput_unit:
        tell(f"{found.amount:,} {found.throughput_unit}; paired over {found.n_units:,} {found.unit}")
    tables = [found.table(), found.significance_table(), found.length_table() if by_length else None]
    for number, table in enumerate(table for table in tables if table):
        print_lines([""] if number else [])
        show_table(table)
    for example in found.examples:
        print_lines(["", example.heading])
        print_facts(example.facts(), results())


def draw_lengths(found: "Comparison", file: str) -> None:
    """Draw the first metric by the length of the source, where there are sentences."""
    from regard.inspection.curves import lengths_picture
    from regard.inspection.render import save

    held = [bucket for bucket in found.results[0].by_length if bucket.sentences]
    scores = {
        row.system: [bucket.scores[0].value for bucket in row.by_length if bucket.sentences] for row in found.results
    }
    ranges, counts = [bucket.label for bucket in held], [bucket.sentences for bucket in held]
    tell(f"drawn: {save(lengths_picture(ranges, counts, scores, label=held[0].scores[0].label), file)}")
