"""Tagging: a tag a word, asked of its first piece; sentences in parts; entities."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import config as configuration
from regard.errors import ConfigError, DataError, UsageError
from regard.models.bert import Bert, BertConfig
from regard.tasks.labelling.examples import SequenceExamples
from regard.tasks.labelling.tagging import TaggingTask, WordSpan, in_parts
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
SENTENCES = [
    [("Anna", "B-person"), ("Mu", "I-person"), ("sees", "O"), ("Rome", "B-place")],
    [("Rome", "B-place"), ("sees", "O"), ("Anna", "B-person")],
]
SIZES: dict[str, Any] = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 32, "dropout": 0.0}


def no_progress(what: str, done: int) -> None:
    pass


def write(path: Path, sentences: list[list[tuple[str, str]]]) -> str:
    path.write_text("".join("".join(f"{word}\t{tag}\n" for word, tag in one) + "\n" for one in sentences))
    return str(path)


def prepare(
    tmp_path: Path,
    settings: dict[str, Any] | None = None,
    *,
    sentences: list[list[tuple[str, str]]] = SENTENCES,
) -> Prepared:
    file = write(tmp_path / "train.conll", sentences * 10)
    tables = {"task": "tag", "data": {"train": [file], "valid": [file]}}
    config = configuration.from_tables(tables, origin="test")
    common = {"tokenizer.kind": "characters", "model.preset": "bert-tiny", "model.max_positions": 40}
    config = configuration.override(config, {**common, **(settings or {})})
    return TaggingTask.prepare(config, vocabulary=None, progress=no_progress)


def parts(prepared: Prepared, *, max_positions: int = 40) -> tuple[TaggingTask, Bert, SequenceExamples]:
    assert isinstance(prepared.task, TaggingTask) and isinstance(prepared.valid, SequenceExamples)
    sizes: dict[str, Any] = prepared.task.model_fields()
    assert sizes["head"] == "tokens"
    model = Bert(BertConfig(**sizes, **SIZES, max_positions=max_positions), seed=1).eval()
    return prepared.task, model, prepared.valid


def learn_by_heart(task: TaggingTask, model: nn.Module, examples: SequenceExamples, *, rate: float = 0.01) -> None:
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batch = examples.batch(np.arange(len(examples)), CPU)
    for _ in range(60):
        optimizer.zero_grad()
        loss, weight = task.loss(model, batch, smoothing=0.0)
        (loss / weight).backward()
        optimizer.step()
    model.eval()


def test_only_the_first_piece_of_a_word_is_asked(tmp_path: Path) -> None:
    task, model, valid = parts(prepared := prepare(tmp_path))
    assert task.table.labels == ("B-person", "B-place", "I-person", "O")
    facts = dict(prepared.facts)
    assert facts["training"].startswith("20 sentences, ")
    assert facts["tags"].startswith("4: B-person 20 (28.6 %), B-place 20 (28.6 %), O 20 (28.6 %), I-person 10 (14.3 %)")
    batch = valid.batch(np.array([0, 1]), CPU)
    assert batch.labels is not None
    #                                <start> A n n a _ M u _ s e e s _ R o m e <end>
    assert batch.labels[0].tolist() == [-1, 0, -1, -1, -1, -1, 2, -1, -1, 3, -1, -1, -1, -1, 1, -1, -1, -1, -1]
    logits = model(batch.inputs, batch.lengths, batch.segments)
    asked = logits[batch.labels >= 0]
    for smoothing in (0.0, 0.1):
        loss, weight = task.loss(model, batch, smoothing=smoothing)
        assert weight == 7
        gold = torch.tensor([0, 2, 3, 1, 1, 3, 0])
        expected = F.cross_entropy(asked, gold, label_smoothing=smoothing, reduction="sum")
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)


@pytest.mark.parametrize("kind", ["characters", "bpe", "words"])
def test_sentences_are_learnt_and_tagged(tmp_path: Path, kind: str) -> None:
    task, model, valid = parts(prepare(tmp_path, {"tokenizer.kind": kind}))
    learn_by_heart(task, model, valid)
    validation = task.validate(model, valid, task.config.decoding, n_samples=1)
    assert validation.scores == {"accuracy": 100, "entity_f1": 100, "entity_precision": 100, "entity_recall": 100}
    assert validation.samples[0] == (
        "Anna Mu sees Rome",
        "B-person I-person O B-place",
        "B-person I-person O B-place",
    )
    loss, weight = task.loss(model, valid.batch(np.arange(len(valid)), CPU), smoothing=0.0)
    assert validation.loss == pytest.approx(float(loss.detach()) / weight, rel=1e-4)
    task.save(tmp_path / "vocabulary")
    again = TaggingTask.load(task.config, tmp_path / "vocabulary")
    done: list[int] = []
    first, none, second = again.predict(
        model, [["Rome", "sees", "Anna"], "", " Anna  Mu sees Rome\n"], progress=done.append
    )
    assert done[-1] == 2
    assert (first.words, first.tags) == (("Rome", "sees", "Anna"), ("B-place", "O", "B-person"))
    assert (second.words, second.tags) == (("Anna", "Mu", "sees", "Rome"), ("B-person", "I-person", "O", "B-place"))
    assert (none.words, none.tags, none.probabilities) == ((), (), ())
    assert len(first.probabilities) == 3 and all(0.5 < share <= 1 for share in first.probabilities)
    assert first.n_parts == 1


def test_tags_that_mark_no_entities_have_no_f1(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path, sentences=[[("Anna", "NOUN"), ("sees", "VERB")]]))
    assert [score.name for score in task.scores(model, valid)] == ["loss", "accuracy"]
    assert task.scores(model, valid)[1].signature == "words:20"


class Own(nn.Module):
    """A network of the caller's own that looks at one token at a time."""

    def __init__(self, vocab: int, n_outputs: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, n_outputs)

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None) -> Tensor:
        logits: Tensor = self.tokens(inputs)
        return logits


