"""The shortlist of a translator: for each source token the target tokens that it may become, learned from training pairs.

In a small model the output layer is most of a decoding step. A source sentence's shortlist is what its tokens may become
by IBM Model 1 (`evaluation/baselines/dictionary.py`), itself where both sides share a vocabulary, since names and numbers
are copied, and the most frequent tokens, which anything may need. Jean et al. 2015, section 3.3: "On using very large
target vocabulary for neural machine translation".
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.config import AS_SAVED
from regard.data.pairs.dataset import Vocabulary, prepare_pairs
from regard.data.pipeline.corpus import Corpus
from regard.data.text.roles import NO_TOKEN
from regard.errors import DataError, UsageError
from regard.evaluation.baselines.baseline import sum_by
from regard.evaluation.baselines.dictionary import TranslationTable
from regard.tasks.baseline_inputs import bounded_rows, sequences
from regard.tasks.task import Indices
from regard.tasks.translation.task import LONGEST, TranslationTask

PER_TOKEN = 40  # target tokens that a source token may become
LEAST = 1e-3  # their least probability
MOST_FREQUENT = 1000  # target tokens that are always allowed
PART_LINKS = 8_000_000  # between the tokens of pairs that are aligned at once: four seconds and 0.8 GB
MOST_LINKS = 4 * PART_LINKS

_SEPARATORS = frozenset(" \t\n\r")  # of a vocabulary map


@dataclass(frozen=True, kw_only=True)
class Shortlist:
    """Which target tokens may be written.

    always:   for any source
    allowed:  by source token, beside those
    """

    always: tuple[int, ...]
    allowed: Mapping[int, tuple[int, ...]]

    def vocabulary_map(self, sources: Sequence[str], targets: Sequence[str]) -> bytes:
        """The file that CTranslate2 reads: of each source token its name, a tab, and the names of target tokens.

        sources, targets: the name of each token by its id
        """
        written = {*self.always, *(id for ids in self.allowed.values() for id in ids)}
        if unnamed := next((targets[id] for id in sorted(written) if not _can_stand(targets[id])), None):
            raise UsageError(
                f"A target token is {unnamed!r}, and CTranslate2's vocabulary map separates tokens by white space.",
                "Leave --shortlist out, or train with a vocabulary of subwords (tokenizer.kind = bpe).",
            )
        rows = {"": self.always} | {sources[id]: ids for id, ids in self.allowed.items() if _can_stand(sources[id])}
        lines = (f"{name}\t{' '.join(targets[id] for id in ids)}\n" for name, ids in rows.items())
        return "".join(lines).encode()


def _can_stand(name: str) -> bool:
    return bool(name) and _SEPARATORS.isdisjoint(name)


def learn_shortlist(task: TranslationTask) -> Shortlist:
    """Learn from the training pairs of a run, encoded as they were for training; UsageError where they are gone."""
    files = task.config.data.train
    if not files:
        raise UsageError(
            "A shortlist is learned from the training pairs, and this run has none of its own.",
            "Leave --shortlist out.",
        )
    config = replace(task.config.tokenizer, lowercase=AS_SAVED)  # the vocabulary as it is, whatever the text has
    try:
        data = prepare_pairs(task.config.data, config, vocabulary=task.vocabulary, progress=lambda done, count: None)
    except DataError as error:
        raise UsageError(
            f"A shortlist is learned from the training pairs ({', '.join(files)}), which cannot be read: {error.problem}",
            "Put the files back, or leave --shortlist out.",
        ) from error
    return shortlist_of(data.train, task.vocabulary)


def shortlist_of(corpus: Corpus, vocabulary: Vocabulary) -> Shortlist:
    """Learn from encoded pairs, a sample of them where there are many."""
    target, parts = vocabulary.target, _sampled(corpus)
    counts = np.bincount(sequences(corpus.ragged["target"], np.concatenate(parts)).values, minlength=target.vocab_size)
    frequent = np.argsort(-counts, kind="stable")[:MOST_FREQUENT]
    special = {target.start_id, target.end_id, target.unknown_id, *target.prefix} - {NO_TOKEN}
    always = special | {*frequent[counts[frequent] > 0].tolist()}
    table = _translation_table(corpus, parts, vocabulary)
    rare = ~np.isin(table.targets, sorted(always))  # the others need no place among the likeliest
    likeliest = TranslationTable(table.sources[rare], table.targets[rare], table.probabilities[rare]).likeliest(
        PER_TOKEN, least=LEAST
    )
    allowed: dict[int, set[int]] = defaultdict(set)
    for own, other in zip(likeliest.sources.tolist(), likeliest.targets.tolist(), strict=True):
        allowed[own].add(other)
    if vocabulary.shared:
        for id in range(target.n_tokens):
            allowed[id].add(id)
    return Shortlist(
        always=tuple(sorted(always)), allowed={id: tuple(sorted(ids)) for id, ids in sorted(allowed.items())}
    )


def _sampled(corpus: Corpus) -> list[Indices]:
    """Rows in equal distances, in parts that have a bounded number of links; long pairs say little, and are left out."""
    lengths = np.stack([corpus.ragged[side].lengths for side in ("source", "target")], axis=1)
    longest = lengths.max(axis=1)
    short = np.flatnonzero(longest <= max(LONGEST, int(longest.min())))
    links = np.prod(lengths[short] + (1, 0), axis=1, dtype=np.int64)
    chosen = bounded_rows(links, MOST_LINKS)
    n_parts = max(1, -(-int(links[chosen].sum()) // PART_LINKS))
    return [short[chosen[part::n_parts]] for part in range(n_parts)]


def _translation_table(corpus: Corpus, parts: Sequence[Indices], vocabulary: Vocabulary) -> TranslationTable:
    """The translations of every source token, by how often each is expected in all parts together."""
    n_sources, n_targets = vocabulary.source.vocab_size, vocabulary.target.vocab_size
    keys, expected, seen = [], [], np.zeros(n_sources)
    for rows in parts:
        sources, targets = (sequences(corpus.ragged[side], rows) for side in ("source", "target"))
        table = TranslationTable.fit(sources, targets, n_sources=n_sources)
        counts = np.bincount(sources.values, minlength=n_sources)
        keys.append(table.sources * n_targets + table.targets)
        expected.append(table.probabilities * counts[table.sources])
        seen += counts
    kinds, kind = np.unique(np.concatenate(keys), return_inverse=True)
    of_kind = kinds // n_targets
    probabilities = sum_by(kind, np.concatenate(expected), len(kinds)) / seen[of_kind]
    return TranslationTable(of_kind, kinds % n_targets, probabilities)
