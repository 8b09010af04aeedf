"""Where a token stands: as a number, a fraction, sinusoids, a learned vector, or a rotation of queries and keys.

The lectures ask four things of an encoding: unique per position, equal distance between neighbours whatever the length,
bounded and fit for longer inputs, deterministic. The index fails the third, the fraction the second, the sinusoid none;
all are here so that it can be shown. Rotary: Su et al. 2021, "RoFormer".
"""

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, DataError, did_you_mean


def sinusoids(positions: Tensor, d_model: int, *, base: float = 10000.0) -> Tensor:
    """(…,) to (…, D): sin(pos / base^(2i/D)) at feature 2i, the cosine of the same at 2i + 1 (Vaswani et al. 2017, 3.5)."""
    angles = _angles(positions, d_model, base)
    both = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return both[..., :d_model].float()


def _angles(positions: Tensor, width: int, base: float) -> Tensor:
    """(…,) to (…, width / 2): pos / base^(2i / width), in double precision where the device has it."""
    precision = torch.float32 if positions.device.type == "mps" else torch.float64
    exponents = torch.arange(0, width, 2, dtype=precision, device=positions.device) / width
    return positions[..., None].to(precision) / base**exponents


def positions_inside(documents: Tensor) -> Tensor:
    """(B, T) of document numbers to the positions (B, T), counted anew where another document begins."""
    places = torch.arange(documents.shape[1], device=documents.device)
    begins = torch.zeros_like(documents, dtype=torch.bool)
    begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return places - (places * begins).cummax(dim=1).values


def index_encoding(positions: Tensor, d_model: int) -> Tensor:
    """(…,) to (…, D): the order number itself, in every feature. Unbounded."""
    return positions[..., None].float().expand(*positions.shape, d_model)


def fraction_encoding(positions: Tensor, d_model: int, *, lengths: Tensor) -> Tensor:
    """(B, T) and (B,) to (B, T, D): i / (n - 1), in every feature. The step between neighbours depends on the length."""
    fractions = positions / (lengths[:, None] - 1).clamp(min=1)
    return fractions[..., None].expand(*positions.shape, d_model)


class Sinusoidal(nn.Module):
    """Fixed sinusoids of any base; no limit of length."""

    table: Tensor

    def __init__(self, d_model: int, *, base: float = 10000.0, n_ready: int = 512) -> None:
        super().__init__()
        self.base = base
        self.register_buffer("table", sinusoids(torch.arange(n_ready), d_model, base=base), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """(T,) or (B, T) to (…, D)."""
        # Beyond the table they are computed; so they are where a look at the positions would have to be waited for.
        if positions.device.type != "cpu" or (positions.numel() and int(positions.max()) >= len(self.table)):
            return sinusoids(positions, self.table.shape[1], base=self.base)
        return self.table[positions]


class Learned(nn.Module):
    """A learned vector a position, for positions below `limit`."""

    def __init__(self, d_model: int, *, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.weight = nn.Parameter(torch.empty(limit, d_model))

    def forward(self, positions: Tensor) -> Tensor:
        """(T,) or (B, T) to (…, D)."""
        if positions.numel() and int(positions.max()) >= self.limit:
            raise DataError(
                f"A sequence of {int(positions.max()) + 1} tokens is longer than the {self.limit} learned positions.",
                "Shorten it, or train a model with more positions.",
            )
        return self.weight[positions]


class Index(nn.Module):
    """The order number, in every feature."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, positions: Tensor) -> Tensor:
        return index_encoding(positions, self.d_model)


class Fraction(nn.Module):
    """The position over the length of its sequence, in every feature; needs the whole sequence, as an encoder has it."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, positions: Tensor, lengths: Tensor) -> Tensor:
        """(T,) and (B,) to (B, T, D)."""
        return fraction_encoding(positions.expand(len(lengths), -1), self.d_model, lengths=lengths)


class Rotation:
    """Turns pairs of features of queries and keys by angles that grow with the position: (…, T, K) to the same.

    Made once a forward pass from the positions, and passed to attention as an argument.
    """

    def __init__(self, positions: Tensor, d_head: int, *, base: float = 10000.0) -> None:
        if d_head % 2:
            raise ConfigError(f"Rotary positions need heads of even width, not {d_head}.", "Change d_model or n_heads.")
        angles = _angles(positions, d_head, base)  # (T, K/2) or (B, T, K/2)
        if angles.dim() == 3:
            angles = angles[:, None]  # over the heads
        self.cos, self.sin = angles.cos().float(), angles.sin().float()

    def __call__(self, x: Tensor) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = torch.stack([even * self.cos - odd * self.sin, even * self.sin + odd * self.cos], dim=-1)
        return turned.flatten(-2).to(x.dtype)


POSITIONS = ("sinusoidal", "learned", "rotary", "index", "fraction", "none")


def make_positions(name: str, d_model: int, *, limit: int, base: float) -> nn.Module | None:
    """Build the encoding a config names; None for rotary (attention applies it) and none."""
    if base <= 0:
        raise ConfigError(f"model.position_base is above 0, not {base}.", "The paper's is 10000.")
    if name == "sinusoidal":
        return Sinusoidal(d_model, base=base)
    if name == "learned":
        return Learned(d_model, limit=limit)
    if name == "index":
        return Index(d_model)
    if name == "fraction":
        return Fraction(d_model)
    if name in ("rotary", "none"):
        return None
    raise ConfigError(f"There are no positions '{name}'.", did_you_mean(name, POSITIONS))
