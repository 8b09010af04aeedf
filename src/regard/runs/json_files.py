"""The JSON files of a run: read within bounds, their values checked before they are trusted. Loads no tensor library."""

import json
import math
from pathlib import Path
from typing import Any, TypeGuard

from regard.regular_files import read_regular

MOST_COUNT = 2**53  # up to which a float counts without gaps


def read_json(path: Path, *, most: int) -> Any:
    """Read a regular file of at most so many bytes: OSError as for `read_regular`, ValueError as for `parse_json`."""
    return parse_json(read_regular(path, most=most))


def parse_json(content: bytes | str) -> Any:
    """Read JSON; ValueError where it is none, or nested deeper than anything of ours."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_count(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number from 0 on, as of steps."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_COUNT


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < MOST_COUNT


def is_scores(value: object) -> TypeGuard[dict[str, float | None]]:
    """Tell whether a value is a table of numbers, of which some may be missing; its step, if it has one, a count."""
    return (
        isinstance(value, dict)
        and all(one is None or is_number(one) for one in value.values())
        and is_count(value.get("step", 0))
    )
