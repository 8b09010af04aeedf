"""Results: what a run predicts of one input, and lists of them; a result knows how to show itself.

As lines for people, as cells of a table (pandas takes `records()`), as JSON for programs, as HTML in a notebook.
"""

import html
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar

from regard.evaluation.table import columns_of, records_to_csv

N_SHOWN = 10  # results that the repr of a list shows


class Result(ABC):
    """What a run predicts of one input. `top` is how many alternatives are shown, 0 where nobody asked for any."""

    @abstractmethod
    def lines(self, *, top: int = 0) -> list[str]:
        """What a person sees, line by line, without line ends and tabs inside a cell."""

    @abstractmethod
    def cells(self, *, top: int = 0) -> dict[str, Any]:
        """One flat record: columns and their values."""

    @abstractmethod
    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        """All that is known, as data that `json.dumps` takes."""

    @property
    def truncation(self) -> str:
        """What became of an input that is longer than the model reads at once; empty where it was read whole."""
        return ""

    @property
    def problem(self) -> str:
        """Why nothing is predicted of an input that was skipped; empty where it could be read."""
        return ""

    def __repr__(self) -> str:
        cells = ", ".join(f"{name}={value!r}" for name, value in self.cells().items())
        return f"{type(self).__name__}({cells})"

    def _repr_html_(self) -> str:
        return Results([self])._repr_html_()


ResultType = TypeVar("ResultType", bound=Result)


class Results(list[ResultType]):
    """Results in the order of their inputs: a list that can become a table."""

    def records(self, *, top: int = 0) -> list[dict[str, Any]]:
        """One flat dict per result: `pandas.DataFrame(results.records())`."""
        return [one.cells(top=top) for one in self]

    def to_csv(self, path: str | Path | None = None, *, top: int = 0) -> str:
        """Return the records as CSV, and write them to `path` if one is given."""
        return records_to_csv(self.records(top=top), path)

    def __repr__(self) -> str:
        shown = [repr(one) for one in self[:N_SHOWN]]
        more = [f"… {len(self) - N_SHOWN:,} more"] if len(self) > N_SHOWN else []
        return "[" + ",\n ".join([*shown, *more]) + "]"

    def _repr_html_(self) -> str:
        records = [one.cells() for one in self[:N_SHOWN]]
        columns = columns_of(records)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        rows = ("".join(f"<td>{html.escape(str(record.get(name, '')))}</td>" for name in columns) for record in records)
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def one_line(text: str) -> str:
    """Keep a text on its line and in its column."""
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")
