"""JSON Lines: one object a line. Hugging Face's form `{"translation": {"en": …, "de": …}}` is unpacked."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from regard.data.formats.columns import match
from regard.data.formats.rows import Bad, Row, excerpt, read_lines


def read_jsonl(file: str, columns: Sequence[str] = (), *, scalars: bool = False) -> Iterator[Row | Bad]:
    """Yield the strings of each object by their keys. A wanted column that holds something else makes the row bad.

    scalars: numbers, true and false are strings too, as they are written in JSON, and null is an empty one
    """
    for number, line in enumerate(read_lines(file), start=1):
        if isinstance(line, Bad):
            yield line
            continue
        fields, reason = _fields(line, columns, scalars)
        yield Bad(file, number, reason, excerpt(line)) if reason else Row(file, number, fields, line)


def _fields(line: str, columns: Sequence[str], scalars: bool) -> tuple[dict[str, str], str]:
    """Return the strings of a line and what is wrong with it ("" if nothing)."""
    if not line.strip():
        return {}, "empty line"
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return {}, "not JSON"
    if not isinstance(record, dict):
        return {}, "not a JSON object"
    if isinstance(record.get("translation"), dict):
        record = record["translation"]
    if scalars:
        record = {key: _as_text(value) for key, value in record.items()}
    wanted = [key for name in columns if name for key in match(name, record)]
    if not all(isinstance(record[key], str) for key in wanted):
        return {}, "neither text nor number" if scalars else "not a string"
    fields = {key: value for key, value in record.items() if isinstance(value, str)}
    # Half a surrogate pair can be written as an escape; no file in UTF-8 can hold it.
    if "\\u" in line and any(_has_surrogate(text) for text in fields.values()):
        return {}, "half a surrogate pair"
    return fields, ""


def _as_text(value: Any) -> Any:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, (bool, int, float)) else value


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
