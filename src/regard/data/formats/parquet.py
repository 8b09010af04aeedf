"""Parquet: the columns of text, in batches of rows. Hugging Face's column `translation` (en, de, …) is unpacked.

A row's line is its number in the file, from 1.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.data.formats.files import open_seekable
from regard.data.formats.rows import Bad, Row, decode, excerpt
from regard.errors import DataError, MissingExtraError

BATCH_ROWS = 1024


def read_parquet(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield the texts of each row by column; a null is no field of its row."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "Reading Parquet files", "formats") from None
    with open_seekable(file) as stream:
        try:
            number = 0
            for batch in pyarrow.parquet.ParquetFile(stream).iter_batches(batch_size=BATCH_ROWS):
                texts = _texts(pyarrow, batch)
                for cells in zip(*texts.values(), strict=True):
                    number += 1
                    yield _row(file, number, dict(zip(texts, cells, strict=True)))
        except pyarrow.ArrowException as error:
            raise DataError(
                f"{file}: not a whole Parquet file ({excerpt(str(error))}).", "Write or copy it again."
            ) from None


def _texts(pyarrow: Any, batch: Any) -> dict[str, list[bytes | None]]:
    """Return the batch's columns of text by name, as bytes: whether they are UTF-8 is for `decode` to say."""
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    translation = arrays.get("translation")
    if translation is not None and pyarrow.types.is_struct(translation.type):
        arrays = dict(zip([field.name for field in translation.type], translation.flatten(), strict=True))
    return {
        name: array.cast(pyarrow.large_binary()).to_pylist()
        for name, array in arrays.items()
        if _is_text(pyarrow, array.type)
    }


def _is_text(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _row(file: str, number: int, cells: dict[str, bytes | None]) -> Row | Bad:
    fields: dict[str, str] = {}
    for name, raw in cells.items():
        if raw is None:
            continue
        text, reason = decode(raw)
        if reason:
            return Bad(file, number, reason, excerpt(text))
        fields[name] = text
    return Row(file, number, fields)
