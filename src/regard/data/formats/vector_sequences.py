"""Sequences of vectors, as a sensor or a film gives them: NPZ files, or the rows of a CSV.

NPZ   every array (T, features) is a sequence under its own name; or one array `vectors` (N, T, features), padded behind,
      with `lengths` (N,) if they differ.
CSV   every row is a vector, in the order of time. A column may say which sequence a row belongs to; else the file is one.

What is said of a sequence as a whole, such as its label, is an array (N,) of the NPZ, or a column that does not change
within a sequence of the CSV. What is said of each vector, such as its tag, is a column of the CSV; in an NPZ an array (N, T)
beside padded vectors, or one of all of them end to end in the order of the sequences.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from regard.data.formats.columns import asked_column
from regard.data.formats.delimited import read_csv
from regard.data.formats.files import check_file
from regard.data.formats.rows import Bad, Row, excerpt
from regard.data.formats.stored_arrays import Array, npz_array, npz_names, open_npz
from regard.errors import DataError, did_you_mean

Vectors = npt.NDArray[np.float32]

LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class VectorSequence:
    """One sequence: its name, its vectors (T, features), all of finite numbers, and where it begins.

    line:    in an NPZ its number, from 1
    fields:  what is said of it as a whole
    tags:    what is said of each vector, if that was asked for; each stands on a line of `lines`
    """

    name: str
    vectors: Vectors
    file: str
    line: int
    fields: dict[str, str]
    tags: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


def read_vector_sequences(
    file: str | os.PathLike[str],
    *,
    group: str = "",
    constants: Sequence[str] = (),
    tags: str = "",
    may_lack: bool = False,
) -> Iterator[VectorSequence]:
    """Yield the sequences of an NPZ or a CSV; `group` is the column of a CSV that tells them apart.

    constants:  names of columns or arrays that say something of a sequence as a whole, and are no vectors
    tags:       the name of one that says something of each vector
    may_lack:   whether such a column may be missing; it is "" then
    All vectors of a file have one width. What is no number is an error that names its place.
    """
    name = os.fspath(file)
    check_file(name)
    ending = name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending not in ("npz", "csv"):
        raise DataError(
            f"{name}: sequences of vectors are read from .npz and .csv files.", "Convert it to one of them."
        )
    width = 0
    if ending == "npz":
        read = _from_npz(name, constants, tags, may_lack)
    else:
        read = _from_csv(name, group, constants, tags, may_lack)
    for sequence in read:
        own = sequence.vectors.shape[1]
        if width and own != width:
            raise DataError(
                f"{name}: the vectors of '{sequence.name}' have {own} features, those before {width}.",
                "Give all sequences of a file the same features.",
            )
        width = own
        yield sequence
    if not width:
        raise DataError(f"{name}: no sequence is in it.", "Check the step that wrote it.")


def _from_npz(file: str, constants: Sequence[str], tags: str, may_lack: bool) -> Iterator[VectorSequence]:
    with open_npz(file, "Save it with numpy.savez(file, name=array, …), arrays of numbers only.") as archive:
        shapes = _shapes(file, archive)
        _refuse_flat(file, shapes, constants)
        names = [name for name in shapes if name not in (*constants, tags)]
        is_padded = len(shapes.get("vectors", ())) == 3
        n_rows = shapes["vectors"][0] if is_padded else len(names)
        columns = {name: _constant(file, archive, name, n_rows, may_lack) for name in constants}
        sequences = (
            _cut(file, archive, shapes) if is_padded else ((name, _whole(file, archive, name)) for name in names)
        )
        said = _tags(file, archive, tags, shapes, may_lack) if tags else None
        n_before = 0
        for row, (name, array) in enumerate(sequences):
            fields = {constant: values[row] for constant, values in columns.items()}
            vectors = _checked(file, name, array)
            own: tuple[str, ...] = ()
            if said is not None:
                values = said[row, : len(vectors)] if said.ndim == 2 else said[n_before : n_before + len(vectors)]
                own = tuple(map(str, values.tolist()))
                n_before += len(vectors)
            yield VectorSequence(name, vectors, file, row + 1, fields, own, (row + 1,) * len(own))


def _shapes(file: str, archive: ZipFile) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all arrays by name."""
    shapes = {}
    for name in npz_names(archive):
        with npz_array(file, archive, name) as array:
            shapes[name] = array.shape
    return shapes


