"""Sentence embeddings: vectors of texts and of their words, from the states of any model that reads text.

A model is known by what it offers, and reads texts as its task gave them to it:

    encode and pooled   encoder-only (BERT, a recurrent one)        <start> text <end>
    encode              encoder and decoder (Transformer, T5)       text <end>
    states              decoder-only (GPT, Llama)                   <end> text

What an imported vocabulary has in front of every text stands before it, in the place of the last <end>.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.text.tokenizer import Tokenizer
from regard.decoding.batches import run_in_batches
from regard.errors import UsageError, did_you_mean
from regard.tasks.batches import padded
from regard.tasks.offers import (
    Encodable,
    can_encode,
    device_of,
    has_states,
    is_encoder_only,
    reads_both_ways,
    trained_context,
)
from regard.tasks.options import Count

POOLINGS = ("mean", "class", "last")
BATCH = 64  # texts read together
SHORTEST = 1e-12  # what a vector is divided by at least: that of no tokens stays zero

Vectors = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedding:
    """A text and its vector (D,); where asked for, its words and theirs, (W, D).

    n_cut: how many tokens at the end were more than the model reads; words that lie there have no vector.
    """

    text: str
    vector: Vectors
    words: tuple[str, ...] = ()
    word_vectors: Vectors | None = None
    n_cut: int = 0

    @property
    def truncation(self) -> str:
        """What became of a text that is longer than the model reads at once; empty where it was read whole."""
        return "cut at the end" if self.n_cut else ""

    def rows(self) -> list[Vectors]:
        """What an array gets of the text: its vector, or those of its words where these were asked for."""
        return [self.vector] if self.word_vectors is None else list(self.word_vectors)

    def to_json(self) -> dict[str, Any]:
        """The text with its vector, or those of its words where these were asked for, as data for `json.dumps`."""
        if self.word_vectors is None:
            return {"text": self.text, "vector": _numbers(self.vector)}
        return {"text": self.text, "words": self.words, "vectors": _numbers(self.word_vectors)}

    def __repr__(self) -> str:
        words = f", {len(self.words)} words" if self.word_vectors is not None else ""
        return f"Embedding({self.text!r}, {len(self.vector)} numbers{words})"


@dataclass(frozen=True)
class _Reading:
    """How a model reads: the special tokens around a text, and ids (B, T) of lengths (B,) to states (B, T, D).

    around: whether the special tokens are part of a text's mean, as they are of a pooled state
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    states: Callable[[Tensor, Tensor], Tensor]
    around: bool = False


class Embedder:
    """Turns texts into vectors.

    encoder:    what computes the states in the model's place, if anything does
    max_length: the most tokens of a text, beside what the model's positions allow
    pooling:    mean of the text's tokens, and of those around it in an encoder-only model, as sentence encoders have it;
                class, the state of the token in front of it; last, of the last that was read, which is the first for the
                half of the state that was read backwards
    normalised: divide the vector of a text by its length; those of its words stay as they are
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        *,
        encoder: Encodable | None = None,
        max_length: int = sys.maxsize,
        pooling: str = "mean",
        normalised: bool = False,
    ) -> None:
        if pooling not in POOLINGS:
            raise UsageError(f"There is no pooling '{pooling}'.", did_you_mean(pooling, POOLINGS))
        self.tokenizer = tokenizer
        self.pooling, self.normalised = pooling, normalised
        self.device = device_of(model)
        self.reading = _reading(model, tokenizer)
        if encoder is not None:
            self.reading = replace(self.reading, states=encoder.encode)
        if pooling == "class" and not is_encoder_only(model):
            raise UsageError(
                "This model has no class token: nothing stands in front of a text that could hear all of it.",
                "Take the mean or the last state: --pooling mean, --pooling last.",
            )
        self.both_directions = reads_both_ways(model)
        longest = trained_context(model) or sys.maxsize
        self.limit = min(longest - len(self.reading.before) - len(self.reading.after), max_length)

    def embed(self, texts: Sequence[str], *, words: bool = False, progress: Count | None = None) -> list[Embedding]:
        """Return the vector of each text, in order, and with `words` a vector a word; that of no tokens is zero."""
        ids = self.tokenizer.encode_batch(texts)
        with torch.inference_mode():
            return run_in_batches(
                [len(row) for row in ids],
                lambda numbers: self._embed([(texts[number], ids[number]) for number in numbers], words=words),
                batch_size=BATCH,
                progress=progress,
            )

    def _embed(self, texts: list[tuple[str, list[int]]], *, words: bool) -> list[Embedding]:
        before, after = self.reading.before, self.reading.after
        kept = [ids[: self.limit] for _, ids in texts]
        rows = [[*before, *ids, *after] for ids in kept]
        states = self.reading.states(*padded(rows, self.tokenizer.pad_id, self.device)).float().cpu().numpy()
        found = []
        for (text, ids), own_ids, row, own in zip(texts, kept, rows, states, strict=True):
            inner = own[len(before) : len(before) + len(own_ids)]  # (N, D), the text's own tokens
            read = own[: len(row)]
            vector = (
                _mean(read if self.reading.around and own_ids else inner) if self.pooling == "mean" else self._end(read)
            )
            if self.normalised:
                vector = vector / max(float(np.linalg.norm(vector)), SHORTEST)
            spelled, vectors = self._words(text, inner) if words else ((), None)
            n_cut = len(ids) - len(own_ids)
            found.append(Embedding(text=text, vector=vector, words=spelled, word_vectors=vectors, n_cut=n_cut))
        return found

    def _end(self, states: Vectors) -> Vectors:
        """The state (D,) of one end of a text, special tokens counted, from (N, D)."""
        if self.pooling == "class":
            return np.array(states[0])
        half = states.shape[1] // 2 if self.both_directions else states.shape[1]
        return np.concatenate([states[-1, :half], states[0, half:]])

    def _words(self, text: str, states: Vectors) -> tuple[tuple[str, ...], Vectors]:
        """The words of a text that were read, and the mean of each one's pieces, (W, D)."""
        word_of = np.array(self.tokenizer.words(text)[: len(states)], np.int64)
        read = text.split()[: int(word_of.max(initial=-1)) + 1]
        means = [_mean(states[word_of == word]) for word in range(len(read))]
        return tuple(read), np.stack(means) if means else states[:0].copy()


def _numbers(vectors: Vectors) -> Any:
    """The numbers as lists, each with as few digits as tell it from all others of its kind."""
    return vectors.astype(str).astype(float).tolist()


def _mean(states: Vectors) -> Vectors:
    """(N, D) to (D,)."""
    return states.mean(0) if len(states) else np.zeros(states.shape[1], np.float32)


def _takes_ids_alone(states: Callable[..., Tensor]) -> bool:
    """Whether states may be asked for a text alone: those of a translator need its target, too."""
    try:
        inspect.signature(states).bind("ids")
    except TypeError:
        return False
    return True


def _reading(model: Any, tokenizer: Tokenizer) -> _Reading:
    start, end = (tokenizer.start_id,), (tokenizer.end_id,)
    if is_encoder_only(model):
        return _Reading(start, end, model.encode, around=True)
    if can_encode(model):
        return _Reading(tokenizer.prefix, end, model.encode)
    if has_states(model) and _takes_ids_alone(model.states):
        return _Reading(tokenizer.opening, (), lambda ids, lengths: model.states(ids))
    raise UsageError(
        f"A {type(model).__name__} offers neither encode(ids, lengths) nor states(ids): it gives no vectors.",
        "Give the network one of these methods, as regard's own models have them.",
    )
