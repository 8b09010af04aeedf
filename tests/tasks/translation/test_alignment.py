"""Attention read as alignment: of Transformers, which show all positions at once, and of recurrent decoders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard.api import Run
from regard.config import DecodingConfig
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer_training import learn
from regard.errors import UsageError
from regard.evaluation.alignment import align_words
from regard.models.recurrent import Recurrent, RecurrentConfig
from regard.parts.taps import listening, recording
from regard.tasks.translation.alignment import (
    check_alignable,
    cross_attention,
    cross_attentions,
    link_words,
    words_of_ids,
)

BEAM = DecodingConfig(beam=4)
LINES = ["a dog runs", "the big old house", "man", "a cat sees the red tree", "the dog"]


@pytest.fixture(scope="module")
def run(trained: Path) -> Run:
    return regard.load(trained, threads=1, engine="torch")


def recurrent(vocabulary: Vocabulary, **choices: Any) -> Recurrent:
    size = vocabulary.source.vocab_size
    return Recurrent(RecurrentConfig(source_vocab=size, target_vocab=size, d_model=16, d_state=16, **choices)).eval()


# Attention


def test_attention_has_a_row_for_each_written_token_and_the_end(run: Run) -> None:
    source = [*run.task.vocabulary.source.encode("a dog runs"), 2]
    target = run.task.vocabulary.target.encode("läuft Hund")
    weights = cross_attention(run.model, run.task.vocabulary, source, target)
    assert weights.shape == (len(target) + 1, len(source))
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert weights.min() >= 0


def test_attention_of_many_is_that_of_each(run: Run) -> None:
    source, target = run.task.vocabulary.source, run.task.vocabulary.target
    sources = [[*source.encode(text), 2] for text in ("a dog runs", "man", "the big old house sees the red tree")]
    targets = [target.encode(text) for text in ("läuft", "Hund Baum Haus Hund", "")]
    together = cross_attentions(run.model, run.task.vocabulary, sources, targets)
    for one, *pair in zip(together, sources, targets, strict=True):
        alone = cross_attention(run.model, run.task.vocabulary, *pair)
        assert one.shape == alone.shape
        np.testing.assert_allclose(one, alone, atol=1e-5)


def test_the_steps_of_a_recurrent_decoder_are_joined(run: Run) -> None:
    vocabulary = run.task.vocabulary
    model = recurrent(vocabulary)
    sources = [[*vocabulary.source.encode(text), 2] for text in ("a dog runs", "man")]
    targets = [vocabulary.target.encode(text) for text in ("läuft", "Hund Baum Haus Hund")]
    together = cross_attentions(model, vocabulary, sources, targets)
    for one, source, target in zip(together, sources, targets, strict=True):
        assert one.shape == (len(target) + 1, len(source))
        np.testing.assert_allclose(one.sum(axis=1), 1, atol=1e-5)
        state = model.start((torch.tensor([source]), torch.tensor([len(source)])))
        with recording(model, "decoder.attention.weights") as record, torch.no_grad():
            model.step(state, torch.tensor([[vocabulary.target.start_id, *target]]))
        steps = torch.cat(record.calls("decoder.attention.weights"), dim=2)[0, 0]
        np.testing.assert_allclose(one, steps.numpy(), atol=1e-5)


def test_a_model_without_attention_cannot_align(run: Run) -> None:
    for model in (recurrent(run.task.vocabulary, attention="none"), nn.Linear(2, 2)):
        with pytest.raises(UsageError) as caught:
            check_alignable(model)
        assert str(caught.value) == (
            "This model has no attention to read alignments from.\n"
            "Leave the alignment out, or use a model with attention, such as rnn-attention."
        )
    with pytest.raises(UsageError):
        cross_attention(recurrent(run.task.vocabulary, attention="none"), run.task.vocabulary, [4, 2], [5])


# Links


@pytest.mark.parametrize(
    "decoding",
    [DecodingConfig(beam=4, n_best=3), DecodingConfig(sample=True, temperature=2.0, n_best=2)],
    ids=["beam", "sampling"],
)
def test_links_are_found_for_a_whole_batch_at_once(run: Run, decoding: DecodingConfig) -> None:
    lines = LINES
    passes: list[tuple[int, ...]] = []
    with listening(
        run.model, "target_embedding.sum", lambda name, x: passes.append(x.shape) if x.shape[1] > 1 else None
    ):
        found = run.translate(lines, decoding=decoding, align=True)
    assert [shape[0] for shape in passes] == [len(lines)] * decoding.n_best
    source, target = run.task.vocabulary.source, run.task.vocabulary.target
    by_text = {one: id for id in range(target.vocab_size) if (one := target.piece_text(id))}
    for line, translation in zip(lines, found, strict=True):
        for candidate in translation.outputs:
            ids = [by_text[token] for token in candidate.tokens]
            if not ids:
                continue
            weights = cross_attention(run.model, run.task.vocabulary, [*source.encode(line), 2], ids)
            alone = align_words(
                weights[:-1], source_words=[*source.words(line), None], target_words=words_of_ids(target, ids)
            )
            assert [(link.source, link.target) for link in candidate.alignment] == [
                (link.source, link.target) for link in alone
            ]
            assert [link.score for link in candidate.alignment] == pytest.approx(
                [link.score for link in alone], abs=1e-5
            )


def test_links_stay_inside_their_sentences(run: Run) -> None:
    lines = ["a dog runs", "the  big old   house ", "", "man", "Schöne neue Wörter, unbekannt!"]
    for decoding in (BEAM, DecodingConfig(sample=True, temperature=3.0, n_best=2)):
        found = run.translate(lines, decoding=decoding, align=True)
        assert any(one.outputs[0].alignment for one in found)
        for line, translation in zip(lines, found, strict=True):
            for candidate in translation.outputs:
                words = candidate.text.split()
                targets = [link.target for link in candidate.alignment]
                assert len(targets) == len(set(targets)), "a target word has one link"
                for link in candidate.alignment:
                    assert 0 <= link.source < len(line.split())
                    assert 0 <= link.target < len(words)
                    assert 0 < link.score <= 1 + 1e-5


def test_nothing_written_has_no_links(run: Run) -> None:
    assert link_words(run.task.vocabulary, "a dog", [], np.zeros((1, 3))) == []


def test_words_of_ids_that_no_text_would_give() -> None:
    tokenizer = learn(["a dog runs  far"], kind="bytes", vocab_size=300)

    def words(data: bytes) -> list[int | None]:
        symbols = {tokenizer.piece_text(id): id for id in range(4, 260)}
        ids = [symbols.get(chr(byte)) or symbols[f"⟨{byte:02X}⟩"] for byte in data]
        return words_of_ids(tokenizer, ids)

    assert words(b"ab c") == [0, 0, 0, 1]
    assert words(b"  a  b ") == [0, 0, 0, 0, 0, 1, 1], "white space never counts as a word"
    assert words(b"   ") == [None, None, None]
    ideographic_space = "\u3000".encode()
    assert words(b"a " + ideographic_space) == [0, 0, 0, 0, 0]
    assert words(b"a " + ideographic_space + b"b") == [0, 0, 1, 1, 0, 1]
