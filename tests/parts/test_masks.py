"""Masks: each against a table written by hand; 1 = may attend."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard.parts.masks import EVERYTHING, Mask, causal, masked_softmax, padding, window


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
    assert torch.equal(window(1, 5, 0), table("00001"))


def test_a_window_that_hides_nothing_is_left_out() -> None:
    assert Mask(causal=True, window=4).simplified(5) == Mask(causal=True)
    assert Mask(causal=True, window=3).simplified(5) == Mask(causal=True, window=3)
    assert Mask(window=0).simplified(1) == EVERYTHING
    assert EVERYTHING.simplified(5) is EVERYTHING


DOCUMENTS = torch.tensor([[0, 0, 1, 1], [5, 5, 5, 5]])


@pytest.mark.parametrize(
    ("mask", "first", "second"),
    [
        (Mask(), "1100 1100 0011 0011", "1111 1111 1111 1111"),
        (Mask(causal=True), "1000 1100 0010 0011", "1000 1100 1110 1111"),
        (Mask(window=1), "1100 1100 0011 0011", "1100 1110 0111 0011"),
        (Mask(causal=True, window=1), "1000 1100 0010 0011", "1000 1100 0110 0011"),
        (padding(torch.tensor([4, 3]), 4), "1100 1100 0011 0011", "1110 1110 1110 1110"),
    ],
    ids=["alone", "causal", "window", "causal and window", "padding"],
)
def test_a_document_sees_itself_only(mask: Mask, first: str, second: str) -> None:
    whole = replace(mask, documents=DOCUMENTS).tensor(4, 4, torch.device("cpu"))
    assert whole is not None
    assert whole.shape == (2, 1, 4, 4)
    assert torch.equal(whole[:, 0], torch.stack([table(first), table(second)]))


def test_documents_are_left_in_where_a_window_is_left_out() -> None:
    assert Mask(window=3, documents=DOCUMENTS).simplified(4).documents is DOCUMENTS


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 4), (4, 5), (5, 5)])
def test_documents_are_those_of_queries_and_keys_alike(n_queries: int, n_keys: int) -> None:
    with pytest.raises(ValueError, match="documents are numbered") as caught:
        Mask(documents=DOCUMENTS).tensor(n_queries, n_keys, torch.device("cpu"))
    assert str(caught.value) == (
        f"documents are numbered for 4 positions of one sequence, not for {n_queries} queries and {n_keys} keys"
    )


def test_padding_with_a_window() -> None:
    whole = replace(padding(torch.tensor([3]), 4), window=1).tensor(4, 4, torch.device("cpu"))
    assert whole is not None
    assert torch.equal(whole[0, 0], table("1100 1110 0110 0010"))


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (EVERYTHING, None),
        (Mask(causal=True), table("110 111")),
        (Mask(table("011 101")), table("011 101")),
        (Mask(table("011 101"), causal=True), table("010 101")),
        (Mask(window=1), table("111 011")),
        (Mask(window=0), table("010 001")),
        (Mask(window=2), None),
        (Mask(causal=True, window=1), table("110 011")),
        (Mask(causal=True, window=9), table("110 111")),
        (Mask(table("011 101"), window=1), table("011 001")),
        (Mask(table("011 101"), causal=True, window=1), table("010 001")),
    ],
    ids=[
        "everything",
        "causal",
        "allowed",
        "allowed and causal",
        "window",
        "only oneself",
        "a window of all",
        "causal and window",
        "causal and a window of all",
        "allowed and window",
        "all three",
    ],
)
def test_the_whole_mask_as_one_tensor(mask: Mask, expected: Tensor | None) -> None:
    whole = mask.tensor(2, 3, torch.device("cpu"))
    if expected is None:
        assert whole is None
    else:
        assert whole is not None
        assert whole.dtype == torch.bool
        assert torch.equal(whole, expected)


def test_weights_are_a_distribution_over_what_is_allowed() -> None:
    allowed = torch.tensor([[True, True, False], [False, False, False], [False, True, False]])
    weights = masked_softmax(torch.tensor([[1.0, 1.0, 9.0]] * 3), allowed)
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_weights_never_wait_for_a_device() -> None:
    # A tensor of the meta device has no numbers: a look at them, for which a GPU's queue must run empty, is an error.
    scores, allowed = torch.empty(2, 3, 5, 7, device="meta"), torch.ones(2, 1, 1, 7, dtype=torch.bool, device="meta")
    assert masked_softmax(scores, allowed).shape == (2, 3, 5, 7)
