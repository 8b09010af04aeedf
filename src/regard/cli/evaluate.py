"""`regard evaluate`: a run's scores on a test set."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.engine import EngineOptions, open_engine
from regard.cli.loading import load_runs
from regard.cli.options import (
    JsonFlag,
    ReadingOptions,
    RunArgument,
    ScoreOptions,
    SearchOptions,
    TestSetOption,
    ThreadsOption,
    named,
    settings_of,
)
from regard.cli.outputs import refuse_output, refuse_picture, write_output
from regard.cli.refusals import check_runs
from regard.cli.terminal import PATIENCE, Stages, note, print_json, print_lines, show_table, tell

if TYPE_CHECKING:
    from regard.api import Run
    from regard.tasks.evaluation import Evaluation


def evaluate(
    run: RunArgument,
    /,
    *,
    data: TestSetOption,
    reading: ReadingOptions | None = None,
    scores: ScoreOptions | None = None,
    search: SearchOptions | None = None,
    by_length: Annotated[bool, Parameter(help="also score each range of source lengths")] = False,
    blocks: Annotated[
        bool, Parameter(help="ResNet ablation: accuracy with each block removed, alone and cumulatively")
    ] = False,
    output: Annotated[
        str,
        Parameter(
            metavar="FILE",
            help="write what was generated there, one per line, an empty one for a pair left out; or expected and"
            " predicted labels",
        ),
    ] = "",
    picture: Annotated[
        str, Parameter(metavar="FILE", help="draw the confusion matrix into a .png, .svg or .pdf file")
    ] = "",
    engine: EngineOptions | None = None,
    threads: ThreadsOption = 0,
    json: JsonFlag = False,
) -> None:
    """Score a run on a test set.

    Translations and captions: BLEU, chrF and TER by sacreBLEU with their signatures (or --metrics), and the perplexity of
    the references. Language models: loss, perplexity and bits per byte of the text; of masked ones, loss, perplexity and
    accuracy of the masked tokens.

    Classes of texts and images: accuracy, macro F1, precision, recall and F1 per class, the confusion matrix; of images
    also top-5 accuracy. Tags: accuracy, and precision, recall and F1 of entities, also per type. Regression: Spearman,
    R² and mean absolute error; similarity: Spearman and Pearson.

    Beside the scores stand those of simple baselines that were learned from the same training data, such as naive Bayes;
    a model that does not beat them is told so. Outputs are searched for by our own search, the reference; with --engine
    ctranslate2 by that, and the signatures say so.
    """
    options = named(reading or ReadingOptions(), scores or ScoreOptions(), search or SearchOptions())
    options |= {"by_length": by_length, "blocks": blocks, "output": output, "picture": picture}
    spec = check_runs("evaluate", [run], options)
    if output:
        refuse_output(output, data)  # now, not after the work
    if picture:
        refuse_picture(picture, data)
    settings = settings_of(options, but=("output", "picture"))
    [loaded] = load_runs([run], threads=threads, **(engine or EngineOptions()).loading("torch"))
    unit = getattr(loaded.task, "unit", spec.unit)  # sequences, where these are of vectors
    stages = Stages(unit=unit, others={"encoding": "lines", "decoding": "images"}, patience=PATIENCE)
    chosen = loaded.options({**settings, "progress": stages})
    if spec.generates and spec.takes_option("evaluate", "metrics"):
        chosen = replace(chosen, log_probs=False)  # which nobody is shown, and another engine would read back
        open_engine(loaded, chosen)
    with stages:
        found = loaded.evaluate_with(data, chosen)
    try:
        if output:
            write_output(output, found.output)
            note_empty_lines(output, found)
        if picture:
            draw_confusion(found, picture, title=run)
    finally:  # the scores are shown even if the disk is full
        show_evaluation(run, loaded, found, json=json)


def note_empty_lines(output: str, found: "Evaluation") -> None:
    """Say that lines are empty, where some pairs were left out."""
    if found.generated is not None and len(found.output) > found.count:
        note(f"{output} has an empty line for each pair left out, so that it stays aligned with the test set")


def show_evaluation(run: str, loaded: "Run[Any]", found: "Evaluation", *, json: bool) -> None:
    """Show the scores, and the tables that belong to them."""
    for text in found.notes:
        note(text)
    checkpoint = loaded.checkpoint.path.name
    if json:
        print_json({"run": run, "checkpoint": checkpoint, **found.to_json()})
        return
    speed = f", {found.count / found.seconds:,.1f} per second" if found.seconds else ""
    tell(f"{run} ({checkpoint}): {found.count:,} {found.unit}{speed}")
    show_table(found.table())
    for section in found.sections:
        if section.table is not None:
            print_lines([""])
            show_table(section.table)
    if found.confusion is not None and "confusion" not in {one.name for one in found.sections if one.table is not None}:
        note(f"the confusion matrix of {len(found.confusion.labels):,} classes is in --json and --picture")
    for line in found.advice:
        tell(line)


def draw_confusion(found: "Evaluation", file: str, *, title: str) -> None:
    """Draw which class was predicted for which."""
    from regard.inspection.confusion_picture import confusion_picture
    from regard.inspection.render import save

    assert found.confusion is not None  # --picture applies to tasks that have one
    tell(f"drawn: {save(confusion_picture(found.confusion, title=title), file)}")
