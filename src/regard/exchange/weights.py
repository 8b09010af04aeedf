"""Rules between the tensors of another package and ours: each says how one of theirs becomes ours, and ours theirs again.

    theirs   h.3.attn.c_attn.weight (D, 3 D)
               │ transposed, then cut into equal parts              ▲ joined, then transposed
             decoder.3.self_attention.query.weight, ….key.weight, ….value.weight (D, D) each

A network is a list of rules. Read forwards it imports, read backwards it exports, and read backwards on tensors without
content (torch's `meta`) it tells the shapes that their file must have, before any of it is read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

NUMBER = "#"  # in a name, where the number of a layer stands


@dataclass(frozen=True)
class Change:
    """A rearrangement of the numbers of a tensor, and the way back."""

    to_ours: Callable[[Tensor], Tensor]
    to_theirs: Callable[[Tensor], Tensor]


TRANSPOSED = Change(Tensor.t, Tensor.t)
WITHOUT_FIRST_AXIS = Change(lambda tensor: tensor[0], lambda tensor: tensor[None])  # (1, …) and (…)


def divided(divisor: float) -> Change:
    """Theirs are so many times as large. In double precision: what is rounded is rounded once."""
    return Change(
        lambda tensor: (tensor.double() / divisor).float(), lambda tensor: (tensor.double() * divisor).float()
    )


def flattened(*shape: int) -> Change:
    """All axes but the first as one: (O, …) of their shape to (O, product)."""
    return Change(lambda tensor: tensor.flatten(1), lambda tensor: tensor.unflatten(1, shape))


def rotary_halves(n_heads: int) -> Change:
    """Rows of heads, (H · K, …): theirs turn feature i with i + K/2, ours 2i with 2i + 1."""
    return Change(
        lambda tensor: tensor.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2),
        lambda tensor: tensor.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2),
    )


@dataclass(frozen=True)
class Rule:
    """One of their tensors and which of ours it holds.

    theirs:   its name; "" for what their network computes and no file holds
    ours:     one name; several, which it holds in equal parts along the first axis once it is changed; or none, where
              they keep something that we do not
    changes:  from theirs to ours, in this order
    copies:   names under which their files may hold the same tensor again, or in its place (tied weights)
    absent:   what it is where their file does not hold it: another of their names, or the numbers
    """

    theirs: str
    ours: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    copies: tuple[str, ...] = ()
    absent: str | Callable[[], Tensor] | None = None

    def at(self, number: int) -> "Rule":
        """Return the rule of one layer, of a rule whose names leave the number open."""
        theirs, *ours = (name.replace(NUMBER, str(number)) for name in (self.theirs, *self.ours))
        return replace(self, theirs=theirs, ours=tuple(ours))

    def to_ours(self, tensor: Tensor) -> dict[str, Tensor]:
        """Return what their tensor holds by our names; each in memory of its own."""
        for change in self.changes:
            tensor = change.to_ours(tensor)
        if len(self.ours) == 1:
            return {self.ours[0]: tensor.contiguous()}
        if not self.ours:
            return {}
        return {name: part.clone() for name, part in zip(self.ours, tensor.chunk(len(self.ours)), strict=True)}

    def to_theirs(self, weights: Mapping[str, Tensor]) -> Tensor:
        """Return their tensor, of ours by name."""
        if not self.ours and callable(self.absent):
            return self.absent()
        parts = [weights[name] for name in self.ours]
        tensor = parts[0] if len(parts) == 1 else torch.cat(parts)
        for change in reversed(self.changes):
            tensor = change.to_theirs(tensor)
        return tensor.contiguous()


def same(theirs: str, ours: str, *changes: Change, copies: tuple[str, ...] = ()) -> Rule:
    """One tensor, changed at most in its layout."""
    return Rule(theirs, (ours,), changes, copies)


def module(theirs: str, ours: str | tuple[str, ...], *changes: Change, bias: bool = True) -> list[Rule]:
    """A layer's weight and bias, or the weight alone; of several layers of ours, what they hold together.

    The changes are of the weight, a bias having nothing to transpose.
    """
    names = (ours,) if isinstance(ours, str) else ours
    rules = [Rule(f"{theirs}.weight", tuple(f"{name}.weight" for name in names), changes)]
    return [*rules, Rule(f"{theirs}.bias", tuple(f"{name}.bias" for name in names))] if bias else rules


def numbered(n_layers: int, rules: Iterable[Rule]) -> list[Rule]:
    """The rules of all layers, of those of one layer, in whose names its number is left open."""
    rules = list(rules)
    return [rule.at(number) for number in range(n_layers) for rule in rules]
