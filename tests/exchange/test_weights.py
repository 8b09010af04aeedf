"""Rules between tensors: what goes there comes back."""

import pytest
import torch
from torch import Tensor

from regard.exchange.weights import (
    TRANSPOSED,
    WITHOUT_FIRST_AXIS,
    Change,
    Rule,
    divided,
    flattened,
    module,
    numbered,
    rotary_halves,
)


def some(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("change", "theirs", "ours"),
    [
        (TRANSPOSED, (4, 6), (6, 4)),
        (WITHOUT_FIRST_AXIS, (1, 5, 6), (5, 6)),
        (divided(4.0), (5, 6), (5, 6)),
        (flattened(3, 2, 2), (5, 3, 2, 2), (5, 12)),
        (rotary_halves(3), (18, 4), (18, 4)),
        (rotary_halves(3), (18,), (18,)),
    ],
    ids=["transposed", "first axis", "divided", "flattened", "rotary", "rotary bias"],
)
def test_a_change_can_be_undone(change: Change, theirs: tuple[int, ...], ours: tuple[int, ...]) -> None:
    tensor = some(*theirs)
    changed = change.to_ours(tensor)
    assert changed.shape == ours
    assert torch.equal(change.to_theirs(changed), tensor)
    assert change.to_theirs(torch.empty(ours, device="meta")).shape == theirs


def test_rotary_halves_become_pairs() -> None:
    theirs = torch.tensor([0, 1, 2, 3, 10, 11, 12, 13])  # two heads of four features
    assert rotary_halves(2).to_ours(theirs).tolist() == [0, 2, 1, 3, 10, 12, 11, 13]


def test_several_of_ours_are_held_in_equal_parts() -> None:
    rule = Rule("fused", ("query", "key", "value"), (TRANSPOSED,))
    fused = some(4, 12)
    ours = rule.to_ours(fused)
    assert torch.equal(ours["key"], fused[:, 4:8].t())
    assert torch.equal(rule.to_theirs(ours), fused)
    # Each in memory of its own, so that they can be saved.
    assert len({tensor.untyped_storage().data_ptr() for tensor in ours.values()}) == 3


def test_what_only_they_keep() -> None:
    rule = Rule("counter", (), absent=lambda: torch.tensor(0))
    assert rule.to_ours(torch.tensor(7)) == {}
    assert rule.to_theirs({}).item() == 0


def test_layers_are_numbered() -> None:
    rules = numbered(2, module("h.#.norm", "decoder.#.norm"))
    assert [(rule.theirs, *rule.ours) for rule in rules] == [
        ("h.0.norm.weight", "decoder.0.norm.weight"),
        ("h.0.norm.bias", "decoder.0.norm.bias"),
        ("h.1.norm.weight", "decoder.1.norm.weight"),
        ("h.1.norm.bias", "decoder.1.norm.bias"),
    ]
