"""Sequences of vectors, as a sensor or a film gives them: NPZ files, or the rows of a CSV.

NPZ   every array (T, features) is a sequence under its own name; or one array `vectors` (N, T, features), padded behind,
      with `lengths` (N,) if they differ.
CSV   every row is a vector, in the order of time. A column may say which sequence a row belongs to; else the file is one.

What is said of a sequence as a whole, such as its label, is an array (N,) of the NPZ, or a column that does not change
within a sequence of the CSV.
"""

import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.data.formats.columns import asked_column
from regard.data.formats.delimited import read_csv
from regard.data.formats.files import check_file, open_seekable
from regard.data.formats.rows import Bad, Row
from regard.errors import DataError, did_you_mean

Vectors = npt.NDArray[np.float32]
Array = npt.NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class VectorSequence:
    """One sequence: its name, its vectors (T, features), all of finite numbers, and where it begins.

    line:    in an NPZ its number, from 1
    fields:  what is said of it as a whole
    """

    name: str
    vectors: Vectors
    file: str
    line: int
    fields: dict[str, str]


def read_vector_sequences(
    file: str | os.PathLike[str], *, group: str = "", constants: Sequence[str] = (), may_lack: bool = False
) -> Iterator[VectorSequence]:
    """Yield the sequences of an NPZ or a CSV; `group` is the column of a CSV that tells them apart.

    constants:  names of columns or arrays that say something of a sequence as a whole, and are no vectors
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
    read = _from_npz(name, constants, may_lack) if ending == "npz" else _from_csv(name, group, constants, may_lack)
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


def _from_npz(file: str, constants: Sequence[str], may_lack: bool) -> Iterator[VectorSequence]:
    try:
        with open_seekable(file) as stream, np.load(stream, allow_pickle=False) as arrays:
            padded = arrays.get("vectors")
            if padded is not None and padded.ndim == 3:
                sequences = list(_cut(file, padded, arrays.get("lengths")))
            else:
                _refuse_flat(file, arrays, constants)
                sequences = [(name, arrays[name]) for name in arrays.files if name not in constants]
            columns = {name: _constant(file, arrays, name, len(sequences), may_lack) for name in constants}
            for row, (name, array) in enumerate(sequences):
                fields = {constant: values[row] for constant, values in columns.items()}
                yield VectorSequence(name, _checked(file, name, array), file, row + 1, fields)
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        remedy = "Save it with numpy.savez(file, name=array, …), arrays of numbers only."
        raise DataError(f"{file}: not an NPZ file of numbers: {error}.", remedy) from None


def _refuse_flat(file: str, arrays: Mapping[str, Array], constants: Sequence[str]) -> None:
    """Refuse one vector an example, (N, F) with N labels: it would be taken for one sequence of N vectors."""
    counts = {len(arrays[name]) for name in constants if name in arrays and arrays[name].ndim}
    names = [name for name in arrays if name not in constants]
    if len(names) == 1 and arrays[names[0]].ndim == 2 and counts == {len(arrays[names[0]])} != {1}:
        shape = arrays[names[0]].shape
        raise DataError(
            f"{file}: '{names[0]}' is {shape}, one vector an example, and sequences of them were expected.",
            f"Save it as 'vectors' of ({shape[0]}, length, {shape[1]}), the length being 1 if there is only one.",
        )


def _constant(file: str, arrays: Mapping[str, Array], name: str, n_rows: int, may_lack: bool) -> list[str]:
    """Return what the array of this name says of each sequence, as texts."""
    if name not in arrays:
        if not may_lack:
            raise DataError(f"{file}: there is no array '{name}'.", did_you_mean(name, arrays))
        return [""] * n_rows
    array = arrays[name]
    if array.shape != (n_rows,) or array.dtype.kind not in "biufU":
        raise DataError(
            f"{file}: '{name}' is not {n_rows:,} numbers or texts, one a sequence, but {array.shape} of {array.dtype}.",
            "Save one for each sequence.",
        )
    return [str(value) for value in array.tolist()]


def _cut(file: str, vectors: Array, lengths: Array | None) -> Iterator[tuple[str, Array]]:
    """Yield the sequences of a padded array, without their padding, by their numbers."""
    n_rows, longest, _ = vectors.shape
    counts = np.full(n_rows, longest) if lengths is None else np.asarray(lengths)
    if counts.shape != (n_rows,) or not np.issubdtype(counts.dtype, np.integer):
        raise DataError(
            f"{file}: lengths are {n_rows} whole numbers, one a sequence, not an array {counts.shape} of {counts.dtype}.",
            "Save as many lengths as sequences.",
        )
    for number, count in enumerate(counts.tolist()):
        if not 1 <= count <= longest:
            raise DataError(
                f"{file}: sequence {number} has the length {count}, and there are 1 to {longest} vectors.",
                "Correct its length.",
            )
        yield str(number), vectors[number, :count]


def _checked(file: str, name: str, array: Array) -> Vectors:
    """Return an array as vectors; (T,) as vectors of one feature."""
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not len(array) or not np.issubdtype(array.dtype, np.number):
        raise DataError(
            f"{file}: '{name}' is not (T, features) of numbers, but {array.shape} of {array.dtype}.",
            "Save each sequence as an array with a row a vector.",
        )
    vectors = array.astype(np.float32)
    wrong = np.argwhere(~np.isfinite(vectors))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise DataError(f"{file}: '{name}' holds no number at [{row}, {column}].", "Fill gaps before training on it.")
    return vectors


def _from_csv(file: str, group: str, constants: Sequence[str], may_lack: bool) -> Iterator[VectorSequence]:
    """Yield a sequence as soon as its rows end; rows of one sequence stand together."""
    done: set[str] = set()
    parsed = _csv_rows(file, group, constants, may_lack)
    for name, rows in groupby(parsed, key=lambda parsed: parsed[0]):
        numbers: list[list[float]] = []
        line, fields = 0, dict[str, str]()
        for _, own, row in rows:
            if name in done:
                raise DataError(
                    f"{file}:{row.line}: the sequence '{name}' goes on after another has begun.",
                    "Sort the rows by sequence, then by time.",
                )
            line, fields = (line, fields) if numbers else (row.line, own)
            if own != fields:
                changed = next(one for one in fields if own[one] != fields[one])
                raise DataError(
                    f"{file}:{row.line}: '{changed}' changes from '{fields[changed]}' to '{own[changed]}' within the "
                    f"sequence '{name}'.",
                    "Correct it; or name the column that tells sequences apart with --text.",
                )
            numbers.append([_number(file, row.line, column, cell) for column, cell in row.fields.items()])
        yield VectorSequence(name, np.array(numbers, dtype=np.float32), file, line, fields)
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
    if not np.isfinite(value):
        raise DataError(
            f"{file}:{line}: the column '{column}' holds '{cell}', and a number was expected.",
            "Fill gaps, and leave out columns of text.",
        )
    return value
