"""Labelled examples as the rows of an encoded corpus.

    texts     ragged ids, second; numbers file, line, cut, and label (of classes) or value (the bits of a float64)
    tagged    ragged ids, firsts (where in ids each word begins), tags; numbers file, line, cut
    vectors   ragged vectors (the bits of float32, row by row); numbers file, line, cut, and label or value

`cut` is 1 where the end of an example was more than is read, else 0.
With `keep_texts` there is also `text`, and beside `second` also `second_text`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from regard.data.labelled.encoding import encode_texts, encode_words, number_of
from regard.data.labelled.rows import Labelled
from regard.data.labelled.survey import Example
from regard.data.labelled.tags import Tagged
from regard.data.labelled.vectors import LabelledVectors
from regard.data.pipeline.bad_rows import Progress
from regard.data.pipeline.corpus import Corpus, CorpusWriter
from regard.data.text.tokenizer import Tokenizer
from regard.errors import DataError, did_you_mean

CHUNK = 1024  # examples tokenised together


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How examples become numbers; `trained` says whether the labels are those of the training files, or a run's own."""

    kind: str
    vectors: bool
    tokenizer: Tokenizer | None  # None for vectors
    labels: tuple[str, ...]
    max_length: int
    trained: bool = True


@dataclass
class LabelWriter:
    """Writes examples into a corpus, chunk by chunk, and counts what was cut."""

    writer: CorpusWriter
    encoding: Encoding
    files: Sequence[str]
    keep_texts: bool
    n_cut: int = 0
    first_cut: tuple[int, int] = (0, 0)
    n_words_cut: int = 0
    n_unknown: int = 0
    n_features: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _files: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Numbers, not names: the same text may lie elsewhere when the cache is used again.
        self._files = {file: number for number, file in enumerate(self.files)}
        self._numbers = {label: number for number, label in enumerate(self.encoding.labels)}
        encoding, writer = self.encoding, self.writer
        if encoding.vectors:
            writer.add_ids("vectors", vocab_size=1 << 32)
        else:
            assert encoding.tokenizer is not None
            vocab_size = encoding.tokenizer.vocab_size
            writer.add_ids("ids", vocab_size=vocab_size)
            if encoding.kind == "tags":
                writer.add_ids("firsts", vocab_size=encoding.max_length)
                writer.add_ids("tags", vocab_size=len(encoding.labels))
            else:
                writer.add_ids("ids_b", vocab_size=vocab_size)
            if self.keep_texts:
                for name in ("text",) if encoding.kind == "tags" else ("text", "text_b"):
                    writer.add_text(name)
        names = {"class": ("label",), "number": ("value",), "tags": ()}[encoding.kind]
        for name in ("file", "line", "cut", *names):
            writer.add_numbers(name)

    def write(self, examples: Iterable[Example], progress: Progress) -> dict[str, Any]:
        """Write all examples; return the facts to keep with them."""
        waiting = iter(examples)
        done = 0
        while chunk := list(islice(waiting, CHUNK)):
            if self.encoding.kind == "tags":
                self._write_tagged([one for one in chunk if isinstance(one, Tagged)])
            elif self.encoding.vectors:
                self._write_vectors([one for one in chunk if isinstance(one, LabelledVectors)])
            else:
                self._write_texts([one for one in chunk if isinstance(one, Labelled)])
            done += len(chunk)
            progress("encoding", done)
        return {
            "n_cut": self.n_cut,
            "first_cut": self.first_cut,
            "n_words_cut": self.n_words_cut,
            "n_unknown": self.n_unknown,
            "n_features": self.n_features,
        }

    def _write_texts(self, chunk: Sequence[Labelled]) -> None:
        tokenizer = self.encoding.tokenizer
        assert tokenizer is not None
        texts, texts_b = [one.text for one in chunk], [one.text_b for one in chunk]
        encoded = encode_texts(texts, texts_b, tokenizer, self.encoding.max_length)
        for one, ids, ids_b, n_lost in zip(chunk, encoded.ids, encoded.ids_b, encoded.n_lost, strict=True):
            self.n_unknown += (ids + ids_b).count(tokenizer.unknown_id)
            kept = {"text": one.text, "text_b": one.text_b} if self.keep_texts else {}
            self.writer.append(ids=ids, ids_b=ids_b, **self._goal(one, cut=n_lost > 0), **kept)

    def _write_tagged(self, chunk: Sequence[Tagged]) -> None:
        tokenizer = self.encoding.tokenizer
        assert tokenizer is not None
        encoded = encode_words([one.words for one in chunk], tokenizer, self.encoding.max_length)
        for one, ids, firsts in zip(chunk, encoded.ids, encoded.firsts, strict=True):
            n_lost = len(one.words) - len(firsts)
            self.n_words_cut += n_lost
            self.n_unknown += ids.count(tokenizer.unknown_id)
            tags = [self._number(one, tag) for tag in one.tags][: len(firsts)]
            kept = {"text": one.key} if self.keep_texts else {}
            self.writer.append(ids=ids, firsts=firsts, tags=tags, **self._place(one, cut=n_lost > 0), **kept)

    def _write_vectors(self, chunk: Sequence[LabelledVectors]) -> None:
        for one in chunk:
            self.n_features = one.vectors.shape[1]
            vectors = one.vectors[: self.encoding.max_length]
            bits = np.ascontiguousarray(vectors, dtype=np.float32).view(np.uint32).ravel()
            cut = len(one.vectors) > self.encoding.max_length
            self.writer.append(vectors=bits.tolist(), **self._goal(one, cut=cut))

    def _place(self, example: Example, *, cut: bool) -> dict[str, int]:
        """The place of an example, and whether it was cut, which is counted."""
        file, line = self._files[example.file], example.line
        if cut:
            self.first_cut = self.first_cut if self.n_cut else (file, line)
            self.n_cut += 1
        return {"file": file, "line": line, "cut": int(cut)}

    def _goal(self, example: Example, *, cut: bool) -> dict[str, int]:
        """The place of an example and what is to be said of it."""
        [label] = example.labels
        place = self._place(example, cut=cut)
        if self.encoding.kind == "number":
            return {**place, "value": int(np.float64(number_of(label)).view(np.int64))}
        return {**place, "label": self._number(example, label)}

    def _number(self, example: Example, label: str) -> int:
        number = self._numbers.get(label)
        if number is None:
            raise _unknown_label(example, label, self.encoding)
        return number


def _unknown_label(example: Example, label: str, encoding: Encoding) -> DataError:
    what = "tag" if encoding.kind == "tags" else "label"
    place = f"{example.file}:{example.line}"
    if encoding.trained:
        return DataError(
            f"{place}: the {what} '{label}' does not occur in training.",
            "Add training examples of it, or leave such examples out of validation.",
        )
    return DataError(
        f"{place}: the {what} '{label}' is none of the {len(encoding.labels):,} that the model knows.",
        did_you_mean(label, encoding.labels),
    )


def cut_sentence(corpus: Corpus, files: Sequence[str], max_length: int) -> str:
    """Say how many examples of a corpus were cut, and where the first stands; "" for none."""
    facts: Mapping[str, Any] = corpus.facts
    if not facts["n_cut"]:
        return ""
    file, line = facts["first_cut"]
    n_words = facts["n_words_cut"]
    unasked = f"; {n_words:,} word{' has' if n_words == 1 else 's have'} no tag" if n_words else ""
    count = f"{facts['n_cut']:,} of {len(corpus):,}"
    return f"{count} longer than {max_length:,} tokens, first {files[file]}:{line}{unasked}"
