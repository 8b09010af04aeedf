"""What is wrong with a corpus: bad pairs and the policy about them, duplicates, test sentences that stand in training.

Everything streams: a corpus may be larger than memory. When two sentences count as the same stands in `pair_index.py`.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from regard.config import DataConfig
from regard.data.formats import Bad, Pair, read_pairs
from regard.data.formats.files import open_regular
from regard.data.formats.rows import excerpt
from regard.data.pairs.index import PairIndex
from regard.data.pairs.lengths import LengthCounter, Lengths
from regard.errors import DataError, UsageError, did_you_mean

ON_BAD = ("stop", "keep-going")
BAD_SHARE = 0.01
MAX_CHARACTERS = 5000
# The ratio of lengths says nothing about short sentences: "Ja." may be "Yes, of course I will."
RATIO_FROM_CHARACTERS = 40
N_EXAMPLES = 5
PROGRESS_EVERY = 1000


@dataclass(frozen=True, kw_only=True)
class ScreeningReport:
    """How many pairs were read and taken, and why the others were not; the first examples of each reason."""

    n_read: int
    n_good: int
    reasons: dict[str, int]
    examples: dict[str, tuple[Bad, ...]]

    @property
    def n_bad(self) -> int:
        """How many were left out."""
        return self.n_read - self.n_good


class Screening:
    """The good ones of a stream of pairs, to be iterated once; `report` is complete after that.

    The end of the iteration raises DataError if nothing was good, or if more than 1 % was bad and `on_bad` is "stop".
    """

    def __init__(self, pairs: Iterable[Pair | Bad], *, max_ratio: float, max_characters: int, on_bad: str) -> None:
        if on_bad not in ON_BAD:
            raise UsageError(f"'{on_bad}' is no policy for bad pairs.", did_you_mean(on_bad, ON_BAD))
        self._pairs = pairs
        self._max_ratio = max_ratio
        self._max_characters = max_characters
        self._on_bad = on_bad
        self._n_good = 0
        self._reasons: Counter[str] = Counter()
        self._examples: dict[str, list[Bad]] = {}

    @property
    def report(self) -> ScreeningReport:
        """The facts so far, the most frequent reason first."""
        reasons = dict(self._reasons.most_common())
        return ScreeningReport(
            n_read=self._n_good + sum(reasons.values()),
            n_good=self._n_good,
            reasons=reasons,
            examples={reason: tuple(self._examples[reason]) for reason in reasons},
        )

    def __iter__(self) -> Iterator[Pair]:
        for pair in self._pairs:
            judged = self._judge(pair) if isinstance(pair, Pair) else pair
            if isinstance(judged, Pair):
                self._n_good += 1
                yield judged
            else:
                self._reasons[judged.reason] += 1
                examples = self._examples.setdefault(judged.reason, [])
                if len(examples) < N_EXAMPLES:
                    examples.append(judged)
        _enforce(self.report, self._on_bad)

    def _judge(self, pair: Pair) -> Pair | Bad:
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        if longer > self._max_characters:
            reason = "too long"
        elif longer >= RATIO_FROM_CHARACTERS and longer > self._max_ratio * shorter:
            reason = "lengths too different"
        else:
            return pair
        return Bad(pair.file, pair.line, reason, excerpt(pair.source))


def screen(
    pairs: Iterable[Pair | Bad],
    *,
    max_ratio: float = DataConfig.max_ratio,
    max_characters: int = MAX_CHARACTERS,
    on_bad: str = DataConfig.on_bad,
) -> Screening:
    """Return the good pairs as an iterable that counts the bad ones.

    Bad is also a pair with a side of more than `max_characters`, or with one side more than `max_ratio` times as long
    as the other. `on_bad` is "stop" (more than 1 % bad is an error) or "keep-going".
    """
    return Screening(pairs, max_ratio=max_ratio, max_characters=max_characters, on_bad=on_bad)


def _enforce(report: ScreeningReport, on_bad: str) -> None:
    if report.n_read == 0:
        raise DataError("No pair was read: the files hold none.", "Check that these are the right files.")
    too_many = on_bad == "stop" and report.n_bad > BAD_SHARE * report.n_read
    if report.n_good and not too_many:
        return
    counts = ", ".join(f"{count:,} {reason}" for reason, count in report.reasons.items())
    first = "; ".join(
        f"{bad.file}:{bad.line} {reason} '{bad.excerpt}'" for reason, (bad, *_) in list(report.examples.items())[:3]
    )
    share = report.n_bad / report.n_read
    raise DataError(
        f"{report.n_bad:,} of {report.n_read:,} pairs are bad ({share:.1%}, at most {BAD_SHARE:.0%} may be): {counts}. "
        f"First: {first}.",
        "Fix the files, or leave the bad pairs out with --on-bad keep-going." if report.n_good else "Fix the files.",
    )


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A sentence of the test set that stands in training too, and both places as FILE:LINE."""

    source: str
    place: str
    train_place: str
    same_target: bool


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How much of a test set stands in training: whole pairs, and sources with whatever target."""

    screening: ScreeningReport
    n_pairs: int
    n_shared_pairs: int
    n_shared_sources: int
    examples: tuple[Shared, ...]

    @property
    def pair_share(self) -> float:
        """Share of the test pairs that stand in training."""
        return self.n_shared_pairs / self.n_pairs

    @property
    def source_share(self) -> float:
        """Share of the test sources that stand in training."""
        return self.n_shared_sources / self.n_pairs


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """What `check` found. Everything but `screening` is about the good pairs."""

    screening: ScreeningReport
    n_pairs: int
    n_duplicates: int  # pairs that stood before
    n_ambiguous_sources: int  # distinct sources with several distinct targets
    n_copied: int  # pairs whose target is the source
    source_characters: Lengths
    source_words: Lengths  # words are what stands between spaces
    target_characters: Lengths
    target_words: Lengths
    overlap: Overlap | None


def check(
    files: Sequence[str | os.PathLike[str]],
    *,
    against: Sequence[str | os.PathLike[str]] | None = None,
    source: str = "",
    target: str = "",
    progress: Callable[[int], None] = lambda done: None,
) -> DataReport:
    """Read a corpus and report what a person should know before training on it; `against` is the test set.

    `progress` is called now and then with the number of good pairs read.
    """
    pairs = read_pairs(files, source=source, target=target)
    test_pairs = read_pairs(against, source=source, target=target) if against else None
    screening = screen(pairs, on_bad="keep-going")
    index = PairIndex()
    n_copied = 0
    counters = [LengthCounter() for _ in range(4)]
    for done, pair in enumerate(screening):
        if done % PROGRESS_EVERY == 0:
            progress(done)
        index.add(pair)
        n_copied += pair.source.strip() == pair.target.strip()
        lengths = (len(pair.source), len(pair.source.split()), len(pair.target), len(pair.target.split()))
        for counter, length in zip(counters, lengths, strict=True):
            counter.add(length)
    n_duplicates, n_ambiguous_sources = index.duplicates()
    source_characters, source_words, target_characters, target_words = (counter.summary() for counter in counters)
    return DataReport(
        screening=screening.report,
        n_pairs=screening.report.n_good,
        n_duplicates=n_duplicates,
        n_ambiguous_sources=n_ambiguous_sources,
        n_copied=n_copied,
        source_characters=source_characters,
        source_words=source_words,
        target_characters=target_characters,
        target_words=target_words,
        overlap=_overlap(index, test_pairs) if test_pairs else None,
    )


def _overlap(index: PairIndex, test_pairs: Iterable[Pair | Bad]) -> Overlap:
    screening = screen(test_pairs, on_bad="keep-going")
    finder = index.finder()
    n_shared_pairs = n_shared_sources = 0
    examples: list[Shared] = []
    for pair in screening:
        same_source, same_pair = finder.find(pair)
        if same_source is None:
            continue
        n_shared_sources += 1
        n_shared_pairs += same_pair is not None
        if len(examples) < N_EXAMPLES:
            shared = Shared(
                source=excerpt(pair.source),
                place=f"{pair.file}:{pair.line}",
                train_place=index.place(same_source if same_pair is None else same_pair),
                same_target=same_pair is not None,
            )
            examples.append(shared)
    return Overlap(
        screening=screening.report,
        n_pairs=screening.report.n_good,
        n_shared_pairs=n_shared_pairs,
        n_shared_sources=n_shared_sources,
        examples=tuple(examples),
    )


def content_hash(file: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the bytes of a file."""
    with open_regular(os.fspath(file)) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
