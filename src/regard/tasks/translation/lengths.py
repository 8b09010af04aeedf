"""The usual source: how many tokens and sentences nearly all sources of training have at most, kept with the run.

Of more than that a model leaves out much: one that has learned from single sentences often translates the last of two.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.pipeline.corpus import Corpus
from regard.data.text.sentence_splitting import count_sentences
from regard.data.text.tokenizer import Tokenizer
from regard.errors import DataError
from regard.regular_files import MEGABYTE
from regard.runs.disk import as_json, write_atomically
from regard.runs.json_files import read_json

FILE = "lengths.json"
SHARE = 0.95  # of the sources of training that have no more
N_COUNTED = 2000  # sources whose sentences are counted, so that it takes no time


@dataclass(frozen=True, kw_only=True)
class UsualSource:
    """What 95 of 100 sources of training have at most; where nobody has counted, single sentences of any length."""

    tokens: int = sys.maxsize
    sentences: int = 1

    @classmethod
    def of(cls, train: Corpus, tokenizer: Tokenizer) -> "UsualSource":
        """Count in the training corpus; the sentences in a sample of it."""
        sources = train.ragged["source"]
        rows = np.linspace(0, len(train) - 1, min(len(train), N_COUNTED), dtype=int)
        sentences = [count_sentences(tokenizer.decode(sources[row].tolist())) for row in rows]
        tokens, n_sentences = (np.quantile(counts, SHARE, method="higher") for counts in (sources.lengths, sentences))
        return cls(tokens=int(tokens), sentences=max(1, int(n_sentences)))

    @classmethod
    def load(cls, vocabulary: Path) -> "UsualSource":
        """Read what `save` wrote, if the run is not older than that."""
        path = vocabulary / FILE
        if not path.exists():
            return cls()
        try:
            kept = read_json(path, most=MEGABYTE)["source"]
            tokens, sentences = kept["tokens"], kept["sentences"]
            if not (isinstance(tokens, int) and isinstance(sentences, int) and min(tokens, sentences) >= 1):
                raise ValueError("a length must be 1 or more")
            return cls(tokens=tokens, sentences=sentences)
        except (OSError, ValueError, LookupError, TypeError) as error:
            problem = f"{path}: not the lengths of a run's sources: {type(error).__name__}, {error}."
            raise DataError(problem, "Put back the file that the run was trained with.") from None

    def save(self, vocabulary: Path) -> None:
        """Write it into a run's vocabulary folder."""
        write_atomically(vocabulary / FILE, as_json({"source": vars(self)}) + b"\n")
