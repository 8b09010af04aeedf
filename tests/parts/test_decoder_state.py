"""The decoder's state: rows that part, leave and join, and who may attend to which slot."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard.parts.decoder_state import DecoderState, GrowingCache, KeyValues
from regard.parts.masks import EVERYTHING, Mask, causal, padding

H, K, LAYERS = 2, 3, 2


def pair(rows: int, slots: int, *, base: int = 0) -> tuple[Tensor, Tensor]:
    """Keys and values whose every number names the row: row r holds base + r."""
    numbers = torch.arange(base, base + rows, dtype=torch.float32).view(-1, 1, 1, 1)
    return numbers.expand(rows, H, slots, K).clone(), -numbers.expand(rows, H, slots, K).clone()


def state(rows: int, slots: int, *, sentences: int = 0, n_keys: int = 4, base: int = 0) -> DecoderState:
    """Rows that have read `slots` positions, of sentences whose sources are 1, 2, … tokens long.

    Without `sentences` there is no memory, and each row is a sentence of its own.
    """
    lengths = torch.arange(1, sentences + 1).clamp(max=n_keys)
    return DecoderState(
        lengths=torch.full((rows,), slots),
        n_sentences=sentences or rows,
        cache=tuple(pair(rows, slots, base=base) for _ in range(LAYERS)) if slots else (),
        memory=tuple(pair(sentences, n_keys, base=base) for _ in range(LAYERS)) if sentences else (),
        memory_mask=padding(lengths, n_keys) if sentences else EVERYTHING,
    )


def rows_of(layer: KeyValues) -> list[float]:
    """The names of the rows, read from the first slot; values must name the same rows as keys."""
    key, value = layer
    assert torch.equal(key, -value)
    return key[:, 0, 0, 0].tolist()


def table(text: str) -> Tensor:
    return torch.tensor([[digit == "1" for digit in row] for row in text.split()])


# -- reorder and keep ---------------------------------------------------------------------------------------------------


def test_counts() -> None:
    beam = state(6, 5, sentences=3)
    assert (beam.n_rows, beam.n_sentences, beam.n_slots) == (6, 3, 5)
    fresh = state(3, 0, sentences=3)
    assert (fresh.n_rows, fresh.n_sentences, fresh.n_slots) == (3, 3, 0)


def test_reorder_takes_the_parents_rows_and_leaves_the_memory() -> None:
    before = state(6, 5, sentences=3)
    before = replace(before, lengths=torch.arange(6), slots=torch.arange(30).view(6, 5))
    parents = torch.tensor([1, 1, 2, 3, 5, 4])
    after = before.reorder(parents)
    assert [rows_of(layer) for layer in after.cache] == [parents.tolist()] * LAYERS
    assert after.lengths.tolist() == parents.tolist()
    assert after.slots is not None
    assert after.slots[:, 0].tolist() == (parents * 5).tolist()
    for kept, original in zip(after.memory, before.memory, strict=True):
        assert kept[0].data_ptr() == original[0].data_ptr()
        assert kept[1].data_ptr() == original[1].data_ptr()
    assert after.memory_mask is before.memory_mask


def test_reorder_may_widen_the_beam() -> None:
    after = state(2, 1, sentences=2).reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    assert (after.n_rows, after.n_sentences) == (6, 2)
    assert rows_of(after.cache[0]) == [0, 0, 0, 1, 1, 1]


def test_a_state_is_never_changed_in_place() -> None:
    before = state(2, 1, sentences=2)
    before.reorder(torch.tensor([1, 1]))
    before.keep(torch.tensor([1]))
    before.join(state(2, 1, sentences=2))
    before.advance(torch.tensor([1, 2]), 2, window=None)
    before.forget(0)
    assert rows_of(before.cache[0]) == [0, 1]
    assert before.lengths.tolist() == [1, 1]
    assert before.slots is None
    with pytest.raises(AttributeError):
        before.lengths = torch.zeros(2)  # type: ignore[misc]


def test_keep_takes_whole_sentences_with_their_memory() -> None:
    after = state(6, 5, sentences=3).keep(torch.tensor([2, 0]))
    assert [rows_of(layer) for layer in after.cache] == [[4, 5, 0, 1]] * LAYERS
    assert [rows_of(layer) for layer in after.memory] == [[2, 0]] * LAYERS
    assert after.memory_mask.allowed is not None
    assert torch.equal(after.memory_mask.allowed[:, 0, 0], table("1110 1000"))


def test_keep_without_a_memory() -> None:
    after = state(4, 2).keep(torch.tensor([3, 1]))
    assert rows_of(after.cache[0]) == [3, 1]
    assert after.memory_mask is EVERYTHING


def test_without_a_memory_a_sentence_keeps_all_its_rows() -> None:
    beam = state(3, 2).reorder(torch.tensor([0, 0, 1, 1, 2, 2]))
    assert (beam.n_rows, beam.n_sentences) == (6, 3)
    fewer = beam.keep(torch.tensor([2, 0]))
    assert rows_of(fewer.cache[0]) == [2, 2, 0, 0]
    assert (fewer.n_rows, fewer.n_sentences) == (4, 2)
    more = fewer.join(state(1, 2, base=9).reorder(torch.tensor([0, 0])))
    assert (more.n_rows, more.n_sentences) == (6, 3)
    assert rows_of(more.keep(torch.tensor([2])).cache[0]) == [9, 9]


# -- join ---------------------------------------------------------------------------------------------------------------


def test_join_appends_sentences_of_other_lengths() -> None:
    joined = state(4, 3, sentences=2, n_keys=2).join(state(2, 5, sentences=1, n_keys=4, base=50))
    assert joined.lengths.tolist() == [3, 3, 3, 3, 5, 5]
    assert (joined.n_rows, joined.n_sentences, joined.n_slots) == (6, 3, 5)
    assert [rows_of(layer) for layer in joined.cache] == [[0, 1, 2, 3, 50, 51]] * LAYERS
    assert [rows_of(layer) for layer in joined.memory] == [[0, 1, 50]] * LAYERS
    assert joined.slots is not None
    assert joined.slots.tolist() == [[0, 1, 2, -1, -1]] * 4 + [[0, 1, 2, 3, 4]] * 2
    assert joined.memory_mask.allowed is not None
    assert torch.equal(joined.memory_mask.allowed[:, 0, 0], table("1000 1100 1000"))


def test_those_who_join_may_have_read_nothing() -> None:
    for joined in (
        state(2, 3, sentences=2).join(state(1, 0, sentences=1)),
        state(1, 0, sentences=1).join(state(2, 3, sentences=2)),
    ):
        assert sorted(joined.lengths.tolist()) == [0, 3, 3]
        assert joined.n_slots == 3
        assert joined.slots is not None
        assert sorted(joined.slots.tolist()) == [[-1, -1, -1], [0, 1, 2], [0, 1, 2]]
    both = state(1, 0, sentences=1).join(state(1, 0, sentences=1))
    assert (both.n_rows, both.n_slots, both.cache) == (2, 0, ())


def test_join_without_a_memory() -> None:
    joined = state(2, 1).join(state(1, 2, base=9))
    assert rows_of(joined.cache[0]) == [0, 1, 9]
    assert joined.memory == ()
    assert joined.memory_mask is EVERYTHING


def test_join_where_every_key_of_one_memory_is_real() -> None:
    whole = DecoderState(lengths=torch.tensor([0]), n_sentences=1, memory=(pair(1, 2),))
    joined = whole.join(DecoderState(lengths=torch.tensor([0]), n_sentences=1, memory=(pair(1, 3),)))
    assert joined.memory_mask.allowed is not None
    assert torch.equal(joined.memory_mask.allowed[:, 0, 0], table("110 111"))


# -- advance ------------------------------------------------------------------------------------------------------------


def whole(mask: Mask, n_new: int, n_slots: int) -> Tensor:
    allowed = mask.tensor(n_new, n_slots, torch.device("cpu"))
    return torch.ones(n_new, n_slots, dtype=torch.bool) if allowed is None else allowed


def test_one_position_sees_all_the_past() -> None:
    after, positions, mask = state(2, 3).advance(None, 1, window=None)
    assert positions.tolist() == [3]
    assert mask == EVERYTHING
    assert after.lengths.tolist() == [4, 4]
    assert after.slots is None


def test_a_prompt_sees_no_later_position() -> None:
    after, positions, mask = state(2, 1).advance(None, 3, window=None)
    assert positions.tolist() == [1, 2, 3]
    assert torch.equal(whole(mask, 3, 4), causal(3, 4))
    assert after.lengths.tolist() == [4, 4]


def test_a_window_hides_the_far_past() -> None:
    _, _, mask = state(2, 4).advance(None, 1, window=2)
    assert torch.equal(whole(mask, 1, 5), table("00111"))
    _, _, mask = state(2, 2).advance(None, 2, window=1)
    assert torch.equal(whole(mask, 2, 4), table("0110 0011"))


def test_ragged_prompts() -> None:
    after, positions, mask = state(2, 0).advance(torch.tensor([3, 1]), 3, window=None)
    assert after.lengths.tolist() == [3, 1]
    assert after.slots is not None
    assert after.slots.tolist() == [[0, 1, 2], [0, -1, -1]]
    assert mask == Mask(causal=True), "padding stands behind: the triangle hides it"
    assert positions[0].tolist() == [0, 1, 2]
    assert positions[1, 0] == 0


def ragged() -> DecoderState:
    """Two rows that have read 3 tokens and 1, in three slots."""
    after, _, _ = state(2, 0).advance(torch.tensor([3, 1]), 3, window=None)
    return replace(after, cache=tuple(pair(2, 3) for _ in range(LAYERS)))


def test_which_position_each_slot_holds() -> None:
    fresh, _, _ = state(2, 0).advance(None, 3, window=None)
    assert fresh.held(3).tolist() == [0, 1, 2]
    later, _, _ = replace(state(2, 4), first=5).advance(None, 2, window=4)
    assert later.held(2).tolist() == [5, 6, 7, 8, 9, 10]
    unequal, positions, _ = ragged().advance(torch.tensor([1, 2]), 2, window=None)
    assert unequal.held(2).tolist() == [[0, 1, 2, 3, -1], [0, -1, -1, 1, 2]]
    assert positions.tolist() == [[3, 3], [1, 2]]


def test_after_ragged_prompts_each_row_goes_on_at_its_own_position() -> None:
    after, positions, mask = ragged().advance(None, 1, window=None)
    assert positions.tolist() == [[3], [1]]
    assert after.lengths.tolist() == [4, 2]
    assert after.slots is not None
    assert after.slots.tolist() == [[0, 1, 2, 3], [0, -1, -1, 1]]
    assert torch.equal(whole(mask, 1, 4)[:, 0, 0], table("1111 1001"))


def test_a_window_counts_positions_and_not_slots() -> None:
    _, _, mask = ragged().advance(None, 1, window=1)
    assert torch.equal(whole(mask, 1, 4)[:, 0, 0], table("0011 1001"))


def test_padding_of_a_prompt_stands_at_no_later_position_than_the_real_ones() -> None:
    # Learned positions end: padding must not reach past them where the tokens do not.
    _, positions, _ = ragged().advance(torch.tensor([1, 3]), 3, window=None)
    assert positions.tolist() == [[3, 3, 3], [1, 2, 3]]


# -- forget -------------------------------------------------------------------------------------------------------------


def numbered(rows: int, slots: int) -> DecoderState:
    """A state whose keys hold their slot's number."""
    before = state(rows, slots)
    numbers = torch.arange(slots, dtype=torch.float32).view(1, 1, -1, 1).expand(rows, H, slots, K).clone()
    return replace(before, cache=tuple((numbers, -numbers) for _ in range(LAYERS)))


