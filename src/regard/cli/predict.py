"""`regard predict`: classes, tags, numbers and captions, and what is masked in a text; of arguments, lines and files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from regard.cli.attention import check_attention_picture, draw_attention
from regard.cli.lines import Lines, Predictor, Shown, note_files
from regard.cli.loading import load_runs
from regard.cli.options import (
    JsonFlag,
    NBestOption,
    RunArgument,
    SamplingOptions,
    SearchOptions,
    SeedOption,
    ThreadsOption,
    check_number,
    explained,
    given,
    named,
)
from regard.cli.outputs import refuse_output, write_output
from regard.cli.predict_file import predict_file
from regard.cli.predict_images import ImagePredictions, check_picture
from regard.cli.predict_text import predict_lines
from regard.cli.processes import PoolSettings, ProcessesOption, open_pool, process_loading, refuse_processes
from regard.cli.refusals import check_runs
from regard.cli.terminal import Waiting, print_lines
from regard.config import DataConfig
from regard.errors import UsageError
from regard.tasks.spec import TaskSpec


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Where inputs come from, beside the command line."""

    data: Annotated[
        str,
        Parameter(
            metavar="FILE", help="a table (CSV, TSV, JSONL), which gets new columns; a CoNLL file; an NPZ of vectors"
        ),
    ] = ""
    text: Annotated[str, explained(DataConfig, "text", metavar="COLUMN")] = ""
    text_b: Annotated[
        str, Parameter(metavar="TEXT", help="the second text of a pair; with --data, the column of the second texts")
    ] = ""
    on_bad: Annotated[
        str,
        Parameter(
            metavar="POLICY",
            help="of --data, stop if more than 1 % of the rows are bad, or keep-going; of standard input, keep-going (an "
            "empty line answers a bad one; the default) or stop",
        ),
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is shown of predictions, and where."""

    top: Annotated[
        int | None, Parameter(metavar="N", help="the N likeliest classes, or guesses per [MASK], with probabilities")
    ] = None
    output: Annotated[str, Parameter(metavar="FILE", help="write there instead of to standard output")] = ""
    picture: Annotated[
        str,
        Parameter(
            metavar="FILE",
            help="draw the attention to the one text or image given; of several images, each with its prediction",
        ),
    ] = ""
    json: JsonFlag = False


def predict(
    run: RunArgument,
    /,
    *inputs: Annotated[
        str, Parameter(name="INPUT", help="texts, or image files; without them standard input, one per line")
    ],
    source: InputOptions | None = None,
    target: OutputOptions | None = None,
    n_best: NBestOption = None,
    search: SearchOptions | None = None,
    sampling: SamplingOptions | None = None,
    seed: SeedOption = None,
    processes: ProcessesOption = 1,
    threads: ThreadsOption = 0,
) -> None:
    """Predict classes, tags, numbers or captions; fill in masked words.

    Classification prints one line per input: class, tab, probability. Regression and similarity print the number. Tagging
    splits each line at white space and prints one word and its tag per line, and a blank line after each input. Where a
    run was trained on pairs of texts, the second is --text-b, or follows a tab.

    A run trained with masks fills in each [MASK]: regard predict RUN "The [MASK] barks."

    Image classification prints file name, class and probability, separated by tabs; captioning the file name and the
    caption; with --n-best one line per caption, its score before it.

    With --data the file is written again with the columns `prediction` and `probability`; a CoNLL file with the tags as
    its last column. A bad row keeps its place, without a prediction. --json prints one object per input, with all
    probabilities.
    """
    source, target = source or InputOptions(), target or OutputOptions()
    decoding = named(search or SearchOptions(), sampling or SamplingOptions(), n_best=n_best, seed=seed)
    shown = {"top": target.top, "picture": target.picture}
    reading = {"text": source.text, "text_b": source.text_b, "on_bad": source.on_bad}
    spec = check_runs("predict", [run], {**reading, **shown, **decoding})
    check_inputs(run, spec, inputs, source)
    check_output(spec, inputs, source, target)
    if inputs or spec.reads_images or target.picture:
        refuse_processes(processes)
    loading = process_loading(processes, threads, {})
    [loaded] = load_runs([run], **loading)
    # What some tasks want to know of a command, beside settings.
    own = {"top": max(1, target.top or 0), "skip_unreadable": len(inputs) != 1}
    settings = {**given(decoding), **{name: own[name] for name in own if hasattr(loaded.task.options, name)}}
    show = Shown(top=target.top or 0, json=target.json)
    unit = spec.unit if spec.reads_images else "rows" if source.data else "lines"
    pool = open_pool(processes, PoolSettings(runs=[run], loading=loading, settings=settings))
    with pool as processed, Waiting("predicting", unit=unit, total=len(inputs) or None) as waiting:
        predictor = Predictor(loaded, loaded.options(settings), waiting, pool=processed)
        if spec.reads_images:
            images = ImagePredictions(predictor, show, output=target.output, picture=target.picture)
            write(images.lines(inputs), target.output)
            images.finish()
        elif source.data:
            write(predict_file(predictor, show, source.data, **reading), target.output)
        else:
            read = Lines(inputs, on_bad=source.on_bad)
            write(predict_lines(predictor, show, read, text_b=source.text_b), target.output)
            if target.picture:
                [result], options = predictor.latest
                draw_attention(loaded, inputs[0], result, options, target.picture)


def write(found: Iterable[list[str]], output: str) -> None:
    """Print lines as they come; or write all of them into a file, if there was no error."""
    if output:
        write_output(output, [line for lines in found for line in lines])
        return
    for lines in found:
        print_lines(lines)


def check_inputs(run: str, spec: TaskSpec, inputs: Sequence[str], source: InputOptions) -> None:
    """Refuse inputs of two sources, and a table where there are none to predict on."""
    if source.data and not spec.takes_option("predict", "data"):
        raise UsageError(
            f"--data does not apply to {spec.name} runs.",
            f"Give the inputs themselves: regard predict {run} {spec.example}",
        )
    if source.data and inputs:
        raise UsageError("Inputs come from --data or from the command line, not from both.", "Leave one of them out.")
    if source.text and not source.data:
        raise UsageError("--text names a column, but there is no table.", "Give one with --data, or leave --text out.")
    if source.on_bad and inputs:
        raise UsageError("--on-bad is for files and standard input.", "Leave it out.")
    if not spec.reads_images:
        note_files(inputs, tables=spec.takes_option("predict", "data"))


def check_output(spec: TaskSpec, inputs: Sequence[str], source: InputOptions, target: OutputOptions) -> None:
    """Refuse numbers and files that cannot be shown or written, before anything is loaded."""
    check_number("--top", target.top, most=10_000)
    if target.output:
        refuse_output(target.output, [source.data] if source.data else [], role="the file that is read")
    if target.output and source.data and not target.json:
        refuse_other_format(target.output, source.data)
    if target.picture and spec.reads_images:
        check_picture(inputs, picture=target.picture, output=target.output)
    elif target.picture:
        check_attention_picture(target.picture, inputs)


def refuse_other_format(output: str, data: str) -> None:
    """Refuse the name of a format that the file which is read does not have, and so is not written in."""
    from regard.data.formats.registry import TEXT, format_of

    if format_of(data) is not TEXT and format_of(output) not in (TEXT, format_of(data)):
        raise UsageError(
            f"{data} is written in its own format, but {output} has the name of another.",
            f"End the name given with --output as {data} does.",
        )
