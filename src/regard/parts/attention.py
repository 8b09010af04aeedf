"""Attention: softmax(Q Kᵀ / √d_k) V, and multi-head attention (Vaswani et al. 2017, 3.2).

With nobody listening the fastest kernel runs (attention_kernels.py); a listener for scores or weights makes the same module
compute them by the formula. Both give the same numbers, and zeros in a row that may attend to nothing.
"""

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.attention_kernels import attend
from regard.parts.decoder_state import GrowingCache
from regard.parts.linear import Linear
from regard.parts.masks import Mask, masked_softmax
from regard.parts.positions import Rotation
from regard.parts.score_formula import DotProductFormula
from regard.parts.taps import listened, tap


def attention_scores(query: Tensor, key: Tensor, *, scale: float, bias: Tensor | None = None) -> Tensor:
    """(…, T, K) and (…, S, K) to (…, T, S): how well each query fits each key, Q Kᵀ / √d_k; `bias` is added."""
    dots = query @ key.transpose(-2, -1)
    scores = dots if scale == 1 else dots * scale
    return scores if bias is None else scores + bias


def scaled_dot_product_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    *,
    scale: float,
    bias: Tensor | None = None,
) -> Tensor:
    """(B, H, T, K), (B, H, S, K), (B, H, S, V) to (B, H, T, V): the formula (3.2.1), with the taps of a module."""
    if not listened(module, "scores", "weights"):
        return tap(module, "heads", attend(query, key, value, mask, scale=scale, bias=bias))
    scores = tap(module, "scores", attention_scores(query, key, scale=scale, bias=bias))  # (B, H, T, S)
    allowed = mask.tensor(query.shape[-2], key.shape[-2], query.device)
    weights = tap(module, "weights", masked_softmax(scores, allowed))
    return tap(module, "heads", weights @ value)


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, H · K) to (B, H, T, K)."""
    return x.view(*x.shape[:-1], n_heads, -1).transpose(1, 2)


class MultiHeadAttention(nn.Module):
    """n_heads attentions side by side, each on its own projections, joined by one more (3.2.2).

    Self, masked, cross and windowed attention are this one module: what differs is where keys come from and the mask.
    """

    ablation_tap = "output"

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        d_value: int | None = None,
        scaled: bool = True,
        biases: bool = True,
    ) -> None:
        super().__init__()
        if d_head is None and d_model % n_heads:
            raise ConfigError(
                f"A width of {d_model} cannot be divided among {n_heads} heads.",
                "Choose d_model as a multiple of n_heads.",
            )
        self.n_heads = n_heads
        d_head = d_head or d_model // n_heads
        d_value = d_value or d_head
        self.query = Linear(d_model, n_heads * d_head, bias=biases, role="query")
        self.key = Linear(d_model, n_heads * d_head, bias=biases)
        self.value = Linear(d_model, n_heads * d_value, bias=biases)
        self.output = Linear(n_heads * d_value, d_model, bias=biases, role="residual_output")
        self.scale = d_head**-0.5 if scaled else 1.0

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        mask: Mask,
        *,
        cache: GrowingCache | None = None,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """(B, T, D) attending to (B, S, D), to (B, T, D); with a KV cache, to what it holds too, and it grows by them."""
        key, value = self.keys_values(memory, rotation)
        if cache is not None:
            key, value = cache.extend(key, value)
        return self.read(states, key, value, mask, rotation=rotation, bias=bias)

    def keys_values(self, memory: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor]:
        """(B, S, D) to keys (B, H, S, K) and values (B, H, S, V): what a KV cache keeps."""
        key = split_heads(self.key(memory), self.n_heads)
        if rotation is not None:
            key = rotation(key)
        return tap(self, "key", key), tap(self, "value", split_heads(self.value(memory), self.n_heads))

    def read(
        self,
        states: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask,
        *,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """(B, T, D) attending to ready keys and values, to (B, T, D)."""
        query = split_heads(self.query(states), self.n_heads)
        if rotation is not None:
            query = rotation(query)
        query = tap(self, "query", query)
        heads = scaled_dot_product_attention(self, query, key, value, mask, scale=self.scale, bias=bias)
        return tap(self, "output", self.output(heads.transpose(1, 2).flatten(2)))  # from (B, H, T, V)

    def formula(self) -> DotProductFormula:
        """How a score comes about."""
        return DotProductFormula(scale=self.scale, n_heads=self.n_heads, n_key_heads=self.n_heads)
