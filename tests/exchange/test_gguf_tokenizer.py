"""Tokenizers inside GGUF files: the ids are those of the tokenizer that was written, in every script."""

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tests.exchange import tokenizer_folders as theirs
from tests.exchange.gguf_files import Draft, byte_level_values, sentencepiece_values
from tokenizers import decoders, models, pre_tokenizers, trainers

from regard.data.text.imported_check import SPLITS
from regard.data.text.roles import Roles
from regard.errors import DataError, RegardError
from regard.exchange.gguf_tokenizer import PRE_TOKENIZERS, read_gguf_tokenizer
from regard.exchange.tokenizers import read_tokenizers

LINES = theirs.lines(100)
CONVERSION = "\nDownload it again, or another conversion of the same model."


def smollm(folder: Path) -> None:
    """Special tokens in front, single digits, and GPT-2's pattern."""
    library = tokenizers.Tokenizer(models.BPE())
    steps = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    library.pre_tokenizer = pre_tokenizers.Sequence(steps)
    library.decoder = decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|im_start|>", "<repo_name>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=480, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    library.train_from_iterator(theirs.corpus(), trainer)
    names = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    theirs.save(folder, library, {"model_type": "llama"}, **names)


def tekken(folder: Path) -> None:
    pattern = next(one for one in SPLITS if r"[\r\n/]*" in one and "(?i:" not in one)
    library = theirs.byte_level(["<unk>", "<s>", "</s>", "[INST]"], pattern=pattern)
    theirs.around(library, "<s> $A")
    theirs.save(folder, library, {"model_type": "mistral"}, bos_token="<s>", eos_token="</s>")


KINDS: dict[str, tuple[Callable[[Path], None], int]] = {
    "gpt-2": (theirs.gpt2, 0),
    "llama-bpe": (theirs.llama3, 0),
    "qwen2": (theirs.qwen2, 640),
    "smollm": (smollm, 500),
    "tekken": (tekken, 0),
}


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The metadata of a SentencePiece model, not to be changed."""
    folder = tmp_path_factory.mktemp("llama2")
    theirs.llama2(folder)
    return sentencepiece_values(folder)


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The metadata of byte-level BPE, not to be changed."""
    folder = tmp_path_factory.mktemp("gpt2")
    theirs.gpt2(folder)
    return byte_level_values(folder, "gpt-2")


def written(folder: Path, values: dict[str, Any]) -> Path:
    return Draft({"general.architecture": "llama", **values}).write(folder / "model.gguf")


def refusal(folder: Path, values: dict[str, Any], *, rows: int = 704) -> str:
    path = written(folder, values)
    with pytest.raises(DataError) as caught:
        read_gguf_tokenizer(path, rows=rows)
    return str(caught.value).replace(str(path), "FILE")


# -- ids ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pre", KINDS)
def test_ids_of_byte_level_bpe(pre: str, tmp_path: Path) -> None:
    make, rows = KINDS[pre]
    folder = tmp_path / "theirs"
    folder.mkdir()
    make(folder)
    values = byte_level_values(folder, pre, rows=rows)
    rows = len(values["tokenizer.ggml.tokens"])
    expected = read_tokenizers(folder, rows=rows).source
    ours = read_gguf_tokenizer(written(tmp_path, values), rows=rows)
    assert [ours.encode(line) for line in LINES] == [expected.encode(line) for line in LINES]
    assert [ours.decode(ours.encode(line)) for line in LINES] == [
        expected.decode(expected.encode(line)) for line in LINES
    ]
    assert (ours.roles, ours.vocab_size, ours.specials) == (expected.roles, expected.vocab_size, expected.specials)


