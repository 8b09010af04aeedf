"""`regard embed`: sentence and word embeddings, from the states of a run's model."""

import io
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.engine import EncoderOptions, open_encoder
from regard.cli.lines import Lines, Truncations, note_files
from regard.cli.loading import load_runs
from regard.cli.options import OnBadOption, RunArgument, ThreadsOption
from regard.cli.outputs import refuse_output, write_bytes
from regard.cli.refusals import check_runs
from regard.cli.terminal import Waiting, print_json, tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.embedding import Vectors


def embed(
    run: RunArgument,
    /,
    *texts: Annotated[str, Parameter(name="TEXT", help="what to embed; without it standard input, line by line")],
    tokens: Annotated[bool, Parameter(help="one vector per word instead of one per text")] = False,
    pooling: Annotated[
        str,
        Parameter(
            metavar="HOW",
            help="a text's vector: mean of its tokens' states (the default, but for imported sentence encoders that have"
            " another), class (the first token's), last (the last's)",
        ),
    ] = "",
    output: Annotated[
        str,
        Parameter(
            metavar="FILE.npy",
            help="write a float32 array (N, D) there; with --tokens, one row per word",
        ),
    ] = "",
    on_bad: OnBadOption = "",
    engine: EncoderOptions | None = None,
    threads: ThreadsOption = 0,
) -> None:
    """Turn texts into vectors, one JSON object per line.

    It has `text` and `vector`; with --tokens `text`, `words` and `vectors`, where words are separated by white space and a
    word's vector is the mean of its tokens'. The states are those of the last layer: of the encoder, or of a language
    model. On a CPU those of a BERT are computed by CTranslate2 where it can; --engine torch is our own network.
    """
    if output:
        if not output.endswith(".npy"):
            raise UsageError(
                f"--output writes a NumPy array, but '{output}' does not end in .npy.", "Name it FILE.npy."
            )
        refuse_output(output)  # now, not after the work
    check_runs("embed", [run], {})
    note_files(texts)
    read = Lines(texts, on_bad=on_bad)
    [loaded] = load_runs([run], threads=threads, **(engine or EncoderOptions()).loading())
    open_encoder(loaded)
    kept: list[Vectors] = []
    truncations = Truncations()
    done = 0
    with Waiting("embedding", unit="texts", total=len(texts) or None) as waiting:
        for lines in read:
            found = loaded.embed(lines, tokens=tokens, pooling=pooling, progress=waiting.after(done))
            waiting.hide()
            for line, one in enumerate(found, start=done + 1):
                truncations.add(line, one.truncation)
                if output:
                    kept += one.rows()
                else:
                    print_json({**one.to_json(), **read.facts().get(line, {})})
            done += len(lines)
    truncations.tell()
    read.tell()
    if output:
        write_array(output, kept)


def write_array(file: str, vectors: "list[Vectors]") -> None:
    """Write vectors (N, D), all at once."""
    import numpy as np

    if not vectors:
        raise UsageError("There is no text to embed.", "Give texts, or lines on standard input.")
    written = io.BytesIO()
    np.save(written, np.stack(vectors), allow_pickle=False)
    write_bytes(file, written.getvalue())
    tell(f"{len(vectors):,} vector{'s' * (len(vectors) > 1)} of {len(vectors[0]):,} numbers: {file}")
