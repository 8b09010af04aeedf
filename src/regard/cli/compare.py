"""`regard compare`: several runs on one test set, side by side."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.evaluate import (
    DataOption,
    OnBadOption,
    TokenizeOption,
    refuse_option_of_text,
    refuse_options_of_translation,
    refuse_search,
)
from regard.cli.loading import load_runs
from regard.cli.options import JsonFlag, SearchOptions, SourceOption, TargetOption, as_fields, changed
from regard.cli.terminal import Stages, note, print_facts, print_json, print_lines, print_table, results, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.evaluation.comparison import Comparison


def compare(
    *runs: Annotated[str, Parameter(name="RUN", help="two runs or more; the first is the baseline")],
    data: DataOption,
    source: SourceOption = "",
    target: TargetOption = "",
    on_bad: OnBadOption = "",
    tokenize: TokenizeOption = "13a",
    search: SearchOptions | None = None,
    by_length: Annotated[bool, Parameter(help="show BLEU by the length of the source sentence, too")] = False,
    picture: Annotated[str, Parameter(metavar="FILE", help="draw BLEU by length into a .png, .svg or .pdf file")] = "",
    json: JsonFlag = False,
) -> None:
    """Compare runs on a test set: size, speed, scores, and whether a difference is more than chance.

    Each run is tested against the first by paired bootstrap and by approximate randomisation; a p below 0.05 is the usual
    mark of a real difference. Of translators the sentences are shown on which they differ the most. Language models are
    paired over the documents of the text, or, where these are fewer than 100, over stretches of 1,000 characters; models
    of different vocabularies are compared by bits per byte alone.
    """
    if len(runs) < 2:
        raise UsageError("A comparison needs at least two runs.", "Name them: regard compare RUN RUN --data FILE FILE")
    loaded = load_runs(runs)
    translates = loaded[0].config.task == "translate"
    if translates:
        refuse_option_of_text(runs[0], on_bad)
    else:
        others = {"to": target, "tokenize": tokenize != "13a", "by_length": by_length, "picture": picture}
        refuse_search(runs[0], search)
        refuse_options_of_translation(runs[0], **others)
    for one in loaded:
        decoding = changed(one.config.decoding, **as_fields(search))
        one.config = dataclasses.replace(one.config, decoding=decoding)
    from regard import api

    with Stages(unit="sentences" if translates else "tokens", others={"encoding": "lines"}) as stages:
        found = api.compare(
            loaded, data, source=source, target=target, tokenize=tokenize, on_bad=on_bad, progress=stages
        )
    if picture:
        draw_lengths(found, picture)
    for text in found.notes:
        note(text)
    if json:
        print_json(found.to_json())
        return
    if found.unit != found.throughput_unit:
        tell(f"{found.amount:,} {found.throughput_unit}; paired are {found.n_units:,} {found.unit}")
    tables = [found.table(), found.significance_table(), found.length_table() if by_length else None]
    for number, table in enumerate(table for table in tables if table):
        print_lines([""] if number else [])
        print_table(table.headings, table.rows, left=table.left)
    for example in found.examples:
        print_lines(["", example.heading])
        print_facts(example.facts(), results())


def draw_lengths(found: "Comparison", file: str) -> None:
    """Draw BLEU by the length of the source, where there are sentences."""
    from regard.inspection.curves import lengths_picture
    from regard.inspection.render import save

    held = [bucket for bucket in found.results[0].by_length if bucket.sentences]
    scores = {
        row.system: [bucket.scores[0].value for bucket in row.by_length if bucket.sentences] for row in found.results
    }
    ranges, counts = [bucket.label for bucket in held], [bucket.sentences for bucket in held]
    note(f"drawn: {save(lengths_picture(ranges, counts, scores, label=held[0].scores[0].label), file)}")
