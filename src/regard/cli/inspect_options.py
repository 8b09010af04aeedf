"""Options of `regard inspect`: which attention, which numbers, what is changed, what is asked of the whole run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from regard.cli.options import named
from regard.errors import UsageError

MAP = Group("Attention map", sort_key=20)
NUMBERS = Group("Numbers", sort_key=30)
CHANGES = Group("Change and compare", sort_key=40)
PAGE = Group("The page", sort_key=10)
WHOLE = Group("The whole run", sort_key=50)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """Which attention is shown, and how."""

    kind: Annotated[
        str,
        Parameter(
            group=MAP, metavar="KIND", help="encoder, decoder (masked) or cross; self where there is one kind only"
        ),
    ] = ""
    layer: Annotated[int, Parameter(group=MAP, help="its layer, counted from 0 (the last)")] = -1
    head: Annotated[int | None, Parameter(group=MAP, help="its head, counted from 0 (the mean over heads)")] = None
    atlas: Annotated[bool, Parameter(group=MAP, help="all heads of all layers of the kind")] = False
    png: Annotated[
        str, Parameter(name=("--png", "--picture"), group=MAP, metavar="FILE", help="draw it: .png, .svg or .pdf")
    ] = ""
    sqrt: Annotated[
        bool, Parameter(group=MAP, help="colour by the square root of weights, which tells small ones apart")
    ] = False
    csv: Annotated[str, Parameter(group=MAP, metavar="FILE", help="write the map as a table")] = ""
    queries: Annotated[
        str, Parameter(group=MAP, metavar="A:B", help="of a long map, only these rows, at full resolution: 100:140")
    ] = ""
    keys: Annotated[str, Parameter(group=MAP, metavar="A:B", help="the same of its columns: 0:40")] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NumberOptions:
    """Which numbers are shown."""

    walk: Annotated[bool, Parameter(group=NUMBERS, help="follow one position from its token to what is written")] = (
        False
    )
    cell: Annotated[
        str,
        Parameter(
            group=NUMBERS,
            metavar="ATTENTION",
            help="the arithmetic of one weight, such as decoder.2.cross_attention, with --head, --query, --key",
        ),
    ] = ""
    query: Annotated[int | None, Parameter(group=NUMBERS, help="position that attends, or is followed")] = None
    key: Annotated[int | None, Parameter(group=NUMBERS, help="position that is attended to")] = None
    python: Annotated[bool, Parameter(group=NUMBERS, help="with --cell: as Python that computes it again")] = False
    lens: Annotated[bool, Parameter(group=NUMBERS, help="logit lens: what each layer would write")] = False
    top: Annotated[
        int | None, Parameter(group=NUMBERS, help="with --lens: how many of the likeliest (1; with --json 3)")
    ] = None
    contributions: Annotated[
        bool, Parameter(group=NUMBERS, help="what each head and sublayer adds to the logit at --query (pre-norm)")
    ] = False
    labels: Annotated[bool, Parameter(group=NUMBERS, help="what each head attends to, with its numbers")] = False
    beam_tree: Annotated[bool, Parameter(group=NUMBERS, help="the beam search as a tree; with --png as a picture")] = (
        False
    )
    force: Annotated[
        int | None,
        Parameter(
            group=NUMBERS,
            metavar="NODE",
            help="with --beam-tree: go on from one of its nodes, what would have followed",
        ),
    ] = None
    checks: Annotated[bool, Parameter(group=NUMBERS, help="whether the numbers hold, with their largest error")] = False
    tap: Annotated[
        str, Parameter(group=NUMBERS, metavar="NAME", help="the numbers of a tap; * shows which there are")
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """What is changed, and what is compared."""

    ablate: Annotated[
        tuple[str, ...],
        Parameter(
            group=CHANGES, metavar="PART", help="cut heads (decoder.2.cross_attention:3) or a sublayer; may be repeated"
        ),
    ] = ()
    against: Annotated[
        str, Parameter(group=CHANGES, metavar="RUN", help="compare with another run or checkpoint of the same network")
    ] = ""
    save: Annotated[
        str, Parameter(group=CHANGES, metavar="FILE", help="keep the trace: regard.load_trace reads it")
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """The page in a browser."""

    page: Annotated[bool, Parameter(group=PAGE, help="look inside in a browser: serve the page on this machine")] = (
        False
    )
    port: Annotated[int, Parameter(group=PAGE, help="with --page: the port (0: a free one)")] = 0
    no_browser: Annotated[bool, Parameter(group=PAGE, help="with --page: tell the address, and open no browser")] = (
        False
    )
    html: Annotated[
        str, Parameter(group=PAGE, metavar="FILE", help="write the page of the input as one file, which opens offline")
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is asked of the run itself, without an input."""

    heads: Annotated[
        bool, Parameter(group=WHOLE, help="importance of every head on --data: what its ablation costs, with intervals")
    ] = False
    sublayers: Annotated[bool, Parameter(group=WHOLE, help="the same of every sublayer")] = False
    data: Annotated[
        tuple[str, ...], Parameter(group=WHOLE, consume_multiple=True, metavar="FILE…", help="a test set for --heads")
    ] = ()
    examples: Annotated[int, Parameter(group=WHOLE, help="how many of its examples (200)")] = 200
    score: Annotated[
        bool, Parameter(group=WHOLE, help="measure the score too (BLEU, accuracy), which takes longer")
    ] = False
    probes: Annotated[
        bool,
        Parameter(
            group=WHOLE,
            help="what was recorded of probe examples while it trained; with --lens, or with --png as a picture",
        ),
    ] = False
    probe: Annotated[int | None, Parameter(group=WHOLE, help="with --probes: which one, counted from 0 (all)")] = None
    neighbours: Annotated[
        str, Parameter(group=WHOLE, metavar="TOKEN", help="the tokens whose embeddings are nearest to a token's")
    ] = ""


