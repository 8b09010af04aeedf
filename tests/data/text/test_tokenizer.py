"""Seven kinds of tokenizers: exact round trips, offsets, files that others read, and the errors people meet."""

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.data.text.roles import SPECIALS
from regard.data.text.tokenizer import Piece, Tokenizer
from regard.data.text.tokenizer_parts import LOSS
from regard.data.text.tokenizer_training import KINDS, learn
from regard.errors import DataError, UsageError
from regard.runs.disk import TEMPORARY

TEXTS = [
    "A dog runs across the grass.",
    "The dogs' t-shirts (red, blue) are #1!",
    "Ein Hund läuft über das Gras; die Straße ist naß.",
    "Two men are playing chess: the men's game.",
    "<pad> <start> <end> <unk> <mask> 漢字 e\u0301",
] * 3

LEARNED = {kind: learn(TEXTS, kind=kind, vocab_size=400, specials=["<mask>"]) for kind in KINDS}
LOSSLESS = [kind for kind in KINDS if LEARNED[kind].lossless]

quick = settings(max_examples=60, deadline=None)
real_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
awkward_text = st.lists(
    st.sampled_from(
        ["<pad>", "<mask>", "<", " ", "  ", "\n", "\u2028", "👩‍👩‍👧", "e\u0301", "\ufffd", "Ġ", "▁", "##", "dog", "'s"]
    )
).map("".join)


@pytest.mark.parametrize("kind", LOSSLESS)
@quick
@given(text=real_text | awkward_text)
@example(text="\x00")
@example(text=" a")
def test_lossless_kinds_give_every_text_back(kind: str, text: str) -> None:
    tokenizer = LEARNED[kind]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(id > tokenizer.unknown_id for id in ids)


def test_bpe_and_bytes_are_the_lossless_kinds() -> None:
    assert LOSSLESS == ["bpe", "bytes"]
    assert all(LEARNED[kind].loss == LOSS[kind] for kind in KINDS)


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "sentencepiece", "characters"])
def test_lossy_kinds_keep_spaces_of_known_text(kind: str) -> None:
    for text in [*TEXTS, "  dog  runs (the men's) ", " ", ""]:
        assert LEARNED[kind].decode(LEARNED[kind].encode(text)) == text


@pytest.mark.parametrize(
    ("kind", "text", "back"),
    [
        ("unigram", "a жdog ▁", "a dog  "),
        ("wordpiece", "the жdog ▁", "the  "),
        ("sentencepiece", "a жdog ▁", "a жdog  "),
        ("characters", "aжb", "ab"),
        ("words", "A  dog\truns, жук", "A dog runs ,"),
    ],
)
def test_the_others_lose_what_they_say(kind: str, text: str, back: str) -> None:
    assert LEARNED[kind].decode(LEARNED[kind].encode(text)) == back


def test_wordpiece_drops_words_of_more_than_100_characters() -> None:
    tokenizer = LEARNED["wordpiece"]
    assert tokenizer.decode(tokenizer.encode("the " + "a" * 99)) == "the " + "a" * 99
    assert tokenizer.encode("a" * 100) == [tokenizer.unknown_id]


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(text=awkward_text)
def test_text_never_becomes_a_special_token(kind: str, text: str) -> None:
    tokenizer = LEARNED[kind]
    specials = {*range(4), tokenizer.id_of("<mask>")} - {tokenizer.unknown_id}
    assert specials.isdisjoint(tokenizer.encode(text))
    assert specials.isdisjoint(piece.id for piece in tokenizer.pieces(text))


@pytest.mark.parametrize("kind", KINDS)
def test_specials_come_first_and_decoding_drops_them(kind: str) -> None:
    tokenizer = LEARNED[kind]
    assert [tokenizer.piece_text(id) for id in range(5)] == [*SPECIALS, "<mask>"]
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id) == (0, 1, 2, 3)
    assert tokenizer.id_of("<mask>") == 4
    assert tokenizer.specials == {special: id for id, special in enumerate((*SPECIALS, "<mask>"))}
    assert tokenizer.decode([1, *tokenizer.encode("dog"), 4, 3, 2, 0, 0]) == "dog"


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_encoded_as_single_texts(kind: str) -> None:
    tokenizer = LEARNED[kind]
    assert tokenizer.encode_batch(TEXTS[:5]) == [tokenizer.encode(text) for text in TEXTS[:5]]
    assert [piece.id for piece in tokenizer.pieces(TEXTS[2])] == tokenizer.encode(TEXTS[2])


def test_a_word_is_the_same_token_at_the_start_and_inside() -> None:
    for kind in ("bpe", "unigram", "wordpiece", "sentencepiece", "words"):
        assert LEARNED[kind].encode("the the") == LEARNED[kind].encode("the") * 2


@pytest.mark.parametrize("kind", LOSSLESS)
@quick
@given(text=real_text | awkward_text)
def test_pieces_cover_the_text_without_gaps(kind: str, text: str) -> None:
    reached = 0
    for piece in LEARNED[kind].pieces(text):
        assert piece.text == text[piece.start : piece.end]
        # A piece begins where the last one ended, or inside the character that it shares with it.
        assert piece.start in (reached, max(reached - 1, 0))
        assert piece.end >= reached
        reached = piece.end
    assert reached == len(text)


