"""`regard generate`: text that continues a prompt."""

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.attention import check_attention_picture, draw_attention
from regard.cli.engine import EngineOptions, open_engine
from regard.cli.lines import Lines, Predictor
from regard.cli.loading import load_runs
from regard.cli.options import (
    SAMPLING,
    JsonFlag,
    OnBadOption,
    PictureOption,
    RunArgument,
    SamplingOptions,
    SearchOptions,
    SeedOption,
    ThreadsOption,
    check_option,
    given,
    named,
)
from regard.cli.processes import PoolSettings, ProcessesOption, open_pool, process_loading, refuse_processes
from regard.cli.refusals import check_runs
from regard.cli.terminal import Waiting, json_line, note, print_json, print_lines, print_text
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.api import Run
    from regard.api.process_pool import Chunk, ProcessPool


def generate(
    run: RunArgument,
    /,
    *prompts: Annotated[
        str,
        Parameter(name="PROMPT", help="text to continue; without it all of standard input, if something is piped"),
    ],
    samples: Annotated[int, Parameter(group=SAMPLING, help="continuations to generate per prompt (1)")] = 1,
    search: SearchOptions | None = None,
    sampling: SamplingOptions | None = None,
    seed: SeedOption = None,
    ban: Annotated[tuple[str, ...], Parameter(metavar="TEXT", help="a word or phrase never to write; repeatable")] = (),
    lines: Annotated[bool, Parameter(help="each line of standard input is a prompt, answered on a line")] = False,
    on_bad: OnBadOption = "",
    picture: PictureOption = "",
    engine: EngineOptions | None = None,
    processes: ProcessesOption = 1,
    threads: ThreadsOption = 0,
    json: JsonFlag = False,
) -> None:
    """Generate text that continues a prompt, and show it as it is written.

    Where no prompt is given and standard input is not a terminal, all of standard input is one prompt, without its last
    line end; with --lines each of its lines is one, and is answered as soon as it is there. An empty prompt begins a new
    document.

    The text ends where the model ends it, or after --max-length tokens (256), even beyond the model's context. Tokens are
    sampled; --temperature 0 takes the likeliest, --beam N searches. The same seed gives the same text. With several
    prompts or --samples each text follows a line with its number. --json adds the tokens with their probabilities.
    """
    if lines and prompts:
        raise UsageError("--lines reads prompts from standard input, and some are given.", "Leave one of them out.")
    if on_bad and not lines:
        raise UsageError("--on-bad is for prompts that --lines reads.", "Leave it out, or add --lines.")
    check_option("decoding.n_best", samples, place="--samples")
    options = named(search or SearchOptions(), sampling or SamplingOptions(), seed=seed, banned=ban)
    check_runs("generate", [run], options)
    if picture:
        check_attention_picture(picture, prompts)
    if not lines:
        refuse_processes(processes, "Leave it out, or add --lines for prompts of standard input.")
    loading = process_loading(processes, threads, (engine or EngineOptions()).loading())
    [loaded] = load_runs([run], **loading)
    settings = {**given(options), "n_best": samples, "log_probs": json}
    open_engine(loaded, loaded.options(settings), alone=not lines and len(prompts) <= 1 and samples == 1)
    if lines:
        with open_pool(processes, PoolSettings(runs=[run], loading=loading, settings=settings)) as pool:
            generate_lines(loaded, settings, Lines(on_bad=on_bad), pool=pool, json=json)
        return
    decoding = loaded.options(settings).decoding
    wanted = list(prompts) or ["" if sys.stdin.isatty() else "\n".join(chain.from_iterable(Lines(on_bad="stop")))]
    note_unknown([text for prompt in wanted for text in loaded.task.tokenizer.unknown(prompt)])
    from regard.decoding.search import can_stream

    if len(wanted) == 1 and samples == 1 and not json and not picture and can_stream(decoding):
        pieces = loaded.stream(wanted[0], **settings)
        begun = wanted[0] + next(pieces, "")  # what cannot be searched for is refused before anything is printed
        for piece in chain([begun], pieces, ["\n"]):
            print_text(piece)
        return
    with Waiting("generating", unit="texts", total=len(wanted)) as waiting:
        found = loaded.generate(wanted, **settings, progress=lambda what, done: waiting(done))
    if picture:
        draw_attention(loaded, wanted[0], found[0], loaded.options(settings), picture)
    if json:
        for one in found:
            print_json(one.to_json())
        return
    texts = [one.prompt + output.text for one in found for output in one.outputs]
    for number, text in enumerate(texts, start=1):
        print_text(f"--- {number}\n{text}\n" if len(texts) > 1 else f"{text}\n")


def generate_lines(
    run: "Run[Any]", settings: dict[str, Any], read: Lines, *, pool: "ProcessPool | None", json: bool
) -> None:
    """Continue each line of standard input, and print each continuation on a line, as soon as those before it are."""
    done = 0
    with Waiting("generating", unit="lines") as waiting:
        predict = Predictor(run, run.options(settings), waiting, pool=pool)
        for chunk, answers in predict(prompt_chunks(run, read), stream=read.stream):
            for line, one in enumerate(answers, start=done + 1):
                # A bad line is no empty prompt, which would begin a document.
                problem = chunk.context.get(line, {})
                found = {} if problem else one.to_json()
                print_lines(
                    [json_line({"line": line, **found, **problem})] if json else [""] if problem else one.lines()
                )
            done += len(chunk.inputs)
    read.tell()


def prompt_chunks(run: "Run[Any]", read: Lines) -> "Iterator[Chunk]":
    """The prompts in chunks, each with what is wrong with some of them."""
    from regard.api.process_pool import Chunk

    for prompts in read:
        note_unknown([text for prompt in prompts for text in run.task.tokenizer.unknown(prompt)])
        yield Chunk(inputs=prompts, context=read.facts())


def note_unknown(texts: Sequence[str], *, most: int = 5) -> None:
    """Say what of the prompts is not in the vocabulary, if there is such."""
    from regard.data.formats.rows import excerpt

    if different := list(dict.fromkeys(texts)):
        shown = ", ".join(f"'{excerpt(text)}'" for text in different[:most])
        more = f" and {len(different) - most:,} more" if len(different) > most else ""
        note(f"not in the vocabulary: {shown}{more}")