def refuse_ignored(map: MapOptions, numbers: NumberOptions, whole: RunOptions) -> None:
    """Refuse options that would change nothing."""
    chosen = {"--kind": map.kind != "", "--layer": map.layer != -1, "--head": map.head is not None}
    chooses = next((flag for flag, is_given in chosen.items() if is_given), "")
    if chooses and not (map.png or map.csv or map.atlas or numbers.cell):
        raise UsageError(
            f"{chooses} chooses an attention map, and none is written.", "Add --png map.png or --csv map.csv."
        )
    for flag, text in (("--queries", map.queries), ("--keys", map.keys)):
        if text and (map.atlas or not (map.png or map.csv)):
            raise UsageError(
                f"{flag} chooses a part of one map.", "Add --png map.png or --csv map.csv, without --atlas."
            )
    if numbers.python and not numbers.cell:
        raise UsageError("--python shows the arithmetic of a cell.", "Add --cell ATTENTION --query N --key N.")
    if numbers.top is not None and not numbers.lens:
        raise UsageError("--top says how many the logit lens shows.", "Add --lens.")
    for flag, value in named(whole).items():
        if value != getattr(RunOptions, flag):
            raise UsageError(f"--{flag} is about the whole run, and an input is given.", "Leave the input out.")


def refuse_beside_page(page: PageOptions, others: Sequence[object], *, json: bool) -> None:
    """Refuse what changes nothing on the page, which has ways of its own for it, and the page's options without it."""
    flag = "--page" if page.page else "--html"
    if page.page and page.html:
        raise UsageError("--page serves the page, --html writes it as a file.", "Leave one of them out.")
    if not page.page:
        for name, is_given in (("--port", page.port != 0), ("--no-browser", page.no_browser)):
            if is_given:
                raise UsageError(f"{name} is about the page in a browser.", "Add --page.")
    if not page.page and not page.html:
        return
    understood = ("against", "data") if page.page else ("beam",)
    for group in others:
        for name, value in named(group).items():
            if name not in understood and value != getattr(type(group), name):
                raise UsageError(f"--{name.replace('_', '-')} does not go with {flag}.", "Leave one of them out.")
    if json:
        raise UsageError(f"--json does not go with {flag}.", "Leave one of them out.")


def refuse_beside_probes(map: MapOptions, numbers: NumberOptions, changes: ChangeOptions) -> None:
    """Refuse what probe examples, which are read from files, are not asked for."""
    understood = ("kind", "layer", "head", "png", "lens", "query")
    for flag, value in {**named(map), **named(numbers), **named(changes)}.items():
        if flag not in understood and value not in (None, False, "", ()):
            raise UsageError(
                f"--{flag.replace('_', '-')} needs an input, and --probes shows what was recorded.",
                "Give a text or an image in the place of --probes.",
            )
    if numbers.query is not None and not numbers.lens:
        raise UsageError("--query chooses a position of the lens.", "Add --lens.")
