"""A recurrent encoder-only model: what read sequences before attention, and still does well on short ones.

    ids ── embedding ── N × recurrent layer ── states ── head

What differs from BERT: order lies in the recurrence, so that there are neither positions nor a longest sequence. Nor are
there segments: a network that reads in order has read the end of the first text before the second begins.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.config import option
from regard.errors import ConfigError
from regard.models.encoder_only import EncoderConfig, EncoderOnly
from regard.parts.embedding import InputEmbedding, make_tokens
from regard.parts.heads import POOLINGS, find_pooling, make_head
from regard.parts.initialisation import initialise
from regard.parts.recurrent import CELLS, RecurrentEncoder
from regard.parts.stack import Stack


@dataclass(frozen=True, kw_only=True)
class RecurrentEncoderConfig(EncoderConfig):
    """The sizes and choices of a recurrent encoder; the defaults are small and classical."""

    pooling: str = option(
        "last", "pooling of a sequence to one state: the final one, the mean, or the first", choices=POOLINGS
    )
    cell: str = option("gru", "recurrent cell; elman is a = tanh(W[a; x] + b)", choices=tuple(CELLS))
    n_layers: int = option(1, "number of layers", least=1, most=1_000)
    d_model: int = option(256, "embedding size", least=1, most=65_536)
    d_state: int = option(256, "width of a hidden state, per direction", least=1, most=65_536)
    bidirectional: bool = option(True, "read in both directions")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling == "class" and not self.bidirectional:
            raise ConfigError(
                "model.pooling = class takes the first state, and a network that reads forwards has seen nothing there.",
                "Set model.pooling = last or mean, or model.bidirectional = true.",
            )


class RecurrentEncoderModel(EncoderOnly):
    """Recurrent layers in one or both directions, with the head of a task."""

    def __init__(self, config: RecurrentEncoderConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        tokens = make_tokens(config.vocab, config.d_model, n_features=config.n_features, scaled=True)
        self.embedding = InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)
        self.encoder = RecurrentEncoder(
            config.cell,
            config.d_model,
            config.d_state,
            n_layers=config.n_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )
        self.pooling = find_pooling(config.pooling, both_directions=config.bidirectional)
        self.head = make_head(
            config.head, self.encoder.d_output, n_outputs=config.n_outputs, tokens=tokens, dropout=config.dropout
        )
        initialise(self, seed)

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None = None) -> Tensor:
        """What the head says, from inputs as in `encode`."""
        return self.answer(self.encode(inputs, lengths, segments), lengths)

    def stacks(self) -> tuple[Stack, ...]:
        """The layers that a token passes, for layer-wise learning rates."""
        return (Stack(self.encoder.layers, below=(self.embedding,)),)

    def encode(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids (B, T), or vectors (B, T, F), padded behind, of (B,) lengths; to the last states (B, T, D·directions).

        segments: not needed; see above.
        """
        embedded = self.embedding(inputs, torch.arange(inputs.shape[1], device=inputs.device))
        states: Tensor
        states, _ = self.encoder(embedded, lengths)
        return states
