"""Which tokenizer a config asks for, and what contradicts itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.config import TokenizerConfig
from regard.data.text import vocabulary
from regard.data.text.tokenizer_training import choose_vocab_size, learn
from regard.data.text.vocabulary import check_specials, given_tokenizer, learned_tokenizer
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
    assert learned_tokenizer(config, texts, quiet).to_json() == learn(TEXTS, kind="words", vocab_size=8).to_json()
    said: list[str] = []
    chosen = learned_tokenizer(TokenizerConfig(), texts, lambda what, done: said.append(what))
    assert said == ["learning the vocabulary"]
    assert chosen.to_json() == learn(TEXTS, kind="bpe", vocab_size=choose_vocab_size(TEXTS)).to_json()


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
