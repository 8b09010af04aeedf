"""Matching weights of two models, for weight transfer: by name and shape, tied ones once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from regard.parts.embedding import OutputLayer, TokenEmbedding
from regard.runs.tensors import find_tied

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class WeightMatch:
    """Which tensors of two models match; tied ones count once, under the first of their names."""

    loaded: Mapping[str, str]  # name here to name there
    new: tuple[str, ...]
    reshaped: Mapping[str, tuple[Shape, Shape]]  # new as well, with the shapes there and here
    skipped: tuple[str, ...]


def match_weights(
    own: Mapping[str, Tensor],
    theirs: Mapping[str, Tensor],
    *,
    of_tokens: Collection[str] = (),
    without: str | None = None,
) -> WeightMatch:
    """Find for each tensor of a model one of another's that has its name and shape.

    of_tokens: names that are not loaded even so, since their rows stand for other tokens
    without: the path of a module, a head for something else, whose tensors are not looked at
    """
    offered = {name for name in theirs if without is None or not name.startswith(f"{without}.")}
    loaded: dict[str, str] = {}
    reshaped: dict[str, tuple[Shape, Shape]] = {}
    new, met = [], set()
    for first, *others in _tied(own):
        shape = tuple(own[first].shape)
        named = [name for name in (first, *others) if name in offered]
        fitting = [name for name in named if tuple(theirs[name].shape) == shape]
        if fitting and first not in of_tokens:
            loaded[first] = fitting[0]
            met.add(fitting[0])
        elif named and not fitting:
            reshaped[first] = tuple(theirs[named[0]].shape), shape
            met.add(named[0])
        else:
            new.append(first)
    skipped = tuple(names[0] for names in _tied(theirs) if not met & {*names})
    return WeightMatch(loaded=loaded, new=tuple(new), reshaped=reshaped, skipped=skipped)


def head_path(model: nn.Module) -> str | None:
    """Return where a network has what its task asks of it: the attribute `head`, of ours and of custom ones alike."""
    return "head" if isinstance(getattr(model, "head", None), nn.Module) else None


def token_weights(model: nn.Module) -> set[str]:
    """Return the names of what has a row for each token of the vocabulary."""
    layers = [
        (path, module) for path, module in model.named_modules() if isinstance(module, TokenEmbedding | OutputLayer)
    ]
    return {f"{path}.{name}" for path, module in layers for name, _ in module.named_parameters()}


def _tied(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Return the names of each tensor, in the order of their first."""
    groups: dict[str, list[str]] = {}
    tied = find_tied(tensors)
    for name in tensors:
        groups.setdefault(tied.get(name, name), []).append(name)
    return list(groups.values())
