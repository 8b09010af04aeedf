"""`regard translate`: arguments or standard input, line by line, to standard output."""

import codecs
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

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
from regard.cli.terminal import Waiting, note, print_json, print_lines, tell
from regard.config import DecodingConfig
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Candidate, Translation

CHUNK = 512  # lines translated together: output flows, and memory does not grow with the input
RULES = Group("Rules", sort_key=25)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a translation must begin with and must not hold."""

    prefix: Annotated[str, Parameter(group=RULES, metavar="TEXT", help="what every translation begins with")] = ""
    ban: Annotated[
        tuple[str, ...], Parameter(group=RULES, metavar="TEXT", help="word or phrase that is never written; repeatable")
    ] = ()


def translate(
    run: Annotated[str, Parameter(help="a run: runs/mine, runs/mine@best, runs/mine@400")],
    /,
    *texts: Annotated[str, Parameter(name="TEXT", help="what to translate; without it standard input, line by line")],
    ensemble: Annotated[
        tuple[str, ...],
        Parameter(name="--with", metavar="RUN", help="a further run that votes on every token; repeatable"),
    ] = (),
    n_best: Annotated[int | None, explained(DecodingConfig, "n_best", group=SEARCH)] = None,
    search: SearchOptions | None = None,
    sampling: SamplingOptions | None = None,
    seed: Annotated[int, Parameter(group=SAMPLING, help="seed of sampling (1)")] = 1,
    rules: Rules | None = None,
    align: Annotated[bool, Parameter(help="add word alignments as SOURCE-TARGET, words counted from 0")] = False,
    json: JsonFlag = False,
) -> None:
    """Translate text, or standard input line by line.

    One line comes out for each that goes in. With --align a tab and the alignment follow the translation (Pharaoh
    format: 0-0 1-2). With --n-best each translation has a line: the number of the input line, its score, the text, and
    the alignment if asked for, with tabs between them. --json has the tokens and their log-probabilities too.
    """
    first, *others = load_runs([run, *ensemble])
    for loaded in (first, *others):
        loaded.expect("translate")
    decoding = changed(first.config.decoding, n_best=n_best, **as_fields(search), **as_fields(sampling))
    rules = rules or Rules()
    from regard.runtime import mix

    in_parts: list[int] = []
    done = 0
    with Waiting("translating", unit="lines", total=len(texts) or None) as waiting:
        for number, lines in enumerate(chunks(texts)):
            translations = first.translate(
                lines,
                decoding=decoding,
                align=align,
                prefixes=[rules.prefix] * len(lines) if rules.prefix else (),
                banned=rules.ban,
                # Equal lines of two chunks are drawn independently too.
                seed=seed if number == 0 else mix(seed, "chunk", number),
                ensemble=others,
                progress=waiting.after(done),
            )
            waiting.hide()
            for place, one in enumerate(translations, start=done + 1):
                if json:
                    print_json(as_json(place, one, align=align))
                else:
                    print_lines(as_lines(place, one, n_best=decoding.n_best, align=align))
                if one.n_parts > 1:
                    in_parts.append(place)
            done += len(lines)
    if in_parts:
        note(f"longer than the model takes, and translated in parts: {listed(in_parts)}")


def chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines to translate, so many at a time; at a keyboard each line is answered at once."""
    lines = iter(texts) if texts else read_stdin()
    count = 1 if not texts and sys.stdin.isatty() else CHUNK
    while chunk := list(islice(lines, count)):
        yield chunk


def as_lines(number: int, translation: "Translation", *, n_best: int, align: bool) -> list[str]:
    """Write a translation as plain text; `number` is its line's, counted from 1."""
    from regard.evaluation.alignment import as_pharaoh

    lines = []
    for candidate in translation.candidates:
        columns = [one_line(candidate.text)]
        if n_best > 1:
            columns = [str(number), f"{candidate.score:.4f}", *columns]
        if align:
            columns.append(as_pharaoh(candidate.alignment))
        lines.append("\t".join(columns))
    return lines


def as_json(number: int, translation: "Translation", *, align: bool) -> dict[str, Any]:
    """Write a translation with all that is known of it."""
    from regard.evaluation import alignment

    def described(candidate: "Candidate") -> dict[str, Any]:
        facts: dict[str, Any] = {"text": candidate.text, "score": candidate.score}
        facts |= {"tokens": candidate.tokens, "log_probs": candidate.log_probs}
        return facts | ({"alignment": alignment.as_json(candidate.alignment)} if align else {})

    candidates = [described(candidate) for candidate in translation.candidates]
    return {"line": number, "source": translation.source, "parts": translation.n_parts, "translations": candidates}


def one_line(text: str) -> str:
    """Keep a translation on its line and in its column."""
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")


def read_stdin() -> Iterator[str]:
    """Yield the lines of standard input, which ends lines at the byte \\n and is UTF-8."""
    from regard.data.formats.rows import decode, excerpt

    if sys.stdin.isatty():
        tell("Write a sentence a line; Ctrl-D ends.")
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        text, reason = decode(raw.removesuffix(b"\n").removesuffix(b"\r"))
        if reason:
            raise DataError(
                f"standard input, line {number}: {reason} ('{excerpt(text)}').",
                "Text in UTF-8 is expected; iconv turns other encodings into it: iconv -f latin1 -t utf-8",
            )
        yield text


def listed(numbers: Sequence[int], *, most: int = 10) -> str:
    """Write the numbers of lines, not too many of them."""
    shown = ", ".join(f"{number:,}" for number in numbers[:most])
    more = f" and {len(numbers) - most:,} more" if len(numbers) > most else ""
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{more}"
