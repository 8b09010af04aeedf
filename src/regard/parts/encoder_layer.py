"""The encoder layer: self-attention, feed-forward.

x ── self-attention ── feed-forward ──►   each with its residual connection

Every position hears all the others, then thinks for itself.
"""

from collections.abc import Callable

from torch import Tensor, nn

from regard.parts.masks import Mask
from regard.parts.positions import Rotation


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network; what they are, and where the norms stand, is the model's choice."""

    def __init__(
        self, self_attention: nn.Module, feed_forward: nn.Module, make_residual: Callable[[], nn.Module]
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention_residual = make_residual()
        self.feed_forward = feed_forward
        self.feed_forward_residual = make_residual()

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        *,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
        n_states: int | None = None,
    ) -> Tensor:
        """(B, T, D) to the same; `rotation` turns queries and keys, `bias` is added to the scores, if there are any.

        n_states: how many positions, from the first on, are asked for; the others are heard, and say nothing themselves.
        """

        def attend(x: Tensor) -> Tensor:
            heard: Tensor = self.self_attention(x[:, :n_states], x, mask, rotation=rotation, bias=bias)
            return heard

        x = self.self_attention_residual(x, attend)
        x = self.feed_forward_residual(x, self.feed_forward)
        return x