def test_pieces_show_text_and_not_byte_symbols() -> None:
    assert LEARNED["bpe"].pieces("the dog")[-1] == Piece(LEARNED["bpe"].encode("dog")[0], " dog", 3, 7)
    assert [(p.text, p.start, p.end) for p in LEARNED["bytes"].pieces("aß")] == [("a", 0, 1), ("ß", 1, 2), ("ß", 1, 2)]
    # Nothing of the text stands behind a space that was put in front and joined no word.
    assert [(p.text, p.start, p.end) for p in LEARNED["bpe"].pieces("ж")] == [("", 0, 0), ("ж", 0, 1), ("ж", 0, 1)]
    unknown = LEARNED["words"].pieces("A жук.")[1]
    assert unknown == Piece(3, "жук", 2, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_have_the_spans_of_each_alone(kind: str) -> None:
    tokenizer = LEARNED[kind]
    texts = ["the dog", "", "ж and a cat"]
    expected = [(tokenizer.encode(text), [(p.start, p.end) for p in tokenizer.pieces(text)]) for text in texts]
    assert tokenizer.spans_batch(texts) == expected
    with pytest.raises(DataError, match="Half a surrogate pair"):
        tokenizer.spans_batch(["a", "\ud800"])


def test_piece_text_is_readable() -> None:
    bpe, wordpiece, words = LEARNED["bpe"], LEARNED["wordpiece"], LEARNED["words"]
    assert bpe.piece_text(bpe.encode("dog")[0]) == " dog"
    assert [bpe.piece_text(id) for id in bpe.encode("ж")] == [" ", "⟨D0⟩", "⟨B6⟩"]
    sentencepiece = LEARNED["sentencepiece"]
    assert [sentencepiece.piece_text(id) for id in sentencepiece.encode("ж\n")] == [" ", "⟨D0⟩", "⟨B6⟩", "\n"]
    assert "".join(wordpiece.piece_text(id) for id in wordpiece.encode("the grassdog")) == " the grassdog"
    assert [words.piece_text(id) for id in words.encode("t-shirts.")] == ["t-shirts", "."]


def test_piece_text_of_a_token_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"^There is no token 260: the vocabulary has 260\.$"):
        learn(["a"], kind="bytes", vocab_size=260).piece_text(260)


@pytest.mark.parametrize("kind", KINDS)
def test_words_say_where_each_piece_belongs(kind: str) -> None:
    text = "  The dogs' t-shirts\n(red) "
    tokenizer = LEARNED[kind]
    words = tokenizer.words(text)
    assert sorted(set(words)) == [0, 1, 2, 3]
    assert words == sorted(words)
    for piece, word in zip(tokenizer.pieces(text), words, strict=True):
        assert piece.text.strip() in text.split()[word]


def test_words_of_white_space() -> None:
    tokenizer = LEARNED["bytes"]
    assert tokenizer.words("a b ") == [0, 1, 1, 1]
    assert tokenizer.words("  ") == [-1, -1]
    assert tokenizer.words("") == []


