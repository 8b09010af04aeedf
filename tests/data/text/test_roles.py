"""Roles: which token does what, kept beside an imported tokenizer and read strictly."""

import json
from pathlib import Path

import pytest
from tests.data.text import imported

from regard.data.text.roles import MASK, SPECIALS, Roles, own_roles, roles_file
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import DataError


def test_the_file_stands_beside_the_tokenizers() -> None:
    assert roles_file(Path("a/shared.json")) == Path("a/shared.roles.json")


def test_what_is_set_is_kept() -> None:
    assert imported.LLAMA.to_json() == (
        '{\n "end": "</s>",\n "prefix": [\n  "<s>"\n ],\n "start": "<s>",\n "unknown": "<unk>"\n}\n'
    )
    for roles in (imported.BERT, imported.GPT2, imported.LLAMA, imported.T5):
        assert Roles.from_json(roles.to_json()) == roles


def test_the_end_token_does_what_no_other_does() -> None:
    pad, start, end, _ = SPECIALS
    assert Roles(end="</s>").named() == {pad: "</s>", start: "</s>", end: "</s>"}


def test_our_own_are_named_after_their_roles() -> None:
    roles = own_roles([*SPECIALS, MASK, "<gap_0>", "<gap_1>"])
    assert all(name == token for name, token in roles.named().items())
    assert roles.gaps == ("<gap_0>", "<gap_1>")
    assert roles.prefix == () and roles.rows == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is not JSON."),
        ("[" * 100_000, "it is not JSON."),
        ("[1]", "it is not a table of roles."),
        ("{}", "no token has the role 'end'."),
        ('{"ends": "a"}', "there is no role 'ends'."),
        ('{"end": 1}', "the value of 'end' is not the name of a token."),
        ('{"end": ""}', "the value of 'end' is not the name of a token."),
        ('{"end": "a", "pad": null}', "the value of 'pad' is not the name of a token."),
        ('{"end": "a", "gaps": "b"}', "the value of 'gaps' is not a list of names of tokens."),
        ('{"end": "a", "prefix": [1]}', "the value of 'prefix' is not a list of at most 8 names of tokens."),
        (json.dumps({"end": "a", "prefix": ["b"] * 9}), "the value of 'prefix' is not a list of at most 8 names of tokens."),
        ('{"end": "a", "rows": true}', "the value of 'rows' is not a whole number up to 10,000,000."),
        ('{"end": "a", "rows": 1e3}', "the value of 'rows' is not a whole number up to 10,000,000."),
        ('{"end": "a", "rows": 99999999999}', "the value of 'rows' is not a whole number up to 10,000,000."),
    ],
)  # fmt: skip
def test_other_tables_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    imported.gpt2().save(tmp_path / "shared.json")
    (tmp_path / "shared.roles.json").write_text(text)
    with pytest.raises(DataError) as caught:
        Tokenizer.load(tmp_path / "shared.json")
    assert caught.value.problem == f"{tmp_path / 'shared.roles.json'}: not the roles of a tokenizer: {problem}"
    assert caught.value.remedy == "Give a tokenizer.json that regard has written."


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"end": "<nope>"}, "its roles name '<nope>', which is not one of its special tokens."),
        ({"pad": "dog"}, "its roles name 'dog', which is not one of its special tokens."),
        ({"prefix": ["a"]}, "its roles name 'a', which is not one of its special tokens."),
        ({"rows": 1}, "its token '[CLS]' has id 2, and there are 1 rows."),
        ({"unknown": "[PAD]"}, "its roles name '[PAD]' as unknown, and it gives '[UNK]'."),
    ],
)
def test_roles_that_lie_are_refused(changes: dict[str, object], problem: str, tmp_path: Path) -> None:
    imported.bert().save(tmp_path / "shared.json")
    path = tmp_path / "shared.roles.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(tmp_path / "shared.json")
    assert caught.value.problem == f"{tmp_path / 'shared.json'}: not a tokenizer of regard: {problem}"


def test_fewer_rows_than_tokens_need_one_for_the_unknown() -> None:
    with pytest.raises(DataError) as caught:
        Tokenizer(imported.byte_level("<s>", "<|endoftext|>"), Roles(end="<s>", rows=301))
    assert caught.value.problem == "it has 302 tokens for 301 rows, and none for what is unknown."


def test_roles_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    library = imported.unigram()
    one, other = (Tokenizer(library, Roles(end=end, unknown="<unk>")) for end in ("</s>", "<pad>"))
    assert one.to_json() == other.to_json()
    assert one.fingerprint() != other.fingerprint()


def test_our_own_leave_no_roles_of_others_behind(tmp_path: Path) -> None:
    imported.gpt2().save(tmp_path / "shared.json")
    own = learn(["A dog."], kind="bytes", vocab_size=260)
    own.save(tmp_path / "shared.json")
    assert [path.name for path in tmp_path.iterdir()] == ["shared.json"]
    assert Tokenizer.load(tmp_path / "shared.json").kind == "bytes"


def test_a_link_in_the_place_of_the_roles_is_refused(tmp_path: Path) -> None:
    imported.gpt2().save(tmp_path / "shared.json")
    path = tmp_path / "shared.roles.json"
    path.rename(tmp_path / "else.json")
    path.symlink_to(tmp_path / "else.json")
    with pytest.raises(DataError) as caught:
        Tokenizer.load(tmp_path / "shared.json")
    assert caught.value.problem == f"{path}: cannot be read: it is a link, not a file."
