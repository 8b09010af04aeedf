"""Parquet: the columns of text, in batches of rows. Hugging Face's column `translation` (en, de, …) is unpacked.

A row's line is its number in the file, from 1.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.data.formats.columns import match
from regard.data.formats.files import open_seekable
from regard.data.formats.rows import Bad, Row, decode, excerpt
from regard.errors import DataError, MissingExtraError

BATCH_ROWS = 1024


def read_parquet(file: str, columns: Sequence[str] = (), *, scalars: bool = False) -> Iterator[Row | Bad]:
    """Yield the texts of each row by column; a null is an empty text. A wanted column of something else is an error.

    scalars: numbers, true and false are texts too
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "Reading Parquet files", "formats") from None
    with open_seekable(file) as stream:
        try:
            table = pyarrow.parquet.ParquetFile(stream)
            _check_types(pyarrow, file, table.schema_arrow, columns, scalars)
            number = 0
            for batch in table.iter_batches(batch_size=BATCH_ROWS):
                texts = _texts(pyarrow, batch, scalars)
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
    types = {field.name: field.type for field in schema}
    translation = types.get("translation")
    if translation is not None and pyarrow.types.is_struct(translation):
        types = {field.name: field.type for field in translation}
    return types


def _texts(pyarrow: Any, batch: Any, scalars: bool) -> dict[str, list[bytes | None]]:
    """Return the batch's columns of text by name, as bytes: whether they are UTF-8 is for `decode` to say."""
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    translation = arrays.get("translation")
    if translation is not None and pyarrow.types.is_struct(translation.type):
        arrays = dict(zip([field.name for field in translation.type], translation.flatten(), strict=True))
    texts = {}
    for name, array in arrays.items():
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
