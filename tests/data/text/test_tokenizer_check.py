"""Tokenizer files that somebody else changed: only what regard puts together is taken."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import KINDS, SPACED, learn
from regard.errors import DataError

SLOW = {"Regex": "(a|a)*(a+)+$"}
SPLIT = {"type": "Split", "pattern": SLOW, "behavior": "Isolated", "invert": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SEQUENCE = {"type": "Sequence", "pretokenizers": [SPLIT]}
CUT = {"type": "Sequence", "pretokenizers": [SPLIT, BYTES]}  # as the file of a tiktoken vocabulary has it
TRUNCATION = {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 0}
PARTS = "its parts are not those of a vocabulary that regard has learned."
IDS = "its ids do not count up from 0."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("running", [False, True])
def test_what_regard_learned_is_taken(kind: str, running: bool, tmp_path: Path) -> None:
    tokenizer = learn(["A dog runs."] * 3, kind=kind, vocab_size=400, specials=["<mask>"], running=running)
    tokenizer.save(tmp_path / "shared.json")
    assert Tokenizer.load(tmp_path / "shared.json").to_json() == tokenizer.to_json()


NORMALISED = [
    (kind, lowercase, form)
    for lowercase, form in [(True, "none"), (True, "nfc"), (True, "nfkc"), (False, "nfc")]
    for kind in KINDS
    if kind != "sentencepiece" or form == "none"  # which has no Unicode forms
]


@pytest.mark.parametrize(("kind", "lowercase", "form"), NORMALISED)
@pytest.mark.parametrize("running", [False, True])
def test_what_regard_normalises_is_taken(kind: str, running: bool, lowercase: bool, form: str, tmp_path: Path) -> None:
    texts = ["A dog runs."] * 3
    tokenizer = learn(texts, kind=kind, vocab_size=400, running=running, lowercase=lowercase, normalisation=form)
    assert (tokenizer.lowercase, tokenizer.normalisation, tokenizer.spaced) == (
        lowercase,
        form,
        kind in SPACED and not running,
    )
    tokenizer.save(tmp_path / "shared.json")
    loaded = Tokenizer.load(tmp_path / "shared.json")
    assert loaded.to_json() == tokenizer.to_json()
    assert (loaded.lowercase, loaded.normalisation) == (lowercase, form)


def add_token(file: dict[str, Any], **changes: Any) -> None:
    file["added_tokens"].append(
        {**file["added_tokens"][0], "id": len(file["model"]["vocab"]), "content": "é", **changes}
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda file: file.update(pre_tokenizer=SEQUENCE), "BPE is none of its kinds."),
        (lambda file: file.update(pre_tokenizer=CUT), PARTS),
        (lambda file: file.update(normalizer={"type": "Replace", "pattern": SLOW, "content": "a" * 1000}), PARTS),
        (lambda file: file.update(normalizer={"type": "Lowercase"}), PARTS),  # without the space in front
        (lambda file: file.update(normalizer={"type": "StripAccents"}), PARTS),
        (lambda file: file.update(decoder={"type": "Replace", "pattern": SLOW, "content": "a" * 1000}), PARTS),
        (lambda file: file.update(truncation=TRUNCATION), PARTS),
        (lambda file: file["model"].update(dropout=0.5), PARTS),
        (lambda file: file["model"]["vocab"].update(zzz=4 * 10**9), IDS),
        (lambda file: file["model"]["vocab"].update(zzz=len(file["model"]["vocab"]) + 1), IDS),
        (lambda file: file["model"]["vocab"].update(zzz=7), IDS),
        (lambda file: add_token(file, special=False), "it has added tokens that are not special."),
    ],
)
def test_what_somebody_changed_is_refused(
    change: Callable[[dict[str, Any]], None], problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "shared.json"
    file = json.loads(learn(["A dog runs."] * 3, kind="bpe", vocab_size=300).to_json())
    change(file)
    path.write_text(json.dumps(file))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert caught.value.problem.startswith(f"{path}: not a tokenizer of regard: ")
    assert caught.value.problem.endswith(problem)


def test_a_vocabulary_without_some_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shared.json"
    text = learn(["A dog runs."] * 5, kind="sentencepiece", vocab_size=300).to_json()
    path.write_text(text.replace('"<0x41>"', '"<0xxx>"'))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert caught.value.problem == f"{path}: not a tokenizer of regard: it has no token for some byte."


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    learn(["A dog runs."] * 3, kind="bpe", vocab_size=300).save(tmp_path / "own.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "own.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link", "pipe"):
        with pytest.raises(DataError) as caught:
            Tokenizer.load(tmp_path / f"{name}.json")
        assert caught.value.problem == f"{tmp_path}/{name}.json: cannot be read: it is a {name}, not a file."