def slots_of(after: DecoderState) -> list[list[float]]:
    """The slots' numbers, in each row, the same in every layer, head, feature and in the values."""
    first = after.cache[0][0]
    for key, value in after.cache:
        assert torch.equal(key, -value)
        assert torch.equal(key, first[:, :1, :, :1].expand_as(key))
    return first[:, 0, :, 0].tolist()


def test_a_window_lets_the_far_past_be_forgotten() -> None:
    after = numbered(2, 5).forget(3)
    assert slots_of(after) == [[2, 3, 4]] * 2
    assert (after.first, after.n_slots, after.slots) == (2, 3, None)
    assert after.lengths.tolist() == [5, 5]
    ahead, positions, mask = after.advance(None, 2, window=3)
    assert positions.tolist() == [5, 6]
    assert torch.equal(whole(mask, 2, 5), table("11110 01111"))
    assert ahead.lengths.tolist() == [7, 7]


def test_forgetting_goes_on_from_the_first_that_is_left() -> None:
    assert (again := numbered(1, 9).forget(5).forget(2)).first == 7
    assert slots_of(again) == [[7, 8]]


def test_what_is_within_reach_is_kept() -> None:
    before = numbered(2, 3)
    assert before.forget(None) is before
    assert before.forget(3) is before
    fresh = state(2, 0)
    assert fresh.forget(3) is fresh


