"""`regard evaluate`: a run's scores on a test set."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from regard.cli.loading import load_runs
from regard.cli.options import JsonFlag, SearchOptions, SourceOption, TargetOption, as_fields, changed
from regard.cli.terminal import Waiting, note, print_json, print_table, tell
from regard.cli.translate import one_line
from regard.errors import UsageError

DataOption = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=True, metavar="FILE…", help="the test set: two aligned files, or one of any known format"
    ),
]
TokenizeOption = Annotated[
    str, Parameter(metavar="NAME", help="how sacreBLEU splits words for BLEU: 13a, intl, none, char, zh")
]


def evaluate(
    run: Annotated[str, Parameter(help="a run: runs/mine, runs/mine@best, runs/mine@400")],
    /,
    *,
    data: DataOption,
    source: SourceOption = "",
    target: TargetOption = "",
    tokenize: TokenizeOption = "13a",
    lowercase: Annotated[bool, Parameter(help="ignore case in BLEU and chrF")] = False,
    by_length: Annotated[bool, Parameter(help="score by the length of the source sentence, too")] = False,
    search: SearchOptions | None = None,
    output: Annotated[str, Parameter(metavar="FILE", help="write the translations there, a line each")] = "",
    json: JsonFlag = False,
) -> None:
    """Score a run on a test set: BLEU, chrF and TER by sacreBLEU with their signatures, and perplexity."""
    [loaded] = load_runs([run])
    if output:
        _write(output, [])  # a place that cannot be written to is told now, not after the translation
    with Waiting("translating", unit="sentences") as waiting:
        found = loaded.evaluate(
            data,
            source=source,
            target=target,
            decoding=changed(loaded.config.decoding, **as_fields(search)),
            tokenize=tokenize,
            lowercase=lowercase,
            by_length=by_length,
            progress=waiting,
        )
    if output:
        _write(output, [one_line(text) for text in found.translations])
    for text in found.notes:
        note(text)
    count = len(found.translations)
    facts: dict[str, Any] = {
        "run": run,
        "checkpoint": loaded.checkpoint.path.name,
        "sentences": count,
        "seconds": found.seconds,
        "sentences_per_second": count / found.seconds,
    }
    if json:
        scores = {score.name: {"value": score.value, "signature": score.signature} for score in found.scores}
        buckets = [
            {"words": one.label, "sentences": one.sentences, **{score.name: score.value for score in one.scores}}
            for one in found.by_length
        ]
        print_json({**facts, "scores": scores, **({"by_length": buckets} if by_length else {})})
        return
    tell(f"{run} ({facts['checkpoint']}): {count:,} sentences, {facts['sentences_per_second']:,.1f} a second")
    rows = [[score.label, f"{score.value:.2f}", score.signature] for score in found.scores]
    print_table(["score", "value", "signature"], rows, left=(0, 2))
    if by_length:
        print()
        rows = [
            [one.label, f"{one.sentences:,}", *(f"{score.value:.2f}" for score in one.scores)]
            for one in found.by_length
            if one.sentences
        ]
        print_table(["source words", "sentences", "BLEU", "chrF"], rows, left=(0,))


def _write(file: str, lines: list[str]) -> None:
    try:
        Path(file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.", "Name another file with --output.") from None
