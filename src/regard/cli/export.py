"""`regard export`: a run as files of other programs."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag, RunArgument
from regard.cli.terminal import busy, note, print_json, show_table, tell
from regard.errors import UsageError
from regard.exchange.export_kinds import KINDS, find_kind

if TYPE_CHECKING:
    from regard.api.proof import Proof

_KINDS = "; ".join(f"{kind.name}: {kind.about}" for kind in KINDS.values())


def export(
    run: RunArgument,
    out: Annotated[str, Parameter(name="OUT", help="the new folder; for argos the new file")],
    /,
    *,
    to: Annotated[str, Parameter(metavar="KIND", help=_KINDS)] = "",
    type: Annotated[
        str, Parameter(metavar="TYPE", help="how ctranslate2 and argos keep weights: float32, int8, int8_float32, …")
    ] = "",
    int8: Annotated[bool, Parameter(help="the same as --type int8")] = False,
    shortlist: Annotated[
        bool,
        Parameter(
            help="of ctranslate2: also a vocabulary map, by which only tokens are written that those of the source may"
            " become, learned from the training pairs"
        ),
    ] = False,
    source_language: Annotated[str, Parameter(metavar="CODE", help="of argos, such as en")] = "",
    target_language: Annotated[str, Parameter(metavar="CODE", help="of argos, such as de")] = "",
    prove: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=True,
            metavar="FILE…",
            help="a test set on which quantised weights or a shortlist are compared with plain float32 before anything is"
            " written",
        ),
    ] = (),
    tolerance: Annotated[
        float | None, Parameter(metavar="BLEU", help="how much may be lost, by the 95 % interval, with --prove (0.5)")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Export a run to other programs: Hugging Face's transformers, CTranslate2, ONNX Runtime, Argos Translate.

    What is written is whole or not there at all, with a README.md that says what the run reached and how to use it there.
    A setting of the model that the other program does not have is named.
    """
    if not to:
        raise UsageError("An export needs --to KIND.", f"Give one of: {', '.join(KINDS)}.")
    kind = find_kind(to)
    if int8 and type not in ("", "int8"):
        raise UsageError(f"--int8 and --type {type} exclude each other.", "Leave one of them out.")
    options = {
        "compute_type": ("--int8" if int8 else "--type", "int8" if int8 else type),
        "shortlist": ("--shortlist", shortlist),
        "source_language": ("--source-language", source_language),
        "target_language": ("--target-language", target_language),
    }
    given = {name: (flag, value) for name, (flag, value) in options.items() if value}
    for name, (flag, _) in given.items():
        if name not in kind.options:
            others = " or ".join(one.name for one in KINDS.values() if name in one.options)
            raise UsageError(f"{flag} does not apply to --to {to}.", f"Leave it out, or export to {others}.")
    proofs: list[Proof] = []
    compute_type = type or ("int8" if int8 else kind.compute_type)
    approve = _approval(run, compute_type, prove, tolerance, proofs, shortlist=shortlist)
    try:
        with busy(f"exporting {run}"):
            from regard import api

            notes = api.export(run, to, out, approve=approve, **{name: value for name, (_, value) in given.items()})
    finally:
        if not json:
            for proof in proofs:
                show_table(proof.table())
                tell(f"{proof.n_identical:,} of {proof.n_sentences:,} sentences are the same")
    if json:
        proven = {"proof": proofs[0].to_json()} if proofs else {}
        print_json({"run": run, "to": to, "out": out, "notes": list(notes), **proven})
        return
    for text in notes:
        note(text)
    tell(f"written: {out}")


def _approval(
    run: str,
    compute_type: str,
    files: tuple[str, ...],
    tolerance: float | None,
    proofs: "list[Proof]",
    *,
    shortlist: bool,
) -> Callable[[], None] | None:
    """Return what proves quantised weights or a shortlist on a test set, keeps the proof and refuses too large a loss.

    None without a test set.
    """
    if not files:
        if tolerance is not None:
            raise UsageError("--tolerance is for --prove.", "Give a test set: --prove test.en test.de")
        return None
    if compute_type in ("", "float32") and not shortlist:
        others = " or ".join(one.name for one in KINDS.values() if one.compute_type)
        raise UsageError(
            "--prove is for quantised weights, and these stay float32.",
            f"Leave it out, or quantise them: --to {others} --int8.",
        )
    if tolerance is not None and not math.isfinite(tolerance):
        raise UsageError(f"--tolerance must be a number of BLEU, not {tolerance}.", "Give one such as 0.5.")

    def approve() -> None:
        from regard.api.proof import TOLERANCE, prove

        proofs.append(prove(run, files, compute_type=compute_type, shortlist=shortlist))
        proofs[-1].refuse_loss(TOLERANCE if tolerance is None else tolerance)

    return approve
