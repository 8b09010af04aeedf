"""Masking and span corruption: text of which something is hidden, single tokens as for BERT, spans as for T5.

Works on arrays of ids, and draws from the generator that is given. Knows no text and no model.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from regard.data.pipeline.corpus import Integers

# What becomes of a hidden token: most are masked, but a model that fine-tuning shows no mask must look at all others too.
MASKED, REPLACED = 0.8, 0.1  # the rest stay as they are

Ids = npt.NDArray[np.int64]
Choices = npt.NDArray[np.bool_]


def mask_tokens(
    ids: Ids, *, ordinary: Choices, rate: float, mask_id: int, random: np.random.Generator
) -> tuple[Ids, Choices]:
    """Hide a share `rate` of the ordinary tokens of each row, at least one (Devlin et al. 2019, 3.1).

    ids (B, T); ordinary (V,) says which tokens stand for text: no other is hidden, or put in another's place.
    Returns the ids as a model sees them, and which of them are hidden, both (B, T). A row without any ordinary token
    stays as it is.
    """
    # Position by position, so that padding behind a row does not change what is drawn for it.
    order, fate, other = np.moveaxis(random.random((*ids.shape, 3)), -1, 0)
    candidates = ordinary[ids]
    wanted = np.maximum(1, np.floor(rate * candidates.sum(axis=1) + 0.5))  # (B,)
    ranks = np.where(candidates, order, 1.0).argsort(axis=1).argsort(axis=1)
    hidden = candidates & (ranks < wanted[:, None])
    words = np.flatnonzero(ordinary)
    replacements = words[(other * len(words)).astype(np.int64)]
    shown = np.where(hidden & (fate < MASKED + REPLACED), replacements, ids)
    return np.where(hidden & (fate < MASKED), mask_id, shown), hidden


def corrupt_spans(
    ids: Integers, *, rate: float, span: float, gaps: Sequence[int], random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Hide spans of a sequence (T,) of at least one token, no two of them adjacent (Raffel et al. 2020, 3.1.4).

    A share `rate` of the tokens is hidden in spans of mean length `span`, or of more where there are too few `gaps` for it.
    Returns the source, the sequence with a gap token in the place of each span, and the target, each gap token followed by
    what was there.
    """
    n_hidden = min(max(1, round(rate * len(ids))), max(1, len(ids) - 1))
    n_kept = len(ids) - n_hidden
    n_spans = min(max(1, round(n_hidden / span)), n_hidden, n_kept + 1, len(gaps))
    hidden = _parts(n_hidden, n_spans, random)
    kept = _parts(n_kept + 2, n_spans + 1, random)  # in front of each span, and behind the last
    kept[0] -= 1  # a text may begin or end with a span: these two parts may be empty
    kept[-1] -= 1
    source: list[int] = []
    target: list[int] = []
    text, place = ids.tolist(), 0
    for gap, before, inside in zip(gaps, kept, hidden, strict=False):
        source += [*text[place : place + before], gap]
        place += before
        target += [gap, *text[place : place + inside]]
        place += inside
    return source + text[place:], target


def _parts(total: int, count: int, random: np.random.Generator) -> list[int]:
    """Cut a length into so many parts of at least one; every way to do so is as likely as any other."""
    cuts = sorted(random.choice(total - 1, count - 1, replace=False, shuffle=False).tolist())
    return [end - start for start, end in pairwise((-1, *cuts, total - 1))]
