"""Which tokenizer a config asks for, and what contradicts itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.config import AS_SAVED, TokenizerConfig
from regard.data.text import vocabulary
from regard.data.text.tokenizer_training import choose_vocab_size, learn
from regard.data.text.vocabulary import case_notes, check_specials, fitted_tokenizer, given_tokenizer, learned_tokenizer
from regard.errors import ConfigError, DataError

TEXTS = ["A dog runs across the grass.", "Ein Hund läuft über das Gras."] * 3


def texts() -> Iterator[str]:
    yield from TEXTS


def quiet(what: str, done: int) -> None:
    pass


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "own.json"
    learn(TEXTS, kind="words", vocab_size=100).save(path)
    return str(path)


def test_without_a_file_it_is_learnt() -> None:
    config = TokenizerConfig(kind="words", vocab_size=8)
    assert given_tokenizer(config) is None
    words = learn(TEXTS, kind="words", vocab_size=8, normalisation="nfc")
    assert learned_tokenizer(config, texts, quiet).to_json() == words.to_json()
    said: list[str] = []
    chosen = learned_tokenizer(TokenizerConfig(), texts, lambda what, done: said.append(what))
    assert said == ["learning the vocabulary"]
    size = choose_vocab_size(TEXTS)
    assert chosen.to_json() == learn(TEXTS, kind="bpe", vocab_size=size, normalisation="nfc").to_json()


def test_special_tokens_are_learnt_or_must_be_there(file: str) -> None:
    specials = ("<mask>", "<gap_0>")
    learned = learned_tokenizer(TokenizerConfig(kind="words"), texts, quiet, specials=specials)
    assert [learned.id_of(special) for special in specials] == [4, 5]
    check_specials(learned, specials)
    brought = given_tokenizer(TokenizerConfig(file=file))
    assert brought is not None
    with pytest.raises(ConfigError) as caught:
        check_specials(brought, specials)
    assert str(caught.value) == (
        "The vocabulary has no token <mask>: it was learned for another task.\n"
        "Take that of a run of the same task, or let a new one be learned."
    )


@pytest.mark.parametrize("kind", ["auto", "words"])  # the default, or what the file holds
def test_a_file_that_regard_wrote(kind: str, file: str) -> None:
    tokenizer = given_tokenizer(TokenizerConfig(file=file, kind=kind))
    assert tokenizer is not None
    assert tokenizer.to_json() == learn(TEXTS, kind="words", vocab_size=100).to_json()


def test_any_other_name_is_a_file_of_tiktoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    path.write_text("IQ== 1\n")
    with pytest.raises(DataError, match="line 1: expected rank 0, found 1"):
        given_tokenizer(TokenizerConfig(file=str(path)))
    brought = learn(TEXTS, kind="bytes", vocab_size=300)
    monkeypatch.setattr(vocabulary, "read_tiktoken", lambda given: brought if given == str(path) else None)
    assert given_tokenizer(TokenizerConfig(file=str(path))) is brought


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"shared": False},
            "tokenizer.file brings one vocabulary, which source and target share.\n"
            "Set tokenizer.shared = true, or leave tokenizer.file out.",
        ),
        (
            {"vocab_size": 8000},
            "tokenizer.file has a size of its own, and tokenizer.vocab_size asks for 8,000.\n"
            "Set tokenizer.vocab_size = 0, or leave tokenizer.file out.",
        ),
        (
            {"kind": "unigram"},
            "tokenizer.kind is unigram, and the vocabulary of FILE is of kind words.\n"
            "Leave tokenizer.kind out where tokenizer.file is given.",
        ),
    ],
)
def test_settings_that_contradict_the_file(settings: dict[str, object], message: str, file: str) -> None:
    with pytest.raises(ConfigError) as caught:
        given_tokenizer(TokenizerConfig(file=file, **settings))
    assert str(caught.value) == message.replace("FILE", file)


def test_what_cannot_be_learnt() -> None:
    with pytest.raises(ConfigError) as caught:
        given_tokenizer(TokenizerConfig(kind="tiktoken"))
    assert str(caught.value) == (
        "A vocabulary of kind tiktoken is brought along, not learned.\n"
        "Set tokenizer.file to a file such as cl100k_base.tiktoken, or choose another tokenizer.kind."
    )


# Lower case and Unicode forms

SMALL = ["a dog runs across the grass.", "ein hund läuft über das gras."] * 40


@pytest.mark.parametrize("kind", ["bpe", "words", "characters", "bytes", "unigram", "wordpiece"])
@pytest.mark.parametrize("vocab_size", [0, 300])
def test_lower_casing_is_chosen_where_the_text_is_lower_cased(kind: str, vocab_size: int) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=vocab_size)
    tokenizer = learned_tokenizer(config, lambda: SMALL, quiet)
    assert tokenizer.lowercase
    assert tokenizer.encode("A Dog runs.") == tokenizer.encode("a dog runs.")
    assert not learned_tokenizer(config, lambda: TEXTS * 40, quiet).lowercase


@pytest.mark.parametrize("vocab_size", [0, 300])
def test_what_is_asked_for_wins(vocab_size: int) -> None:
    off, on = (TokenizerConfig(vocab_size=vocab_size, lowercase=asked) for asked in (False, True))
    assert not learned_tokenizer(off, lambda: SMALL, quiet).lowercase
    learned = learned_tokenizer(on, lambda: TEXTS, quiet)
    assert learned.lowercase
    assert learned.decode(learned.encode("A dog RUNS.")) == "a dog runs."


def test_both_sides_of_a_shared_vocabulary_must_be_lower_cased() -> None:
    pairs = [("a dog runs across the grass.", "Ein Hund läuft über das Gras.")] * 100

    def learned(sides: list[tuple[str, ...]]) -> bool:
        texts = [text for pair in sides for text in pair]
        return learned_tokenizer(TokenizerConfig(vocab_size=300), lambda: texts, quiet, sides=lambda: sides).lowercase

    assert not learned(pairs)
    assert learned([(source,) for source, _ in pairs])
    assert learned([(source, target.lower()) for source, target in pairs])


def test_the_size_of_a_lower_casing_vocabulary_is_that_of_lower_cased_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(vocabulary, "choose_vocab_size", lambda texts, **settings: read.extend(texts) or 300)
    learned_tokenizer(TokenizerConfig(lowercase=True), texts, quiet)
    assert read == [text.lower() for text in TEXTS]


def test_text_that_is_only_read_is_cut_into_the_words_that_occur_twice() -> None:
    common, rare = ["a dog runs", "a cat runs"] * 2, ["a zebra runs"]
    auto = TokenizerConfig()
    read = learned_tokenizer(auto, lambda: common + rare, quiet, only_read=True)
    assert read.kind == "words"
    assert read.unknown("a zebra and a cat") == ["zebra", "and"]
    assert learned_tokenizer(TokenizerConfig(kind="words"), lambda: common + rare, quiet, only_read=True).unknown(
        "a zebra"
    ) == ["zebra"]
    asked = learned_tokenizer(TokenizerConfig(vocab_size=100), lambda: common + rare, quiet, only_read=True)
    assert asked.unknown("a zebra") == [], "a size that is asked for is filled"
    assert learned_tokenizer(auto, lambda: common + rare, quiet).kind == "bpe", "what is written has no unknown words"


def test_text_without_spaces_is_cut_into_pieces() -> None:
    sequences = ["MTYKLILNGKTLKGETTTEAVD", "MQYKLILNGKTLKGETTTEAVD"] * 10
    assert learned_tokenizer(TokenizerConfig(), lambda: sequences, quiet, only_read=True).kind == "bpe"


def test_word_vectors_need_words_all_of_them() -> None:
    learned = learned_tokenizer(
        TokenizerConfig(vectors="words.vec"), lambda: ["a dog runs", "a cat runs"], quiet, only_read=True
    )
    assert learned.kind == "words"
    assert learned.unknown("a cat") == []


def test_nfc_is_chosen_only_where_it_changes_nothing() -> None:
    composed, decomposed = "Käfer", "Ka\u0308fer"
    config = TokenizerConfig(vocab_size=300)
    assert learned_tokenizer(config, lambda: [composed] * 20, quiet).normalisation == "nfc"
    assert learned_tokenizer(config, lambda: [composed] * 20 + [decomposed], quiet).normalisation == "none"
    for asked in ("none", "nfc", "nfkc"):
        config = TokenizerConfig(vocab_size=300, normalisation=asked)
        assert learned_tokenizer(config, lambda: [composed, decomposed] * 20, quiet).normalisation == asked


@pytest.mark.parametrize("kind", ["bpe", "words", "characters", "bytes", "unigram", "wordpiece"])
@pytest.mark.parametrize("running", [False, True])
def test_a_vocabulary_that_was_brought_along_has_the_case_of_the_text(kind: str, running: bool) -> None:
    auto = TokenizerConfig()
    small, cased = [(text,) for text in SMALL], [(text,) for text in TEXTS * 40]
    own = learn(SMALL, kind=kind, vocab_size=400, lowercase=True, normalisation="nfc", running=running)
    assert fitted_tokenizer(auto, own, lambda: small) is own
    plain = fitted_tokenizer(auto, own, lambda: cased)
    assert (plain.lowercase, plain.normalisation, plain.spaced) == (False, "nfc", own.spaced)
    assert plain.vocabulary == own.vocabulary
    assert plain.encode("a dog runs") == own.encode("A Dog runs") != plain.encode("A Dog runs")
    assert fitted_tokenizer(auto, plain, lambda: cased) is plain
    assert fitted_tokenizer(auto, plain, lambda: small).to_json() == own.to_json()
    for asked, given, expected in (
        (True, plain, own),
        (False, own, plain),
        (AS_SAVED, own, own),
        (AS_SAVED, plain, plain),
    ):
        config = TokenizerConfig(lowercase=asked)
        assert fitted_tokenizer(config, given, unread).to_json() == expected.to_json()


def unread() -> Iterator[tuple[str, ...]]:
    raise AssertionError("what is asked for needs no text")


def test_a_file_has_its_own_form_and_tiktoken_its_own_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "own.json")
    learn(TEXTS, kind="words", vocab_size=100, lowercase=True, normalisation="nfkc").save(path)
    for form in ("auto", "nfkc"):
        found = given_tokenizer(TokenizerConfig(file=path, normalisation=form))
        assert found is not None and found.lowercase and found.normalisation == "nfkc"
    with pytest.raises(ConfigError) as caught:
        given_tokenizer(TokenizerConfig(file=path, normalisation="none"))
    assert str(caught.value) == (
        f"tokenizer.normalisation is none, and that of {path} is nfkc.\n"
        "Leave tokenizer.normalisation out where tokenizer.file is given."
    )
    brought = learn(TEXTS, kind="bytes", vocab_size=300)
    brought.kind = "tiktoken"
    monkeypatch.setattr(vocabulary, "read_tiktoken", lambda given: brought)
    with pytest.raises(ConfigError) as caught:
        given_tokenizer(TokenizerConfig(file="x.tiktoken", lowercase=True))
    assert str(caught.value) == (
        "tokenizer.lowercase is true, and a vocabulary of kind tiktoken reads text as it stands.\n"
        "Leave tokenizer.lowercase out, or lower-case the files."
    )
    assert given_tokenizer(TokenizerConfig(file="x.tiktoken", lowercase=False)) is brought
    assert fitted_tokenizer(TokenizerConfig(), brought, unread) is brought


INPUT, OUTPUT = "input is lower-cased too", "output has no capitals"


def test_what_is_told_of_case() -> None:
    small, cased = (learn(TEXTS, kind="words", vocab_size=100, lowercase=lowercase) for lowercase in (True, False))
    auto, asked, resumed = (TokenizerConfig(lowercase=one) for one in ("auto", True, AS_SAVED))
    assert case_notes(auto, {"": cased}) == ()
    for config, tokenizers, text in (
        (auto, {"": small}, f"training text is lower-cased: {INPUT}"),
        (resumed, {"": small}, f"training text is lower-cased: {INPUT}"),
        (auto, {"source": small, "target": small}, f"training text is lower-cased: {INPUT}"),
        (auto, {"source": small, "target": cased}, f"training text of the source is lower-cased: {INPUT}"),
        (auto, {"source": cased, "target": small}, f"training text of the target is lower-cased: {OUTPUT}"),
        (asked, {"": small}, "all text is lower-cased, input and output (tokenizer.lowercase)"),
    ):
        assert case_notes(config, tokenizers) == (("lower case", text),)
