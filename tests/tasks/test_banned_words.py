"""Which texts banned words forbid, for every kind of tokenizer."""

import base64
import math
from pathlib import Path

import pytest
import torch

from regard.data.formats.tiktoken import KNOWN, KnownVocabulary, read_tiktoken
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import byte_symbols
from regard.data.text.tokenizer_training import KINDS, learn
from regard.decoding.rules import Step, apply_rules
from regard.tasks.banned_words import banning

NOTHING = torch.zeros(1, 0, dtype=torch.long)
CORPUS = [
    "Ein Hund und eine Katze.",
    "Der Hund (und die Katze) läuft rund um den Baum, und der Mann auch.",
    "Die Hundehütte ist alt. Rund und bunt!",
    "Xylophon: ein Xylophon, das Xylophon.",
] * 3


@pytest.fixture(scope="module", params=[*KINDS, "running text", "tiktoken"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    if request.param == "tiktoken":
        return brought_along(tmp_path_factory.mktemp("vocabulary") / "tiny.tiktoken")
    if request.param == "running text":
        return learn(CORPUS, kind="bpe", vocab_size=330, running=True)
    return learn(CORPUS, kind=request.param, vocab_size=330)


def brought_along(path: Path) -> Tokenizer:
    """The tokens of `bpe` as tiktoken has them: no space in front of the text."""
    learned, symbols = learn(CORPUS, kind="bpe", vocab_size=330), byte_symbols()
    tokens = [bytes(symbols[symbol] for symbol in token) for token in list(learned.vocabulary)[4:]]
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)))
    known = KnownVocabulary(name="tiny", n_ranks=len(tokens), pattern=KNOWN[-1].pattern)
    return read_tiktoken(path, known=[known])


def can_write(text: str, banned: list[str], tokenizer: Tokenizer) -> bool:
    """Whether the tokens of a text pass the rules one after the other."""
    ids, rules = tokenizer.encode(text), banning(banned, tokenizer)
    assert tokenizer.unknown_id not in ids, "the test must ask for what the tokenizer knows"
    for place, id in enumerate(ids):
        logits = torch.zeros(1, tokenizer.vocab_size)
        step = Step(logits, NOTHING, torch.tensor([ids[:place]], dtype=torch.long), torch.tensor([0]))
        if apply_rules(rules, logits.clone(), step)[0, id] == -math.inf:
            return False
    return True


@pytest.mark.parametrize(
    ("banned", "forbidden", "free"),
    [
        ("und", ["und", "Hund und Katze", "Hund (und"], ["Ein Hund", "rund", "der Mann"]),
        (".", ["Katze.", "der Hund ."], ["Ein Hund", "der Hund, der Mann"]),
        ("Hund", ["Hund", "Ein Hund und", "Katze (Hund"], ["Ein Baum", "rund", "und"]),
        ("ein Xylophon", ["das ist ein Xylophon"], ["ein Hund", "das Xylophon", "Xylophon ein Baum"]),
        (" und ", ["Hund und Katze"], ["Hund"]),
    ],
)
def test_a_banned_word_is_not_written(tokenizer: Tokenizer, banned: str, forbidden: list[str], free: list[str]) -> None:
    assert [text for text in forbidden if can_write(text, [banned], tokenizer)] == []
    assert [text for text in free if not can_write(text, [banned], tokenizer)] == []
    assert all(can_write(text, [], tokenizer) for text in forbidden)


def test_several_words_are_banned_together(tokenizer: Tokenizer) -> None:
    banned = ["Hund", "Katze", "!"]
    assert not any(can_write(text, banned, tokenizer) for text in ("ein Hund", "die Katze", "bunt!"))
    assert can_write("der Mann läuft.", banned, tokenizer)


def test_pieces_of_a_banned_word_stay_free() -> None:
    tokenizer = learn(CORPUS, kind="bpe", vocab_size=300)
    assert len(tokenizer.encode("Mondfisch")) > 4
    for id in tokenizer.encode("Mondfisch"):
        logits = torch.zeros(1, tokenizer.vocab_size)
        step = Step(logits, NOTHING, NOTHING, torch.tensor([0]))
        assert apply_rules(banning(["Mondfisch"], tokenizer), logits.clone(), step)[0, id] == 0


@pytest.mark.parametrize("texts", [[], [""], ["  "]])
def test_nothing_is_banned_by_nothing(tokenizer: Tokenizer, texts: list[str]) -> None:
    assert banning(texts, tokenizer) == []


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "words", "characters"])
def test_what_cannot_be_written_anyway_needs_no_rule(kind: str) -> None:
    """Nor may it ban the unknown token, which stands for other words too."""
    assert banning(["犬"], learn(CORPUS, kind=kind, vocab_size=330)) == []
