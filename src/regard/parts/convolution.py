"""Convolution over a sequence: the same features are looked for at every position.

The features are shared, so a shift of the input shifts the features: what means something here means the same there. One
layer relates positions at most k apart, at the cost of O(k·n·d²); the lectures set it beside recurrence and self-attention
(Vaswani et al. 2017, section 4).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.taps import tap


class Convolution(nn.Module):
    """One linear layer over every `width` neighbouring positions; zeros stand outside of the sequence.

    Causal: a position sees itself and the width - 1 before it. Else it stands in the centre; of an even width, one more is
    seen after it than before.
    """

    def __init__(self, d_model: int, width: int, *, causal: bool) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(
                f"A convolution is at least 1 position wide, not {width}.", "Choose a width of 1 or more."
            )
        self.width = width
        self.n_before = width - 1 if causal else (width - 1) // 2
        self.features = nn.Linear(width * d_model, d_model)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(B, T, D), of (B,) lengths, to (B, T, D).

        What stands behind a row's length changes nothing, and its features are zeros.
        """
        behind = None
        if lengths is not None:
            behind = (torch.arange(x.shape[1], device=x.device) >= lengths[:, None])[..., None]  # (B, T, 1)
            x = x.masked_fill(behind, 0.0)
        n_after = self.width - 1 - self.n_before
        padded = F.pad(x, (0, 0, self.n_before, n_after))
        # Joined and multiplied once: as fast as the library's convolution, which wants the features before the positions.
        neighbours = torch.cat([padded[:, shift : shift + x.shape[1]] for shift in range(self.width)], dim=-1)
        features = self.features(neighbours)  # from (B, T, width * D)
        return tap(self, "output", features if behind is None else features.masked_fill(behind, 0.0))
