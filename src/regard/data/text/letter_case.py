"""Letter case: whether a corpus is lower-cased, so that what is given to a model that learned from it has to be, too.

Ordinary text has some 2 capitals or more among 100 letters. Corpora that somebody has lower-cased have none, but for a few
that slipped through.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

SHARE = 0.001  # of the letters that have case may be capitals
MOST_CAPITALS = 10_000  # whatever their share; where there are more, no further text is read
LEAST_LETTERS = 1_000  # fewer say nothing


class LetterCase:
    """Counts the letters of texts while they are read for something else, those of each side apart."""

    def __init__(self) -> None:
        self._sides: defaultdict[int, _Letters] = defaultdict(_Letters)

    def watched(self, examples: Iterable[Sequence[str]]) -> Iterator[str]:
        """Yield the texts of examples, of which each has one, or one of each side, and take note of them."""
        for example in examples:
            for side, text in enumerate(example):
                self._sides[side].add(text)
                yield text

    def of_all(self, watched: Iterator[str]) -> bool:
        """Say whether all text is lower-cased, on every side; the rest of what is watched is read as far as that needs it.

        Text without case, such as Chinese, is not in the way of another side, but alone it is not lower-cased.
        """
        for _ in watched:
            if any(side.n_capital > MOST_CAPITALS for side in self._sides.values()):
                return False
        sides = self._sides.values()
        return all(side.are_small for side in sides) and any(side.n_small >= LEAST_LETTERS for side in sides)


class _Letters:
    """The letters of one side; small ones are counted only as far as their number can matter."""

    def __init__(self) -> None:
        self.n_capital = 0
        self.n_small = 0

    def add(self, text: str) -> None:
        if self.n_capital > MOST_CAPITALS:
            return
        if not text.islower():  # quick, and true of nearly every text of a lower-cased corpus
            self.n_capital += sum(map(str.isupper, text))
        if self.n_small < MOST_CAPITALS / SHARE:
            self.n_small += sum(map(str.islower, text))

    @property
    def are_small(self) -> bool:
        return self.n_capital <= min(MOST_CAPITALS, SHARE * (self.n_small + self.n_capital))
