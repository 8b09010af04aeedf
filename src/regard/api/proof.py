"""Quantise and prove: what a smaller, faster engine loses on a test set, as a paired comparison, before it is trusted.

The faster engine is quantised, or has a shortlist, or both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.api.run import Files, Run, load
from regard.errors import RegardError, UsageError
from regard.evaluation.generated_comparison import GeneratingSystem, compare_generated
from regard.evaluation.significance import Significance
from regard.evaluation.table import Table

TOLERANCE = 0.5  # BLEU
METRICS = ("bleu", "chrf")
FULL = "float32"


@dataclass(frozen=True, kw_only=True)
class ProvenEngine:
    """One engine on the test set: its scores, sentences per second and bytes on disk."""

    name: str
    scores: Mapping[str, float]
    per_second: float
    size: int


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Two engines of one run, in full precision and quantised (or with a shortlist): their differences by each metric,
    with paired intervals.
    """

    full: ProvenEngine
    quantised: ProvenEngine
    differences: Mapping[str, Significance]
    n_identical: int
    n_sentences: int

    @property
    def most_lost(self) -> float:
        """How much BLEU is lost at most: the upper end of the 95 % interval of the loss."""
        low = self.differences["bleu"].delta_low
        assert low is not None  # as it is only of the system that others are compared with
        return -low

    def table(self) -> Table:
        """Both engines, and what lies between them."""
        rows = []
        for one in (self.full, self.quantised):
            scores = [f"{one.scores[metric]:.2f}" for metric in METRICS]
            rows.append((one.name, *scores, f"{one.per_second:,.1f}", f"{one.size / 1e6:.1f} MB"))
        changes = [
            f"{found.delta:+.2f} ({found.delta_low:+.2f} to {found.delta_high:+.2f})"
            for found in (self.differences[metric] for metric in METRICS)
        ]
        ratio = self.quantised.per_second / self.full.per_second
        rows.append(("difference", *changes, f"× {ratio:.2f}", f"× {self.quantised.size / self.full.size:.2f}"))
        return Table(headings=("engine", "BLEU", "chrF", "sentences/s", "size"), rows=tuple(rows))

    def to_json(self) -> dict[str, Any]:
        """All of it, as data that `json.dumps` takes."""
        return {
            "full": vars(self.full),
            "quantised": vars(self.quantised),
            "differences": {name: vars(found) for name, found in self.differences.items()},
            "identical": self.n_identical,
            "sentences": self.n_sentences,
        }

    def refuse_loss(self, tolerance: float) -> None:
        """Raise where more BLEU may be lost than is tolerated."""
        if self.most_lost > tolerance:
            raise RegardError(
                f"{self.quantised.name} may lose up to {self.most_lost:.2f} BLEU (95 %), and {tolerance:g} are tolerated.",
                "Use float32 and no shortlist, prove it on a larger test set, or raise --tolerance.",
            )


def prove(run: str | Path, files: Files, *, compute_type: str = FULL, shortlist: bool = False) -> Proof:
    """Translate a test set with the engine in full precision and quantised, and compare the two, sentence by sentence.

    shortlist: prove an engine that has one, too; the one in full precision has none
    """
    if compute_type == FULL and not shortlist:
        raise UsageError("float32 is what a proof compares with.", "Prove another type, such as int8, or a shortlist.")
    engines = [
        load(run, engine="ctranslate2", compute_type=one, shortlist=restricted, device="cpu")
        for one, restricted in ((FULL, False), (compute_type, shortlist))
    ]
    if engines[0].spec.name != "translate":
        raise UsageError(
            f"{run} was trained for the task '{engines[0].spec.name}', and translations are what is proven.",
            "Leave --prove out.",
        )
    found = [one.evaluate_with(files, one.options({"metrics": METRICS, "log_probs": False})) for one in engines]
    outputs = [one.generated.outputs for one in found]
    names = (FULL, f"{compute_type}, shortlist" if shortlist else compute_type)
    systems = [GeneratingSystem(name=name, hypotheses=own) for name, own in zip(names, outputs, strict=True)]
    generated = found[0].generated
    compared = compare_generated(
        systems, sources=generated.sources, references=generated.references, metrics=METRICS, by_length=False
    )
    proven = [
        ProvenEngine(
            name=f"ctranslate2, {name}",
            scores={score.name: score.value for score in result.scores},
            per_second=one.count / one.seconds,
            size=_size(engine),
        )
        for name, result, one, engine in zip(names, compared.results, found, engines, strict=True)
    ]
    return Proof(
        full=proven[0],
        quantised=proven[1],
        differences={one.metric: one for one in compared.results[1].significance},
        n_identical=sum(first == second for first, second in zip(*outputs, strict=True)),
        n_sentences=found[0].count,
    )


def _size(run: Run[Any]) -> int:
    """The bytes of an engine's model on disk."""
    engine = run.engine.engine
    assert engine is not None  # asked for by name
    return (engine.folder / "model.bin").stat().st_size
