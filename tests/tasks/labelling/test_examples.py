"""Sequences in batches: special tokens, segments, padding, order. What is asked of them is the tasks'."""

from pathlib import Path

import numpy as np
import torch

from regard.data.pipeline.corpus import NUMBER, Corpus, CorpusWriter
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.tasks.labelling.examples import (
    SequenceExamples,
    TokenSequences,
    VectorSequences,
)

CPU = torch.device("cpu")


def tokenizer() -> Tokenizer:
    return learn(["abc"], kind="characters", vocab_size=10)  # <pad> <start> <end> <unk> are 0 to 3


def corpus_of(folder: Path, texts: list[list[int]]) -> Corpus:
    with CorpusWriter(folder / "corpus") as writer:
        writer.add(ids=10, file=NUMBER, line=NUMBER, label=NUMBER)
        for number, ids in enumerate(texts):
            writer.append(ids=ids, file=number % 2, line=number + 1, label=number)
    return Corpus.open(folder / "corpus")


def examples_of(corpus: Corpus, *, batch_tokens: int = 16) -> SequenceExamples:
    sequences = TokenSequences(corpus.ragged["ids"], None, tokenizer())
    return SequenceExamples(
        corpus,
        ["a.csv", "b.csv"],
        sequences,
        targets=lambda indices, length: torch.from_numpy(corpus.numbers["label"][indices] * 100 + length),
        batch_tokens=batch_tokens,
        seed=1,
    )


def test_one_text_stands_between_its_start_and_its_end() -> None:
    batch = TokenSequences([[4, 5], [6]], None, tokenizer()).batch(np.array([1, 0]), CPU)
    assert batch.inputs.tolist() == [[1, 6, 2, 0], [1, 4, 5, 2]]
    assert batch.lengths.tolist() == [3, 4]
    assert batch.segments is None


def test_a_second_text_has_an_end_and_a_segment_of_its_own() -> None:
    sequences = TokenSequences([[4, 5], [6], []], [[6], [], [4, 4]], tokenizer())
    assert sequences.lengths.tolist() == [6, 3, 5]
    batch = sequences.batch(np.array([0, 1, 2]), CPU)
    assert batch.inputs.tolist() == [[1, 4, 5, 2, 6, 2], [1, 6, 2, 0, 0, 0], [1, 2, 4, 4, 2, 0]]
    assert batch.segments is not None
    assert batch.segments.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0]]
    assert sequences.batch(np.array([1]), CPU).segments is None


def test_vectors_are_padded_with_zeros() -> None:
    rows = [np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6]], np.float32)]
    batch = VectorSequences(rows, 2).batch(np.array([0, 1]), CPU)
    assert batch.inputs.tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]
    assert batch.lengths.tolist() == [2, 1]


def test_vectors_of_a_corpus_are_the_numbers_whose_bits_it_keeps(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "corpus") as writer:
        writer.add(vectors=1 << 32)
        for values in ([1.5, -2.0, 3.0, 0.25], [7.0, 8.0]):
            writer.append(vectors=np.array(values, np.float32).view(np.uint32))
    sequences = VectorSequences(Corpus.open(tmp_path / "corpus").ragged["vectors"], 2)
    assert sequences.lengths.tolist() == [2, 1]
    batch = sequences.batch(np.array([1, 0]), CPU)
    assert batch.inputs.tolist() == [[[7, 8], [0, 0]], [[1.5, -2], [3, 0.25]]]


def test_every_example_is_learnt_once_an_epoch_within_the_budget(tmp_path: Path) -> None:
    examples = examples_of(corpus_of(tmp_path, [[4] * (1 + number % 5) for number in range(20)]))
    order = examples.order(3)
    assert sorted(np.concatenate(order).tolist()) == list(range(20))
    assert all(examples.batch(indices, CPU).inputs.numel() <= 16 for indices in order)
    assert [one.tolist() for one in examples.order(3)] == [one.tolist() for one in order]
    assert [one.tolist() for one in examples.order(4)] != [one.tolist() for one in order]


def test_a_batch_has_its_labels_and_knows_where_it_comes_from(tmp_path: Path) -> None:
    examples = examples_of(corpus_of(tmp_path, [[4], [4, 5], [6]]))
    batch = examples.batch(np.array([2, 1]), CPU)
    assert batch.targets is not None and batch.targets.tolist() == [204, 104]
    assert examples.places(np.array([2, 1])) == ["a.csv:3", "b.csv:2"]
    assert examples.text(1) == "b.csv:2"
