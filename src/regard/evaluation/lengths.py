"""Scores by the length of the source: does a system lose its way in long sentences?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import DataError, UsageError
from regard.evaluation.generated_text import USUAL_METRICS, References, text_statistics
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import SummedCounts
from regard.evaluation.table import Table

EDGES = (10, 20, 30)


@dataclass(frozen=True, kw_only=True)
class LengthBucket:
    """The sentences of `low` to `high` source words (both included; None for no limit) and their corpus scores."""

    low: int
    high: int | None
    sentences: int
    scores: tuple[Score, ...]

    @property
    def label(self) -> str:
        """The range as people read it."""
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"

    def to_json(self) -> dict[str, Any]:
        """All facts as data that `json.dumps` takes."""
        return {"words": self.label, "sentences": self.sentences, **{score.name: score.value for score in self.scores}}


def scores_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: References,
    *,
    edges: Sequence[int] = EDGES,
    metrics: Sequence[str] = USUAL_METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[LengthBucket]:
    """Score each range of source lengths (in words between spaces) apart; a bucket begins at each edge.

    A bucket without sentences has no scores.
    """
    if len(sources) != len(hypotheses):
        raise DataError(
            f"Each source sentence needs its hypothesis: there are {len(sources):,} sources "
            f"and {len(hypotheses):,} hypotheses.",
            "Score the output of exactly these source sentences.",
        )
    found = text_statistics(hypotheses, references, metrics=metrics, tokenize=tokenize, lowercase=lowercase)
    return buckets_by_length(sources, found, edges=edges)


def buckets_by_length(
    sources: Sequence[str], statistics: Sequence[SummedCounts], *, edges: Sequence[int] = EDGES
) -> list[LengthBucket]:
    """The same from what was counted of every sentence."""
    if list(edges) != sorted(set(edges)) or any(edge < 1 for edge in edges):
        raise UsageError(
            f"Lengths must rise and be at least 1: got {', '.join(map(str, edges))}.", "Give them as in: 10 20 30."
        )
    lengths = [len(source.split()) for source in sources]
    buckets = []
    for low, high in zip([0, *edges], [*(edge - 1 for edge in edges), None], strict=True):
        members = [i for i, length in enumerate(lengths) if length >= low and (high is None or length <= high)]
        scores = tuple(found.subset(members).score for found in statistics if members)
        buckets.append(LengthBucket(low=low, high=high, sentences=len(members), scores=scores))
    return buckets


def length_table(buckets: Sequence[LengthBucket]) -> Table:
    """One row per range that holds sentences, one column per score."""
    held = [bucket for bucket in buckets if bucket.sentences]
    labels = [score.label for score in held[0].scores] if held else []
    return Table(
        headings=("source words", "sentences", *labels),
        rows=tuple((one.label, f"{one.sentences:,}", *(score.text for score in one.scores)) for one in held),
    )
