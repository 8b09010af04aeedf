"""Levenshtein distance: the fewest insertions, deletions and substitutions that make one sequence of another.

Computed a column at a time in the bits of two integers (Myers, "A fast bit-vector algorithm for approximate string
matching based on dynamic programming", 1999, as Hyyrö has it, 2003), which plain Python does quickly.
"""

from collections.abc import Hashable, Sequence


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Count the edits between two sequences: the characters of strings, or lists of words."""
    if first == second:
        return 0
    if not first or not second:
        return max(len(first), len(second))
    where: dict[Hashable, int] = {}  # the places of each element in `first`, as bits
    for place, element in enumerate(first):
        where[element] = where.get(element, 0) | 1 << place
    every, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    # Down a column of the table of distances neighbours differ by +1 (a bit of `up`), -1 (of `down`) or nothing.
    up, down, distance = every, 0, len(first)
    for element in second:
        same = where.get(element, 0)
        diagonal = (((same & up) + up) ^ up) | same | down  # no step from the cell at the upper left
        right_up, right_down = down | ~(diagonal | up) & every, diagonal & up  # from the column before
        distance += bool(right_up & last) - bool(right_down & last)
        right_up = right_up << 1 | 1
        up, down = (right_down << 1 | ~(diagonal | right_up)) & every, right_up & diagonal & every
    return distance
