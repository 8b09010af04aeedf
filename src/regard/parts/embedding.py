"""The token embedding with its positions, and the output layer, which may share its weights (weight tying).

Where a sequence is made of vectors (a sensor's rows, a film's frames), a linear layer takes the place of the tokens.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.dropout import Dropout
from regard.parts.initialisation import draw_rows
from regard.parts.linear import Linear
from regard.parts.taps import tap

TYINGS = ("all", "target", "none")


def check_tying(tied: str, *, source_vocab: int, target_vocab: int) -> None:
    """Refuse a matrix for source and target (weight tying) where their vocabularies do not allow it."""
    if tied == "all" and source_vocab != target_vocab:
        raise ConfigError(
            f"Source and target have {source_vocab} and {target_vocab} tokens and cannot share a matrix.",
            "Use one vocabulary (tokenizer.shared = true), or model.tied = target.",
        )


class TokenEmbedding(nn.Module):
    """A vector per token, times √D (Vaswani et al. 2017, 3.4) unless it is taken as it is."""

    def __init__(self, vocab_size: int, d_model: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.d_model = d_model
        self.scale = math.sqrt(d_model) if scaled else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) to (B, T, D)."""
        vectors = F.embedding(ids, self.weight)
        return vectors if self.scale == 1 else vectors * self.scale


class VectorEmbedding(Linear):
    """A vector of F features in the place of a token: (B, T, F) to (B, T, D)."""

    def __init__(self, n_features: int, d_model: int) -> None:
        super().__init__(n_features, d_model)
        self.d_model = d_model


def make_tokens(vocab_size: int, d_model: int, *, n_features: int, scaled: bool) -> TokenEmbedding | VectorEmbedding:
    """Build what reads tokens, or vectors where they have features."""
    return VectorEmbedding(n_features, d_model) if n_features else TokenEmbedding(vocab_size, d_model, scaled=scaled)


class InputEmbedding(nn.Module):
    """Tokens with their positions: added, or concatenated and projected back to the width of the model."""

    def __init__(
        self,
        tokens: TokenEmbedding | VectorEmbedding,
        positions: nn.Module | None,
        *,
        concatenate: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.join = nn.Linear(2 * tokens.d_model, tokens.d_model) if concatenate and positions is not None else None
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor, positions: Tensor, lengths: Tensor | None = None) -> Tensor:
        """ids (B, T), or vectors (B, T, F), at positions (T,) or (B, T), of sequences of `lengths` (B,), to (B, T, D)."""
        x = tap(self, "tokens", self.tokens(ids))
        if self.positions is not None:
            encoded = tap(self, "positions", self.positions(positions, lengths))
            x = x + encoded if self.join is None else self.join(torch.cat([x, encoded.expand_as(x)], dim=-1))
        dropped: Tensor = self.dropout(tap(self, "sum", x))
        return dropped


class OutputLayer(nn.Module):
    """From states to logits over the vocabulary. Tied, its matrix is that of the tokens (Press & Wolf 2017)."""

    bias: nn.Parameter | None

    def __init__(
        self, vocab_size: int, d_model: int, *, tied_to: TokenEmbedding | None = None, bias: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model)) if tied_to is None else tied_to.weight
        self.register_parameter("bias", nn.Parameter(torch.empty(vocab_size)) if bias else None)

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """A bias of zeros, and rows as a token's."""
        if parameter is self.bias:
            parameter.zero_()
        else:
            draw_rows(parameter, generator)

    def forward(self, states: Tensor) -> Tensor:
        """(…, D) to (…, V)."""
        return F.linear(states, self.weight, self.bias)
