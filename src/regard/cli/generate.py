"""`regard generate`: text that goes on from a prompt."""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.loading import load_runs
from regard.cli.options import (
    SAMPLING,
    JsonFlag,
    SamplingOptions,
    SearchOptions,
    as_fields,
    changed,
)
from regard.cli.terminal import Waiting, note, print_json, print_lines
from regard.cli.translate import read_stdin
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.language_model.continuation import Continuation, Generation


def generate(
    run: Annotated[str, Parameter(help="a run: runs/mine, runs/mine@best, runs/mine@400")],
    /,
    *prompts: Annotated[
        str,
        Parameter(name="PROMPT", help="what to go on from; without it all of standard input, if something is piped"),
    ],
    samples: Annotated[int, Parameter(group=SAMPLING, help="so many different continuations of each prompt (1)")] = 1,
    search: SearchOptions | None = None,
    sampling: SamplingOptions | None = None,
    seed: Annotated[int, Parameter(group=SAMPLING, help="seed of sampling (1)")] = 1,
    ban: Annotated[tuple[str, ...], Parameter(metavar="TEXT", help="what is never written; repeatable")] = (),
    json: JsonFlag = False,
) -> None:
    """Write text that goes on from a prompt, and show it as it is written.

    Where no prompt is given and standard input is no terminal, all that comes from there is one prompt, without its last
    line end. From nothing, a new document begins.

    The text ends where the model ends it, or after --max-length tokens (256), even beyond the model's context. The tokens
    are drawn at random; --temperature 0 takes the likeliest, --beam N searches. The same seed gives the same text. With
    several prompts or --samples each text stands below a line that numbers it. --json has the tokens with their
    probabilities.
    """
    if samples < 1:
        raise UsageError(f"--samples is at least 1, not {samples}.", "Give --samples a larger number.")
    [loaded] = load_runs([run])
    loaded.expect("language")
    decoding = changed(loaded.config.decoding, **as_fields(search), **as_fields(sampling))
    if search is not None and (search.beam or 1) > 1:
        decoding = replace(decoding, sample=bool(sampling and sampling.sample))
    decoding = replace(decoding, n_best=samples)
    wanted = prompts or ("" if sys.stdin.isatty() else "\n".join(read_stdin()),)
    tell_unknown([text for prompt in wanted for text in loaded.language_task.tokenizer.unknown(prompt)])
    if len(wanted) == 1 and samples == 1 and not json and (decoding.sample or decoding.beam == 1):
        pieces = loaded.stream(wanted[0], decoding=decoding, banned=ban, seed=seed)
        sys.stdout.write(wanted[0])
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
        return
    with Waiting("writing", unit="texts", total=len(wanted)) as waiting:
        found = loaded.generate(wanted, decoding=decoding, banned=ban, seed=seed, progress=waiting)
    number = 0
    for generation in found:
        if json:
            print_json(as_json(generation))
            continue
        for continuation in generation.continuations:
            number += 1
            heading = [f"--- {number}"] if len(wanted) * samples > 1 else []
            print_lines([*heading, generation.prompt + continuation.text])


def tell_unknown(texts: Sequence[str], *, most: int = 5) -> None:
    """Say what of the prompts the vocabulary does not know, if there is such."""
    from regard.data.formats.rows import excerpt

    if different := list(dict.fromkeys(texts)):
        shown = ", ".join(f"'{excerpt(text)}'" for text in different[:most])
        more = f" and {len(different) - most:,} more" if len(different) > most else ""
        note(f"not in the vocabulary, and so unknown to the model: {shown}{more}")


def as_json(generation: "Generation") -> dict[str, Any]:
    """Write a generation with all that is known of it."""

    def described(one: "Continuation") -> dict[str, Any]:
        tokens = [
            {"text": text, "id": id, "probability": math.exp(log_prob)}
            for text, id, log_prob in zip(one.tokens, one.ids, one.log_probs, strict=False)
        ]
        # The end token has a probability too, and no text.
        end = {"end_probability": math.exp(one.log_probs[-1])} if one.finished else {}
        return {"text": one.text, "finished": one.finished, **end, "tokens": tokens}

    continuations = [described(one) for one in generation.continuations]
    return {"prompt": generation.prompt, "unknown": generation.unknown, "continuations": continuations}
