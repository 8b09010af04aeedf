"""`regard export`: a run as files of other programs."""

from typing import Annotated, Any

from cyclopts import Parameter

from regard.cli.options import JsonFlag, RunArgument
from regard.cli.terminal import busy, note, print_json, show_table, tell
from regard.errors import UsageError
from regard.exchange.export_kinds import KINDS, find_kind

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
    source_language: Annotated[str, Parameter(metavar="CODE", help="of argos, such as en")] = "",
    target_language: Annotated[str, Parameter(metavar="CODE", help="of argos, such as de")] = "",
    prove: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=True,
            metavar="FILE…",
            help="a test set on which quantised weights are compared with float32 before anything is written",
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
        "source_language": ("--source-language", source_language),
        "target_language": ("--target-language", target_language),
    }
    given = {name: (flag, value) for name, (flag, value) in options.items() if value}
    for name, (flag, _) in given.items():
        if name not in kind.options:
            others = " or ".join(one.name for one in KINDS.values() if name in one.options)
            raise UsageError(f"{flag} does not apply to --to {to}.", f"Leave it out, or export to {others}.")
    proof = proven(run, given.get("compute_type", ("", "float32"))[1], prove, tolerance, json=json)
    with busy(f"exporting {run}"):
        from regard import api

        notes = api.export(run, to, out, **{name: value for name, (_, value) in given.items()})
    if json:
        print_json({"run": run, "to": to, "out": out, "notes": list(notes), **proof})
        return
    for text in notes:
        note(text)
    tell(f"written: {out}")


def proven(
    run: str, compute_type: str, files: tuple[str, ...], tolerance: float | None, *, json: bool
) -> dict[str, Any]:
    """Show what quantised weights lose on a test set, and refuse too much; the facts of it, none without a test set."""
    if not files:
        if tolerance is not None:
            raise UsageError("--tolerance is for --prove.", "Give a test set: --prove test.en test.de")
        return {}
    with busy(f"proving {compute_type}"):
        from regard.api.proof import TOLERANCE, prove

        proof = prove(run, files, compute_type=compute_type)
    if not json:
        show_table(proof.table())
        tell(f"{proof.n_identical:,} of {proof.n_sentences:,} sentences are the same")
    proof.refuse_loss(TOLERANCE if tolerance is None else tolerance)
    return {"proof": proof.to_json()}
