"""`regard predict`: labels, tags and numbers of texts, what was hidden in them, and what images show."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.loading import load_runs
from regard.cli.options import (
    SAMPLING,
    SEARCH,
    JsonFlag,
    SamplingOptions,
    SearchOptions,
    as_fields,
    changed,
    explained,
)
from regard.cli.outputs import refuse_output, write_output
from regard.cli.predict_images import TASKS as IMAGE_TASKS
from regard.cli.predict_images import check_image_options, check_picture, draw_picture, predict_images, refuse_unread
from regard.cli.prediction_view import as_json, as_lines
from regard.cli.terminal import Waiting, note, print_lines
from regard.cli.translate import chunks, listed, one_line
from regard.config import DataConfig, DecodingConfig
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.api import Prediction, Run


def predict(
    run: Annotated[str, Parameter(help="a run: runs/mine, runs/mine@best, runs/mine@400")],
    /,
    *inputs: Annotated[
        str,
        Parameter(name="INPUT", help="texts, or images by their file names; without them standard input, line by line"),
    ],
    data: Annotated[
        str,
        Parameter(
            metavar="FILE",
            help="a table (CSV, TSV, JSONL), which gets new columns; columns of words; an NPZ of vectors",
        ),
    ] = "",
    text: Annotated[str, explained(DataConfig, "text", metavar="COLUMN")] = "",
    text_b: Annotated[
        str, Parameter(metavar="TEXT", help="the second text of a pair; with --data, the column that holds it")
    ] = "",
    top: Annotated[
        int | None,
        Parameter(metavar="N", help="the N likeliest classes, or guesses for each blank, with probabilities"),
    ] = None,
    output: Annotated[str, Parameter(metavar="FILE", help="write there instead of to standard output")] = "",
    picture: Annotated[
        str,
        Parameter(
            metavar="FILE",
            help="draw the images with what is said of each; of one with its caption, where the model looked",
        ),
    ] = "",
    n_best: Annotated[int | None, explained(DecodingConfig, "n_best", group=SEARCH)] = None,
    search: SearchOptions | None = None,
    sampling: SamplingOptions | None = None,
    seed: Annotated[int, Parameter(group=SAMPLING, help="seed of sampling (1)")] = 1,
    json: JsonFlag = False,
) -> None:
    """Say what texts and images are: a class with its probability, a tag for each word, a number, a caption; fill blanks.

    A run of classify writes a line for each that comes in: the class, a tab, its probability. One of regress writes the
    number; one of tag the words of each line, which white space parts, each with its tag on a line of its own, and a blank
    line behind them. Where a run was trained on two texts, the second is --text-b, or stands behind a tab.

    A run of mask or denoise fills each [MASK]: regard predict RUN "The [MASK] barks."

    A run of image writes a line for each image: its file's name, the class and its probability, with tabs between them;
    one of caption the name and the caption; with --n-best each of several captions behind its score.

    With --data the file comes out again as it is, with the columns `prediction` and `probability`; words in columns with
    the tag as the last. --json writes an object a line, with all probabilities.
    """
    check_options(inputs, data=data, text=text, top=top, output=output, json=json)
    [loaded] = load_runs([run])
    images = loaded.config.task in IMAGE_TASKS
    if not images:
        tell_files(inputs, data=True)
    check_task(loaded, data=data, text_b=text_b, top=top)
    if picture:
        check_picture(loaded, inputs, picture=picture, output=output)
    options = {"n_best": n_best, **as_fields(search), **as_fields(sampling)}
    refuse_search(loaded, options)
    writing = changed(loaded.config.decoding, **options)
    unread: list[str] = []
    done: list[str] = []
    sink = done.extend if output else print_lines
    with Waiting(
        "predicting", unit="images" if images else "rows" if data else "lines", total=len(inputs) or None
    ) as waiting:
        if data:
            from regard.cli.predict_data import predict_file

            found = predict_file(loaded, data, text=text, text_b=text_b, top=top or 0, json=json, progress=waiting)
        elif images:
            written = {"--output": output, "--picture": picture}
            found = predict_images(
                loaded,
                inputs,
                top=top or 0,
                json=json,
                writing=writing,
                seed=seed,
                written=written,
                unread=unread,
                progress=waiting,
            )
        else:
            found = predict_lines(loaded, inputs, text_b=text_b, top=top or 0, json=json, progress=waiting)
        for lines in found:
            waiting.hide()
            sink(lines)
    if output:
        write_output(output, done)
    if picture and (drawn := [file for file in inputs if file not in unread]):
        draw_picture(loaded, drawn, picture, writing=writing, seed=seed)
    refuse_unread(unread)


def refuse_search(loaded: "Run", options: Mapping[str, Any]) -> None:
    """Refuse settings of a search where nothing is searched for."""
    for name, value in options.items():
        if value is not None and loaded.config.task != "caption":
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for captions, and {loaded.reference} writes none.", f"Leave {option} out.")


def predict_lines(
    loaded: "Run", inputs: Sequence[str], *, text_b: str, top: int, json: bool, progress: Waiting
) -> Iterator[list[str]]:
    """Yield what is written of the inputs, or of the lines of standard input, some at a time."""
    from regard.tasks.denoising.fill_mask import BLANK

    done = 0
    long: list[int] = []
    whole: list[int] = []
    for lines in chunks(inputs):
        pairs = [(line, text_b) for line in lines] if inputs else list(two_columns(loaded, lines, text_b, done))
        # Of nothing there is nothing to say; of standard input, what has no blank comes out as it is.
        written = [number for number, (text, _) in enumerate(pairs) if text.strip()]
        unasked = [] if inputs else [number for number in written if lacks_blank(loaded, pairs[number][0])]
        whole += [done + number + 1 for number in unasked]
        written = [number for number in written if number not in unasked]
        found = loaded.predict(
            [pairs[number][0] for number in written],
            texts_b=[pairs[number][1] for number in written],
            top=max(1, top),
            progress=progress.after(done),
        )
        answers = dict(zip(written, found, strict=True))
        long += [done + number + 1 for number, one in answers.items() if is_long(one)]
        yield [
            line
            for number, pair in enumerate(pairs)
            for line in (
                [json_line(done + number + 1, pair, answers.get(number), top=top)]
                if json
                else as_lines(answers[number], top=top)
                if number in answers
                else [one_line(pair[0].strip())]
            )
        ]
        done += len(lines)
    tell_long(loaded, long)
    if whole:
        note(f"without a {BLANK}, and written as they are: {listed(whole)}")


def two_columns(loaded: "Run", lines: Sequence[str], text_b: str, before: int) -> Iterator[tuple[str, str]]:
    """Yield the text of each line of standard input and its second text; `before` so many lines came before these."""
    for number, line in enumerate(lines, start=before + 1):
        if text_b or loaded.config.task not in ("classify", "regress"):
            yield line, text_b
            continue
        text, *others = line.split("\t")
        if len(others) > 1:
            raise DataError(
                f"standard input, line {number}: a text, or two with a tab between them, were expected, and "
                f"{len(others) + 1} columns came.",
                "Give a table as a file: --data FILE.tsv",
            )
        yield text, others[0] if others else ""


def lacks_blank(loaded: "Run", line: str) -> bool:
    """Whether nothing is to be guessed in a line, where that is the task."""
    from regard.tasks.denoising.fill_mask import has_blank

    return loaded.config.task in ("mask", "denoise") and not has_blank(line)


def json_line(number: int, pair: tuple[str, str], found: "Prediction | None", *, top: int) -> str:
    """Write what is known of a text as a line of JSON."""
    from regard.runs import disk

    facts: dict[str, Any] = {"line": number, "text": pair[0]}
    facts |= {"text_b": pair[1]} if pair[1] else {}
    return disk.as_json({**facts, **(as_json(found, top=top) if found is not None else {})}).decode()


def is_long(found: "Prediction") -> bool:
    """Whether a text was longer than the model reads at once."""
    return bool(getattr(found, "cut", False)) or getattr(found, "n_parts", 1) > 1


def tell_long(loaded: "Run", lines: Sequence[int]) -> None:
    """Say which texts were longer than the model reads, if there are such."""
    if lines:
        fate = "read in parts" if loaded.config.task == "tag" else "cut at the end"
        note(f"longer than the model reads, and {fate}: {listed(lines)}")


def tell_files(inputs: Sequence[str], *, data: bool = False) -> None:
    """Hint at texts that are names of files: perhaps their content was meant."""
    for text in inputs:
        if os.path.isfile(text):  # noqa: PTH113 (a Path would refuse a text that is too long for a name)
            table = f"--data {text} for a table, " if data else ""
            note(
                f"'{text}' is taken as a text, and there is a file of that name. Its content: {table}< {text} for lines"
            )


def check_options(inputs: Sequence[str], *, data: str, text: str, top: int | None, output: str, json: bool) -> None:
    """Refuse options that do not go together, before anything is loaded."""
    if data and inputs:
        raise UsageError("Texts come from --data or from the command line, not from both.", "Leave one of them out.")
    if text and not data:
        raise UsageError("--text names a column, and no table is given.", "Give one with --data, or leave --text out.")
    if top is not None and top < 1:
        raise UsageError(f"--top is at least 1, not {top}.", "Give --top a larger number.")
    if output:
        refuse_output(output, [data] if data else [], role="the file that is read")
    if output and data and not json:
        refuse_other_format(output, data)


def refuse_other_format(output: str, data: str) -> None:
    """Refuse the name of a format that the file which is read does not have, and so does not come out in."""
    from regard.data.formats.registry import TEXT, format_of

    if format_of(data) is not TEXT and format_of(output) not in (TEXT, format_of(data)):
        raise UsageError(
            f"{data} comes out in its own format, and {output} has the name of another.",
            f"Let the name given with --output end as {data} does.",
        )


def check_task(loaded: "Run", *, data: str, text_b: str, top: int | None) -> None:
    """Refuse a run that predicts nothing, and options that its task does not have."""
    from regard.api.predict import check_predicts

    check_predicts(loaded)
    task, name = loaded.config.task, loaded.reference
    if top is not None and task not in ("classify", "mask", "image"):
        raise UsageError(
            f"--top is for runs of classify, mask and image, and {name} is one of {task}.", "Leave --top out."
        )
    if task in IMAGE_TASKS:
        check_image_options(loaded, data=data, text_b=text_b)
        return
    if data and task in ("mask", "denoise"):
        raise UsageError(
            f"--data is for tables and columns, and {name} fills the blanks of lines.",
            f"Give the lines on standard input: regard predict {name} < {data}",
        )
    if not data and getattr(loaded.task, "tokenizer", None) is None:
        raise UsageError(f"{name} was trained on vectors: it reads no text.", "Give a file of vectors: --data FILE.npz")
