"""Plain text, one sentence a line: a row has the field "text". An empty line is an empty text, not a fault."""

from collections.abc import Iterator, Sequence

from regard.data.formats.rows import Bad, Row, read_lines


def read_text(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each line as {"text": line}; `columns` are not used, there is only one."""
    for number, line in enumerate(read_lines(file), start=1):
        yield line if isinstance(line, Bad) else Row(file, number, {"text": line})
