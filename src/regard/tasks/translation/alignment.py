"""Which source words a translation was read from: the weights of attention, and the links between words they give.

Works with every model that names an `alignment_tap` and offers `states(source, lengths, target)`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.evaluation.alignment import Link, align_words
from regard.parts.taps import recording
from regard.tasks.batches import padded
from regard.tasks.offers import alignment_tap, device_of

Weights = np.ndarray[Any, Any]


def check_alignable(model: Any) -> str:
    """Return the tap to read alignments from; refuse a model that has none."""
    name = alignment_tap(model)
    if name is None:
        raise UsageError(
            "This model has no attention to read alignments from.",
            "Leave the alignment out, or use a model with attention, such as rnn-attention.",
        )
    return name


def cross_attention(model: Any, vocabulary: Vocabulary, source: Sequence[int], target: Sequence[int]) -> Weights:
    """The weights (T, S) of one pair; see `cross_attentions`."""
    return cross_attentions(model, vocabulary, [source], [target])[0]


def cross_attentions(
    model: Any, vocabulary: Vocabulary, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Weights]:
    """The weights (T, S) of the model's attention over each source while it writes the target and its end.

    Averaged over the heads of the layer that the model names: in a Transformer the one before the last shows alignment
    best (Garg et al. 2019, "Jointly Learning to Align and Translate").
    """
    name = check_alignable(model)
    device = device_of(model)
    source, source_lengths = padded(sources, vocabulary.source.pad_id, device)
    prefix = vocabulary.target.prefix
    begun = [[vocabulary.target.start_id, *prefix, *ids] for ids in targets]
    target, _ = padded(begun, vocabulary.target.pad_id, device)
    with recording(model, name) as record, torch.inference_mode():
        model.states(source, source_lengths, target)
    # A Transformer shows all positions in one call (B, H, T, S), a recurrent decoder each in a call of its own.
    weights = torch.cat(record.calls(name), dim=2).mean(1).float().cpu().numpy()  # (B, T, S)
    bounds = zip(weights, begun, sources, strict=True)
    return [own[len(prefix) : len(rows), : len(columns)] for own, rows, columns in bounds]


def link_words(vocabulary: Vocabulary, source: str, ids: Sequence[int], weights: Weights) -> list[Link]:
    """Which word of the source each word of a translation was read from; `weights` are those of `cross_attentions`."""
    if not ids:
        return []
    return align_words(
        weights[: len(ids)],
        source_words=[*([None] * len(vocabulary.source.prefix)), *vocabulary.source.words(source), None],
        target_words=words_of_ids(vocabulary.target, ids),
    )


def words_of_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int | None]:
    """Which word of the decoded text each id belongs to; by decoding growing beginnings, so that any ids will do.

    White space alone belongs to the word before it; None where there is no word.
    """
    counts = [len(tokenizer.decode(ids[:end]).split()) for end in range(1, len(ids) + 1)]
    # The first bytes of a character may look like a word, until all of them turn out to be a space.
    return [min(max(1, count), counts[-1]) - 1 if counts[-1] else None for count in counts]
