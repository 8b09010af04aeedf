"""Masks: each against a table written by hand; 1 = may attend."""

import pytest
import torch
from torch import Tensor

from regard.parts.masks import EVERYTHING, Mask, causal, padding, prefix, restrict, window


def table(text: str) -> Tensor:
    return torch.tensor([[digit == "1" for digit in row] for row in text.split()])


def test_padding() -> None:
    mask = padding(torch.tensor([3, 1, 0]), 4)
    assert mask.allowed is not None
    assert mask.allowed.shape == (3, 1, 1, 4)
    assert torch.equal(mask.allowed[:, 0, 0], table("1110 1000 0000"))
    assert not mask.causal


def test_causal() -> None:
    assert torch.equal(causal(4, 4), table("1000 1100 1110 1111"))


def test_causal_where_the_queries_are_the_last_positions() -> None:
    assert torch.equal(causal(2, 4), table("1110 1111"))
    assert torch.equal(causal(1, 3), table("111"))


def test_window() -> None:
    assert torch.equal(window(5, 5, 1), table("11000 11100 01110 00111 00011"))
    assert torch.equal(window(3, 3, 0), table("100 010 001"))


def test_window_where_the_queries_are_the_last_positions() -> None:
    assert torch.equal(window(2, 5, 1), table("00111 00011"))


def test_prefix() -> None:
    mask = prefix(torch.tensor([2, 0]), 4)
    assert mask.shape == (2, 1, 4, 4)
    assert torch.equal(mask[0, 0], table("1100 1100 1110 1111"))
    assert torch.equal(mask[1, 0], causal(4, 4))


def test_restrict_allows_what_both_allow() -> None:
    both = restrict(padding(torch.tensor([3]), 4), window(4, 4, 1))
    assert both.allowed is not None
    assert torch.equal(both.allowed[0, 0], table("1100 1110 0110 0010"))
    assert torch.equal(restrict(EVERYTHING, table("10")).allowed, table("10"))  # type: ignore[arg-type]


def test_restrict_keeps_the_causal_half() -> None:
    both = restrict(Mask(causal=True), window(4, 4, 1))
    assert both.causal
    whole = both.tensor(4, 4, torch.device("cpu"))
    assert whole is not None
    assert torch.equal(whole, table("1000 1100 0110 0011"))


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (EVERYTHING, None),
        (Mask(causal=True), table("110 111")),
        (Mask(table("011 101")), table("011 101")),
        (Mask(table("011 101"), causal=True), table("010 101")),
    ],
    ids=["everything", "causal", "allowed", "both"],
)
def test_the_whole_mask_as_one_tensor(mask: Mask, expected: Tensor | None) -> None:
    whole = mask.tensor(2, 3, torch.device("cpu"))
    if expected is None:
        assert whole is None
    else:
        assert whole is not None
        assert whole.dtype == torch.bool
        assert torch.equal(whole, expected)
