"""Segments of documents: every token once, none over the end of a document, hidden by the step or by the segment."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.pipeline.corpus import NUMBER, Corpus, CorpusWriter
from regard.data.text.tokenizer_training import learn
from regard.tasks.denoising.examples import ENDS, SegmentExamples

CPU = torch.device("cpu")
PAD, START, END, UNKNOWN = 0, 1, 2, 3
TOKENIZER = learn(["abc"], kind="bytes", vocab_size=300)


def make_examples(
    folder: Path, documents: list[list[list[int]]], *, longest: int = 6, batch_tokens: int = 24
) -> SegmentExamples:
    """Documents of rows of ids, as `running_text` writes them."""
    with CorpusWriter(folder) as writer:
        writer.add(ids=1000, file=NUMBER, line=NUMBER)
        for number, rows in enumerate(documents):
            for nth, row in enumerate(rows):
                writer.append(ids=row if nth else [END, *row], file=0, line=10 * number + nth)
        writer.append(ids=[END], file=0, line=10 * len(documents))
        writer.facts = {"n_unknown": sum(row.count(UNKNOWN) for rows in documents for row in rows)}
    corpus = Corpus.open(folder)
    return SegmentExamples(corpus, ["a.txt"], TOKENIZER, longest=longest, batch_tokens=batch_tokens, seed=3)


def segments(examples: SegmentExamples) -> list[list[int]]:
    batches = (examples.batch(np.array([number]), CPU) for number in range(len(examples)))
    return [batch.texts()[0].tolist() for batch in batches]


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=3), min_size=1, max_size=5))
def test_segments_are_the_documents_cut_evenly(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[list[int]]
) -> None:
    place = iter(range(10, 1000))
    documents = [[[next(place) for _ in range(n)] for n in rows] for rows in lengths]
    found = segments(make_examples(tmp_path_factory.mktemp("segments") / "corpus", documents))
    expected = [id for rows in documents for row in rows for id in row]
    assert [id for segment in found for id in segment] == expected
    for rows in documents:
        own = [segment for segment in found if {*segment} & {id for row in rows for id in row}]
        assert len(own) == -(-sum(map(len, rows)) // 6)
        assert [id for segment in own for id in segment] == [id for row in rows for id in row]  # of this document alone
        if own:
            assert max(map(len, own)) <= 6
            assert max(map(len, own)) - min(map(len, own)) <= 1


def test_a_batch_is_padded_behind_with_start_and_end_tokens(tmp_path: Path) -> None:
    examples = make_examples(tmp_path / "corpus", [[[10, 11, 12], [13]], [[20]]])
    batch = examples.batch(np.array([1, 0]), CPU)
    assert batch.ids.tolist() == [[START, 20, END, PAD, PAD, PAD], [START, 10, 11, 12, 13, END]]
    assert batch.lengths.tolist() == [3, 6]
    assert batch.numbers.tolist() == [1, 0]
    assert batch.n_tokens == examples.n_tokens == 5
    assert examples.places(np.array([1, 0])) == ["a.txt:10", "a.txt:0"]


def test_epochs_hold_every_segment_once_under_the_budget(tmp_path: Path) -> None:
    examples = make_examples(tmp_path / "corpus", [[list(range(10, 10 + n))] for n in range(1, 40)])
    for order in (examples.order(0), examples.order(1), examples.fixed_order()):
        assert sorted(np.concatenate(order).tolist()) == list(range(len(examples)))
        assert all(len(one) * examples.lengths[one].max() <= 24 for one in order)
    orders = [[one.tolist() for one in examples.order(epoch)] for epoch in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert examples.lengths.max() == 6 + ENDS


def test_a_segment_of_unknown_tokens_alone_is_left_out(tmp_path: Path) -> None:
    unknown = [UNKNOWN] * 6
    documents = [[[*unknown, 10, *unknown[:5]]], [[UNKNOWN]], [[11]], [unknown]]
    examples = make_examples(tmp_path / "corpus", documents)
    assert segments(examples) == [[10, *unknown[:5]], [11]]
    assert len(make_examples(tmp_path / "nothing", [[[]]])) == 0


def draws(examples: SegmentExamples, numbers: list[int], *, anew: bool) -> list[tuple[int, float]]:
    batch = examples.batch(np.array(numbers), CPU)
    found = [(len(batch.texts(rows)), random.random()) for rows, random in batch.draws(anew=anew)]
    return found


def test_what_is_hidden_anew_follows_torchs_generator(tmp_path: Path) -> None:
    examples = make_examples(tmp_path / "corpus", [[[10]], [[11]], [[12]]])
    torch.manual_seed(1)
    first, second = (draws(examples, [0, 1, 2], anew=True) for _ in range(2))
    torch.manual_seed(1)
    assert draws(examples, [0, 1, 2], anew=True) == first != second
    assert [count for count, _ in first] == [3]


def test_else_it_follows_the_segment_whatever_the_batch(tmp_path: Path) -> None:
    examples = make_examples(tmp_path / "corpus", [[[10]], [[11]], [[12]]])
    together = draws(examples, [2, 0, 1], anew=False)
    alone = [draws(examples, [number], anew=False)[0] for number in (2, 0, 1)]
    assert together == alone
    assert len(set(together)) == 3
