"""Windows over a stream of tokens: each token is learned once an epoch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.pipeline.corpus import NUMBER, Corpus, CorpusWriter
from regard.data.text.tokenizer_training import learn
from regard.tasks.language_model.examples import WindowExamples

CPU = torch.device("cpu")
TOKENIZER = learn(["a dog"], kind="bytes", vocab_size=260)
END = TOKENIZER.end_id


def make_examples(tmp_path: Path, rows: list[list[int]], *, context: int = 8, batch_tokens: int = 24) -> WindowExamples:
    with CorpusWriter(tmp_path / "corpus") as writer:
        writer.add(ids=1000, file=NUMBER, line=NUMBER)
        for number, row in enumerate(rows):
            writer.append(ids=row, file=0, line=10 * number)
    corpus = Corpus.open(tmp_path / "corpus")
    return WindowExamples(corpus, ["a.txt"], tokenizer=TOKENIZER, context=context, batch_tokens=batch_tokens, seed=3)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 100])
@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_every_token_is_learnt_once_an_epoch(tmp_path: Path, length: int, epoch: int) -> None:
    stream = [END, *range(10, 10 + length)]
    examples = make_examples(tmp_path, [stream])
    learned = []
    for indices in examples.order(epoch):
        batch = examples.batch(indices, CPU)
        assert batch.ids.shape[0] <= 3
        assert batch.ids.shape[1] <= 8
        real = torch.ones_like(batch.targets, dtype=torch.bool) if batch.mask is None else batch.mask
        learned += batch.targets[real].tolist()
        assert torch.equal(batch.ids[:, 1:][real[:, 1:]], batch.targets[:, :-1][real[:, 1:]])
    assert sorted(learned) == stream[1:]


@pytest.mark.parametrize("length", [1, 2, 5, 8, 9, 12, 13, 15, 16, 17, 63, 64, 100])
@pytest.mark.parametrize("context", [1, 2, 3, 8])
def test_every_epoch_has_as_many_windows(tmp_path: Path, length: int, context: int) -> None:
    examples = make_examples(tmp_path, [[END, *range(10, 10 + length)]], context=context)
    counts = {sum(map(len, examples.order(epoch))) for epoch in range(40)}
    assert len(counts) == 1
    learned = np.zeros(length)
    for start in np.concatenate(examples.order(7)):
        learned[max(0, start) : start + context] += 1
    assert (learned == 1).all()


def test_epochs_cut_at_different_places_and_can_be_repeated(tmp_path: Path) -> None:
    examples = make_examples(tmp_path, [list(range(100))])
    starts = [np.sort(np.concatenate(examples.order(epoch))).tolist() for epoch in range(20)]
    assert len({tuple(one) for one in starts}) > 3
    assert all(np.array_equal(a, b) for a, b in zip(examples.order(4), examples.order(4), strict=True))


def test_documents_are_told_apart_where_a_window_has_several(tmp_path: Path) -> None:
    examples = make_examples(tmp_path, [[END, 10, 11, END, 12, 13, 14, END, 15], [16] * 9])
    batch = examples.batch(np.array([0, 8]), CPU)
    assert batch.ids.tolist() == [[END, 10, 11, END, 12, 13, 14, END], [15, 16, 16, 16, 16, 16, 16, 16]]
    assert batch.documents is not None
    assert batch.documents.tolist() == [[1, 1, 1, 2, 2, 2, 2, 3], [0] * 8]
    assert examples.batch(np.array([8]), CPU).documents is None


def test_places_are_those_of_the_text(tmp_path: Path) -> None:
    examples = make_examples(tmp_path, [[END, 10, 11], [12, 13], [END]])
    assert examples.places(np.array([-3, 0, 3, 5])) == ["a.txt:0", "a.txt:0", "a.txt:10", "a.txt:20"]
    assert examples.places(np.array([2, 4])) == ["a.txt:0 + 2 tokens", "a.txt:10"]
