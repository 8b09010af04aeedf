"""Keys and values with room behind them: nobody's view is changed, and little is copied."""

import pytest
import torch
from torch import Tensor

from regard.parts.kv_buffer import ROOM, KVBuffer

H, K, V = 2, 3, 5


def numbers(first: int, last: int, *, rows: int = 2) -> tuple[Tensor, Tensor]:
    """Keys and values of positions `first` to `last`, which hold 100 · row + position, negative in the values."""
    each = torch.arange(rows).view(-1, 1, 1, 1) * 100.0 + torch.arange(first, last + 1).view(1, 1, -1, 1)
    return each.expand(rows, H, -1, K).clone(), -each.expand(rows, H, -1, V).clone()


def held(slots: KVBuffer) -> list[list[float]]:
    """The positions that each row holds, the same in all heads and features, and in the values."""
    for tensor, width in ((slots.key, K), (-slots.value, V)):
        assert tensor.shape[1:] == (H, len(slots), width)
        assert torch.equal(tensor, slots.key[:, :1, :, :1].expand_as(tensor))
    return slots.key[:, 0, :, 0].tolist()


def test_what_is_appended_stands_behind() -> None:
    slots = KVBuffer.of(*numbers(0, 2)).append(*numbers(3, 3)).append(*numbers(4, 5))
    assert held(slots) == [[0, 1, 2, 3, 4, 5], [100, 101, 102, 103, 104, 105]]


def test_many_appended_slots_move_rarely() -> None:
    slots, buffers = KVBuffer.of(*numbers(0, 0)), set()
    for position in range(1, 20 * ROOM):
        slots = slots.append(*numbers(position, position))
        buffers.add(slots.key.data_ptr())
    assert held(slots)[1] == [100 + position for position in range(20 * ROOM)]
    assert len(buffers) < 8


def test_two_who_go_on_from_one_view_do_not_see_each_other() -> None:
    shared = KVBuffer.of(*numbers(0, 1)).append(*numbers(2, 2))
    one, other = shared.append(*numbers(7, 7)), shared.append(*numbers(8, 9))
    assert held(one)[0] == [0, 1, 2, 7]
    assert held(other)[0] == [0, 1, 2, 8, 9]
    assert held(shared)[0] == [0, 1, 2]
    assert held(one.append(*numbers(3, 3)))[0] == [0, 1, 2, 7, 3]


def test_what_was_given_is_never_written_to() -> None:
    key, value = numbers(0, 40)
    slots = KVBuffer.of(key[:, :, :2], value[:, :, :2]).append(*numbers(70, 75))
    assert held(slots)[0] == [0, 1, 70, 71, 72, 73, 74, 75]
    assert torch.equal(key, numbers(0, 40)[0])


def test_rows_are_chosen_and_have_room() -> None:
    before = KVBuffer.of(*numbers(0, 1))
    chosen = before.rows(torch.tensor([1, 1, 0]))
    assert held(chosen) == [[100, 101], [100, 101], [0, 1]]
    after = chosen.append(*numbers(2, 2, rows=3))
    assert after.key.data_ptr() == chosen.key.data_ptr()
    assert held(after) == [[100, 101, 2], [100, 101, 102], [0, 1, 202]]
    assert held(before) == [[0, 1], [100, 101]]


def test_rows_of_buffers_that_are_mostly_in_use() -> None:
    before = KVBuffer.of(*numbers(0, ROOM)).rows(torch.tensor([0, 1])).append(*numbers(ROOM + 1, ROOM + 1))
    chosen = before.rows(torch.tensor([1, 0, 1]))
    assert [row[-2:] for row in held(chosen)] == [[100 + ROOM, 101 + ROOM], [ROOM, ROOM + 1], [100 + ROOM, 101 + ROOM]]
    after = chosen.append(*numbers(7, 7, rows=3))
    assert after.key.data_ptr() == chosen.key.data_ptr()
    assert [row[-1] for row in held(after)] == [7, 107, 207]
    assert held(before)[0] == list(range(ROOM + 2))


def test_slots_are_chosen_in_each_row() -> None:
    slots = KVBuffer.of(*numbers(0, 3)).each(torch.tensor([[0, 3], [2, 1]]))
    assert held(slots) == [[0, 3], [102, 101]]


def test_the_first_slots_leave() -> None:
    slots = KVBuffer.of(*numbers(0, 9)).without(2)
    assert held(slots)[0] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert held(slots.append(*numbers(10, 10)).without(1))[0] == [3, 4, 5, 6, 7, 8, 9, 10]


def test_a_window_that_slides_needs_little_memory_and_moves_rarely() -> None:
    slots, buffers = KVBuffer.of(*numbers(0, 3)), set()
    for position in range(4, 400):
        slots = slots.append(*numbers(position, position)).without(1)
        buffers.add(slots.key_buffer.data_ptr())
        assert slots.key_buffer.shape[2] <= 4 + 2 * ROOM
    assert held(slots)[0] == [396, 397, 398, 399]
    assert len(buffers) < 50


def test_gradients_reach_what_was_appended() -> None:
    key, value = numbers(0, 1)
    new_key, new_value = (tensor.requires_grad_() for tensor in numbers(2, 2))
    slots = KVBuffer.of(key, value).append(new_key, new_value).append(*numbers(3, 3))
    (slots.rows(torch.tensor([0, 0])).key.sum() + slots.value.sum()).backward()
    assert new_key.grad is not None
    assert new_key.grad[:, 0, 0, 0].tolist() == [2, 0]
    assert new_value.grad is not None
    assert new_value.grad[:, 0, 0, 0].tolist() == [1, 1]


@pytest.mark.parametrize("first", [True, False])
def test_inference_mode_may_come_and_go(first: bool) -> None:
    with torch.inference_mode(first):
        slots = KVBuffer.of(*numbers(0, 0)).append(*numbers(1, 1))
    with torch.inference_mode(not first):
        slots = slots.append(*numbers(2, 2))
    assert held(slots.append(*numbers(3, 3)))[0] == [0, 1, 2, 3]
