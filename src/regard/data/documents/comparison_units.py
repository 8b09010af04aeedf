"""Comparison units: the same stretches of a text for every vocabulary, on which models of other tokens can be compared.

Whole documents where there are many: they are what chance has chosen. Else stretches of one length in characters, none of
which reaches over the end of a document.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.config import DataConfig
from regard.data.documents.dataset import DocumentSource
from regard.data.text.tokenizer import Tokenizer

DOCUMENTS = 100  # from so many on, whole documents are compared
STRETCH = 1000  # characters


@dataclass(frozen=True, kw_only=True)
class Stretches:
    """`unit` says what they are; `n_bytes` (N,) how long; `members` to which each token belongs, the first left out.

    The first token of an encoded text begins its first document, and no model predicts it.
    """

    unit: str
    n_bytes: NDArray[np.int64]
    members: NDArray[np.int64]


def read_stretches(files: Sequence[str], data: DataConfig, tokenizer: Tokenizer, *, n_documents: int) -> Stretches:
    """Cut the text that `encode_documents` encodes; `n_documents` is how many it has.

    A token belongs to where its first character stands, and an end token to the document that it ends.
    """
    whole = n_documents >= DOCUMENTS
    length = sys.maxsize if whole else STRETCH
    n_bytes: list[int] = []
    members: list[NDArray[np.int64]] = []
    first = place = 0  # of this document: its first stretch, and the characters so far
    for passage in DocumentSource(files=tuple(files), data=data).good():
        reading = tokenizer.continuing
        if passage.begins or not n_bytes:
            reading = tokenizer
            if n_bytes:
                members.append(np.array([len(n_bytes) - 1]))
            first, place = len(n_bytes), 0
        text = passage.text
        for start in range(-(place % length), len(text), length):
            if start >= 0:
                n_bytes.append(0)
            n_bytes[-1] += len(text[max(0, start) : start + length].encode())
        starts = np.array([piece.start for piece in reading.pieces(text)], dtype=np.int64)
        members.append(first + (place + starts) // length)
        place += len(text)
    members.append(np.array([len(n_bytes) - 1]))
    return Stretches(
        unit="documents" if whole else f"stretches of {STRETCH:,} characters",
        n_bytes=np.array(n_bytes),
        members=np.concatenate(members),
    )
