"""Words of a trace: subwords merged into words, and the alignment error rate of what a model's attention links."""

from collections.abc import Sequence

import numpy as np

from regard.errors import UsageError
from regard.evaluation.alignment import Link, align_words, alignment_error_rate, read_pharaoh, word_weights
from regard.inspection.axes import key_positions
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.tasks.offers import alignment_tap
from regard.tasks.reading import Positions, Reading


def merge_words(array: NamedArray, reading: Reading) -> NamedArray:
    """Merge the subwords of attention weights (…, query, key) into words, which white space separates.

    A word's row is the mean over its tokens, its column the sum; special tokens are left out: a row sums to at most 1.
    Where a decoder attends to a memory, a row belongs to the word that is written there, not to the one that is read.
    """
    own = _of_axis(array.axes[-2], reading) if len(array.axes) > 1 else None
    if own is None:
        raise UsageError(f"The axes {', '.join(array.axes)} are not those of attention weights.")
    found = _of_axis(array.axes[-1], reading)
    keys = own if found is None else found  # the axis `key` of self-attention is the same text
    queries = written_words(reading) if keys is not own else own.words
    for positions, words in ((own, queries), (keys, keys.words)):
        if not words:
            raise UsageError(f"The positions of the axis {positions.name} have no words to merge.")
    flat = array.values.reshape(-1, *array.shape[-2:])
    merged = np.array([word_weights(one, source_words=keys.words, target_words=queries) for one in flat], np.float32)
    values = merged.reshape(*array.shape[:-2], *merged.shape[1:])
    names = {array.axes[-2]: _names(own, merged.shape[1]), array.axes[-1]: _names(keys, merged.shape[2])}
    kept = {axis: labels for axis, labels in array.labels.items() if axis not in names}
    return NamedArray(values, array.axes, kept | names)


def _of_axis(name: str, reading: Reading) -> Positions | None:
    """What stands at the positions of an axis."""
    known = [*(positions for _, positions in reading.places), *([] if reading.memory is None else [reading.memory])]
    return next((positions for positions in known if positions.name == name), None)


def _names(positions: Positions, n_words: int) -> tuple[str, ...]:
    """The words of a text; a text whose last one is not whole may lack it."""
    words = positions.text.split()
    return (*words[:n_words], *("…" for _ in range(n_words - len(words))))


def written_words(reading: Reading) -> tuple[int | None, ...]:
    """Which word each written token belongs to: what a decoder reads at the next position. None for the last."""
    return (*reading.own.words[1:], None) if reading.own.words else ()


def row_words(attention: str, reading: Reading) -> tuple[int | None, ...]:
    """Which word each row of an attention's map belongs to: where a decoder attends to a memory, the one it writes there."""
    own = reading.at(attention)
    is_cross = key_positions(attention, reading) is not own
    return written_words(reading) if is_cross and own is reading.own else own.words


def attention_links(trace: Trace) -> list[Link]:
    """The word alignment of a trace, from the attention that the model names for it, mean over heads."""
    model = trace.live("An alignment is read from the attention that the model names, and").model
    tap, reading = alignment_tap(model), trace.reading
    source: Sequence[int | None] = reading.memory.words if reading.memory is not None else ()
    target = written_words(reading)
    if tap is None or tap not in trace or not source or not target:
        raise UsageError("This model aligns no words.", "Use a run that translates, with attention.")
    return align_words(trace[tap].values.mean(0), source_words=source, target_words=target)


def alignment_error(trace: Trace, gold: str) -> float:
    """The alignment error rate (AER) of a trace against links in the Pharaoh format, of words as white space separates them.

    gold: `0-0 1-2`, source first, counted from 0, possible links as `1?2` or `1p2`. The formula is that of
    `evaluation.alignment.alignment_error_rate`.
    """
    return alignment_error_rate(attention_links(trace), read_pharaoh(gold))
