import pytest

from regard.decoding.batches import in_order, run_in_batches
from regard.errors import UsageError


def test_batches_hold_the_longest_first_and_equals_in_order():
    assert in_order([3, 9, 3, 5, 1], batch_size=2) == [[1, 3], [0, 2], [4]]
    assert in_order([], batch_size=2) == []


def test_results_come_back_in_the_order_of_the_inputs():
    texts, done, seen = ["bb", "dddd", "a", "ccc"], [], []

    def run(numbers):
        seen.append([texts[number] for number in numbers])
        return [texts[number].upper() for number in numbers]

    assert run_in_batches([2, 4, 1, 3], run, batch_size=3, progress=done.append) == ["BB", "DDDD", "A", "CCC"]
    assert seen == [["dddd", "ccc", "bb"], ["a"]]
    assert done == [3, 4]


def test_a_batch_of_none_is_refused():
    with pytest.raises(UsageError) as raised:
        in_order([1], batch_size=0)
    assert str(raised.value) == "A batch holds at least 1 sentence, but batch_size is 0.\nGive 1 or more."
