"""The comparison of systems that generate text, translations or captions: by BLEU and its like, by length, with examples."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError
from regard.evaluation.comparison import Comparison, System, check_names, compare_systems, differing_examples
from regard.evaluation.generated_text import USUAL_METRICS, References, reference_streams, text_statistics
from regard.evaluation.lengths import buckets_by_length
from regard.evaluation.significance import SEED


@dataclass(frozen=True, kw_only=True)
class GeneratingSystem:
    """What one system wrote for the test set, and what it took."""

    name: str
    hypotheses: Sequence[str]
    parameters: int | None = None
    seconds: float | None = None


def compare_generated(
    systems: Sequence[GeneratingSystem],
    *,
    sources: Sequence[str],
    references: References,
    metrics: Sequence[str] = USUAL_METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
    unit: str = "sentences",
    by_length: bool = True,
    n_examples: int = 5,
    notes: Sequence[str] = (),
    seed: int = SEED,
) -> Comparison:
    """Score all systems on the same sources and test each against the first.

    sources:    what was read; of images the names of their files, which have no length (`by_length` False)
    by_length:  score by the length of the source, too, by the first metric
    """
    check_names([system.name for system in systems])
    streams = reference_streams(references)
    if len(sources) != len(streams[0]):
        raise DataError(
            f"Each source sentence needs its reference: there are {len(sources):,} sources "
            f"and {len(streams[0]):,} references.",
            "Give the references of exactly these source sentences.",
        )
    # chrF is always counted: the examples are chosen by it.
    wanted = [*metrics, "chrf"] if "chrf" not in metrics else list(metrics)
    counted = {
        system.name: text_statistics(system.hypotheses, streams, metrics=wanted, tokenize=tokenize, lowercase=lowercase)
        for system in systems
    }
    examples = differing_examples(
        {system.name: system.hypotheses for system in systems},
        {name: found[wanted.index("chrf")].example_values for name, found in counted.items()},
        metric="chrf",
        sources=sources,
        references=streams,
        n=n_examples,
    )
    compared = [
        System(
            name=system.name,
            statistics=counted[system.name][: len(metrics)],
            parameters=system.parameters,
            seconds=system.seconds,
            by_length=buckets_by_length(sources, counted[system.name][:1]) if by_length else (),
        )
        for system in systems
    ]
    return compare_systems(compared, unit=unit, examples=examples, notes=notes, seed=seed)
