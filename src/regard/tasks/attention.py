"""Attention weights of one text, to be drawn: over the source while a decoder writes, or among the tokens that are read.

What a text becomes, and what was written of it, is each task's own: see their `attention`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.parts.taps import recording
from regard.tasks.offers import alignment_tap
from regard.tasks.translation.alignment import cross_attention

SELF_ATTENTION = "*self_attention.weights"


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionWeights:
    """Who attends to whom: weights (T, S), or (L, H, T, S) of each layer and head; NaN for what none may attend to.

    rows, columns: the T tokens that attend (what a decoder writes there), and the S that are attended to
    """

    weights: npt.NDArray[np.float32]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def written_attention(
    model: nn.Module, vocabulary: Vocabulary, source: Sequence[int], written: Sequence[int]
) -> AttentionWeights:
    """How a decoder attended to a source while it wrote so; the mean over the heads of a layer of the model's choice."""
    if alignment_tap(model) is None:
        raise no_attention()
    return AttentionWeights(
        weights=cross_attention(model, vocabulary, source, written[:-1]),
        rows=token_labels(vocabulary.target, written),
        columns=token_labels(vocabulary.source, source),
    )


def read_attention(
    model: nn.Module, read: Callable[[], object], tokens: Sequence[str], *, causal: bool = False
) -> AttentionWeights:
    """How the tokens of a text attend to each other while a model reads them: first in its batch, padded behind."""
    with recording(model, SELF_ATTENTION) as record, torch.inference_mode():
        read()
    if not record:
        raise no_attention()
    length = len(tokens)
    layers: list[Tensor] = [record[name][0, :, :length, :length] for name in record]
    weights = torch.stack(layers).float().cpu().numpy()
    if causal:
        weights[:, :, np.triu(np.ones((length, length), np.bool_), 1)] = np.nan
    return AttentionWeights(weights=weights, rows=tuple(tokens), columns=tuple(tokens))


def token_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Tokens as a picture shows them."""
    own = {tokenizer.start_id: "(start)", tokenizer.end_id: "(end)"}
    return tuple(own.get(id) or tokenizer.piece_text(id) for id in ids)


def no_attention() -> UsageError:
    """What is said of a model without attention."""
    return UsageError(
        "This model has no attention to draw.",
        "Leave --picture out, or use a model with attention, such as rnn-attention or a Transformer.",
    )
