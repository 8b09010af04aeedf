"""The character map of SentencePiece: whole ones are taken, and damaged ones never reach the library that would abort."""

import io
import struct

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers

from regard.data.text.charsmap import LONGEST, check_charsmap
from regard.errors import DataError
from regard.exchange.sentencepiece_model import parse_sentencepiece


def charsmap(rule: str) -> bytes:
    written, texts = io.BytesIO(), iter(["the dog runs", "a man plays"] * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=texts,
        model_writer=written,
        vocab_size=30,
        hard_vocab_limit=False,
        normalization_rule_name=rule,
        minloglevel=2,
    )
    return parse_sentencepiece(written.getvalue()).charsmap


WHOLE = charsmap("nmt_nfkc")
TEXT = "ﬁne ½ ① ﷺ e\u0301 ộ 한국어 ㄱ 你好！\u3000 \x01 👩‍👩‍👧 ŕ ＡＢＣ"


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
def test_those_of_sentencepiece_are_taken(rule: str) -> None:
    check_charsmap(charsmap(rule))


@pytest.mark.parametrize("content", [b"", b"abc", struct.pack("<I", 8) + b"1234", struct.pack("<I", 3) + b"1234567"])
def test_what_is_too_short_is_refused(content: bytes) -> None:
    with pytest.raises(DataError) as caught:
        check_charsmap(content)
    assert caught.value.problem == "its character map is damaged."


def made(units: list[int], replacements: bytes) -> bytes:
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + replacements


def test_units_that_lead_beyond_the_end() -> None:
    with pytest.raises(DataError) as caught:
        check_charsmap(made([1 << 10], b"a\0"))
    assert caught.value.problem == "its character map is damaged: it leads beyond its end."


def trie(value: int, replacements: bytes) -> bytes:
    """A map of the character "a" alone: the root's children begin at 256, those of "a" at 512."""
    units = [0] * 768
    units[0] = 256 << 10
    place = 256 ^ ord("a")
    units[place] = ((place ^ 512) << 10) | (1 << 8) | ord("a")
    units[512] = value | (1 << 31)
    return made(units, replacements)


def test_a_map_that_is_whole() -> None:
    check_charsmap(trie(0, b"bc\0"))
    assert normalizers.Precompiled(trie(0, b"bc\0")).normalize_str("xax") == "xbcx"


@pytest.mark.parametrize("value", [1, 3, 10**6])
def test_values_that_are_no_replacement(value: int) -> None:
    with pytest.raises(DataError) as caught:
        check_charsmap(trie(value, b"bc\0"))
    assert caught.value.problem == "its character map is damaged: a character leads to no replacement."


def test_replacements_that_are_no_text_or_too_long() -> None:
    with pytest.raises(DataError) as caught:
        check_charsmap(trie(0, b"\xff\0"))
    assert caught.value.problem == "its character map is damaged: its replacements are not UTF-8."
    with pytest.raises(DataError) as caught:
        check_charsmap(trie(0, b"b" * (LONGEST + 1) + b"\0"))
    assert caught.value.problem == f"its character map has a replacement of more than {LONGEST} bytes."


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_passes_never_aborts(data: st.DataObject) -> None:
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        check_charsmap(bytes(content))
    except DataError:
        return
    normalizers.Precompiled(bytes(content)).normalize_str(TEXT)
