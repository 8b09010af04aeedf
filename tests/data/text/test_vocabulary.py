"""Which tokenizer a config asks for, and what contradicts itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.config import TokenizerConfig
from regard.data.text import vocabulary
from regard.data.text.tokenizer_training import choose_vocab_size, learn
from regard.data.text.vocabulary import case_notes, check_specials, given_tokenizer, learned_tokenizer
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


@pytest.mark.parametrize("kind", ["bpe", "words"])  # the default, or what the file holds
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


def test_nfc_is_chosen_only_where_it_changes_nothing() -> None:
    composed, decomposed = "Käfer", "Ka\u0308fer"
    config = TokenizerConfig(vocab_size=300)
    assert learned_tokenizer(config, lambda: [composed] * 20, quiet).normalisation == "nfc"
    assert learned_tokenizer(config, lambda: [composed] * 20 + [decomposed], quiet).normalisation == "none"
    for asked in ("none", "nfc", "nfkc"):
        config = TokenizerConfig(vocab_size=300, normalisation=asked)
        assert learned_tokenizer(config, lambda: [composed, decomposed] * 20, quiet).normalisation == asked


def test_a_file_has_its_own_case_and_form(tmp_path: Path) -> None:
    path = str(tmp_path / "own.json")
    learn(TEXTS, kind="words", vocab_size=100, lowercase=True, normalisation="nfkc").save(path)
    for settings in ({}, {"lowercase": True}, {"normalisation": "nfkc"}):
        found = given_tokenizer(TokenizerConfig(file=path, **settings))
        assert found is not None and found.lowercase and found.normalisation == "nfkc"
    with pytest.raises(ConfigError) as caught:
        given_tokenizer(TokenizerConfig(file=path, lowercase=False))
    assert str(caught.value) == (
        f"tokenizer.lowercase is false, and of the vocabulary of {path} it is true.\n"
        "Leave tokenizer.lowercase out where tokenizer.file is given."
    )
    with pytest.raises(
        ConfigError, match=r"^tokenizer\.normalisation is none, and of the vocabulary of .* it is nfkc\.\n"
    ):
        given_tokenizer(TokenizerConfig(file=path, normalisation="none"))


INPUT, OUTPUT = "input is lower-cased too", "output has no capitals"


def test_what_is_told_of_case() -> None:
    small, cased = (learn(TEXTS, kind="words", vocab_size=100, lowercase=lowercase) for lowercase in (True, False))
    auto, asked = TokenizerConfig(), TokenizerConfig(lowercase=True)
    assert case_notes(auto, {"": cased}, learned=True) == ()
    for config, tokenizers, learned, text in (
        (auto, {"": small}, True, "training text is lower-cased: input is lower-cased too"),
        (auto, {"source": small, "target": small}, True, "training text is lower-cased: input is lower-cased too"),
        (auto, {"source": small, "target": cased}, True, f"training text of the source is lower-cased: {INPUT}"),
        (auto, {"source": cased, "target": small}, True, f"training text of the target is lower-cased: {OUTPUT}"),
        (asked, {"": small}, True, "all text is lower-cased, input and output (tokenizer.lowercase)"),
        (auto, {"": small}, False, "the vocabulary lower-cases all text"),
    ):  # fmt: skip
        assert case_notes(config, tokenizers, learned=learned) == (("lower case", text),)
