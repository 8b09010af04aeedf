"""`regard translate`: arguments or standard input, line by line, to standard output."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from regard.cli.attention import check_attention_picture, draw_attention
from regard.cli.engine import EngineOptions, open_engine
from regard.cli.lines import Lines, Predictor, Truncations
from regard.cli.loading import load_runs
from regard.cli.options import (
    JsonFlag,
    NBestOption,
    OnBadOption,
    PictureOption,
    RunArgument,
    SamplingOptions,
    SearchOptions,
    SeedOption,
    ThreadsOption,
    given,
    named,
)
from regard.cli.processes import PoolSettings, ProcessesOption, open_pool, process_loading, refuse_processes
from regard.cli.refusals import check_runs
from regard.cli.terminal import Waiting, print_json, print_lines

if TYPE_CHECKING:
    from regard.api.process_pool import Chunk

RULES = Group("Constraints", sort_key=25)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a translation must begin with and must not contain."""

    prefix: Annotated[str, Parameter(group=RULES, metavar="TEXT", help="every translation begins with this")] = ""
    ban: Annotated[
        tuple[str, ...], Parameter(group=RULES, metavar="TEXT", help="a word or phrase never to write; repeatable")
    ] = ()


def translate(
    run: RunArgument,
    /,
    *texts: Annotated[str, Parameter(name="TEXT", help="what to translate; without it standard input, line by line")],
    ensemble: Annotated[
        tuple[str, ...],
        Parameter(name="--with", metavar="RUN", help="a further run for an ensemble; repeatable"),
    ] = (),
    n_best: NBestOption = None,
    search: SearchOptions | None = None,
    sampling: SamplingOptions | None = None,
    seed: SeedOption = None,
    rules: Rules | None = None,
    align: Annotated[bool, Parameter(help="add word alignments as SOURCE-TARGET, words counted from 0")] = False,
    picture: PictureOption = "",
    on_bad: OnBadOption = "",
    engine: EngineOptions | None = None,
    processes: ProcessesOption = 1,
    threads: ThreadsOption = 0,
    json: JsonFlag = False,
) -> None:
    """Translate text, or standard input line by line.

    One line of output per line of input. A line of several sentences is translated in parts, if the model has learned from
    single ones; white space stays. With --align a tab and the alignment follow the translation (Pharaoh format: 0-0
    1-2). With --n-best each hypothesis has a line: number of the input line, score, text, and the alignment if asked for,
    separated by tabs. --json adds the tokens and their log-probabilities.
    """
    rules = rules or Rules()
    options = named(search or SearchOptions(), sampling or SamplingOptions(), n_best=n_best, seed=seed)
    options |= {"banned": rules.ban, "align": align}
    check_runs("translate", [run, *ensemble], options)
    read = Lines(texts, on_bad=on_bad)
    if picture:
        check_attention_picture(picture, texts)
    if texts or picture:
        refuse_processes(processes)
    loading = process_loading(processes, threads, (engine or EngineOptions()).loading())
    first, *others = load_runs([run, *ensemble], **loading)
    by_name = {**given(options), "log_probs": json}
    settings = first.options({**by_name, "ensemble": others})
    open_engine(first, settings, n_models=1 + len(others), prefixed=bool(rules.prefix))
    top = (settings.decoding or first.config.decoding).n_best
    truncations = Truncations()
    count = itertools.count(1)
    pool = open_pool(processes, PoolSettings(runs=[run, *ensemble], loading=loading, settings=by_name))
    with pool as processed, Waiting("translating", unit="lines", total=len(texts) or None) as waiting:
        predict = Predictor(first, settings, waiting, pool=processed)
        for chunk, found in predict(chunks(read, rules.prefix), stream=read.stream):
            for one in found:
                line = next(count)
                truncations.add(line, one.truncation)
                if json:
                    print_json({"line": line, **one.to_json(), **chunk.context.get(line, {})})
                elif top > 1:
                    print_lines([f"{line}\t{text}" for text in one.lines(top=top)])
                else:
                    print_lines(one.lines())
                if picture:
                    draw_attention(first, chunk.inputs[0], one, settings, picture)
    truncations.tell()
    read.tell()


def chunks(read: Lines, prefix: str) -> "Iterator[Chunk]":
    """The lines in chunks, each with what is wrong with some of them."""
    from regard.api.process_pool import Chunk

    for lines in read:
        yield Chunk(inputs=lines, fields={"prefixes": (prefix,) * len(lines) if prefix else ()}, context=read.facts())