def test_a_network_of_ones_own_learns_to_tag(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path, {"tokenizer.kind": "words"}))
    assert task.tokenizer is not None
    torch.manual_seed(1)
    model = Own(task.tokenizer.vocab_size, task.n_outputs)
    task.initialise(model)
    learn_by_heart(task, model, valid, rate=0.3)
    assert task.predict(model, ["Rome sees Mu"])[0].tags == ("B-place", "O", "I-person")
    with pytest.raises(
        ConfigError, match=r"^The network returned .* was expected: 4 numbers for each token\.\nLet its forw"
    ):
        task.predict(Own(task.tokenizer.vocab_size, 3), ["Rome"])


# Long sentences


def test_a_long_sentence_is_cut_into_parts_of_whole_words() -> None:
    assert in_parts([], 0, 5) == []
    assert in_parts([0, 2, 4], 5, 5) == [WordSpan(0, 3, 0, 5)]
    assert in_parts([0, 2, 4], 6, 5) == [WordSpan(0, 2, 0, 4), WordSpan(2, 3, 4, 6)]
    assert in_parts([0, 1, 2, 3, 4, 5, 6], 7, 6) == [WordSpan(0, 4, 0, 4), WordSpan(4, 7, 4, 7)]  # not six and one
    assert in_parts([0, 9], 10, 4) == [WordSpan(0, 1, 0, 4), WordSpan(1, 2, 9, 10)]  # a word too long by itself
    assert in_parts([1, 3], 5, 3) == [WordSpan(0, 1, 0, 3), WordSpan(1, 2, 3, 5)]  # a token in front of the first word
    assert in_parts([0, 2, 2], 3, 2) == [WordSpan(0, 1, 0, 2), WordSpan(1, 3, 2, 3)]
    assert in_parts([0, 1, 1, 1], 2, 1) == [WordSpan(0, 1, 0, 1), WordSpan(1, 4, 1, 2)]


def test_every_word_of_a_long_sentence_is_tagged_and_scored(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path, {"data.max_length": 19}))
    learn_by_heart(task, model, valid)
    [whole] = task.predict(model, ["Anna Mu sees Rome " * 9])
    assert len(whole.words) == len(whole.tags) == len(whole.probabilities) == 36
    assert whole.n_parts == 9
    assert whole.tags == ("B-person", "I-person", "O", "B-place") * 9
    test = write(tmp_path / "test.conll", [SENTENCES[0] * 9, SENTENCES[1]])
    examples = task.read([test], task.config.data, progress=no_progress)
    outputs = task.outputs(model, examples)
    assert [len(own) for own in outputs] == [36, 3]
    answers = task.answers(examples, outputs)
    assert answers[0].words == whole.words and answers[0].tags == whole.tags
    assert [one.n_parts for one in answers] == [9, 1]
    assert task.expected(examples)[1] == ("B-place", "O", "B-person")
    _, accuracy, *_ = task.scores_of(examples, outputs)
    assert accuracy.signature == "words:39"
    right = sum(found == tag for found, (_, tag) in zip(whole.tags, SENTENCES[0] * 9, strict=True))
    [second] = task.predict(model, ["Rome sees Anna"])
    right += sum(found == tag for found, (_, tag) in zip(second.tags, SENTENCES[1], strict=True))
    assert accuracy.value == pytest.approx(100 * right / 39)
    assert task.notes(examples) == ()


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_a_word_may_hold_a_space(tmp_path: Path, kind: str) -> None:
    task, model, _ = parts(prepare(tmp_path, {"tokenizer.kind": kind}))
    test = write(tmp_path / "test.conll", [[("Anna Mu", "B-person"), ("sees", "O"), ("Rome", "B-place")]])
    examples = task.read([test], task.config.data, progress=no_progress)
    [answer] = task.answers(examples, task.outputs(model, examples))
    assert answer.words == ("Anna Mu", "sees", "Rome")
    assert answer.tags == task.predict(model, [["Anna Mu", "sees", "Rome"]])[0].tags


# What is refused


def test_an_empty_word_is_refused(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    with pytest.raises(UsageError, match=r"^Word 1 of sentence 1 is empty: there is nothing to tag\.\nLeave it out\."):
        task.predict(model, ["Anna", ["sees", " "]])


def test_an_unknown_tag_is_an_error_with_its_place(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path))
    test = write(tmp_path / "test.conll", [[("Anna", "O")], [("Rome", "B-plaec")]])
    with pytest.raises(DataError, match=r"test\.conll:3: .*'B-plaec'.*\n.*B-place"):
        task.read([test], task.config.data, progress=no_progress)


def test_the_loss_waits_for_no_device(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    expected = task.loss(model, valid.batch(np.arange(20), CPU), smoothing=0.0)
    # On `meta`, tensors have a shape and no content: whoever looks at them is told so.
    loss, weight = task.loss(model.to("meta"), valid.batch(np.arange(20), torch.device("meta")), smoothing=0.0)
    assert (loss.shape, weight) == (expected[0].shape, 70)
