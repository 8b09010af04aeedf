"""The ids of texts that are asked for more than once: most are encoded together, on all cores, and none twice."""

from collections.abc import Sequence

from regard.data.text.tokenizer import Tokenizer


class EncodedTexts:
    """Texts, perhaps many, encoded at once; further ones, such as parts of them, when they are first asked for."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._ids = dict(zip(texts, tokenizer.encode_batch(texts), strict=True))

    def ids(self, text: str) -> list[int]:
        """The ids of a text, without any special token; not to be changed."""
        found = self._ids.get(text)
        if found is None:
            found = self._ids[text] = self._tokenizer.encode(text)
        return found
