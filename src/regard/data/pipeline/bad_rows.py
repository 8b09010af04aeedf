"""Bad rows: left out, counted by reason with their first examples, and too many of them refused.

One account for every kind of data; its noun says what a row is called: pair, line, row, image, caption.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regard.data.formats.columns import listed
from regard.data.formats.rows import NOT_UTF_8, Bad, holds_utf_8
from regard.errors import DataError

BAD_SHARE = 0.01  # of all rows that may be bad, unless they are left out
N_EXAMPLES = 5  # of each reason that are kept
N_REASONS = 5  # that an error counts
N_FIRST = 3  # of which it shows an example
TOO_LONG = "longer than"  # how the reason of a row begins that has too many tokens
Good = TypeVar("Good")


@dataclass
class BadRows:
    """How many rows are good, and how many are bad for which reason, with the first examples of each.

    noun:        what one row is called
    n_examples:  how many of each reason are kept
    """

    noun: str
    n_good: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Bad]] = field(default_factory=dict)
    n_examples: float = field(default=N_EXAMPLES, compare=False)

    @property
    def n_bad(self) -> int:
        return self.reasons.total()

    @property
    def n_read(self) -> int:
        return self.n_good + self.n_bad

    def add(self, bad: Bad, *, count: int = 1) -> None:
        """Count a bad row, or several that are bad for one reason."""
        self.reasons[bad.reason] += count
        examples = self.examples.setdefault(bad.reason, [])
        if len(examples) < self.n_examples:
            examples.append(bad)

    def good(self, rows: Iterable[Good | Bad]) -> Iterator[Good]:
        """Yield the good rows of a stream, and count all."""
        for row in rows:
            if isinstance(row, Bad):
                self.add(row)
            else:
                self.n_good += 1
                yield row

    def to_facts(self, files: Sequence[str]) -> dict[str, Any]:
        """Return what `from_facts` reads, as JSON: files by their number, as they may lie elsewhere another time."""
        numbers = {file: number for number, file in enumerate(files)}
        examples = {
            reason: [(numbers[bad.file], bad.line, bad.excerpt) for bad in own] for reason, own in self.examples.items()
        }
        reasons = dict(self.reasons.most_common())
        return {"noun": self.noun, "n_good": self.n_good, "reasons": reasons, "examples": examples}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], files: Sequence[str]) -> "BadRows":
        """Read what `to_facts` wrote, of these files."""
        examples = {
            reason: [Bad(files[file], line, reason, excerpt) for file, line, excerpt in own]
            for reason, own in facts["examples"].items()
        }
        return cls(facts["noun"], facts["n_good"], Counter(facts["reasons"]), examples)

    def sentences(self, noun: str = "") -> list[str]:
        """Say how many were left out and why, the most frequent reason first, with two examples: a sentence a reason.

        noun: what to call them, where they are not simply bad
        """
        return [
            f"{count:,} {noun or f'bad {self.noun}'}{'s' * (count > 1)}, {reason}: "
            + "; ".join(f"{bad.place}{_quoted(bad)}" for bad in self.examples[reason][:2])
            for reason, count in self.reasons.most_common()
        ]

    def enforce(self, on_bad: str, files: Sequence[str], *, instead: str = "") -> None:
        """Refuse rows of which more are bad than the policy allows, or none is good.

        instead: what --on-bad keep-going does, if not leaving the bad ones out
        """
        share = 1.0 if on_bad == "keep-going" else BAD_SHARE
        if not self.n_read:
            raise DataError(f"{', '.join(files)}: no {self.noun}s were found.", "Check that these are the right files.")
        if self.n_good and self.n_bad <= share * self.n_read:
            return
        frequent = self.reasons.most_common(N_REASONS)
        # A reason that begins with a number would run into its count.
        counts = [
            f"{count:,} ({reason})" if reason[0].isdigit() else f"{count:,} {reason}" for reason, count in frequent
        ]
        if rest := len(self.reasons) - len(frequent):
            counts.append(f"{rest:,} other reason{'s' * (rest > 1)}")
        examples = (self.examples[reason][0] for reason, _ in frequent[:N_FIRST])
        first = "; ".join(f"{bad.place} ({bad.reason}){_quoted(bad)}" for bad in examples)
        raise DataError(
            f"{self.n_bad:,} of {self.n_read:,} {self.noun}s are bad ({self.n_bad / self.n_read:.1%}, at most {share:.0%} "
            f"may be): {', '.join(counts)}. First: {first}.",
            self._remedy(instead or f"leave the bad {self.noun}s out"),
        )

    def _remedy(self, instead: str) -> str:
        fix = "Fix the files"
        if foreign := self.examples.get(NOT_UTF_8):
            fix = _conversion(foreign)
        elif all(reason.startswith(TOO_LONG) for reason in self.reasons):
            fix = "Raise data.max_length, shorten them"
        return f"{fix}, or {instead} with --on-bad keep-going." if self.n_good else f"{fix}."


def _conversion(foreign: Sequence[Bad]) -> str:
    """Advise to convert a whole file, unless some of it is UTF-8 already, which that would garble."""
    file = foreign[0].file
    if not holds_utf_8(file):
        return "Convert them to UTF-8 (iconv -f latin1 -t utf-8 OLD > NEW)"
    numbers = listed([str(bad.line) for bad in foreign if bad.file == file])
    return f"{file} is in UTF-8 but for some lines, such as {numbers}: write these again"


def _quoted(bad: Bad) -> str:
    return f" '{bad.excerpt}'" if bad.excerpt else ""
