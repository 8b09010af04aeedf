"""The state of a recurrent decoder: rows that part, leave and join."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard.parts.masks import EVERYTHING, padding
from regard.parts.recurrent_state import RecurrentState

D, C, P = 3, 2, 4


def named(rows: int, *shape: int, base: int) -> Tensor:
    """A tensor whose every number names its row: row r holds base + r."""
    return torch.arange(base, base + rows, dtype=torch.float32).view(-1, *[1] * len(shape)).expand(rows, *shape).clone()


def state(rows: int, *, sentences: int, n_keys: int = 4, base: int = 0, attention: bool = True) -> RecurrentState:
    """Rows of sentences whose sources are 1, 2, … tokens long; two layers of two tensors."""
    return RecurrentState(
        n_sentences=sentences,
        layers=tuple((named(rows, D, base=base), -named(rows, D, base=base)) for _ in range(2)),
        context=named(rows, C, base=base) if attention else None,
        memory=(named(sentences, n_keys, P, base=base), named(sentences, n_keys, C, base=base)) if attention else None,
        memory_mask=padding(torch.arange(1, sentences + 1).clamp(max=n_keys), n_keys) if attention else EVERYTHING,
    )


def rows_of(one: RecurrentState) -> list[float]:
    """The names of the rows, the same in all tensors."""
    names: list[float] = one.layers[0][0][:, 0].tolist()
    for first, second in one.layers:
        assert torch.equal(first, -second)
        assert first[:, -1].tolist() == names
    assert one.context is None or one.context[:, 0].tolist() == names
    return names


def table(text: str) -> Tensor:
    return torch.tensor([[digit == "1" for digit in row] for row in text.split()])


def test_reorder_takes_the_parents_rows_and_leaves_the_memory() -> None:
    before = state(4, sentences=2)
    after = before.reorder(torch.tensor([1, 1, 0, 3, 2, 2]))
    assert rows_of(after) == [1, 1, 0, 3, 2, 2]
    assert (after.n_rows, after.n_sentences) == (6, 2)
    assert after.memory is before.memory
    assert after.memory_mask is before.memory_mask


def test_keep_takes_whole_sentences_with_their_memory() -> None:
    after = state(6, sentences=3).keep(torch.tensor([0, 2]))
    assert rows_of(after) == [0, 1, 4, 5]
    assert after.n_sentences == 2
    assert after.memory is not None
    assert [tensor[:, 0, 0].tolist() for tensor in after.memory] == [[0, 2], [0, 2]]
    assert after.memory_mask.allowed is not None
    assert torch.equal(after.memory_mask.allowed[:, 0, 0], table("1000 1110"))


def test_join_appends_sentences_of_other_lengths() -> None:
    joined = state(4, sentences=2, n_keys=2).join(state(2, sentences=1, n_keys=4, base=50))
    assert rows_of(joined) == [0, 1, 2, 3, 50, 51]
    assert joined.n_sentences == 3
    assert joined.memory is not None
    assert [tensor.shape[1] for tensor in joined.memory] == [4, 4]
    assert [tensor[:, 0, 0].tolist() for tensor in joined.memory] == [[0, 1, 50], [0, 1, 50]]
    assert joined.memory_mask.allowed is not None
    assert torch.equal(joined.memory_mask.allowed[:, 0, 0], table("1000 1100 1000"))


def test_join_where_every_key_is_real() -> None:
    joined = replace(state(1, sentences=1, n_keys=2), memory_mask=EVERYTHING).join(state(1, sentences=1, n_keys=3))
    assert joined.memory_mask.allowed is not None
    assert torch.equal(joined.memory_mask.allowed[:, 0, 0], table("110 100"))


def test_without_attention() -> None:
    first, second = (state(2, sentences=2, base=base, attention=False) for base in (0, 7))
    joined = first.join(second).keep(torch.tensor([1, 2]))
    assert rows_of(joined) == [1, 7]
    assert joined.memory is None
    assert joined.context is None
    assert joined.memory_mask is EVERYTHING


@pytest.mark.parametrize("attention", [True, False])
def test_where_chooses_rows(attention: bool) -> None:
    first, second = (state(3, sentences=3, base=base, attention=attention) for base in (0, 10))
    assert rows_of(first.where(torch.tensor([True, False, True]), second)) == [0, 11, 2]


def test_a_state_is_never_changed_in_place() -> None:
    before = state(2, sentences=2)
    before.reorder(torch.tensor([0, 0]))
    before.keep(torch.tensor([1]))
    before.join(state(2, sentences=2))
    before.where(torch.tensor([False, False]), state(2, sentences=2, base=9))
    assert rows_of(before) == [0, 1]
    with pytest.raises(AttributeError):
        before.n_sentences = 3  # type: ignore[misc]
