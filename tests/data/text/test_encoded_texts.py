"""Texts that are encoded once, whoever asks for them how often."""

import pytest

from regard.data.text.encoded_texts import EncodedTexts
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn


def test_each_text_is_encoded_once_and_many_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = learn(["a dog runs", "the cat sees a dog"], kind="characters", vocab_size=64)
    wanted = {text: tokenizer.encode(text) for text in ("a dog", "the cat", "a", "")}
    calls: list[list[str]] = []
    encode_batch = Tokenizer.encode_batch

    def counted(self: Tokenizer, texts: list[str]) -> list[list[int]]:
        calls.append(list(texts))
        return encode_batch(self, texts)

    monkeypatch.setattr(Tokenizer, "encode_batch", counted)
    encoded = EncodedTexts(tokenizer, ["a dog", "the cat", "a dog", ""])
    for text, ids in [*wanted.items()] * 2:
        assert encoded.ids(text) == ids
    assert calls == [["a dog", "the cat", "a dog", ""], ["a"]]
