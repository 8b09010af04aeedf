"""Imported tokenizers: what each kind of them makes of a text, how its tokens are spelt, what is lost."""

from collections.abc import Callable

import pytest
from tests.data.text import imported

from regard.data.text.roles import MASK, NO_TOKEN, Roles
from regard.data.text.tokenizer import Piece, Tokenizer
from regard.errors import UsageError

ALL = [imported.bert, imported.gpt2, imported.llama, imported.t5]
ODD = ["The dog.", " The  dog\n", "läuft 你好 👍🏽", "a\tb", "▁", "", "<s>x</s>", "naïve — 1984"]

Make = Callable[[], Tokenizer]


@pytest.mark.parametrize("make", ALL)
def test_many_are_read_as_each_alone(make: Make) -> None:
    tokenizer = make()
    assert tokenizer.encode_batch(ODD) == [tokenizer.encode(text) for text in ODD]
    assert [ids for ids, _ in tokenizer.spans_batch(ODD)] == tokenizer.encode_batch(ODD)


@pytest.mark.parametrize(
    ("make", "spelt"),
    [
        (imported.bert, ["the", "dog", "run", "s"]),
        (imported.gpt2, ["The", " dog", " runs"]),
        (imported.llama, [" The", " dog", " runs"]),
    ],
)
def test_tokens_are_spelt_for_people(make: Make, spelt: list[str]) -> None:
    tokenizer = make()
    shown = [tokenizer.piece_text(id) for id in tokenizer.encode("The dog runs")]
    assert "".join(shown).replace(" ", "").lower() == "thedogruns"
    assert shown[0] == spelt[0]


def test_bytes_are_spelt_as_such() -> None:
    llama, gpt2 = imported.llama(), imported.gpt2()
    assert [llama.piece_text(id) for id in llama.encode("\n好")][-4:] == ["\n", "⟨E5⟩", "⟨A5⟩", "⟨BD⟩"]
    assert [gpt2.piece_text(id) for id in gpt2.encode("好")] == ["⟨E5⟩", "⟨A5⟩", "⟨BD⟩"]
    assert llama.decode(llama.encode("\n好")) == "\n好"
    assert llama.piece_text(llama.end_id) == "</s>"


def test_pieces_say_where_they_stand() -> None:
    tokenizer = imported.llama()
    pieces = tokenizer.pieces("好a")
    assert pieces[0] == Piece(pieces[0].id, "", 0, 0)  # the space that was put in front
    assert [(piece.start, piece.end) for piece in pieces[1:]] == [(0, 1)] * 3 + [(1, 2)]
    assert tokenizer.words("The dog") == sorted(tokenizer.words("The dog"))
    assert {*tokenizer.words("The dog")} == {0, 1}


def test_bert_lower_cases() -> None:
    tokenizer = imported.bert()
    assert (tokenizer.lowercase, tokenizer.normalisation, tokenizer.spaced) == (True, "none", False)
    assert tokenizer.encode("THE DOG") == tokenizer.encode("the dog")
    assert tokenizer.changes("The") and tokenizer.changes("naïve") and not tokenizer.changes("the dog")
    assert not tokenizer.keeps_spaces and not tokenizer.lossless


def test_what_is_lost() -> None:
    assert [make().lossless for make in ALL] == [False, True, False, False]
    assert imported.gpt2().loss == ""
    assert imported.llama().loss == "The character ▁ becomes a space."
    assert imported.bert().loss == (
        "White space is not kept as it stands, characters that are not in the vocabulary are dropped, and perhaps the words"
        " that they stand in."
    )
    assert imported.t5().loss == (
        "Characters that are not in the vocabulary are dropped, and the character ▁ becomes a space."
    )
    for text in ODD:
        gpt2, llama = imported.gpt2(), imported.llama()
        assert gpt2.decode(gpt2.encode(text)) == text
        assert llama.decode(llama.encode(text)) == text.replace("▁", " ")


def test_what_is_unknown() -> None:
    assert imported.bert().unknown("the 好 dog 好") == ["好"]
    assert imported.gpt2().unknown("好") == imported.llama().unknown("好") == []
    assert imported.t5().unknown("dog好") == ["好"]


def test_special_tokens_go_by_our_names_and_their_own() -> None:
    tokenizer = imported.bert()
    assert tokenizer.id_of(MASK) == tokenizer.id_of("[MASK]") == tokenizer.specials["[MASK]"]
    assert tokenizer.has_special("<start>") and not tokenizer.has_special("<gap_0>")
    with pytest.raises(UsageError) as caught:
        tokenizer.id_of("[MASKS]")
    assert str(caught.value) == "There is no special token '[MASKS]'.\nDid you mean [MASK]?"


def test_roles_that_nobody_plays() -> None:
    tokenizer = imported.gpt2()
    end = tokenizer.end_id
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.unknown_id) == (end, end, NO_TOKEN)
    assert tokenizer.unwritten(unknown=True) == ()
    assert imported.bert().unwritten() == (0, 2)
    assert imported.t5().unwritten(unknown=True) == (0, 2)


def test_what_stands_between_documents() -> None:
    gpt2, llama = imported.gpt2(), imported.llama()
    assert (gpt2.prefix, gpt2.opening, gpt2.boundary) == ((), (gpt2.end_id,), (gpt2.end_id,))
    assert (llama.opening, llama.boundary) == ((llama.start_id,), (llama.end_id, llama.start_id))


@pytest.mark.parametrize("make", [imported.t5, imported.llama])
def test_text_that_goes_on_has_no_space_in_front(make: Make) -> None:
    tokenizer = make()
    assert tokenizer.continuing.continuing is tokenizer.continuing
    whole = tokenizer.encode("The dog runs")
    assert [*tokenizer.encode("The"), *tokenizer.continuing.encode(" dog runs")] == whole
    assert tokenizer.continuing.encode("好")[:1] != tokenizer.encode("好")[:1]


def test_others_go_on_as_they_are() -> None:
    tokenizer = imported.gpt2()
    assert tokenizer.continuing is tokenizer


@pytest.mark.parametrize("make", ALL)
def test_text_is_no_special_token(make: Make) -> None:
    tokenizer = make()
    names = "".join(tokenizer.specials)
    for text in (names, f"a {names} b", "</s>", "<pad>"):
        ids = tokenizer.encode(text)
        assert not ({*ids} & {*tokenizer.specials.values()}) - {tokenizer.unknown_id}
        assert [piece.id for piece in tokenizer.pieces(text)] == ids


def test_rows_that_no_token_has() -> None:
    tokenizer = Tokenizer(imported.byte_level(), Roles(end="<|endoftext|>", rows=320))
    assert (tokenizer.vocab_size, tokenizer.n_tokens, len(tokenizer.vocabulary)) == (320, 301, 301)
    assert tokenizer.piece_text(310) == "⟨310⟩"


def test_tokens_that_have_no_row_are_unknown() -> None:
    library = imported.unigram()
    roles = Roles(end="</s>", unknown="<unk>", rows=20)
    tokenizer = Tokenizer(library, roles)
    ids = tokenizer.encode("The dog runs through the park.")
    assert max(ids) < 20 and tokenizer.unknown_id in ids
    assert (tokenizer.vocab_size, tokenizer.n_tokens, len(tokenizer.vocabulary)) == (20, 20, 20)
