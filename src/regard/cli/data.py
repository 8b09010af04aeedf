"""`regard data check`: what a person should know of a corpus before training on it."""

import dataclasses
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag, SourceOption, TargetOption
from regard.cli.terminal import Waiting, print_facts, print_json, print_lines, print_table, results
from regard.errors import UsageError
from regard.tasks.spec import TASKS

if TYPE_CHECKING:
    from regard.data.pairs.check import DataReport, Overlap
    from regard.data.pipeline.bad_rows import BadRows

N_FIRST = 5  # rows that tell what a table holds


def check(
    *files: Annotated[str, Parameter(name="FILE", help="two aligned text files, or files of any known format")],
    against: Annotated[
        tuple[str, ...],
        Parameter(consume_multiple=True, metavar="FILE…", help="a test set that should not occur in these files"),
    ] = (),
    source: SourceOption = "",
    target: TargetOption = "",
    json: JsonFlag = False,
) -> None:
    """Check parallel text: counts, lengths, bad lines, duplicates, and how much of a test set leaks into it.

    Data of other tasks is checked before training: regard train TASK --train FILE… --dry-run
    """
    from regard.data.pairs import check
    from regard.data.pairs.rows import header_columns

    refuse_others([*files, *against], source=source, target=target)
    with Waiting("reading", unit="pairs") as waiting:
        report = check.check(files, against=against or None, source=source, target=target, progress=waiting)
    if json:
        print_json(dataclasses.asdict(report))
        return
    print_facts([*header_columns(files, source=source, target=target), *count_rows(report)], results())
    print_lines([""])
    print_table(["length", "mean", "median", "95 %", "longest"], length_rows(report))
    show_bad(report.bad_rows)
    if report.overlap is not None:
        show_overlap(report.overlap)


def refuse_others(files: Sequence[str], *, source: str, target: str) -> None:
    """Refuse what is not parallel text: it is checked when a run over it is prepared."""
    from regard.data.captions.rows import names_image
    from regard.data.formats.columns import LABELS, TARGETS, plain
    from regard.data.formats.files import check_file
    from regard.data.formats.registry import Fields, format_of, read_rows
    from regard.data.formats.rows import Row

    for file in files:
        if Path(file).is_dir():
            raise not_parallel(file, "a folder", reads="images")
        check_file(file)
        if file.lower().endswith((".conll", ".conllu", ".bio")):
            raise not_parallel(file, "a CoNLL file", reads="words")
        if source or target or format_of(file).fields is not Fields.COLUMNS:
            continue
        rows = [row.fields for row in islice(read_rows(file), N_FIRST) if isinstance(row, Row)]
        if any(names_image(cell) for fields in rows for cell in fields.values()):
            raise not_parallel(file, "a table of images", reads="captions")
        if any(plain(name) in LABELS and plain(name) not in TARGETS for fields in rows for name in fields):
            raise not_parallel(file, "a table with labels", reads="table")


def not_parallel(file: str, what: str, *, reads: str) -> UsageError:
    """What is said of data that is not parallel text: how the first task that reads such data checks it."""
    task = next(spec.name for spec in TASKS.values() if spec.reads == reads)
    return UsageError(
        f"{file} is {what}; parallel text was expected.",
        f"Other data is checked before training: regard train {task} --train {file} --dry-run",
    )


def count_rows(report: "DataReport") -> list[tuple[str, str]]:
    """How many pairs there are, and of what kind."""
    return [
        ("pairs", f"{report.n_pairs:,} good of {report.bad_rows.n_read:,}"),
        ("duplicates", f"{report.n_duplicates:,} pairs occur earlier"),
        ("ambiguous", f"{report.n_ambiguous_sources:,} sources have several translations"),
        ("copied", f"{report.n_copied:,} targets equal their source"),
    ]


def length_rows(report: "DataReport") -> list[list[str]]:
    """The distributions of lengths."""
    lengths = {
        "source, words": report.source_words,
        "target, words": report.target_words,
        "source, characters": report.source_characters,
        "target, characters": report.target_characters,
    }
    return [
        [label, f"{one.mean:.1f}", f"{one.median:,}", f"{one.percentile_95:,}", f"{one.maximum:,}"]
        for label, one in lengths.items()
    ]


def show_bad(bad_rows: "BadRows") -> None:
    """Show why pairs are bad, with the first examples."""
    if not bad_rows.n_bad:
        return
    print_lines(["", f"{bad_rows.n_bad:,} bad pairs ({bad_rows.n_bad / bad_rows.n_read:.2%})"])
    for reason, count in bad_rows.reasons.most_common():
        print_lines([f"  {count:,} {reason}"])
        print_lines([f"    {bad.file}:{bad.line} {bad.excerpt}" for bad in bad_rows.examples[reason]])


def show_overlap(overlap: "Overlap") -> None:
    """Show how much of the test set occurs in the training data."""
    print_lines(["", f"test set: {overlap.n_pairs:,} pairs"])
    print_lines([f"  {overlap.n_shared_pairs:,} of them ({overlap.pair_share:.2%}) occur in the training data"])
    print_lines([f"  {overlap.n_shared_sources:,} of their sources ({overlap.source_share:.2%}) do"])
    print_lines([f"    {one.place} = {one.train_place} {one.source}" for one in overlap.examples])
    show_bad(overlap.bad_rows)
