"""Direct logit attribution: what each head, each feed-forward network and the embedding add to one logit (pre-norm only).

With pre-norm the last state of the residual stream is a sum: x = embedding + Σ sublayers, and an attention is the sum of its
heads' slices of the output projection, plus a bias (Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits"). The last norm is linear once its scale is frozen as it was, so each summand has its own share of the logit:

    logit = Σ u · (w ∘ (c - mean c) / deviation) + u · b + bias     c: the summands, w and b: the norm's, u: the output's row

RMS norm subtracts no mean and has no b. With post-norm every sum is normalised again, and such shares do not add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import UsageError
from regard.inspection.residual_stream import Asked, find_logit, stream_taps, sublayer_name, tensor_of
from regard.inspection.trace import Trace
from regard.parts.norms import LayerNorm, RMSNorm
from regard.parts.residual import Plain, PreNorm
from regard.runs.disk import without_non_finite
from regard.tasks.offers import last_layers

N_SHOWN = 24  # lines; the others are added up in one more
_CHANGED = 1e-3  # share of a sublayer's length that its parts may miss before something else must have been put there


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one part adds to the logit: a head `decoder.2.cross_attention:3`, a sublayer, a bias by its parameter's name."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Contributions:
    """The shares of one logit, in the model's order; they add up to it."""

    asked: Asked
    parts: tuple[Contribution, ...]

    @property
    def total(self) -> float:
        """The sum, which is the logit."""
        return sum(part.value for part in self.parts)

    def largest(self) -> list[Contribution]:
        """All of them, the largest first, whatever their sign."""
        return sorted(self.parts, key=lambda part: -abs(part.value))

    def lines(self, most: int = N_SHOWN) -> list[str]:
        """The largest first; beyond `most`, the sum of the others."""
        ordered = self.largest()
        shown, others = ordered[:most], ordered[most:]
        lines = [str(self.asked), *(f"{part.value:+10.4f}  {part.name}" for part in shown)]
        if others:
            lines.append(f"{sum(part.value for part in others):+10.4f}  {len(others)} smaller ones together")
        return [*lines, f"{self.total:+10.4f}  sum"]

    def to_json(self) -> dict[str, Any]:
        """All of it, as data that `json.dumps` takes."""
        parts = [vars(part) for part in self.parts]
        found: dict[str, Any] = without_non_finite({**vars(self.asked), "sum": self.total, "contributions": parts})
        return found

    def __repr__(self) -> str:
        return "\n".join(self.lines())


@torch.inference_mode()
def contributions(trace: Trace, token: str | int = "", position: int = -1) -> Contributions:
    """Split the logit of a token at a position, as `find_logit` takes them, into what each part adds to it."""
    taps = stream_taps(trace)
    model = trace.live("The shares of a logit need the output layer, and").model
    norm, output = _refuse_others(model, taps)
    asked = find_logit(trace, token, position)
    for pattern in ("*_residual.output", "*attention.heads", "*feed_forward.output"):
        trace.record(pattern)
    place = asked.position or 0  # what is said of a whole image is read from the class token, the first
    like = next(model.parameters())
    paths = {module: path for path, module in model.named_modules()}
    last = tensor_of(trace, taps[-1], like)[0, place].double()
    row = output.get_parameter("weight")[asked.id].double()
    frozen = _Frozen(norm, last, row)
    parts = [
        Contribution(name=name, value=float(frozen.share(vector)))
        for name, vector in _summands(trace, model, taps, place)
    ]
    if frozen.shift is not None:
        parts.append(Contribution(name=f"{paths[norm]}.bias", value=float(frozen.shift @ row)))
    if getattr(output, "bias", None) is not None:
        value = float(output.get_parameter("bias")[asked.id])
        parts.append(Contribution(name=f"{paths[output]}.bias", value=value))
    return Contributions(asked=asked, parts=tuple(parts))


def _refuse_others(model: nn.Module, taps: list[str]) -> tuple[nn.Module, nn.Module]:
    """The last norm and the output layer; refuse a model of whose logits there are no shares."""
    residuals = [model.get_submodule(tap.rpartition(".")[0]) for tap in taps if tap.endswith("_residual.output")]
    if any(isinstance(residual, Plain) for residual in residuals):
        raise UsageError(
            "This model has no residual connections: its last state is not a sum, of which there are shares."
        )
    if not all(isinstance(residual, PreNorm) for residual in residuals):
        raise UsageError(
            "The shares of a logit are for pre-norm models: with post-norm each sum is normalised again, so that they "
            "would not add up.",
            "Ablate instead: --ablate SUBLAYER:HEAD, or trace.without(SUBLAYER, heads=[HEAD]).",
        )
    layers = last_layers(model)
    if layers is None or len(residuals) == len(taps):
        raise UsageError(
            "This model does not show its embedding, its last norm and its output layer, to which shares of a logit belong."
        )
    if not isinstance(layers[0], LayerNorm | RMSNorm | nn.Identity):
        raise UsageError(f"The last norm, {type(layers[0]).__name__}, is not one whose scale could be frozen.")
    return layers


class _Frozen:
    """The last norm with the scale that it had, and one row of the output layer behind it: a linear function."""

    def __init__(self, norm: nn.Module, state: Tensor, row: Tensor) -> None:
        self.centred = isinstance(norm, LayerNorm)
        self.shift: Tensor | None = None
        self.direction = row
        if isinstance(norm, LayerNorm | RMSNorm):
            length = self._centre(state).square().mean().add(norm.epsilon).sqrt()
            self.direction = row * norm.weight.double() / length
        if isinstance(norm, LayerNorm):
            self.shift = norm.bias.double()

    def _centre(self, vector: Tensor) -> Tensor:
        return vector - vector.mean() if self.centred else vector

    def share(self, vector: Tensor) -> Tensor:
        """What a summand (D,) of the state adds to the logit."""
        return self._centre(vector) @ self.direction


def _summands(trace: Trace, model: nn.Module, taps: list[str], place: int) -> Iterator[tuple[str, Tensor]]:
    """What the last state at a position is the sum of, by name: vectors (D,)."""
    like = next(model.parameters())
    before = tensor_of(trace, taps[0], like)[0, place].double()
    yield sublayer_name(taps[0]), before
    for tap in taps[1:]:
        after = tensor_of(trace, tap, like)[0, place].double()
        path = sublayer_name(tap)
        parts = _parts(trace, model.get_submodule(path), path, place, like)
        rest = after - before - sum((vector for _, vector in parts), torch.zeros_like(after))
        if rest.norm() > _CHANGED * (after.norm() + before.norm()):
            parts = [(f"{path} (changed by an intervention)", after - before)]
        yield from parts
        before = after


def _parts(trace: Trace, sublayer: nn.Module, path: str, place: int, like: Tensor) -> list[tuple[str, Tensor]]:
    """What a sublayer says at a position: the slices of its heads and the bias of their projection, or all of it as one."""
    if f"{path}.heads" not in trace:
        return [(path, tensor_of(trace, f"{path}.output", like)[0, place].double())]
    heads = tensor_of(trace, f"{path}.heads", like)[0, :, place].double()  # (H, K)
    projection = sublayer.get_submodule("output")
    slices = projection.get_parameter("weight").double().unflatten(1, heads.shape)  # (D, H, K)
    vectors = torch.einsum("dhk,hk->hd", slices, heads)
    found = [(f"{path}:{head}", vector) for head, vector in enumerate(vectors)]
    if getattr(projection, "bias", None) is not None:
        found.append((f"{path}.output.bias", projection.get_parameter("bias").double()))
    return found
