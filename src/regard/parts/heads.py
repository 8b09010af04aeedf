"""Output heads and pooling of an encoder: logits for a whole sequence, for each token, or for a masked word.

    states (B, T, D) ─┬─ pooling ── one state per sequence (B, D) ── SequenceHead ── (B, N)
                      ├─ TokenHead ── (B, T, N)
                      └─ WordHead ── logits (B, T, V)

What stands behind a row's length changes nothing: pooling leaves it out, and the others look at one position at a time.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.activations import ACTIVATIONS
from regard.parts.decoder_state import last_real
from regard.parts.dropout import Dropout
from regard.parts.embedding import OutputLayer, TokenEmbedding
from regard.parts.linear import Linear
from regard.parts.norms import LayerNorm

# From states (B, T, D), of which (B,) are real, to one state per sequence (B, D).
Pooling = Callable[[Tensor, Tensor], Tensor]


def class_state(states: Tensor, lengths: Tensor) -> Tensor:
    """Take the first position, the class token: in a bidirectional encoder it has heard all the others."""
    return states[:, 0]


def mean_state(states: Tensor, lengths: Tensor) -> Tensor:
    """Take the mean over the real positions."""
    padded = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
    return states.masked_fill(padded[..., None], 0.0).sum(1) / lengths.clamp(min=1)[:, None]


def last_state(states: Tensor, lengths: Tensor) -> Tensor:
    """Take the last real position: of a network that reads forwards, the only one that has seen everything."""
    return last_real(states, lengths)


def last_state_of_both(states: Tensor, lengths: Tensor) -> Tensor:
    """Take each direction where it has read the whole row: forwards at the last real position, backwards at the first."""
    forwards, backwards = states.chunk(2, dim=-1)
    return torch.cat([last_real(forwards, lengths), backwards[:, 0]], dim=-1)


_POOLINGS: dict[str, Pooling] = {"class": class_state, "mean": mean_state, "last": last_state}
POOLINGS = tuple(_POOLINGS)


def find_pooling(how: str, *, both_directions: bool = False) -> Pooling:
    """Return the pooling a config names; `both_directions` for states whose second half was read from the end."""
    return last_state_of_both if how == "last" and both_directions else _POOLINGS[how]


class Pooler(nn.Module):
    """tanh(W x + b) of the class token, as BERT has it between its encoder and a classifier (Devlin et al. 2019)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.dense = Linear(d_model, d_model)

    def forward(self, state: Tensor) -> Tensor:
        """(B, D) to the same."""
        pooled: Tensor = self.dense(state).tanh()
        return pooled


class Head(nn.Module):
    """What all heads share, and the head of a model that has none: the pooled states as they are.

    pools: whether it reads the pooled states (B, D) and not all of them (B, T, D).
    says: the model's tap that shows what it says.
    """

    pools = True
    says = "pooled"

    def forward(self, states: Tensor) -> Tensor:
        return states


class SequenceHead(Head):
    """Numbers for each sequence: the logits of its classes, or its measure."""

    says = "logits"

    def __init__(self, d_states: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = Linear(d_states, n_outputs)

    def forward(self, states: Tensor) -> Tensor:
        """(…, D) to (…, N)."""
        answer: Tensor = self.output(self.dropout(states))
        return answer


class TokenHead(SequenceHead):
    """The same layers at every position: the logits of its tags."""

    pools = False


class WordHead(Head):
    """Which word stands here: a layer with GELU and a norm, then the tokens' own matrix and a bias (Devlin et al. 2019)."""

    pools = False
    says = "logits"

    def __init__(self, d_states: int, tokens: TokenEmbedding, *, epsilon: float) -> None:
        super().__init__()
        self.dense = Linear(d_states, tokens.d_model)
        self.activation = ACTIVATIONS["gelu"]
        self.norm = LayerNorm(tokens.d_model, epsilon=epsilon)
        self.output = OutputLayer(len(tokens.weight), tokens.d_model, tied_to=tokens, bias=True)

    def transform(self, states: Tensor) -> Tensor:
        """(…, D) to what the output layer reads, (…, width of the tokens)."""
        read: Tensor = self.norm(self.activation(self.dense(states)))
        return read

    def forward(self, states: Tensor) -> Tensor:
        """(…, D) to the logits (…, V)."""
        logits: Tensor = self.output(self.transform(states))
        return logits


HEADS = ("none", "words", "sequence", "tokens")


def make_head(
    kind: str, d_states: int, *, n_outputs: int, tokens: nn.Module, dropout: float, epsilon: float = 1e-5
) -> Head:
    """Build the head a config names.

    tokens: the model's token embedding, whose matrix predicts words too. epsilon: of the word head's norm.
    """
    if kind == "sequence":
        return SequenceHead(d_states, n_outputs, dropout=dropout)
    if kind == "tokens":
        return TokenHead(d_states, n_outputs, dropout=dropout)
    if kind == "words":
        if not isinstance(tokens, TokenEmbedding):
            raise ConfigError(
                "A sequence of vectors has no words that could be predicted.",
                "Give texts, or choose another task than mask.",
            )
        return WordHead(d_states, tokens, epsilon=epsilon)
    return Head()
