"""`regard embed`: texts as vectors, from the states of a run's model."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.loading import load_runs
from regard.cli.outputs import refuse_output, write_bytes
from regard.cli.predict import tell_files
from regard.cli.terminal import Waiting, note, print_json, tell
from regard.cli.translate import chunks, listed
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.embedding import Embedding, Vectors


def embed(
    run: Annotated[str, Parameter(help="a run: runs/mine, runs/mine@best, runs/mine@400")],
    /,
    *texts: Annotated[str, Parameter(name="TEXT", help="what to embed; without it standard input, line by line")],
    tokens: Annotated[bool, Parameter(help="a vector for each word instead of one for the text")] = False,
    pooling: Annotated[
        str,
        Parameter(
            metavar="HOW",
            help="the text's vector: mean of its tokens; class, of the token in front of it; last, of its last",
        ),
    ] = "mean",
    output: Annotated[
        str,
        Parameter(
            metavar="FILE.npy",
            help="write the vectors there as an array (N, D) of float32; with --tokens, a row a word",
        ),
    ] = "",
) -> None:
    """Write the vectors of texts as JSON, an object a line.

    It has `text` and `vector`; with --tokens `text`, `words` and `vectors`, where a word is what stands between white
    space and its vector the mean of its tokens'. The states are those of the model's last layer: of its encoder, or of a
    language model.
    """
    if output:
        if not output.endswith(".npy"):
            raise UsageError(f"--output writes a NumPy array, and '{output}' is no name of one.", "End it in .npy.")
        refuse_output(output)  # now, not after the work
    tell_files(texts)
    [loaded] = load_runs([run])
    kept: list[Vectors] = []
    cut: list[int] = []
    done = 0
    with Waiting("reading", unit="texts", total=len(texts) or None) as waiting:
        for lines in chunks(texts):
            found = loaded.embed(
                lines,
                tokens=tokens,
                pooling=pooling,
                progress=waiting.after(done),
            )
            waiting.hide()
            if output:
                kept += [row for one in found for row in rows(one)]
            else:
                for one in found:
                    print_json(as_json(one, tokens=tokens))
            cut += [place for place, one in enumerate(found, start=done + 1) if one.n_cut]
            done += len(lines)
    if cut:
        note(f"longer than the model reads, and cut at the end: {listed(cut)}")
    if output:
        write_array(output, kept)


def rows(found: "Embedding") -> "list[Vectors]":
    """Return what an array gets of a text: its vector, or those of its words."""
    return [found.vector] if found.word_vectors is None else list(found.word_vectors)


def as_json(found: "Embedding", *, tokens: bool) -> dict[str, Any]:
    """Write a text with its vector, or those of its words."""
    if not tokens or found.word_vectors is None:
        return {"text": found.text, "vector": numbers(found.vector)}
    return {"text": found.text, "words": found.words, "vectors": numbers(found.word_vectors)}


def numbers(vectors: "Vectors") -> Any:
    """Return the numbers as lists, each with as few digits as tell it from all others of its kind."""
    return vectors.astype(str).astype(float).tolist()


def write_array(file: str, vectors: "list[Vectors]") -> None:
    """Write vectors (N, D), all at once."""
    import io

    import numpy as np

    if not vectors:
        raise UsageError("There is no text, and so nothing to write.", "Give texts, or lines on standard input.")
    written = io.BytesIO()
    np.save(written, np.stack(vectors), allow_pickle=False)
    write_bytes(file, written.getvalue())
    tell(f"{len(vectors):,} vectors of {len(vectors[0]):,} numbers: {file}")
