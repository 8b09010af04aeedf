"""What a model may offer a task: protocols, the same for regard's own networks and a user's `nn.Module`.

Every task calls the model itself and gets logits; that is all a network must do to be trained. What it offers beside that
makes it quicker (`StatesModel`), lets it decode (`Decodable`), embed texts (`Encodable`), align words (`alignment_tap`) or
be read by the logit lens (`ReadsOut`). docs/guides/own-network.md walks through them.
"""

from typing import Any, Protocol, TypeGuard

import torch
from torch import Tensor, nn


class StatesModel(Protocol):
    """A model that separates its states (B, T, D) from its output layer: the logits of a whole batch are never kept."""

    output: nn.Linear

    def states(self, *inputs: Any) -> Tensor: ...


class Encodable(Protocol):
    """An encoder: ids (B, T) of lengths (B,) to states (B, T, D)."""

    def encode(self, ids: Tensor, lengths: Tensor) -> Tensor: ...


class Pooled(Encodable, Protocol):
    """An encoder-only model, which can say one vector (B, D) of a whole sequence."""

    def pooled(self, states: Tensor, lengths: Tensor) -> Tensor: ...


class MaskedHead(Encodable, Protocol):
    """An encoder that predicts tokens at some positions alone: `head.transform` and then `head.output`."""

    head: Any


class ReadsOut(Protocol):
    """A model that turns its residual stream (B, T, D) into logits: (B, T, V), or (B, N) of the whole sequence."""

    def read_out(self, x: Tensor, /) -> Tensor: ...


def has_states(model: object) -> TypeGuard[StatesModel]:
    """Whether a model offers its states and its output layer apart."""
    return hasattr(model, "states") and hasattr(model, "output")


def can_encode(model: object) -> TypeGuard[Encodable]:
    """Whether a model offers `encode(ids, lengths)`."""
    return hasattr(model, "encode")


def is_encoder_only(model: object) -> TypeGuard[Pooled]:
    """Whether a model reads a whole sequence between a start and an end token, and pools it."""
    return can_encode(model) and hasattr(model, "pooled")


def can_decode(model: object) -> bool:
    """Whether a model offers `start(inputs)` and `step(state, ids)`: a user's own network may know nothing of decoding."""
    return hasattr(model, "start") and hasattr(model, "step")


def has_masked_head(model: object) -> TypeGuard[MaskedHead]:
    """Whether an encoder can be asked about some tokens alone; any other model returns the logits of all."""
    return hasattr(model, "encode") and hasattr(getattr(model, "head", None), "transform")


def can_read_out(model: object) -> TypeGuard[ReadsOut]:
    """Whether a model offers `read_out(x)`, by which the logit lens reads any state of its residual stream."""
    return getattr(model, "read_out", None) is not None


def last_layers(model: object) -> tuple[nn.Module, nn.Module] | None:
    """The last norm and the linear output layer behind it, which are all of a model's `read_out`; else None."""
    layers: tuple[nn.Module, nn.Module] | None = getattr(model, "last_layers", None)
    return layers


def max_length(model: object) -> int | None:
    """The most tokens that a model reads at once, special tokens counted; None for any number."""
    limit = getattr(model, "max_length", None)
    return None if limit is None else int(limit)


def context_length(model: object) -> int | None:
    """The most tokens that a language model attends to: its context; else what its positions reach."""
    context = getattr(model, "context", None)
    return max_length(model) if context is None else int(context)


def trained_context(model: object) -> int | None:
    """The most tokens that a model has learned to read at once: what its positions reach, or the context it trained with."""
    limit = max_length(model) or getattr(getattr(model, "config", None), "context", None)
    return None if limit is None else int(limit)


def reads_both_ways(model: object) -> bool:
    """Whether the second half of a model's states was read from the end, as a bidirectional recurrent network's is."""
    return bool(getattr(getattr(model, "config", None), "bidirectional", False))


def alignment_tap(model: object) -> str | None:
    """The tap of the attention weights from which words are aligned; None where a model has no such attention."""
    name: str | None = getattr(model, "alignment_tap", None)
    return name


def device_of(model: nn.Module) -> torch.device:
    """Where a model is."""
    return next(model.parameters()).device
