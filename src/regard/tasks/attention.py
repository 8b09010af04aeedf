"""Attention weights of one text, to be drawn: over the source while a decoder writes, or among the tokens that are read."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from regard.errors import UsageError
from regard.parts.taps import recording
from regard.tasks.offers import alignment_tap
from regard.tasks.reading import Reading

SELF_ATTENTION = "*self_attention.weights"


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionWeights:
    """Who attends to whom: weights (T, S), or (L, H, T, S) of each layer and head; NaN for what none may attend to.

    rows, columns: the T tokens that attend (what a decoder writes there), and the S that are attended to
    """

    weights: npt.NDArray[np.float32]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def attention_of(model: nn.Module, reading: Reading) -> AttentionWeights:
    """How a decoder attended to its memory while it wrote; of a model that only reads, how tokens attend to each other."""
    return _read(model, reading) if reading.memory is None else _written(model, reading)


def _written(model: nn.Module, reading: Reading) -> AttentionWeights:
    """The mean over the heads of a layer of the model's choice."""
    name = alignment_tap(model)
    if name is None or reading.memory is None:
        raise no_attention()
    with recording(model, name) as record, torch.inference_mode():
        reading.forward()
    # A Transformer shows all positions in one call (1, H, T, S), a recurrent decoder each in a call of its own.
    weights = torch.cat(record.calls(name), dim=2)[0].mean(0).float().cpu().numpy()
    written = range(reading.n_given, len(reading.writes))
    return AttentionWeights(
        weights=weights[reading.n_given :],
        rows=tuple(map(reading.written, written)),
        columns=reading.memory.labels,
    )


def _read(model: nn.Module, reading: Reading) -> AttentionWeights:
    with recording(model, SELF_ATTENTION) as record, torch.inference_mode():
        reading.forward()
    if not record:
        raise no_attention()
    weights = torch.stack([record[name][0] for name in record]).float().cpu().numpy()
    if reading.causal:
        weights[:, :, np.triu(np.ones(weights.shape[2:], np.bool_), 1)] = np.nan
    return AttentionWeights(weights=weights, rows=reading.own.labels, columns=reading.own.labels)


def no_attention() -> UsageError:
    """What is said of a model without attention."""
    return UsageError(
        "This model has no attention to draw.",
        "Leave --picture out, or use a model with attention, such as rnn-attention or a Transformer.",
    )
