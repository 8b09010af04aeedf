"""`regard generate`: text that continues a prompt."""

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from regard.cli.lines import read_stdin
from regard.cli.loading import load_runs
from regard.cli.options import (
    SAMPLING,
    JsonFlag,
    RunArgument,
    SamplingOptions,
    SearchOptions,
    SeedOption,
    given,
    named,
)
from regard.cli.refusals import check_runs
from regard.cli.terminal import Waiting, note, print_json, print_lines
from regard.errors import UsageError


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
    json: JsonFlag = False,
) -> None:
    """Generate text that continues a prompt, and show it as it is written.

    Where no prompt is given and standard input is not a terminal, all of standard input is one prompt, without its last
    line end. An empty prompt begins a new document.

    The text ends where the model ends it, or after --max-length tokens (256), even beyond the model's context. Tokens are
    sampled; --temperature 0 takes the likeliest, --beam N searches. The same seed gives the same text. With several
    prompts or --samples each text follows a line with its number. --json adds the tokens with their probabilities.
    """
    if samples < 1:
        raise UsageError(f"--samples must be at least 1, not {samples}.", "Give --samples a larger number.")
    options = named(search or SearchOptions(), sampling or SamplingOptions(), seed=seed, banned=ban)
    check_runs("generate", [run], options)
    [loaded] = load_runs([run])
    settings = {**given(options), "n_best": samples}
    decoding = loaded.options(settings).decoding
    wanted = list(prompts) or ["" if sys.stdin.isatty() else "\n".join(read_stdin())]
    note_unknown([text for prompt in wanted for text in loaded.task.tokenizer.unknown(prompt)])
    from regard.decoding.search import can_stream

    if len(wanted) == 1 and samples == 1 and not json and can_stream(decoding):
        pieces = loaded.stream(wanted[0], **settings)
        sys.stdout.write(wanted[0])
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
        return
    with Waiting("generating", unit="texts", total=len(wanted)) as waiting:
        found = loaded.generate(wanted, **settings, progress=lambda what, done: waiting(done))
    if json:
        for one in found:
            print_json(one.to_json())
        return
    texts = [one.prompt + output.text for one in found for output in one.outputs]
    for number, text in enumerate(texts, start=1):
        print_lines([f"--- {number}", text] if len(texts) > 1 else [text])


def note_unknown(texts: Sequence[str], *, most: int = 5) -> None:
    """Say what of the prompts is not in the vocabulary, if there is such."""
    from regard.data.formats.rows import excerpt

    if different := list(dict.fromkeys(texts)):
        shown = ", ".join(f"'{excerpt(text)}'" for text in different[:most])
        more = f" and {len(different) - most:,} more" if len(different) > most else ""
        note(f"not in the vocabulary: {shown}{more}")
