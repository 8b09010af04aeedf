"""The survey: training files are read once for facts before anything is learned, and the facts are remembered.

It counts bad rows and enforces the policy about them, finds the validation split, and adds up what a kind counts.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.cache import cached
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.source import Example, Progress, Source
from regard.data.pipeline.validation_split import HeldOut, ValidationSplit


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What training files hold.

    splits:  how many good examples are of each split that the files themselves name
    counts:  what the kind of data counts
    corpus:  in which all that is kept
    """

    bad_rows: BadRows
    held_out: HeldOut
    splits: Mapping[str, int]
    counts: Mapping[str, int]
    corpus: Corpus = field(compare=False, repr=False)

    @property
    def holds_out(self) -> bool:
        """Whether validation is held out of the training files, as neither other files nor these themselves offer any."""
        return self.held_out != HeldOut()


def survey(source: Source[Example], progress: Progress) -> Survey:
    """Read the training files, or remember what was found in the same content before."""
    wanted = None if source.data.valid else source.data.valid_size
    corpus = cached(("survey", repr(wanted), *source.cache_key()), lambda writer: _survey(source, progress))
    found = corpus.facts
    return Survey(
        bad_rows=BadRows.from_facts(found["bad_rows"], source.files),
        held_out=HeldOut.from_facts(found["held_out"]),
        splits=found["splits"],
        counts=found["counts"],
        corpus=corpus,
    )


def _survey(source: Source[Example], progress: Progress) -> dict[str, Any]:
    """Read the files once; return what `survey` remembers, as JSON."""
    bad_rows, splits, counts = BadRows(source.noun), Counter[str](), Counter[str]()
    validation_split = ValidationSplit(
        source.data.valid_size, noun=source.unit or source.noun, source=source.held_out_by
    )
    for done, example in enumerate(source.good(bad_rows), start=1):
        split = source.split(example)
        splits[split] += 1
        if counted := source.counts(example):
            counts.update(counted)
        if not source.data.valid and split != "valid" and (key := source.key(example)) is not None:
            validation_split.add(key, source.labels(example))
        if done % source.chunk == 0:
            progress("reading", bad_rows.n_good)
    source.check(splits, counts)
    held_out = HeldOut() if source.data.valid or splits["valid"] else source.hold_out(validation_split, counts)
    return {
        "bad_rows": bad_rows.to_facts(source.files),
        "held_out": held_out.to_facts(),
        "splits": splits,
        "counts": counts,
    }