def _whole(file: str, archive: ZipFile, name: str) -> Array:
    with npz_array(file, archive, name) as array:
        return array.whole()


def _refuse_flat(file: str, shapes: Mapping[str, tuple[int, ...]], constants: Sequence[str]) -> None:
    """Refuse one vector an example, (N, F) with N labels: it would be taken for one sequence of N vectors."""
    counts = {shapes[name][0] for name in constants if name in shapes}
    names = [name for name in shapes if name not in constants]
    if len(names) == 1 and len(shapes[names[0]]) == 2 and counts == {shapes[names[0]][0]} != {1}:
        shape = shapes[names[0]]
        raise DataError(
            f"{file}: '{names[0]}' is {shape}, one vector an example, and sequences of them were expected.",
            f"Save it as 'vectors' of ({shape[0]}, length, {shape[1]}), the length being 1 if there is only one.",
        )


def _constant(file: str, archive: ZipFile, name: str, n_rows: int, may_lack: bool) -> list[str]:
    """Return what the array of this name says of each sequence, as texts."""
    names = npz_names(archive)
    if name not in names:
        if not may_lack:
            raise DataError(f"{file}: there is no array '{name}'.", did_you_mean(name, names))
        return [""] * n_rows
    array = _whole(file, archive, name)
    if array.shape != (n_rows,) or array.dtype.kind not in "biufU":
        raise DataError(
            f"{file}: '{name}' is not {n_rows:,} numbers or texts, one a sequence, but {array.shape} of {array.dtype}.",
            "Save one for each sequence.",
        )
    return [str(value) for value in array.tolist()]


def _tags(
    file: str, archive: ZipFile, name: str, shapes: Mapping[str, tuple[int, ...]], may_lack: bool
) -> Array | None:
    """Return what the array of this name says of each vector: (N, T) of padded sequences, or all of them end to end."""
    if name not in shapes:
        if not may_lack:
            raise DataError(f"{file}: there is no array '{name}'.", did_you_mean(name, shapes))
        return None
    array = _whole(file, archive, name)
    vectors = shapes.get("vectors", ())
    is_padded = len(vectors) == 3
    counts = [shape[0] for other, shape in shapes.items() if other != name and shape]
    n_vectors = sum(_lengths(file, archive, shapes) if is_padded else counts)
    fits = array.shape == (n_vectors,) or (is_padded and array.shape == vectors[:2])
    if not fits or array.dtype.kind not in "biuU":
        padded = f", or {vectors[:2]} of padded ones" if is_padded else ""
        raise DataError(
            f"{file}: '{name}' is not {n_vectors:,} whole numbers or texts, one a vector{padded}, but {array.shape} of "
            f"{array.dtype}.",
            "Save one for each vector, the sequences end to end.",
        )
    return array


def _lengths(file: str, archive: ZipFile, shapes: Mapping[str, tuple[int, ...]]) -> list[int]:
    """Return the lengths of the sequences in the padded array `vectors`, as they are said."""
    n_rows, longest, _ = shapes["vectors"]
    if "lengths" not in shapes:
        return [longest] * n_rows
    lengths = _whole(file, archive, "lengths")
    if lengths.shape != (n_rows,) or lengths.dtype.kind not in "iu":
        raise DataError(
            f"{file}: lengths are {n_rows} whole numbers, one a sequence, not an array {lengths.shape} of {lengths.dtype}.",
            "Save as many lengths as sequences.",
        )
    return list(map(int, lengths))