def test_a_window_of_oneself_needs_no_past() -> None:
    after = numbered(2, 3).forget(0)
    assert (after.n_slots, after.first) == (0, 3)
    assert after.advance(None, 1, window=0)[1].tolist() == [3]


def test_a_forgotten_prompt_leaves_the_memory_of_the_machine() -> None:
    for before, most in ((numbered(1, 1000), 4), (numbered(1, 5), 5)):
        for layer in before.forget(4).cache:
            for tensor in layer:
                assert tensor.untyped_storage().nbytes() <= most * H * K * tensor.element_size()


def test_rows_of_unequal_length_keep_what_each_can_reach() -> None:
    # Of 7 slots, row 0 holds positions in all, row 1 in the first, third and last.
    slots = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, -1, 1, -1, -1, -1, 2], [0, -1, -1, -1, -1, -1, -1]])
    before = replace(numbered(3, 7), lengths=torch.tensor([7, 3, 1]), slots=slots)
    after = before.forget(2)
    assert after.slots is not None
    assert after.slots.tolist() == [[5, 6], [1, 2], [-1, 0]]
    held = torch.tensor(slots_of(after))
    assert held[0].tolist() == [5, 6]
    assert held[1].tolist() == [2, 6]
    assert held[2, 1] == 0
    _, positions, mask = after.advance(None, 1, window=2)
    assert positions.tolist() == [[7], [3], [1]]
    assert torch.equal(whole(mask, 1, 3)[:, 0, 0], table("111 111 011"))


