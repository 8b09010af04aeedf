"""TOML in bounded time: what no run file needs, and a parser could take for ever over, is refused before it is read."""

import re
import tomllib
from typing import Any

MOST_DEPTH = 6  # of tables and lists in each other
MOST_DOTS = 50  # in a key
# What TOML consists of, as far as it matters for the dots of a key: comments and long texts, the parts of a key with the
# blanks between them, and all else. A text without its end goes on to the end of its line, so that none is read twice.
_TOKENS = re.compile(
    r"""(?s:\#[^\n]*+|\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)"""
    r"""|(?P<part>"(?:\\[^\n]|[^"\\\n])*+"?|'[^'\n]*+'?|[\w \t-]++)|(?P<dot>\.)|.)"""
)


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML; ValueError where it is none, or nested and numbered beyond any run file."""
    n_dots = 0
    for token in _TOKENS.finditer(text):
        # tomllib takes the square of their number in time.
        n_dots = n_dots + 1 if token.lastgroup == "dot" else n_dots if token.lastgroup == "part" else 0
        if n_dots > MOST_DOTS:
            raise ValueError(f"a key of more than {MOST_DOTS} parts")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_values(tables, depth=MOST_DEPTH)
    return tables


def _check_values(value: Any, *, depth: int) -> None:
    """Refuse whole numbers beyond 64 bits, which TOML does not have, and dates and deep tables, which no run has."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number of more than 64 bits")
    if not isinstance(value, dict | list | str | int | float):
        raise ValueError(f"a date or time, {value}, which no key takes")
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inside:
        if not depth:
            raise ValueError("it is nested too deeply")
        _check_values(one, depth=depth - 1)