@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_everything_and_others_read_them(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "shared.json"
    LEARNED[kind].save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["shared.json"]
    again = Tokenizer.load(path)
    assert again.kind == kind
    assert again.to_json() == LEARNED[kind].to_json()
    assert again.encode("<pad> dog") == LEARNED[kind].encode("<pad> dog")
    assert again.id_of("<mask>") == 4
    others = tokenizers.Tokenizer.from_file(str(path))
    for text in TEXTS[:4]:
        ids = others.encode(text).ids
        assert ids == again.encode(text)
        assert others.decode(ids) == again.decode(ids)


def test_saving_leaves_the_old_file_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shared.json"
    path.write_text("old")

    written = []

    def full(descriptor: int) -> None:
        written.extend(file.name for file in tmp_path.glob(".*"))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        LEARNED["bytes"].save(path)
    assert [name.startswith(TEMPORARY) for name in written] == [True]  # so that a run removes it after a kill
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["shared.json"]


def test_a_special_token_that_was_not_asked_for() -> None:
    with pytest.raises(UsageError) as caught:
        LEARNED["bpe"].id_of("<masks>")
    assert str(caught.value) == "There is no special token '<masks>'.\nDid you mean <mask>?"
    with pytest.raises(UsageError, match="There is no special token 'dog'"):
        LEARNED["words"].id_of("dog")


def test_half_a_surrogate_pair_is_refused() -> None:
    problem = r"^Half a surrogate pair, U\+D83D, stands at character 2 of a text\.\nDecode the text as UTF-8, or UTF-16"
    with pytest.raises(DataError, match=problem):
        LEARNED["bpe"].encode("a \ud83d")
    with pytest.raises(DataError, match=problem):
        LEARNED["bpe"].pieces("a \ud83d")


REMEDY = "\nGive a tokenizer.json that regard has written."


def test_loading_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert str(caught.value) == f"{path}: there is no such file." + REMEDY


LONG = LEARNED["words"].to_json().replace('"1.0"', f'"{"9" * 5000}"').encode()  # of an unknown version


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\xff\xfe", b"A dog runs.", LONG])
def test_loading_what_is_no_tokenizer(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text.json"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert str(caught.value).startswith(f"{path}: not a tokenizer file: ")
    assert len(caught.value.problem) < 300 + len(str(path))
    assert str(caught.value).endswith(REMEDY)


def test_loading_a_tokenizer_without_a_token_for_unknown_words(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    file = json.loads(LEARNED["words"].to_json())
    file["model"]["vocab"]["other"] = file["model"]["vocab"].pop("<unk>")
    path.write_text(json.dumps(file))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert caught.value.problem == f"{path}: not a tokenizer of regard: it has no token for unknown words."


def test_loading_a_tokenizer_of_another_make(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"[PAD]": 0}, unk_token="[PAD]")).save(str(path))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert caught.value.problem == f"{path}: not a tokenizer of regard: it has no special token <pad>."
    other = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    other.add_special_tokens(list(SPECIALS))
    other.save(str(path))
    with pytest.raises(DataError) as caught:
        Tokenizer.load(path)
    assert caught.value.problem == f"{path}: not a tokenizer of regard: BPE is none of its kinds."


@pytest.mark.parametrize(
    ("kind", "unknown"),
    [
        ("bpe", []),
        ("bytes", []),
        ("sentencepiece", []),
        ("characters", ["Ä", "ß"]),
        ("unigram", ["Ä", "ß"]),
        ("wordpiece", ["Äther", "groß"]),
        ("words", ["Äther", "groß", "und", "Hof"]),
    ],
)
def test_what_a_vocabulary_does_not_know(kind: str, unknown: list[str]) -> None:
    tokenizer = learn(["der Hund ther gro ho f ", "H o f u n d\n"] * 9, kind=kind, vocab_size=300, running=True)
    found = tokenizer.unknown("der Äther groß und Hof Äther")
    assert found == unknown
    assert tokenizer.unknown("") == []


# Lower case and Unicode forms

WITH_FORMS = [kind for kind in KINDS if kind != "sentencepiece"]
CASED = ["The Dog sees Äpfel.", "the dog runs", "ﬁne ½"] * 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("running", [False, True])
def test_lower_casing_makes_capitals_and_small_letters_the_same(kind: str, running: bool) -> None:
    tokenizer = learn(CASED, kind=kind, vocab_size=400, lowercase=True, running=running)
    text = "THE Dog sees Äpfel"
    assert tokenizer.encode(text) == tokenizer.encode(text.lower())
    assert tokenizer.decode(tokenizer.encode(text)) == "the dog sees äpfel"
    assert not tokenizer.lossless and tokenizer.changes(text) and not tokenizer.changes(text.lower())


@pytest.mark.parametrize("kind", WITH_FORMS)
def test_pieces_of_lower_cased_text_are_of_the_text_as_it_was_given(kind: str) -> None:
    text = "The DOG sees Äpfel"
    pieces = learn(CASED, kind=kind, vocab_size=400, lowercase=True, normalisation="nfc").pieces(text)
    assert all(piece.text == text[piece.start : piece.end] for piece in pieces)
    assert {letter for piece in pieces for letter in piece.text} >= set("TheDOGÄpfel")


@pytest.mark.parametrize("kind", WITH_FORMS)
def test_a_letter_and_its_accent_are_the_letter_under_nfc(kind: str) -> None:
    composed, decomposed = "the Äpfel", "the A\u0308pfel"
    plain, nfc = (learn(CASED, kind=kind, vocab_size=400, normalisation=form) for form in ("none", "nfc"))
    assert plain.encode(decomposed) != plain.encode(composed)
    assert nfc.encode(decomposed) == nfc.encode(composed)
    assert nfc.encode(composed) == plain.encode(composed) or kind in ("unigram", "wordpiece")  # which learn by chance
    assert nfc.words(decomposed) == nfc.words(composed)
    assert nfc.lossless == plain.lossless
    assert nfc.changes(decomposed) and not nfc.changes(composed) and not plain.changes(decomposed)


def test_nfkc_reads_compatible_characters_as_one() -> None:
    tokenizer = learn(CASED, kind="bpe", vocab_size=400, normalisation="nfkc")
    assert tokenizer.decode(tokenizer.encode("ﬁne ＡＢＣ ½")) == "fine ABC 1⁄2"
    assert not tokenizer.lossless and not tokenizer.loss


NORMALISING = {kind: learn(CASED, kind=kind, vocab_size=400, lowercase=True, normalisation="nfc") for kind in LOSSLESS}


@pytest.mark.parametrize("kind", LOSSLESS)
@quick
@given(text=real_text | awkward_text)
@example(text="İ ǅ Σ ẞ")
def test_texts_come_back_up_to_their_normalisation(kind: str, text: str) -> None:
    tokenizer = NORMALISING[kind]
    back = tokenizer.decode(tokenizer.encode(text))
    assert tokenizer.decode(tokenizer.encode(back)) == back
    assert tokenizer.changes(text) or back == text
