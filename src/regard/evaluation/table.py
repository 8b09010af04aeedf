"""A table of results that knows no renderer: as aligned lines, as records for pandas, as HTML in a notebook."""

import csv
import html
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GAP = "  "


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells as people read them; the columns in `left` are words and stand to the left, the others are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = (0,)

    def lines(self) -> list[str]:
        """The table in columns, the headings first."""
        every = (self.headings, *self.rows)
        widths = [max(text_width(row[column]) for row in every) for column in range(len(self.headings))]
        return [_GAP.join(self._padded(row, widths)).rstrip() for row in every]

    def records(self) -> list[dict[str, str]]:
        """One dict per row, by heading."""
        return [dict(zip(self.headings, row, strict=True)) for row in self.rows]

    def _padded(self, row: tuple[str, ...], widths: list[int]) -> list[str]:
        padding = [" " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True)]
        return [
            cell + pad if n in self.left else pad + cell for n, (cell, pad) in enumerate(zip(row, padding, strict=True))
        ]

    def _repr_html_(self) -> str:
        head = "".join(self._html_cell("th", n, cell) for n, cell in enumerate(self.headings))
        body = (
            f"<tr>{''.join(self._html_cell('td', n, cell) for n, cell in enumerate(row))}</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def _html_cell(self, tag: str, column: int, text: str) -> str:
        side = "left" if column in self.left else "right"
        return f'<{tag} style="text-align: {side}">{html.escape(text)}</{tag}>'


def records_to_csv(records: Sequence[Mapping[str, Any]], path: str | Path | None = None) -> str:
    """Return flat records as CSV, and write them to `path` if one is given; a record may lack columns of others."""
    written = io.StringIO()
    table = csv.DictWriter(written, columns_of(records), lineterminator="\n")
    table.writeheader()
    table.writerows(records)
    if path is not None:
        Path(path).write_text(written.getvalue(), encoding="utf-8")
    return written.getvalue()


def columns_of(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of flat records, in the order in which they first come."""
    return list(dict.fromkeys(name for record in records for name in record))


def text_width(text: str) -> int:
    """How many columns a text takes on a terminal: wide characters two, combining ones none."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
