"""Parquet: the columns of text, in batches of rows. Hugging Face's column `translation` (en, de, …) is unpacked.

A row's line is its number in the file, from 1.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

from regard.data.formats.columns import match
from regard.data.formats.files import open_seekable
from regard.data.formats.rows import Bad, Row, decode, excerpt
from regard.errors import DataError, MissingExtraError

BATCH_ROWS = 1024
BATCH_BYTES = 1 << 26  # that the rows may have which are decoded together
# A file that unfolds so much, to so many bytes, was made to fill the memory.
MAX_UNFOLDING = 200
UNFOLDED_BYTES = 1 << 28


def read_parquet(file: str, columns: Sequence[str] = (), *, scalars: bool = False) -> Iterator[Row | Bad]:
    """Yield the texts of each row by column; a null is an empty text. A wanted column of something else is an error.

    scalars: numbers, true and false are texts too
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "Reading Parquet files", "formats") from None
    with open_seekable(file) as stream:
        try:
            table = pyarrow.parquet.ParquetFile(stream)
            _check_types(pyarrow, file, table.schema_arrow, columns, scalars)
            n_packed = stream.seek(0, os.SEEK_END)
            number = n_unfolded = 0
            for batch in _batches(pyarrow, file, table, stream, scalars):
                texts = _texts(pyarrow, batch, scalars)
                # A group accounts for its dictionaries, not for the rows that repeat what stands there once.
                n_unfolded += sum(len(cell) for cells in texts.values() for cell in cells if cell)
                _refuse_bomb(file, n_packed, n_unfolded)
                for cells in zip(*texts.values(), strict=True):
                    number += 1
                    yield _row(file, number, dict(zip(texts, cells, strict=True)))
        except (pyarrow.ArrowException, OSError) as error:
            # Damage inside a page is an OSError too, but one without a number of the system's.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DataError(
                f"{file}: not a whole Parquet file ({excerpt(str(error))}).", "Write or copy it again."
            ) from None


def _check_types(pyarrow: Any, file: str, schema: Any, columns: Sequence[str], scalars: bool) -> None:
    """Raise DataError if no column holds text, or one that is wanted does not."""
    remedy = "Write the sentences as strings."
    types = _types(pyarrow, schema)
    if not any(_is_text(pyarrow, kind) for kind in types.values()):
        listed = ", ".join(f"{name} ({kind})" for name, kind in types.items())
        raise DataError(f"{file}: no column holds text, for there is: {listed}.", remedy)
    for name in (name for wanted in columns if wanted for name in match(wanted, types)):
        if not _is_text(pyarrow, types[name]) and not (scalars and _is_scalar(pyarrow, types[name])):
            raise DataError(f"{file}: the column '{name}' holds {types[name]}, not text.", remedy)


def _types(pyarrow: Any, schema: Any) -> dict[str, Any]:
    """Return the types of the columns by name."""
    return {field.name: field.type for field in (_translation(pyarrow, schema) or schema)}


def _translation(pyarrow: Any, schema: Any) -> Any:
    """Return the type of the column `translation` if it is to be unpacked."""
    types = {field.name: field.type for field in schema}
    found = types.get("translation")
    return found if found is not None and pyarrow.types.is_struct(found) else None


def _columns(pyarrow: Any, schema: Any, scalars: bool) -> tuple[list[str], list[str]]:
    """Return the names of the columns that are read, and the paths in the file of those that hold text."""
    types = _types(pyarrow, schema)
    texts = [name for name, kind in types.items() if _is_text(pyarrow, kind)]
    if _translation(pyarrow, schema):
        return ["translation"], [f"translation.{name}" for name in texts]
    return [name for name, kind in types.items() if name in texts or (scalars and _is_scalar(pyarrow, kind))], texts


def _batches(pyarrow: Any, file: str, table: Any, stream: BinaryIO, scalars: bool) -> Iterator[Any]:
    """Yield the columns that are read, so many rows at a time as fit into memory."""
    names, paths = _columns(pyarrow, table.schema_arrow, scalars)
    n_packed = stream.seek(0, os.SEEK_END)
    # In this one a value that a column's dictionary holds stands once, not in each of its rows.
    by_dictionary = pyarrow.parquet.ParquetFile(stream, read_dictionary=paths)
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        # Not by column: what is wrong with the account of a column ends the process within pyarrow.
        _refuse_bomb(file, n_packed, group.total_byte_size)
        for first in islice(by_dictionary.iter_batches(batch_size=1, row_groups=[number], columns=names), 1):
            n_rows = _batch_rows(pyarrow, first, group)
            yield from table.iter_batches(batch_size=n_rows, row_groups=[number], columns=names)


def _refuse_bomb(file: str, n_packed: int, n_unfolded: int) -> None:
    if n_unfolded > max(UNFOLDED_BYTES, MAX_UNFOLDING * n_packed):
        raise DataError(
            f"{file}: its {n_packed:,} bytes unfold to {n_unfolded:,} and more.",
            "Check where the file comes from; if that is right, write it again without compression.",
        )


def _batch_rows(pyarrow: Any, first: Any, group: Any) -> int:
    """Return how many rows of a group are decoded together; the dictionaries are those of its first row."""
    longest = 1
    for array in _arrays(pyarrow, first).values():
        if pyarrow.types.is_dictionary(array.type):
            longest = max(longest, pyarrow.compute.max(pyarrow.compute.binary_length(array.dictionary)).as_py() or 1)
    mean = group.total_byte_size // max(group.num_rows, 1)
    return int(max(1, min(BATCH_ROWS, BATCH_BYTES // max(longest, mean, 1))))


def _arrays(pyarrow: Any, batch: Any) -> dict[str, Any]:
    """Return the columns of a batch by name, those of `translation` unpacked."""
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    translation = arrays.get("translation")
    if translation is not None and pyarrow.types.is_struct(translation.type):
        arrays = dict(zip([field.name for field in translation.type], translation.flatten(), strict=True))
    return arrays


def _texts(pyarrow: Any, batch: Any, scalars: bool) -> dict[str, list[bytes | None]]:
    """Return the batch's columns of text by name, as bytes: whether they are UTF-8 is for `decode` to say."""
    texts = {}
    for name, array in _arrays(pyarrow, batch).items():
        if scalars and _is_scalar(pyarrow, array.type):
            array = array.cast(pyarrow.large_string())
        if _is_text(pyarrow, array.type):
            texts[name] = array.cast(pyarrow.large_binary()).to_pylist()
    return texts


def _is_scalar(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _row(file: str, number: int, cells: dict[str, bytes | None]) -> Row | Bad:
    fields: dict[str, str] = {}
    for name, raw in cells.items():
        text, reason = decode(raw or b"")
        if reason:
            return Bad(file, number, reason, excerpt(text))
        fields[name] = text
    return Row(file, number, fields)
