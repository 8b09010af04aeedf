"""What text files hold and what is wrong with them: counted before anything is learned, and remembered.

Bad lines (no UTF-8, a NUL byte) are left out and counted; too many of them stop.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.config import DataConfig
from regard.data.documents.rows import Piece, passages, read_documents
from regard.data.formats import Bad
from regard.data.pairs.check import BAD_SHARE, N_EXAMPLES, ON_BAD
from regard.data.pipeline.cache import cached
from regard.data.pipeline.validation_split import ValidationSplit
from regard.errors import DataError, UsageError, did_you_mean

FEW = 100  # below so many documents it is not documents that are held out, but the end of the text
TAIL = 0.1  # of the text
N_REASONS = 5  # that an error names
_VERSION = "3"  # of what the cache keeps; raise it when that or the way files are read changes
Progress = Callable[[str, int], None]  # what is done, and how many lines so far


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Bad lines that were left out: how many for each reason, the most frequent first, and the first examples of it."""

    reasons: Mapping[str, int]
    examples: Mapping[str, tuple[Bad, ...]]

    @classmethod
    def of(cls, facts: Mapping[str, Any], files: Sequence[str]) -> "LeftOut":
        """Read what `Faults.as_facts` wrote, of these files."""
        examples = {
            reason: tuple(Bad(files[file], line, reason, excerpt) for file, line, excerpt in bad)
            for reason, bad in facts["examples"].items()
        }
        return cls(reasons=facts["reasons"], examples=examples)

    def sentences(self) -> list[str]:
        """Say how many were left out and why, with two examples: a sentence a reason."""
        return [
            f"{count:,} bad line{'s' if count > 1 else ''}, {reason}: "
            + "; ".join(f"{bad.file}:{bad.line} '{bad.excerpt}'" for bad in self.examples[reason][:2])
            for reason, count in self.reasons.items()
        ]


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """What the training files hold, and what of it is held out for validation."""

    n_documents: int
    n_characters: int
    left_out: LeftOut
    limit: int  # the largest hash of a document that is held out; -1 for none
    tail: int  # the character from which on the text is held out; -1 for none


def allowed_share(on_bad: str) -> float:
    """The share of bad lines that a policy bears."""
    if on_bad not in ON_BAD:
        raise UsageError(f"'{on_bad}' is no policy for bad lines.", did_you_mean(on_bad, ON_BAD))
    return 1.0 if on_bad == "keep-going" else BAD_SHARE


def text_column(data: DataConfig) -> str:
    """Which column holds the text: by either name, so that one command reads a table for any task."""
    return data.source or data.text


def good_pieces(
    files: Sequence[str], data: DataConfig, *, share: float, faults: "Faults | None" = None
) -> Iterator[Piece]:
    """Yield the pieces of the files' documents that can be used; DataError at the end if too large a share cannot."""
    faults = faults or Faults()
    for piece in read_documents(files, column=text_column(data), separator=data.separator):
        if isinstance(piece, Bad):
            faults.add(piece)
        else:
            faults.n_good += 1
            yield piece
    faults.enforce(share, files)


@dataclass
class Faults:
    """Counts good lines, and bad ones by reason; `noun` is what they are called where they are none."""

    n_good: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Bad]] = field(default_factory=dict)
    noun: str = "lines"

    def add(self, bad: Bad) -> None:
        """Take note of a bad line."""
        self.reasons[bad.reason] += 1
        examples = self.examples.setdefault(bad.reason, [])
        if len(examples) < N_EXAMPLES:
            examples.append(bad)

    def as_facts(self, files: Sequence[str]) -> dict[str, Any]:
        """Return what `LeftOut` needs to know, as JSON; files by their number, as they may lie elsewhere another time."""
        examples = {
            reason: [(files.index(one.file), one.line, one.excerpt) for one in bad]
            for reason, bad in self.examples.items()
        }
        return {"reasons": dict(self.reasons.most_common()), "examples": examples}

    def enforce(self, share: float, files: Sequence[str]) -> None:
        """Refuse files of which more than a share is bad, or nothing good."""
        n_bad = self.reasons.total()
        if not self.n_good and not n_bad:
            raise DataError(f"{', '.join(files)}: no text was found.", "Check that it is the right file.")
        if self.n_good and n_bad <= share * (n_bad + self.n_good):
            return
        frequent = self.reasons.most_common(N_REASONS)
        # A reason that begins with a number would run into its count.
        counted = [
            f"{count:,} ({reason})" if reason[0].isdigit() else f"{count:,} {reason}" for reason, count in frequent
        ]
        if rest := len(self.reasons) - len(frequent):
            counted.append(f"{rest:,} other reason{'s' * (rest > 1)}")
        counts = ", ".join(counted)
        shown = [self.examples[reason][0] for reason, _ in frequent]
        first = "; ".join(f"{bad.file}:{bad.line} '{bad.excerpt}'" for bad in shown)
        raise DataError(
            f"{n_bad:,} of {n_bad + self.n_good:,} {self.noun} are bad (at most {share:.0%} may be): {counts}. "
            f"First: {first}.",
            self._remedy(),
        )

    def _remedy(self) -> str:
        fix = "Fix the files"
        if "not UTF-8" in self.reasons:
            fix = "Convert them to UTF-8 (iconv -f latin1 -t utf-8 OLD > NEW)"
        return f"{fix}, or leave the bad lines out with --on-bad keep-going." if self.n_good else f"{fix}."


def look_through(data: DataConfig, contents: Mapping[str, str], progress: Progress) -> TextFacts:
    """Read the training files for what they hold, or remember what was found in the same contents before."""
    valid_size = None if data.valid else data.valid_size
    settings = repr((text_column(data), data.separator, data.on_bad, valid_size))
    key = ("facts of text", _VERSION, settings, *(contents[file] for file in data.train))
    found = dict(cached(key, lambda writer: _look_through(data, progress)).facts)
    return TextFacts(**found.pop("counts"), left_out=LeftOut.of(found, data.train))


def _look_through(data: DataConfig, progress: Progress) -> dict[str, object]:
    """Read the training files once; return what `look_through` remembers, as JSON."""
    faults, validation_split = Faults(), ValidationSplit(data.valid_size, noun="documents")
    n_documents = n_characters = 0
    for passage in passages(good_pieces(data.train, data, share=allowed_share(data.on_bad), faults=faults)):
        n_characters += len(passage.text)
        if passage.begins:
            n_documents += 1
            validation_split.add(passage.text)  # its beginning stands for a document: equal ones are on one side
        progress("reading", faults.n_good)
    limit, tail = -1, -1
    if not data.valid:
        if n_documents >= FEW or data.valid_size:
            limit = validation_split.limit()
        else:
            tail = int((1 - TAIL) * n_characters)
    counts = {"n_documents": n_documents, "n_characters": n_characters, "limit": limit, "tail": tail}
    return {"counts": counts, **faults.as_facts(data.train)}
