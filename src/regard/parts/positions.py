"""Positional encodings: an index, a fraction, sinusoids, a learned vector, rotary (of queries and keys), a relative bias.

The lectures ask four things of an encoding: unique per position, equal distance between neighbours whatever the length,
bounded and fit for longer inputs, deterministic. The index fails the third, the fraction the second, the sinusoid none;
all are here so that it can be shown. Rotary: Su et al. 2021, "RoFormer". Relative bias: Raffel et al. 2020,
"Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (T5).
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError, DataError
from regard.parts.initialisation import Role
from regard.parts.taps import tap


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
        # Computed on a CPU first: on torch's `meta` an arange loads its compiler, which takes seconds.
        table = sinusoids(torch.arange(n_ready, device="cpu"), d_model, base=base)
        self.register_buffer("table", table.to(torch.get_default_device()), persistent=False)

    def forward(self, positions: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(T,) or (B, T) to (…, D), whatever the lengths."""
        # Beyond the table they are computed; so they are where a look at the positions would have to be waited for.
        if positions.device.type != "cpu" or (positions.numel() and int(positions.max()) >= len(self.table)):
            return sinusoids(positions, self.table.shape[1], base=self.base)
        return self.table[positions]


class Learned(nn.Module):
    """A learned vector per position, for positions below `limit`."""

    def __init__(self, d_model: int, *, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.weight = nn.Parameter(torch.empty(limit, d_model))

    def forward(self, positions: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(T,) or (B, T) to (…, D), whatever the lengths."""
        # Elsewhere than on a CPU, the largest would have to be waited for; but so many in a row are no fewer positions.
        on_cpu = positions.device.type == "cpu" and positions.numel()
        length = int(positions.max()) + 1 if on_cpu else positions.shape[-1]
        if length > self.limit:
            raise DataError(
                f"A sequence of {length} tokens is longer than the {self.limit} learned positions.",
                "Shorten it, or train a model with more positions.",
            )
        # Not weight[positions], whose gradient several threads add up in whatever order they come.
        return F.embedding(positions, self.weight)


class Index(nn.Module):
    """The order number, in every feature."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, positions: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(T,) or (B, T) to (…, D), whatever the lengths."""
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

    Made once per forward pass from the positions, and passed to attention as an argument.
    slowed: from how many positions each angle takes for a turn (K/2,) to what it is multiplied by; None for 1.
    """

    def __init__(
        self,
        positions: Tensor,
        d_head: int,
        *,
        base: float = 10000.0,
        slowed: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if d_head % 2:
            raise ConfigError(f"Rotary positions need heads of even width, not {d_head}.", "Change d_model or n_heads.")
        angles = _angles(positions, d_head, base)  # (T, K/2) or (B, T, K/2)
        if slowed is not None:
            angles = angles * slowed(2 * math.pi / _angles(torch.ones((), device=positions.device), d_head, base))
        if angles.dim() == 3:
            angles = angles[:, None]  # over the heads
        self.turns = torch.complex(angles.cos().float(), angles.sin().float())

    def __call__(self, x: Tensor) -> Tensor:
        # A pair of features as one complex number: a turn is then one product, in a quarter of the time of the formula.
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.turns).flatten(-2).to(x.dtype)


def distance_buckets(distances: Tensor, *, n_buckets: int, max_distance: int, backwards_only: bool) -> Tensor:
    """How far keys stand from a query (…), below 0 if before it, to the numbers of their buckets (…).

    The near distances have a bucket each, the others share wider and wider ones, and from `max_distance` on the last.
    Before and behind have half of the buckets each, or, backwards only, all are for what stands before.
    """
    n_own = n_buckets if backwards_only else n_buckets // 2
    away = (-distances).clamp(min=0) if backwards_only else distances.abs()
    n_exact = n_own // 2
    # In single precision, as T5 was trained: at the borders, a rounded logarithm decides.
    share = (away.clamp(min=n_exact).float() / n_exact).log() / math.log(max_distance / n_exact)
    wide = (n_exact + (share * (n_own - n_exact)).long()).clamp(max=n_own - 1)
    buckets = torch.where(away < n_exact, away, wide)
    return buckets if backwards_only else buckets + n_own * (distances > 0)


class RelativeBias(nn.Module):
    """What the distance of a key adds to its score: a learned number per head and bucket (Raffel et al. 2020, 2.1).

    Made once per forward pass for all layers of a stack, and passed to attention as an argument.
    """

    role: Role = "relative_bias"
    buckets: Tensor

    def __init__(self, n_heads: int, *, n_buckets: int, max_distance: int, backwards_only: bool) -> None:
        super().__init__()
        if max_distance <= n_buckets // 2:
            raise ConfigError(
                f"With {n_buckets} buckets, {n_buckets // 2} distances have one of their own, so that the greatest "
                f"cannot be {max_distance}.",
                "Choose fewer buckets, or a greater distance; T5 has 32 buckets up to 128.",
            )
        self.max_distance = max_distance
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        distances = torch.arange(-max_distance, max_distance + 1, device="cpu")  # as for sinusoids
        ready = distance_buckets(
            distances, n_buckets=n_buckets, max_distance=max_distance, backwards_only=backwards_only
        )
        self.register_buffer("buckets", ready.to(torch.get_default_device()), persistent=False)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (T,) and (S,) to (1, H, T, S), or (R, T) and (R, S) to (R, H, T, S)."""
        distances = (keys[..., None, :] - queries[..., :, None]).clamp(-self.max_distance, self.max_distance)
        bias = F.embedding(self.buckets[distances + self.max_distance], self.weight)  # (…, T, S, H)
        # Laid out as scores are: every layer reads it.
        bias = bias.movedim(-1, -3).contiguous()
        return tap(self, "bias", bias if bias.dim() == 4 else bias[None])


POSITIONS = ("sinusoidal", "learned", "rotary", "index", "fraction", "none")


def make_positions(name: str, d_model: int, *, limit: int, base: float) -> nn.Module | None:
    """Build the encoding a config names; None for rotary (attention applies it) and none."""
    if name == "sinusoidal":
        return Sinusoidal(d_model, base=base)
    if name == "learned":
        return Learned(d_model, limit=limit)
    if name == "index":
        return Index(d_model)
    if name == "fraction":
        return Fraction(d_model)
    return None
