"""Attention scores of a recurrent decoder over its encoder's states: dot product, bilinear (Luong), additive (Bahdanau).

    dot       h·s
    bilinear  h·W·s                    (Luong et al. 2015, "general")
    additive  w₂·tanh(W₁[h; s])        (Bahdanau et al. 2015)

A score is split in three: `prepare` is the share of the keys alone, which is computed once per sentence; `ask` is that of
the query; `forward` brings the two together. Queries, keys and values are functions of the states: the states
themselves, W h + b, or σ(W h + b).
"""

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.masks import Mask, masked_softmax
from regard.parts.score_formula import AdditiveFormula, DotProductFormula, ScoreFormula
from regard.parts.taps import tap


def check_dot(d_query: int, d_key: int) -> None:
    """Refuse a dot product of two widths."""
    if d_query != d_key:
        raise ConfigError(
            f"model.attention = dot needs queries and keys of one width, not {d_query} and {d_key}.",
            "Use model.key_function = linear or sigmoid, model.attention = bilinear or additive, "
            "or model.bidirectional = false.",
        )


class DotScore(nn.Module):
    """h·s, which asks for one width."""

    def __init__(self, d_query: int, d_key: int) -> None:
        super().__init__()
        check_dot(d_query, d_key)

    def prepare(self, key: Tensor) -> Tensor:
        """(B, S, K) as they are."""
        return key

    def ask(self, query: Tensor) -> Tensor:
        """(B, T, Q) as they are."""
        return query

    def forward(self, asked: Tensor, prepared: Tensor) -> Tensor:
        """The shares of queries (B, T, Q) and keys (B, S, Q) to scores (B, T, S)."""
        return asked @ prepared.transpose(-2, -1)

    def formula(self) -> ScoreFormula:
        """How a score comes about."""
        return DotProductFormula()


class BilinearScore(nn.Module):
    """h·W·s; W s is the share of the keys."""

    def __init__(self, d_query: int, d_key: int) -> None:
        super().__init__()
        self.key = nn.Linear(d_key, d_query, bias=False)

    def prepare(self, key: Tensor) -> Tensor:
        """(B, S, K) to W s, (B, S, Q)."""
        prepared: Tensor = self.key(key)
        return prepared

    def ask(self, query: Tensor) -> Tensor:
        """(B, T, Q) as they are."""
        return query

    def forward(self, asked: Tensor, prepared: Tensor) -> Tensor:
        """The shares of queries (B, T, Q) and keys (B, S, Q) to scores (B, T, S)."""
        return asked @ prepared.transpose(-2, -1)

    def formula(self) -> ScoreFormula:
        """How a score comes about."""
        return DotProductFormula()


class AdditiveScore(nn.Module):
    """w₂·tanh(W₁[h; s]), where W₁[h; s] = W_q h + W_k s: two small products in place of one for every pair."""

    def __init__(self, d_query: int, d_key: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_query, d_query, bias=False)
        self.key = nn.Linear(d_key, d_query, bias=False)
        self.output = nn.Linear(d_query, 1, bias=False)

    def prepare(self, key: Tensor) -> Tensor:
        """(B, S, K) to W_k s, (B, S, Q)."""
        prepared: Tensor = self.key(key)
        return prepared

    def ask(self, query: Tensor) -> Tensor:
        """(B, T, Q) to W_q h, the same shape."""
        asked: Tensor = self.query(query)
        return asked

    def forward(self, asked: Tensor, prepared: Tensor) -> Tensor:
        """The shares of queries (B, T, Q) and keys (B, S, Q) to scores (B, T, S)."""
        hidden = (asked[:, :, None] + prepared[:, None]).tanh()  # (B, T, S, Q)
        scores: Tensor = self.output(hidden)
        return scores.squeeze(-1)

    def formula(self) -> ScoreFormula:
        """How a score comes about."""
        return AdditiveFormula(weight=tuple(self.output.weight[0].tolist()))


class Sigmoid(nn.Module):
    """σ(W h + b)."""

    def __init__(self, d_input: int, d_output: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_input, d_output)

    def forward(self, states: Tensor) -> Tensor:
        """(…, d_input) to (…, d_output), between 0 and 1."""
        projected: Tensor = self.linear(states)
        return projected.sigmoid()


SCORES: dict[str, type[DotScore | BilinearScore | AdditiveScore]] = {
    "dot": DotScore,
    "bilinear": BilinearScore,
    "additive": AdditiveScore,
}
FUNCTIONS = ("identity", "linear", "sigmoid")


def function_width(kind: str, d_input: int, d_output: int) -> int:
    """How wide a function makes states: the identity keeps their width, whatever is wanted."""
    return d_input if kind == "identity" else d_output


def make_function(kind: str, d_input: int, d_output: int) -> nn.Module:
    """Build a function of states by its name; `function_width` tells how wide it makes them."""
    if kind == "identity":
        return nn.Identity()
    return nn.Linear(d_input, d_output) if kind == "linear" else Sigmoid(d_input, d_output)


class StateAttention(nn.Module):
    """The decoder's state asks, the encoder's states answer: scores, softmax, and the context Σ aᵢ vᵢ.

    One head. The memory, which is what the states of a sentence give, is computed once and read at every step.
    query, key, value: the names of the functions of the states that these are.
    """

    ablation_tap = "context"

    def __init__(self, score: str, *, query: str, key: str, value: str, d_query: int, d_memory: int) -> None:
        super().__init__()
        self.d_context = function_width(value, d_memory, d_query)
        self.query = make_function(query, d_query, d_query)
        self.key = make_function(key, d_memory, d_query)
        self.value = make_function(value, d_memory, d_query)
        self.score = SCORES[score](d_query, function_width(key, d_memory, d_query))

    def memory(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's states (B, S, D) to the keys' share of the scores (B, S, P) and the values (B, S, C)."""
        return tap(self, "key", self.score.prepare(self.key(states))), tap(self, "value", self.value(states))

    def forward(self, states: Tensor, prepared: Tensor, value: Tensor, mask: Mask) -> Tensor:
        """The decoder's states (B, T, D), asking a memory, to contexts (B, T, C)."""
        asked = tap(self, "query", self.score.ask(self.query(states)))
        scores = tap(self, "scores", self.score(asked, prepared)[:, None])  # (B, 1, T, S)
        allowed = mask.tensor(states.shape[1], value.shape[1], states.device)
        weights = tap(self, "weights", masked_softmax(scores, allowed))
        return tap(self, "context", torch.matmul(weights[:, 0], value))

    def formula(self) -> ScoreFormula:
        """How a score comes about, of what the taps query and key show."""
        return self.score.formula()
