from pathlib import Path

import pytest

from regard.runs.json_files import is_count, is_number, is_scores, parse_json, read_json


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a":' * 100_000, "9" * 5_000, b"\xff"])
def test_what_is_no_json_of_ours_is_one_kind_of_error(text: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        parse_json(text)
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError):
        read_json(tmp_path / "file", most=len(content))


def test_counts_and_numbers() -> None:
    assert all(map(is_count, (0, 1, 2**52)))
    assert not any(map(is_count, (-1, 2**53, 1.0, True, "1", None, [])))
    assert all(map(is_number, (0, -1, 1.5, 1e300)))
    assert not any(map(is_number, (10**400, float("inf"), float("nan"), True, "1", None, {})))


def test_scores() -> None:
    assert is_scores({"step": 4, "loss": 1.5, "bleu": None})
    assert is_scores({})
    for other in (3, [], "x", None, {"loss": "1"}, {"loss": [1]}, {"step": 1.5}, {"step": -1}, {"step": None}):
        assert not is_scores(other), other
