"""`regard evaluate`: a run's scores on a test set."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.loading import load_runs
from regard.cli.options import (
    ColumnOptions,
    JsonFlag,
    SearchOptions,
    SourceOption,
    TargetOption,
    as_fields,
    changed,
)
from regard.cli.outputs import refuse_output, write_output
from regard.cli.terminal import PATIENCE, Stages, note, print_json, print_lines, print_table, tell
from regard.cli.translate import one_line
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.api import Evaluation, Run

LABELLED = ("classify", "tag", "regress", "image")
WRITING = ("translate", "caption")
# What is counted while a run is scored; of running text tokens.
UNITS = {
    "translate": "sentences",
    "tag": "sentences",
    "classify": "rows",
    "regress": "rows",
    "image": "images",
    "caption": "images",
}
MOST_CLASSES = 20  # of a table that fits on a page

DataOption = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=True,
        metavar="FILE…",
        help="the test set: two aligned files, or one of any known format; for a model of running text any text; for "
        "labels tables, or words in columns; for images folders of class folders, IDX or NPZ",
    ),
]
TokenizeOption = Annotated[
    str, Parameter(metavar="NAME", help="how sacreBLEU splits words for BLEU: 13a, intl, none, char, zh")
]
OnBadOption = Annotated[
    str,
    Parameter(metavar="POLICY", help="of text and labelled data: stop when more than 1 % of it is bad, or keep-going"),
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
    blocks: Annotated[
        bool, Parameter(help="ResNet ablation: accuracy with each block removed, alone and cumulatively")
    ] = False,
    search: SearchOptions | None = None,
    columns: ColumnOptions | None = None,
    output: Annotated[
        str,
        Parameter(
            metavar="FILE",
            help="write the translations or captions there, a line each; or what was expected and predicted",
        ),
    ] = "",
    json: JsonFlag = False,
) -> None:
    """Score a run on a test set.

    A translator has BLEU, chrF and TER by sacreBLEU with their signatures, and the perplexity of the references. A
    language model has its loss, perplexity and bits per byte on all the text; one that guesses hidden words their loss and
    how many are right.

    A captioner has BLEU and chrF against all captions of an image, and the perplexity of these.

    A run of classify has accuracy, macro F1 and a table of which class was taken for which, one of image top-5 accuracy,
    too; one of tag accuracy, and of entities F1; one of regress Spearman's correlation, R² and the mean absolute error.
    """
    if output:  # now, not after the work
        refuse_output(output, data)
        refuse_output_inside(output, data)
    [loaded] = load_runs([run])
    task = loaded.config.task
    if task == "translate":
        refuse_option_of_text(run, on_bad)
    else:
        others = {"by_length": by_length, "to": target}
        if task not in WRITING:
            others |= {"lowercase": lowercase, "tokenize": tokenize != "13a"}
            refuse_search(run, search)
        refuse_options_of_translation(run, output=output if task not in (*LABELLED, *WRITING) else "", **others)
    refuse_columns(run, task, columns, source)
    if blocks and task != "image":
        raise UsageError(f"--blocks is for residual networks, and {run} is a run of {task}.", "Leave --blocks out.")
    if blocks and not hasattr(loaded.model, "without_blocks"):
        network = loaded.config.model.preset or "network of another kind"
        raise UsageError(f"--blocks is for residual networks, and {run} is a {network}.", "Leave --blocks out.")
    with Stages(
        unit=UNITS.get(task, "tokens"), others={"encoding": "lines", "decoding": "images"}, patience=PATIENCE
    ) as stages:
        found = loaded.evaluate(
            data,
            source=source,
            target=target,
            **as_fields(columns),
            decoding=changed(loaded.config.decoding, **as_fields(search)),
            tokenize=tokenize,
            lowercase=lowercase,
            by_length=by_length,
            on_bad=on_bad,
            blocks=blocks,
            progress=stages,
        )
    try:
        if output:
            write_output(output, list(output_lines(found)))
    finally:  # the scores are shown even if the disk is full
        show_scores(run, loaded, found, json=json, by_length=by_length)


def output_lines(found: "Evaluation") -> Iterator[str]:
    """Write translations; or labels that were expected and predicted, of words in columns as conlleval reads them.

    What is said of an image stands behind its file's name.
    """
    from regard.tasks.labelling.classification import Classified
    from regard.tasks.labelling.regression import Measured
    from regard.tasks.labelling.tagging import TaggedText

    names = [f"{one_line(place)}\t" for place in found.places] or itertools.repeat("")
    yield from (f"{name}{one_line(text)}" for name, text in zip(names, found.translations, strict=False))
    for name, gold, one in zip(names, found.gold, found.predictions, strict=False):
        match one:
            case Classified():
                yield f"{name}{one_line(gold)}\t{one_line(one.label)}\t{one.probability:.4f}"
            case TaggedText():
                yield from ("\t".join(cells) for cells in zip(one.words, gold, one.tags, strict=True))
                yield ""
            case Measured():
                yield f"{gold:.6g}\t{one.value:.6g}"


def show_scores(run: str, loaded: "Run", found: "Evaluation", *, json: bool, by_length: bool) -> None:
    """Show what was found, with tables of scores by length and of classes where there are such."""
    for text in found.notes:
        note(text)
    speed = found.count / found.seconds
    facts: dict[str, Any] = {
        "run": run,
        "checkpoint": loaded.checkpoint.path.name,
        found.unit: found.count,
        "seconds": found.seconds,
        f"{found.unit}_per_second": speed,
    }
    if json:
        print_json({**facts, **scores_as_json(found, by_length=by_length)})
        return
    tell(f"{run} ({facts['checkpoint']}): {found.count:,} {found.unit}, {speed:,.1f} a second")
    rows = [[score.label, score.text, score.signature] for score in found.scores]
    print_table(["score", "value", "signature"], rows, left=(0, 2))
    if by_length:
        print_lines([""])
        rows = [
            [one.label, f"{one.sentences:,}", *(f"{score.value:.2f}" for score in one.scores)]
            for one in found.by_length
            if one.sentences
        ]
        print_table(["source words", "sentences", "BLEU", "chrF"], rows, left=(0,))
    if found.confusion:
        show_confusion(found)
    if found.blocks:
        show_blocks(found)


def scores_as_json(found: "Evaluation", *, by_length: bool) -> dict[str, Any]:
    """Return the scores, and the tables that belong to them, as JSON takes them."""
    facts: dict[str, Any] = {
        "scores": {score.name: {"value": score.value, "signature": score.signature} for score in found.scores}
    }
    if by_length:
        facts["by_length"] = [
            {"words": one.label, "sentences": one.sentences, **{score.name: score.value for score in one.scores}}
            for one in found.by_length
        ]
    if found.labels:
        facts["labels"] = found.labels
    if found.confusion:
        facts["confusion"] = found.confusion
    if found.blocks:
        facts["blocks"] = [dataclasses.asdict(one) for one in found.blocks]
    return {**facts, "notes": found.notes}


def show_confusion(found: "Evaluation") -> None:
    """Show which class was taken for which, a row for each that was expected."""
    if len(found.labels) > MOST_CLASSES:
        note(f"which of the {len(found.labels):,} classes was taken for which is in --json")
        return
    print_lines([""])
    rows = [[label, *(f"{count:,}" for count in row)] for label, row in zip(found.labels, found.confusion, strict=True)]
    print_table(["expected \\ predicted", *found.labels], rows, left=(0,))


def show_blocks(found: "Evaluation") -> None:
    """Show the accuracy without each block, a row for each, that first whose lack harms least."""
    whole = next(score.value for score in found.scores if score.name == "accuracy")
    print_lines([""])
    rows = [[one.name, f"{one.alone:.2f}", f"{one.cumulative:.2f}"] for one in found.blocks]
    print_table(["block removed", "accuracy, alone", "cumulative"], [["nothing", f"{whole:.2f}", ""], *rows], left=(0,))


def refuse_output_inside(output: str, data: Sequence[str]) -> None:
    """Refuse to write over a file in a folder that is scored."""
    path = Path(output).resolve()
    if path.exists() and any(path.is_relative_to(Path(one).resolve()) for one in data if Path(one).is_dir()):
        raise UsageError(f"{output} lies in the test set.", "Name another file with --output.")


def refuse_option_of_text(run: str, on_bad: str) -> None:
    """Refuse a policy for bad lines where every line has to be good."""
    if on_bad:
        raise UsageError(
            f"--on-bad is for running text, and {run} translates pairs, of which every one counts.",
            "Leave --on-bad out.",
        )


def refuse_search(run: str, search: SearchOptions | None) -> None:
    """Refuse settings of a search where nothing is searched for."""
    refuse_options_of_translation(run, **{name: value is not None for name, value in as_fields(search).items()})


def refuse_options_of_translation(run: str, **options: object) -> None:
    """Refuse what says something about translations only."""
    for name, value in options.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for translations, and {run} translates nothing.", f"Leave {option} out.")


def refuse_columns(run: str, task: str, columns: ColumnOptions | None, source: str) -> None:
    """Refuse columns of labelled data where there are none, and those of another kind of data."""
    if task == "image" and source:
        raise UsageError(f"--from names a column, and {run} reads images.", "Leave --from out.")
    if task in LABELLED and source:
        raise UsageError(f"--from is for translations and running text, and {run} labels rows.", "Give --text instead.")
    tables = {"text_b", "split_column", "split"}
    for name, value in as_fields(columns).items():
        option = f"--{name.replace('_', '-')}"
        if task == "caption" and name in ("text", "split_column", "split"):
            continue
        if value and task not in LABELLED:
            raise UsageError(f"{option} is for labelled data, and {run} reads none.", f"Leave {option} out.")
        if value and task == "image" and name != "split":
            raise UsageError(f"{option} names a column, and {run} reads images.", f"Leave {option} out.")
        if value and task == "tag" and name in tables:
            raise UsageError(f"{option} is for tables, and {run} tags words in columns.", f"Leave {option} out.")
