"""Plain text as rows."""

import gzip
from pathlib import Path

from regard.data.formats.rows import Bad, Row
from regard.data.formats.text import read_text


def test_each_line_is_a_row_even_an_empty_one(tmp_path: Path) -> None:
    file = str(tmp_path / "a.en.gz")
    Path(file).write_bytes(gzip.compress(b"one\n\nthr\xffee\n"))
    assert list(read_text(file)) == [
        Row(file, 1, {"text": "one"}),
        Row(file, 2, {"text": ""}),
        Bad(file, 3, "not UTF-8", "thr\\xffee"),
    ]
