"""How the word lists are written: one line is one lemma; two or more spaces part the columns."""

import re


def rows(table: str) -> list[list[str]]:
    """Split a table into its lines, and each line into its columns."""
    return [re.split(r" {2,}", line.strip()) for line in table.strip().splitlines()]
