"""Labelled examples as the rows of a stored corpus.

    texts     ragged ids, ids_b; numbers file, line, cut, and label (a class) or value (the bits of a float64)
    tagged    ragged ids, firsts (where in ids each word begins), tags; numbers file, line, cut
    vectors   ragged vectors (the bits of float32, row by row); numbers file, line, cut, and label or value, or ragged tags

`cut` is 1 where the end of an example was more than is read, else 0. Where texts are kept there is also `text`, and beside
`ids_b` also `text_b`.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regard.data.formats.conll import Tagged
from regard.data.formats.rows import Bad
from regard.data.labelled.encoding import encode_texts, encode_words, number_of
from regard.data.labelled.rows import Labelled
from regard.data.labelled.source import LabelledExample, One
from regard.data.labelled.vectors import LabelledVectors
from regard.data.pipeline.corpus import NUMBER, TEXT, Corpus
from regard.data.pipeline.encoding import Encoding
from regard.data.pipeline.label_set import unknown_label
from regard.data.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class LabelEncoding(Encoding[One]):
    """How labelled examples become numbers.

    kind:     of labels: class, number or tags
    trained:  whether the labels are those of the training files, or a run's own
    """

    kind: str
    labels: tuple[str, ...]
    max_length: int
    trained: bool
    tokenizer: Tokenizer | None = None

    counted = ("n_words_cut", "n_features")

    def settings(self) -> tuple[object, ...]:
        vocabulary = self.tokenizer.fingerprint() if self.tokenizer is not None else ""
        return self.kind, vocabulary, self.labels, self.max_length

    def columns(self) -> Mapping[str, int | str]:
        target = {"class": {"label": NUMBER}, "number": {"value": NUMBER}, "tags": {}}[self.kind]
        return {**self.inputs(), **target, "cut": NUMBER}

    @abstractmethod
    def inputs(self) -> dict[str, int | str]:
        """Return the columns of what is read."""

    def target(self, example: LabelledExample) -> dict[str, int]:
        """Return the class or the number of an example."""
        [label] = example.labels
        if self.kind == "number":
            return {"value": int(np.float64(number_of(label)).view(np.int64))}
        return {"label": self.number(example, label)}

    def number(self, example: LabelledExample, label: str, *, line: int = 0) -> int:
        """Return the number of a label, which stands on this line, or where the example begins."""
        if label not in self._numbers:
            noun, place = "tag" if self.kind == "tags" else "label", f"{example.file}:{line or example.line}"
            raise unknown_label(place, label, self.labels, noun=noun, trained=self.trained)
        return self._numbers[label]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}


@dataclass(frozen=True, kw_only=True)
class TextEncoding(LabelEncoding[Labelled]):
    """Texts, one or two, as ids."""

    tokenizer: Tokenizer

    def inputs(self) -> dict[str, int | str]:
        vocab_size = self.tokenizer.vocab_size
        return {"ids": vocab_size, "ids_b": vocab_size, "text": TEXT, "text_b": TEXT}

    def encode(self, examples: Sequence[Labelled], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        texts, texts_b = [one.text for one in examples], [one.text_b for one in examples]
        encoded = encode_texts(texts, texts_b, self.tokenizer, self.max_length)
        for one, ids, ids_b, n_lost in zip(examples, encoded.ids, encoded.ids_b, encoded.n_lost, strict=True):
            kept = {"text": one.text, "text_b": one.text_b}
            yield {"ids": ids, "ids_b": ids_b, "cut": int(n_lost > 0), **self.target(one), **kept}


@dataclass(frozen=True, kw_only=True)
class TagEncoding(LabelEncoding[Tagged]):
    """Sentences of words as ids, and where each word begins."""

    tokenizer: Tokenizer

    def inputs(self) -> dict[str, int | str]:
        ids = {"ids": self.tokenizer.vocab_size, "firsts": self.max_length, "tags": len(self.labels)}
        return {**ids, "text": TEXT}

    def encode(self, examples: Sequence[Tagged], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        encoded = encode_words([one.words for one in examples], self.tokenizer, self.max_length)
        for one, ids, firsts in zip(examples, encoded.ids, encoded.firsts, strict=True):
            n_lost = len(one.words) - len(firsts)
            counts["n_words_cut"] += n_lost
            tags = [self.number(one, tag) for tag in one.tags][: len(firsts)]
            yield {"ids": ids, "firsts": firsts, "tags": tags, "cut": int(n_lost > 0), "text": one.key}


@dataclass(frozen=True, kw_only=True)
class VectorEncoding(LabelEncoding[LabelledVectors]):
    """Sequences of vectors as the bits of their numbers."""

    def inputs(self) -> dict[str, int | str]:
        return {"vectors": 1 << 32, **({"tags": len(self.labels)} if self.kind == "tags" else {})}

    def encode(self, examples: Sequence[LabelledVectors], counts: Counter[str]) -> Iterable[Mapping[str, Any] | Bad]:
        for one in examples:
            counts["n_features"] = one.vectors.shape[1]
            bits = np.ascontiguousarray(one.vectors[: self.max_length], dtype=np.float32).view(np.uint32).ravel()
            n_lost = max(0, len(one.vectors) - self.max_length)
            target: dict[str, Any] = self.tags(one) if self.kind == "tags" else self.target(one)
            counts["n_words_cut"] += n_lost if self.kind == "tags" else 0
            yield {"vectors": bits.tolist(), "cut": int(n_lost > 0), **target}

    def tags(self, one: LabelledVectors) -> dict[str, list[int]]:
        """Return the tags of the vectors that are read."""
        pairs = zip(one.tags, one.lines, strict=True)
        return {"tags": [self.number(one, tag, line=line) for tag, line in pairs][: self.max_length]}


def cut_sentence(corpus: Corpus, files: Sequence[str], max_length: int) -> str:
    """Say how many examples of a corpus were cut, and where the first stands; "" for none."""
    cut = np.flatnonzero(corpus.numbers["cut"])
    if not len(cut):
        return ""
    file, line = (int(corpus.numbers[name][cut[0]]) for name in ("file", "line"))
    n_lost, of_vectors = corpus.facts["n_words_cut"], bool(corpus.facts["n_features"])
    noun, tokens = ("vector", "vectors") if of_vectors else ("word", "tokens")
    unasked = f"; {n_lost:,} {noun}{' has' if n_lost == 1 else 's have'} no tag" if n_lost else ""
    return f"{len(cut):,} of {len(corpus):,} longer than {max_length:,} {tokens}, first {files[file]}:{line}{unasked}"
