"""`regard evaluate`: a run's scores on a test set."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.loading import load_runs
from regard.cli.options import JsonFlag, SearchOptions, SourceOption, TargetOption, as_fields, changed
from regard.cli.terminal import PATIENCE, Stages, note, print_json, print_lines, print_table, tell
from regard.cli.translate import one_line
from regard.errors import UsageError
from regard.runs.disk import temporary_name, write_atomically

if TYPE_CHECKING:
    from regard.api import Evaluation, Run

DataOption = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=True,
        metavar="FILE…",
        help="the test set: two aligned files, or one of any known format; for a language model any text",
    ),
]
TokenizeOption = Annotated[
    str, Parameter(metavar="NAME", help="how sacreBLEU splits words for BLEU: 13a, intl, none, char, zh")
]
OnBadOption = Annotated[
    str, Parameter(metavar="POLICY", help="of text: stop when more than 1 % of the lines are bad, or keep-going")
]


def evaluate(
    run: Annotated[str, Parameter(help="a run: runs/mine, runs/mine@best, runs/mine@400")],
    /,
    *,
    data: DataOption,
    source: SourceOption = "",
    target: TargetOption = "",
    on_bad: OnBadOption = "",
    tokenize: TokenizeOption = "13a",
    lowercase: Annotated[bool, Parameter(help="ignore case in BLEU and chrF")] = False,
    by_length: Annotated[bool, Parameter(help="score by the length of the source sentence, too")] = False,
    search: SearchOptions | None = None,
    output: Annotated[str, Parameter(metavar="FILE", help="write the translations there, a line each")] = "",
    json: JsonFlag = False,
) -> None:
    """Score a run on a test set.

    A translator has BLEU, chrF and TER by sacreBLEU with their signatures, and the perplexity of the references. A
    language model has its loss, perplexity and bits per byte on all the text.
    """
    if output:
        refuse_output(output, data)  # now, not after the translation
    [loaded] = load_runs([run])
    translates = loaded.config.task == "translate"
    if translates:
        refuse_option_of_text(run, on_bad)
    else:
        others = {"output": output, "by_length": by_length, "lowercase": lowercase, "to": target}
        refuse_options_of_translation(run, search, **others, tokenize=tokenize != "13a")
    unit = "sentences" if translates else "tokens"
    with Stages(unit=unit, others={"encoding": "lines"}, patience=PATIENCE) as stages:
        found = loaded.evaluate(
            data,
            source=source,
            target=target,
            decoding=changed(loaded.config.decoding, **as_fields(search)),
            tokenize=tokenize,
            lowercase=lowercase,
            by_length=by_length,
            on_bad=on_bad,
            progress=stages,
        )
    try:
        if output:
            write_output(output, [one_line(text) for text in found.translations])
    finally:  # the scores are shown even if the disk is full
        show_scores(run, loaded, found, json=json, by_length=by_length)


def show_scores(run: str, loaded: "Run", found: "Evaluation", *, json: bool, by_length: bool) -> None:
    """Show what was found, with a table of scores by length if it was asked for."""
    for text in found.notes:
        note(text)
    facts: dict[str, Any] = {
        "run": run,
        "checkpoint": loaded.checkpoint.path.name,
        found.unit: found.count,
        "seconds": found.seconds,
        f"{found.unit}_per_second": found.count / found.seconds,
    }
    if json:
        scores = {score.name: {"value": score.value, "signature": score.signature} for score in found.scores}
        buckets = [
            {"words": one.label, "sentences": one.sentences, **{score.name: score.value for score in one.scores}}
            for one in found.by_length
        ]
        print_json({**facts, "scores": scores, **({"by_length": buckets} if by_length else {}), "notes": found.notes})
        return
    speed = found.count / found.seconds
    tell(f"{run} ({facts['checkpoint']}): {found.count:,} {found.unit}, {speed:,.1f} a second")
    digits = 2 if loaded.config.task == "translate" else 4
    rows = [[score.label, f"{score.value:.{digits}f}", score.signature] for score in found.scores]
    print_table(["score", "value", "signature"], rows, left=(0, 2))
    if by_length:
        print_lines([""])
        rows = [
            [one.label, f"{one.sentences:,}", *(f"{score.value:.2f}" for score in one.scores)]
            for one in found.by_length
            if one.sentences
        ]
        print_table(["source words", "sentences", "BLEU", "chrF"], rows, left=(0,))


def refuse_option_of_text(run: str, on_bad: str) -> None:
    """Refuse a policy for bad lines where every line has to be good."""
    if on_bad:
        raise UsageError(
            f"--on-bad is for running text, and {run} translates pairs, of which every one counts.",
            "Leave --on-bad out.",
        )


def refuse_options_of_translation(run: str, search: SearchOptions | None, **options: object) -> None:
    """Refuse what says something about translations only."""
    given = {name: value is not None for name, value in as_fields(search).items()}
    for name, value in {**options, **given}.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for translations, and {run} translates nothing.", f"Leave {option} out.")


def refuse_output(file: str, data: Sequence[str]) -> None:
    """Refuse a file that cannot be written, or that the test set is read from. What it holds stays as it is."""
    path = Path(file)
    remedy = "Name another file with --output."
    if path.is_dir():
        raise UsageError(f"{file} is a folder.", remedy)
    if any(Path(one).exists() and path.exists() and path.samefile(one) for one in data):
        raise UsageError(f"{file} is a file of the test set.", remedy)
    if not is_replaced(path):
        return
    try:
        if path.exists():
            path.open("ab").close()
        trial = temporary_name(path.resolve(), purpose="trial")
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.", remedy) from None


def write_output(file: str, lines: Sequence[str]) -> None:
    """Write all lines at once: a file holds the old text or the new one, never a part."""
    path, text = Path(file), "".join(f"{line}\n" for line in lines).encode()
    if is_replaced(path):
        write_atomically(path.resolve(), text)
    else:
        path.write_bytes(text)


def is_replaced(path: Path) -> bool:
    """Whether a new file takes the place of an old one; a device or a pipe is written into."""
    return path.is_file() or not path.exists()
