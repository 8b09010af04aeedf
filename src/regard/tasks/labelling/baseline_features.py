"""Features of labelled sequences for baselines: n-grams of texts, words of sentences, means of vectors."""

from dataclasses import dataclass

import numpy as np

from regard.data.pipeline.corpus import Corpus
from regard.evaluation.baselines.baseline import Floats
from regard.evaluation.baselines.ngrams import Bags, Hashes, bags_of_ngrams, bags_of_places
from regard.evaluation.baselines.tag_lexicon import word_hashes
from regard.tasks.baseline_inputs import MOST_TOKENS, bounded_rows, sequences
from regard.tasks.task import Indices


@dataclass(frozen=True, kw_only=True)
class BaselineFeatures:
    """What is read of the examples of a corpus.

    order:       how many tokens an n-gram has at most
    pairs:       whether a second text belongs to each
    n_features:  of the vectors; 0 for text
    """

    order: int
    pairs: bool
    n_features: int

    def rows(self, corpus: Corpus) -> Indices:
        """The examples that are learned from."""
        return bounded_rows(input_lengths(corpus), MOST_TOKENS // self.order)

    def bags(self, corpus: Corpus, rows: Indices) -> Bags:
        """The n-grams of texts; those of a second text are told apart from those of the first."""
        first = bags_of_ngrams(sequences(corpus.ragged["ids"], rows), order=self.order)
        if not self.pairs:
            return first
        return first.joined(bags_of_ngrams(sequences(corpus.ragged["ids_b"], rows), order=self.order, salt=1))

    def bags_of_both(self, corpus: Corpus, rows: Indices) -> tuple[Bags, Bags]:
        """The n-grams of the first texts, and of the second ones."""
        first, second = (sequences(corpus.ragged[name], rows) for name in ("ids", "ids_b"))
        return bags_of_ngrams(first, order=self.order), bags_of_ngrams(second, order=self.order)

    def are_aligned(self, corpus: Corpus) -> bool:
        """Whether all texts have one length, as aligned proteins do, so that a place means the same in each."""
        lengths = corpus.ragged["ids"].lengths
        return not self.pairs and bool((lengths == lengths[0]).all())

    def places(self, corpus: Corpus, rows: Indices) -> Bags:
        """Which token stands where in aligned texts."""
        return bags_of_places(sequences(corpus.ragged["ids"], rows))

    def words(self, corpus: Corpus, rows: Indices) -> Hashes:
        """The words (N,) of sentences, end to end."""
        return word_hashes(sequences(corpus.ragged["ids"], rows), sequences(corpus.ragged["firsts"], rows))

    def vectors(self, corpus: Corpus, rows: Indices) -> Floats:
        """The vectors (N, F) of sequences, end to end."""
        found: Floats = sequences(corpus.ragged["vectors"], rows).values.view(np.float32)
        return found.reshape(-1, self.n_features)

    def summaries(self, corpus: Corpus, rows: Indices) -> Floats:
        """The mean and the deviation of each feature over sequences of vectors, (N, 2 F)."""
        read = (own.view(np.float32).reshape(-1, self.n_features) for own in corpus.ragged["vectors"].take(rows))
        exact = (own.astype(np.float64) for own in read)  # squares of large numbers do not fit otherwise
        return np.array([np.concatenate((own.mean(axis=0), own.std(axis=0))) for own in exact], np.float32)


def input_lengths(corpus: Corpus) -> Indices:
    """How much is read of each example: tokens, of both texts where there are two, or numbers of vectors."""
    columns = [corpus.ragged[name].lengths for name in ("ids", "ids_b", "vectors") if name in corpus.ragged]
    lengths: Indices = np.sum(columns, axis=0, dtype=np.int64)
    return lengths
