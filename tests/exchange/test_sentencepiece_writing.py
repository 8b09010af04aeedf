"""Models that the sentencepiece library reads: the same ids, pieces and texts as a tokenizer of the kind `sentencepiece`."""

import random
from functools import cache

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.exchange import tokenizer_folders as folders

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.demo.corpus import corpus
from regard.exchange.sentencepiece_model import parse_sentencepiece, sentencepiece_library
from regard.exchange.sentencepiece_writing import own_sentencepiece_bytes

ODD = [
    *folders.ODD,
    "  two  spaces  ",
    "漢字かな",
    "aaaaaaaaaaaaaaaa",
    "hahahahahaha",
    "1000000 0000",
    "\u2581",
    "\r\n",
    "İΣẞ Ǆ ΟΔΟΣ",
]
VARIANTS = [(lowercase, running) for lowercase in (False, True) for running in (False, True)]
every_variant = pytest.mark.parametrize(("lowercase", "running"), VARIANTS)

quick = settings(max_examples=150, deadline=None)
real_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
repeated_text = st.text(alphabet="anerstd A.", max_size=60)  # in which merges overlap


def said() -> list[str]:
    pairs = corpus("train", 400)
    return [*(pair.source for pair in pairs), *(pair.target for pair in pairs)]


@cache
def learned(lowercase: bool, running: bool) -> tuple[Tokenizer, sentencepiece.SentencePieceProcessor]:
    """A tokenizer, and the library with its model."""
    texts = [*said(), *folders.corpus() * 2, "aaaa ababab 0000 111 hahaha"]
    tokenizer = learn(
        texts, kind="sentencepiece", vocab_size=900, specials=["<mask>"], lowercase=lowercase, running=running
    )
    return tokenizer, sentencepiece.SentencePieceProcessor(model_proto=own_sentencepiece_bytes(tokenizer))


@every_variant
def test_ids_and_texts_are_those_of_the_library(lowercase: bool, running: bool) -> None:
    tokenizer, library = learned(lowercase, running)
    draw = random.Random(3)
    letters = "".join(said()[:50]) + "漢ж\n\té  "
    mixed = ["".join(draw.choices(letters, k=draw.randint(1, 50))) for _ in range(1000)]
    for text in [*said(), *folders.lines(), *ODD, *mixed]:
        ids = tokenizer.encode(text)
        assert library.encode(text) == ids, text
        assert library.decode(ids) == tokenizer.decode(ids), text
        assert library.decode_pieces(library.encode(text, out_type=str)) == tokenizer.decode(ids), text


@quick
@given(text=real_text | repeated_text)
@example(text="")
@example(text="\x00")
@example(text=" ")
def test_every_text_has_the_same_ids(text: str) -> None:
    tokenizer, library = learned(False, False)
    ids = tokenizer.encode(text)
    assert library.encode(text) == ids
    assert library.decode(ids) == tokenizer.decode(ids) == text.replace("▁", " ")


@quick
@given(text=real_text)
@example(text="İ ǅ Σ ẞ")
@example(text="\x00A")
def test_every_lower_cased_text_has_the_same_ids(text: str) -> None:
    tokenizer, library = learned(True, False)
    assert library.encode(text) == tokenizer.encode(text)


@every_variant
def test_pieces_have_our_names_and_ids(lowercase: bool, running: bool) -> None:
    tokenizer, library = learned(lowercase, running)
    assert [library.id_to_piece(id) for id in range(library.get_piece_size())] == [*tokenizer.vocabulary]
    assert (library.pad_id(), library.bos_id(), library.eos_id(), library.unk_id()) == (0, 1, 2, 3)
    assert [id for id in range(len(tokenizer.vocabulary)) if library.is_control(id)] == [0, 1, 2, 4]
    assert sum(library.is_byte(id) for id in range(len(tokenizer.vocabulary))) == 256


def test_whatever_a_model_writes_is_the_same_text() -> None:
    """But for bytes that make no character, of which the libraries mark more or fewer as such."""
    tokenizer, library = learned(False, False)
    draw = random.Random(4)
    for _ in range(300):
        ids = draw.choices(range(5 + 256, tokenizer.vocab_size), k=draw.randint(0, 20))
        assert library.decode(ids) == tokenizer.decode(ids)


def test_an_import_of_the_model_gives_the_same_ids() -> None:
    """Through our own reader, which needs no library."""
    tokenizer, _ = learned(False, False)
    model = parse_sentencepiece(own_sentencepiece_bytes(tokenizer))
    assert (model.is_bpe, model.byte_fallback, model.dummy_prefix, model.fewer_spaces) == (True, True, True, False)
    again = sentencepiece_library(model)
    again.encode_special_tokens = True
    for text in [*said()[:100], *folders.SAID]:
        assert again.encode(text, add_special_tokens=False).ids == tokenizer.encode(text)


def test_the_same_tokenizer_gives_the_same_bytes() -> None:
    tokenizer, _ = learned(False, True)
    assert own_sentencepiece_bytes(tokenizer) == own_sentencepiece_bytes(tokenizer)