def _cut(file: str, archive: ZipFile, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Array]]:
    """Yield the sequences of the padded array `vectors`, without their padding, by their numbers."""
    longest = shapes["vectors"][1]
    lengths = _lengths(file, archive, shapes)
    with npz_array(file, archive, "vectors") as array:
        for number, vectors in enumerate(array.whole() if array.columns_first else array.rows()):
            count = lengths[number]
            if not 1 <= count <= longest:
                raise DataError(
                    f"{file}: sequence {number} has the length {count}, and there are 1 to {longest} vectors.",
                    "Correct its length.",
                )
            yield str(number), vectors[:count]


def _checked(file: str, name: str, array: Array) -> Vectors:
    """Return an array as vectors; (T,) as vectors of one feature."""
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.size or not np.issubdtype(array.dtype, np.number):
        raise DataError(
            f"{file}: '{name}' is not (T, features) of numbers, but {array.shape} of {array.dtype}.",
            "Save each sequence as an array with a row a vector.",
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is told of
        vectors = array.astype(np.float32)
    wrong = np.argwhere(~np.isfinite(vectors))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise DataError(f"{file}: '{name}' holds no number at [{row}, {column}].", "Fill gaps before training on it.")
    return vectors


def _from_csv(file: str, group: str, constants: Sequence[str], tags: str, may_lack: bool) -> Iterator[VectorSequence]:
    """Yield a sequence as soon as its rows end; rows of one sequence stand together."""
    done: set[str] = set()
    parsed = _csv_rows(file, group, (*constants, tags) if tags else constants, may_lack)
    for name, rows in groupby(parsed, key=lambda parsed: parsed[0]):
        numbers: list[list[float]] = []
        lines: list[int] = []
        said: list[str] = []
        fields: dict[str, str] = {}
        for _, own, row in rows:
            if name in done:
                raise DataError(
                    f"{file}:{row.line}: the sequence '{excerpt(name)}' goes on after another has begun.",
                    "Sort the rows by sequence, then by time.",
                )
            if tags:
                said.append(own.pop(tags))
            fields = fields if numbers else own
            if own != fields:
                changed = next(one for one in fields if own[one] != fields[one])
                raise DataError(
                    f"{file}:{row.line}: '{changed}' changes from '{excerpt(fields[changed])}' to "
                    f"'{excerpt(own[changed])}' within the sequence '{excerpt(name)}'.",
                    "Correct it; or name the column that tells sequences apart with --text.",
                )
            numbers.append([_number(file, row.line, column, cell) for column, cell in row.fields.items()])
            lines.append(row.line)
        vectors = np.array(numbers, dtype=np.float32)
        yield VectorSequence(name, vectors, file, lines[0], fields, tuple(said), tuple(lines))
        done.add(name)


def _csv_rows(
    file: str, group: str, constants: Sequence[str], may_lack: bool
) -> Iterator[tuple[str, dict[str, str], Row]]:
    """Yield the name of each row's sequence, what is said of that as a whole, and the row without both."""
    columns: dict[str, str] | None = None
    for row in read_csv(file):
        if isinstance(row, Bad):
            raise DataError(f"{file}:{row.line}: {row.reason}.", "Fix the row: a gap would shift all that follow.")
        if columns is None:
            group = asked_column(file, group, row.fields)
            columns = {one: asked_column(file, one, row.fields, may_lack=may_lack) for one in constants}
        name = row.fields.pop(group) if group else Path(file).stem
        yield name, {one: row.fields.pop(column, "") for one, column in columns.items()}, row


def _number(file: str, line: int, column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not abs(value) <= LARGEST:  # so that NaN is refused too
        raise DataError(
            f"{file}:{line}: the column '{column}' holds '{excerpt(cell, characters=20)}', and a number was expected.",
            "Fill gaps, and leave out columns of text.",
        )
    return value