def test_ids_of_sentencepiece(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    theirs.llama2(folder)
    expected = read_tokenizers(folder).source
    ours = read_gguf_tokenizer(written(tmp_path, sentencepiece_values(folder)), rows=704)
    assert [ours.encode(line) for line in LINES] == [expected.encode(line) for line in LINES]
    assert ours.fingerprint() == expected.fingerprint()
    assert ours.roles == expected.roles == Roles(end="</s>", start="<s>", unknown="<unk>", prefix=("<s>",), rows=704)


def test_tokens_that_were_added_behind(pieces: dict[str, Any], tmp_path: Path) -> None:
    """Text that is an added token becomes it, a special one never."""
    places = [700, 703]
    values = {key: list(value) if isinstance(value, list) else value for key, value in pieces.items()}
    for place, name, kind in zip(places, ("<tool>", "<|im_end|>"), (4, 3), strict=True):
        values["tokenizer.ggml.tokens"][place], values["tokenizer.ggml.token_type"][place] = name, kind
    ours = read_gguf_tokenizer(written(tmp_path, values), rows=704)
    assert 700 in ours.encode("use the <tool> here")
    assert 703 not in ours.encode("and <|im_end|> there")
    assert ours.specials["<|im_end|>"] == 703


@pytest.mark.parametrize(("said", "prefix"), [(True, ("<s>",)), (False, ()), (None, ("<s>",))])
def test_the_start_token_of_sentencepiece(
    said: bool | None, prefix: tuple[str, ...], pieces: dict[str, Any], tmp_path: Path
) -> None:
    values = {key: value for key, value in pieces.items() if key != "tokenizer.ggml.add_bos_token"}
    values |= {} if said is None else {"tokenizer.ggml.add_bos_token": said}
    assert read_gguf_tokenizer(written(tmp_path, values), rows=704).roles.prefix == prefix


@pytest.mark.parametrize(
    ("pre", "said", "starts"),
    [("gpt-2", None, False), ("gpt-2", True, True), ("llama-bpe", None, True), ("llama-bpe", False, False)],
)
def test_the_start_token_of_byte_level_bpe(
    pre: str, said: bool | None, starts: bool, merged: dict[str, Any], tmp_path: Path
) -> None:
    values = {**merged, "tokenizer.ggml.pre": pre} | ({} if said is None else {"tokenizer.ggml.add_bos_token": said})
    found = read_gguf_tokenizer(written(tmp_path, values), rows=len(merged["tokenizer.ggml.tokens"]))
    assert found.roles.prefix == (("<|endoftext|>",) if starts else ())


def test_a_space_in_front(pieces: dict[str, Any], merged: dict[str, Any], tmp_path: Path) -> None:
    assert read_gguf_tokenizer(written(tmp_path, pieces), rows=704).spaced
    values = {**pieces, "tokenizer.ggml.add_space_prefix": False}
    assert not read_gguf_tokenizer(written(tmp_path, values), rows=704).spaced
    rows = len(merged["tokenizer.ggml.tokens"])
    assert not read_gguf_tokenizer(written(tmp_path, merged), rows=rows).spaced
    values = {**merged, "tokenizer.ggml.add_space_prefix": True}
    assert read_gguf_tokenizer(written(tmp_path, values), rows=rows).spaced


def test_a_part_that_is_a_token_is_not_merged(merged: dict[str, Any], tmp_path: Path) -> None:
    """As in Llama 3, whose vocabulary has words to which no merge leads."""
    tokens = list(merged["tokenizer.ggml.tokens"])
    place = tokens.index("<|endoftext|>")
    values = {**merged, "tokenizer.ggml.tokens": [*tokens[:place], "zqzq", *tokens[place:]]}
    values["tokenizer.ggml.token_type"] = [*merged["tokenizer.ggml.token_type"][:place], 1, 3]
    for role in ("bos", "eos", "unknown"):
        values[f"tokenizer.ggml.{role}_token_id"] = place + 1
    found = read_gguf_tokenizer(written(tmp_path, {**values, "tokenizer.ggml.pre": "llama-bpe"}), rows=place + 2)
    assert found.encode("zqzq") == [place]
    found = read_gguf_tokenizer(written(tmp_path, values), rows=place + 2)
    assert place not in found.encode("zqzq")


def test_padding_without_a_row_is_not_missed(pieces: dict[str, Any], tmp_path: Path) -> None:
    values = {**pieces, "tokenizer.ggml.padding_token_id": 703}  # an unused one, behind all others
    assert read_gguf_tokenizer(written(tmp_path, values), rows=704).roles.pad is None


def test_padding_by_a_token_of_texts_takes_it_from_none(merged: dict[str, Any], tmp_path: Path) -> None:
    exclamation = merged["tokenizer.ggml.tokens"].index("!")
    values = {**merged, "tokenizer.ggml.padding_token_id": exclamation}
    found = read_gguf_tokenizer(written(tmp_path, values), rows=len(merged["tokenizer.ggml.tokens"]))
    assert found.roles.pad is None
    assert exclamation in found.encode("Run!")


def test_patterns_are_known() -> None:
    assert {one.pattern for one in PRE_TOKENIZERS.values() if one.pattern} <= SPLITS


# -- what is refused ----------------------------------------------------------------------------------------------------


def test_a_file_without_a_tokenizer(tmp_path: Path) -> None:
    assert refusal(tmp_path, {}) == (
        "FILE holds no tokenizer (tokenizer.ggml.model).\n"
        "Choose a file that does, or convert the model again with its tokenizer."
    )


def test_tokenizers_of_other_kinds(pieces: dict[str, Any], tmp_path: Path) -> None:
    assert refusal(tmp_path, {**pieces, "tokenizer.ggml.model": "bert"}) == (
        "FILE: tokenizer.ggml.model = bert has no counterpart in regard (known here: llama, gpt2).\n"
        "Choose a model without that setting."
    )


@pytest.mark.parametrize("pre", ["deepseek-llm", "default"])
def test_other_ways_of_cutting_text(pre: str, merged: dict[str, Any], tmp_path: Path) -> None:
    expected = (
        f"FILE: how its tokenizer cuts text is not known here (tokenizer.ggml.pre = {pre}).\n"
        "Known are: gpt-2, llama-bpe, llama-v3, llama3, qwen2, smollm, tekken."
    )
    assert refusal(tmp_path, {**merged, "tokenizer.ggml.pre": pre}) == expected
    if pre == "default":  # what llama.cpp takes where nothing is said
        unsaid = {key: value for key, value in merged.items() if key != "tokenizer.ggml.pre"}
        assert refusal(tmp_path, unsaid) == expected


PIECES: list[tuple[str, Any, str]] = [
    ("tokens", ["a", "b"], "FILE: it has 2 tokens, and 704 types of them, or unknown ones."),
    ("tokens", [""] * 704, "FILE: it has a token twice."),
    ("tokens", 7, "FILE: tokenizer.ggml.tokens must be words, not 7."),
    ("token_type", [1] * 704, "FILE: 0 of its tokens stand for what is unknown, not one."),
    ("token_type", [2] * 704, "FILE: 704 of its tokens stand for what is unknown, not one."),
    ("token_type", [9] * 704, "FILE: it has 704 tokens, and 704 types of them, or unknown ones."),
    ("token_type", [5] * 704, "FILE: 0 of its tokens stand for what is unknown, not one."),
    ("scores", [0.5], "FILE: its tokens have no scores (tokenizer.ggml.scores), or not each a number."),
    ("scores", [float("nan")] * 704, "FILE: its tokens have no scores (tokenizer.ggml.scores), or not each a number."),
    (
        "scores",
        [-1000.0] * 704,
        "FILE: its tokens have all one score, which says nothing of how they are merged.",
    ),
    ("eos_token_id", 9999, "FILE: its tokenizer.ggml.eos_token_id is 9,999, and it has 700 tokens."),
    ("bos_token_id", 702, "FILE: its tokenizer.ggml.bos_token_id is 702, and it has 700 tokens."),
    ("eos_token_id", "end", "FILE: tokenizer.ggml.eos_token_id must be a whole number, not 'end'."),
    ("eos_token_id", None, "FILE does not say tokenizer.ggml.eos_token_id."),
    ("add_bos_token", "yes", "FILE: tokenizer.ggml.add_bos_token must be true or false, not 'yes'."),
]


@pytest.mark.parametrize(("key", "value", "problem"), PIECES, ids=[f"{one[0]} {one[2][6:40]}" for one in PIECES])
def test_pieces_that_do_not_fit(key: str, value: Any, problem: str, pieces: dict[str, Any], tmp_path: Path) -> None:
    values = {**pieces, f"tokenizer.ggml.{key}": value}
    found = refusal(tmp_path, {name: one for name, one in values.items() if one is not None})
    assert found.split("\n")[0] == problem


def test_a_piece_that_is_too_long(pieces: dict[str, Any], tmp_path: Path) -> None:
    tokens = [*pieces["tokenizer.ggml.tokens"][:600], "a" * 513, *pieces["tokenizer.ggml.tokens"][601:]]
    assert refusal(tmp_path, {**pieces, "tokenizer.ggml.tokens": tokens}) == (
        f"FILE: it has a token of more than 512 characters.{CONVERSION}"
    )


def test_more_tokens_than_rows(pieces: dict[str, Any], tmp_path: Path) -> None:
    assert refusal(tmp_path, pieces, rows=650) == (f"FILE: it has 700 tokens, and the embedding 650 rows.{CONVERSION}")
    assert read_gguf_tokenizer(written(tmp_path, pieces), rows=700).roles.rows == 0


@pytest.mark.parametrize("merge", ["single", "a b c", " b", ""])
def test_merges_that_are_no_pairs(merge: str, merged: dict[str, Any], tmp_path: Path) -> None:
    found = refusal(tmp_path, {**merged, "tokenizer.ggml.merges": [merge]}, rows=501)
    assert found.endswith(f"of its tokenizer.ggml.merges is not a pair of tokens.{CONVERSION}")


def test_merges_of_tokens_that_are_none(merged: dict[str, Any], tmp_path: Path) -> None:
    found = refusal(tmp_path, {**merged, "tokenizer.ggml.merges": ["qqq www"]}, rows=501)
    assert found.startswith("FILE: its tokenizer cannot be read: ")
    assert found.endswith(CONVERSION)


@pytest.mark.parametrize("kind", ["pieces", "merged"])
def test_other_bytes_are_read_or_refused(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path = written(tmp_path, request.getfixturevalue(kind))
    content, drawn = path.read_bytes(), random.Random(3)
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(4):
            damaged[drawn.randrange(len(content))] = drawn.randrange(256)
        path.write_bytes(damaged)
        with contextlib.suppress(RegardError):
            read_gguf_tokenizer(path, rows=704)


def test_a_vocabulary_of_the_same_size_is_another_one(pieces: dict[str, Any], tmp_path: Path) -> None:
    """The comparison of ids could fail: another order of scores gives other pieces."""
    usual = read_gguf_tokenizer(written(tmp_path, pieces), rows=704)
    turned = {**pieces, "tokenizer.ggml.scores": [-score for score in pieces["tokenizer.ggml.scores"]]}
    other = read_gguf_tokenizer(written(tmp_path, turned), rows=704)
    assert json.dumps([usual.encode(line) for line in LINES]) != json.dumps([other.encode(line) for line in LINES])
