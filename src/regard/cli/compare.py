"""`regard compare`: several runs on one test set, side by side."""

import dataclasses
from typing import Annotated

from cyclopts import Parameter

from regard.cli.evaluate import DataOption, TokenizeOption
from regard.cli.loading import load_runs
from regard.cli.options import JsonFlag, SearchOptions, SourceOption, TargetOption, as_fields, changed
from regard.cli.terminal import Stages, print_facts, print_json, print_lines, print_table, results
from regard.errors import UsageError


def compare(
    *runs: Annotated[str, Parameter(name="RUN", help="two runs or more; the first is the baseline")],
    data: DataOption,
    source: SourceOption = "",
    target: TargetOption = "",
    tokenize: TokenizeOption = "13a",
    search: SearchOptions | None = None,
    json: JsonFlag = False,
) -> None:
    """Compare runs on a test set: size, speed, scores, and whether a difference is more than chance.

    Each run is tested against the first by paired bootstrap and by approximate randomisation; a p below 0.05 is the usual
    mark of a real difference. The sentences on which the runs differ the most are shown.
    """
    if len(runs) < 2:
        raise UsageError("A comparison needs at least two runs.", "Name them: regard compare RUN RUN --data FILE FILE")
    loaded = load_runs(runs)
    for one in loaded:
        decoding = changed(one.config.decoding, **as_fields(search))
        one.config = dataclasses.replace(one.config, decoding=decoding)
    from regard import api

    stages = Stages(unit="sentences")
    try:
        found = api.compare(
            loaded,
            data,
            source=source,
            target=target,
            tokenize=tokenize,
            progress=lambda name, done: stages(f"translating with {name}", done),
        )
    finally:
        stages.close()
    if json:
        print_json(found.as_json())
        return
    print_table(*found.as_table())
    print_lines([""])
    print_table(*found.as_significance_table(), left=(0, 1))
    for example in found.examples:
        print_lines(["", f"line {example.line:,}, where chrF differs by {example.spread:.1f}"])
        rows = [("source", example.source), *(("expected", text) for text in example.references)]
        rows += [(f"{name} ({example.chrf[name]:.0f})", text) for name, text in example.outputs.items()]
        print_facts(rows, results())
