"""Files of imported tokenizers that somebody changed: only known parts are taken, and only errors of ours come out."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.text import imported

from regard.data.text.roles import roles_file
from regard.data.text.tokenizer import Tokenizer
from regard.errors import DataError

SLOW = {"Regex": "(a|a)*(a+)+$"}
LINES = ["The dog runs.", " läuft 你好 👍🏽\n", "</s><pad>[MASK]", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]

Change = Callable[[dict[str, Any]], object]


def split(pattern: dict[str, str], **changes: Any) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False, **changes}


def replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*parts: Any) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(parts)}


DEEP: Any = {"type": "Lowercase"}
for _ in range(6):
    DEEP = sequence(DEEP)


UNKNOWN = "the pattern '(a|a)*(a+)+$' of its {} is not known."
LONGER = "the part Replace of its normalizer has a replacement that is longer than what it replaces."
TRUNCATION = {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 0}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DELIMITER = {"type": "CharDelimiterSplit", "delimiter": "a"}
PREPEND = {"type": "Prepend", "prepend": "aaaa"}

PARTS: list[tuple[dict[str, Any], str]] = [
    ({"pre_tokenizer": split(SLOW)}, UNKNOWN.format("pre_tokenizer")),
    ({"normalizer": sequence(replace(SLOW, "a"))}, UNKNOWN.format("normalizer")),
    ({"decoder": replace(SLOW, "a")}, UNKNOWN.format("decoder")),
    (
        {"pre_tokenizer": split({"String": ""})},
        "pattern = {'String': ''} of the part Split of its pre_tokenizer is not known.",
    ),
    ({"normalizer": replace({"String": "a"}, "aa")}, LONGER),
    (
        {"normalizer": replace({"String": "a"}, "a" * 40)},
        f"content = {'a' * 40} of the part Replace of its normalizer is not known.",
    ),
    ({"normalizer": PREPEND}, "prepend = aaaa of the part Prepend of its normalizer is not known."),
    ({"normalizer": DEEP}, "its normalizer has too many parts."),
    ({"normalizer": sequence(*[{"type": "NFC"}] * 40)}, "its normalizer has too many parts."),
    ({"pre_tokenizer": DELIMITER}, "the part CharDelimiterSplit of its pre_tokenizer is not known."),
    ({"post_processor": BYTES}, "it has a post_processor."),
    ({"truncation": TRUNCATION}, "it has a truncation."),
]
MODELS: list[tuple[Change, str]] = [
    (lambda model: model.update(dropout=0.5), "its model drops merges at random."),
    (lambda model: model["vocab"].update(zzz=4 * 10**9), "its ids do not count up from 0."),
    (lambda model: model["vocab"].update({"": 300}), "it has an empty token."),
    (lambda model: model["vocab"].update({"a" * 20_000: 300}), "it has 302 tokens, the longest of 20,000 characters."),
]


@pytest.mark.parametrize(("parts", "problem"), PARTS)
def test_parts_that_are_not_known_are_refused(parts: dict[str, Any], problem: str, tmp_path: Path) -> None:
    refused(tmp_path / "shared.json", imported.gpt2(), lambda file: file.update(parts), problem)


@pytest.mark.parametrize(("change", "problem"), MODELS)
def test_models_that_somebody_changed_are_refused(change: Change, problem: str, tmp_path: Path) -> None:
    refused(tmp_path / "shared.json", imported.gpt2(), lambda file: change(file["model"]), problem)


def refused(path: Path, tokenizer: Tokenizer, change: Change, problem: str) -> None:
    tokenizer.save(path)
    file = json.loads(path.read_text())
    change(file)
    path.write_text(json.dumps(file))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert caught.value.problem == f"{path}: not a tokenizer of regard: {problem}"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda model: model["vocab"][9].__setitem__(1, -1e7), "it has a score beyond 1,000,000."),
        (lambda model: model.update(unk_id=None), "it has no token for what is unknown."),
    ],
)
def test_unigram_models_that_somebody_changed(change: Change, problem: str, tmp_path: Path) -> None:
    refused(tmp_path / "shared.json", imported.t5(), lambda file: change(file["model"]), problem)


def test_without_its_roles_it_is_none_of_ours(tmp_path: Path) -> None:
    imported.gpt2().save(tmp_path / "shared.json")
    (tmp_path / "shared.roles.json").unlink()
    with pytest.raises(DataError) as caught:
        Tokenizer.load(tmp_path / "shared.json")
    assert caught.value.problem == (
        f"{tmp_path / 'shared.json'}: not a tokenizer of regard: it has no special token <pad>."
    )


VALUES = st.sampled_from(
    [None, True, 0, -1, 2**31, 1e30, "", "a", "▁", "</s>", "ByteLevel", [], {}, [["a", 1]], {"a": 1}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a table, but of long lists and tables only a few."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(items)[:12]:
        found += places(one, (*path, key))
    return found


@cache
def contents(make: Callable[[], Tokenizer]) -> tuple[str, str]:
    """The files of a tokenizer, always the same: the library learns a little otherwise each time."""
    tokenizer = make()
    return tokenizer.to_json(), tokenizer.roles.to_json()


@pytest.mark.parametrize("make", [imported.bert, imported.gpt2, imported.llama, imported.t5])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_lying_files_raise_only_errors_of_ours(
    make: Callable[[], Tokenizer], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lying") / "shared.json"
    for file_path, content in zip((path, roles_file(path)), contents(make), strict=True):
        file_path.write_text(content)
    changed = path if data.draw(st.integers(0, 4)) else roles_file(path)
    file = json.loads(changed.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(places(file)))
        inner = file
        for key in way:
            inner = inner[key]
        inner[last] = deepcopy(data.draw(VALUES))
    text = json.dumps(file)
    changed.write_text(text[: data.draw(st.integers(0, len(text)))] if data.draw(st.integers(0, 5)) == 0 else text)
    try:
        tokenizer = Tokenizer.load(path)
    except DataError:
        return
    for ids in tokenizer.encode_batch(LINES):
        assert max(ids, default=0) < tokenizer.vocab_size
        tokenizer.decode(ids)
        list(map(tokenizer.piece_text, ids))
    list(map(tokenizer.pieces, LINES))