def test_those_who_join_may_have_forgotten() -> None:
    joined = state(1, 9).forget(2).join(state(1, 3, base=5).forget(2)).join(state(1, 1, base=7))
    assert joined.slots is not None
    assert joined.slots.tolist() == [[7, 8], [1, 2], [0, -1]]
    assert rows_of(joined.cache[0]) == [0, 5, 7]
    _, positions, mask = joined.advance(None, 1, window=2)
    assert positions.tolist() == [[9], [3], [1]]
    assert torch.equal(whole(mask, 1, 3)[:, 0, 0], table("111 111 101"))


# -- the cache grows-----------------------------------------------------------------------------------------------------


def test_each_layer_appends_to_its_own_past() -> None:
    cache = GrowingCache((pair(2, 3, base=5), pair(2, 3, base=7)))
    grown = [cache.extend(*pair(2, 1)), cache.extend(*pair(2, 1, base=1))]
    assert [key[1, 0, :, 0].tolist() for key, _ in grown] == [[6, 6, 6, 1], [8, 8, 8, 2]]
    assert [value[1, 0, :, 0].tolist() for _, value in grown] == [[-6, -6, -6, -1], [-8, -8, -8, -2]]
    assert [key[1, 0, :, 0].tolist() for key, _ in cache.grown()] == [[6, 6, 6, 1], [8, 8, 8, 2]]


def test_the_first_positions_are_all_the_past() -> None:
    cache, new = GrowingCache(()), pair(2, 1)
    assert cache.extend(*new)[0].tolist() == new[0].tolist()
    [layer] = cache.grown()
    assert [one.tolist() for one in layer] == [one.tolist() for one in new]
