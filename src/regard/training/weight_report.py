"""The report of a warm start: which weights were loaded from another run, newly initialised or skipped."""

from collections.abc import Iterable
from itertools import groupby

from torch import nn

from regard.config import ModelTable
from regard.models.presets import decided_by_data, dotted_fields, find_preset
from regard.training.weight_match import Shape, WeightMatch

SHOWN = 3  # weights of another shape that are named one by one

Facts = tuple[tuple[str, str], ...]


def grouped(names: Iterable[str]) -> str:
    """List weights by where they belong: `embedding.tokens.weight, encoder.0…encoder.3 (64 tensors), head.… (2 tensors)`."""
    groups: dict[tuple[str, int | None], list[str]] = {}
    for name in names:
        groups.setdefault(_owner(name), []).append(name)
    texts = []
    # Layers of one stack that follow each other are one range.
    for (stem, _), several in groupby(
        enumerate(groups), key=lambda entry: (entry[1][0], (entry[1][1] or 0) - entry[0])
    ):
        found = [owner for _, owner in several]
        members = [name for owner in found for name in groups[owner]]
        first, last = (f"{stem}.{number}" if number is not None else stem for _, number in (found[0], found[-1]))
        if len(members) == 1:
            texts.append(members[0])
        else:
            texts.append(f"{first}.…" if first == last else f"{first}…{last}")
            texts[-1] += f" ({len(members)} tensors)"
    return ", ".join(texts)


def _owner(name: str) -> tuple[str, int | None]:
    """Where a weight belongs: a stack and the number of the layer in it, or the part of the model whose it is."""
    parts = name.split(".")
    for index, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[:index]), int(part)
    return parts[0], None


def match_facts(model: nn.Module, found: WeightMatch) -> Facts:
    """What was loaded, what is newly initialised, and what was skipped."""
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    count = sum(sizes.get(name, 0) for name in found.loaded)
    facts = [("weights loaded", f"{count:,} of {sum(sizes.values()):,} parameters: {grouped(found.loaded)}")]
    if found.new:
        facts.append(("newly initialised", grouped(found.new)))
    if found.reshaped:
        shown = [
            f"{name} ({_sizes(there)} there, {_sizes(here)} here)" for name, (there, here) in found.reshaped.items()
        ]
        more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
        facts.append(("newly initialised", f"of another shape: {', '.join(shown[:SHOWN])}{more}"))
    if found.skipped:
        facts.append(("skipped", grouped(found.skipped)))
    return tuple(facts)


def differing_settings(theirs: ModelTable, own: ModelTable) -> Facts:
    """Settings in which the two models differ, which a shape need not show: the number of heads."""
    if not (theirs.preset and own.preset):
        return ()
    there, here = dotted_fields(theirs), dotted_fields(own)
    names = [name for name in here if name in there and name not in decided_by_data(find_preset(own.preset))]
    differing = [f"{name} {there[name]} there, {here[name]} here" for name in names if there[name] != here[name]]
    return (("settings differ", "; ".join(differing)),) if differing else ()


def _sizes(shape: Shape) -> str:
    return " × ".join(map(str, shape))
