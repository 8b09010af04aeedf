import json

import numpy as np
import pytest

from regard.web.packing import pack, unpack


def test_what_is_packed_comes_back() -> None:
    arrays = {
        "half": np.array([[0.5, np.nan], [0.25, 1.0]], np.float16),
        "full": np.arange(3, dtype=np.float32),
        "bytes": np.array([1, 2, 255], np.uint8),
        "whole": np.array([[-1], [2**31 - 1]], np.int32),
        "nothing": np.zeros((0, 4), np.float32),
    }
    facts, found = unpack(pack({"text": "größer <b>", "n": 3}, arrays))
    assert facts == {"text": "größer <b>", "n": 3}
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(("given", "stored"), [("float64", "float32"), ("int64", "int32"), ("bool", "uint8")])
def test_what_a_browser_has_no_type_for_is_narrowed(given: str, stored: str) -> None:
    _, found = unpack(pack({}, {"a": np.array([0, 1], given)}))
    assert found["a"].dtype.name == stored
    assert found["a"].tolist() == [0, 1]


def test_every_array_is_aligned_in_the_message_and_the_json_is_valid() -> None:
    message = pack({"loss": float("nan")}, {"a": np.ones(3, np.uint8), "b": np.ones((2, 5), np.float16)})
    size = int.from_bytes(message[:4], "little")
    head = json.loads(message[4 : 4 + size], parse_constant=lambda name: pytest.fail(name))
    assert head["loss"] is None
    assert (4 + size) % 8 == 0
    assert [own["offset"] % 8 for own in head["arrays"].values()] == [0, 0]
    assert head["arrays"]["b"] == {"dtype": "float16", "shape": [2, 5], "offset": 8}
