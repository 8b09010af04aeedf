"""Classification, and with it what all tasks over labelled sequences share."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import config as configuration
from regard.errors import ConfigError, DataError, UsageError
from regard.evaluation.intervals import wilson
from regard.models.bert import Bert, BertConfig
from regard.models.recurrent_encoder import RecurrentEncoderConfig, RecurrentEncoderModel
from regard.tasks.labelling.base import LabelOptions
from regard.tasks.labelling.classification import ClassificationTask, Classified
from regard.tasks.labelling.examples import SequenceExamples
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
ROWS = [
    ("a fine dog", "good"),
    ("what a good day", "good"),
    ("good", "good"),
    ("a bad day", "bad"),
]
OPTIONS = LabelOptions()
SIZES: dict[str, Any] = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 32, "max_positions": 40, "dropout": 0.0}


def no_progress(what: str, done: int) -> None:
    pass


def write(path: Path, rows: Sequence[tuple[str, ...]], *, header: str = "text,label") -> str:
    path.write_text("".join(f"{line}\n" for line in (header, *(",".join(row) for row in rows))))
    return str(path)


def prepare(tmp_path: Path, settings: dict[str, Any] | None = None, *, vocabulary: Path | None = None) -> Prepared:
    train = write(tmp_path / "train.csv", ROWS * 10)
    valid = write(tmp_path / "valid.csv", [*ROWS, ("a day", "bad")])
    tables = {"task": "classify", "data": {"train": [train], "valid": [valid]}}
    config = configuration.from_tables(tables, origin="test")
    common = {"tokenizer.kind": "characters", "model.preset": "bert-tiny", "model.max_positions": 40}
    config = configuration.override(config, {**common, **(settings or {})})
    return ClassificationTask.prepare(config, vocabulary=vocabulary, progress=no_progress)


def parts(prepared: Prepared) -> tuple[ClassificationTask, Bert, SequenceExamples]:
    """The task, a network for it, and the validation examples."""
    assert isinstance(prepared.task, ClassificationTask) and isinstance(prepared.valid, SequenceExamples)
    sizes: dict[str, Any] = prepared.task.model_fields()
    return prepared.task, Bert(BertConfig(**sizes, **SIZES), seed=1).eval(), prepared.valid


# Data


def test_few_texts_of_words_want_the_mean_of_their_states_and_more_dropout(tmp_path: Path) -> None:
    assert prepare(tmp_path, {"tokenizer.kind": "auto"}).suited == {"pooling": "mean", "dropout": 0.3}
    assert prepare(tmp_path).suited == {"pooling": "mean"}, "characters recur too often to be learned by heart"


def test_the_report_tells_the_classes_and_their_balance(tmp_path: Path) -> None:
    facts = dict(prepare(tmp_path).facts)
    assert facts["training"].startswith("40 texts, ")
    assert facts["validation"] == "5 texts"
    assert facts["classes"] == "2: good 30 (75.0 %), bad 10 (25.0 %)"
    assert facts["largest class"] == "good, 75.0 %: a constant answer has that accuracy"
    assert facts["vocabulary"].endswith("tokens (characters)")
    assert facts["max length"] == "37 tokens: the model has positions for 40, 3 of them for special ones"
    assert re.fullmatch(r"1 per epoch, \d+\.\d% padding", facts["batches"])


def test_a_text_longer_than_the_positions_is_cut(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"model.max_positions": 8})
    _, _, valid = parts(prepared)
    assert valid.sequences.lengths.max() == 5 + 2
    assert "max length" not in dict(prepare(tmp_path, {"data.max_length": 20}).facts)
    with pytest.raises(ConfigError, match=r"^model\.max_positions is 3, and 3 special tokens stand around a text\."):
        prepare(tmp_path, {"model.max_positions": 3})


def test_sizes_are_what_a_model_is_built_with(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path))
    assert task.tokenizer is not None
    assert task.model_fields() == {"vocab": task.tokenizer.vocab_size, "n_outputs": 2, "head": "sequence"}


def test_a_saved_task_answers_the_same(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    task.save(tmp_path / "vocabulary")
    again = ClassificationTask.load(task.config, tmp_path / "vocabulary")
    texts = ["a fine day", "bad"]
    assert again.predict(model, texts, OPTIONS) == task.predict(model, texts, OPTIONS)
    assert again.model_fields() == task.model_fields()
    assert prepare(tmp_path, vocabulary=tmp_path / "vocabulary").task.model_fields() == task.model_fields()
    (tmp_path / "vocabulary" / "labels.json").unlink()
    assert prepare(tmp_path, vocabulary=tmp_path / "vocabulary").task.model_fields() == task.model_fields()
    with pytest.raises(DataError, match=r"labels\.json: there is no such file; a run of the task classify has one\."):
        ClassificationTask.load(task.config, tmp_path / "vocabulary")


def test_word_vectors_are_put_in_and_told(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"1 16\ndog {' '.join(map(str, range(16)))}\n")
    task, model, _ = parts(prepared := prepare(tmp_path, {"tokenizer.kind": "words", "tokenizer.vectors": str(path)}))
    task.initialise(model)
    assert task.tokenizer is not None
    [dog] = task.tokenizer.encode("dog")
    assert model.get_parameter("embedding.tokens.weight")[dog].tolist() == list(range(16))
    assert f"1 of {task.tokenizer.vocab_size} words, from {path}" in dict(prepared.facts)["vectors"]


# Loss


def test_the_loss_is_the_cross_entropy_of_all_examples(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    batch = valid.batch(np.arange(5), CPU)
    logits = model(batch.inputs, batch.lengths, batch.segments)
    gold = torch.tensor([1, 1, 1, 0, 0])
    assert batch.targets is not None and batch.targets.tolist() == gold.tolist()
    for smoothing in (0.0, 0.1):
        loss, weight = task.loss(model, batch, smoothing=smoothing)
        assert weight == 5
        expected = F.cross_entropy(logits, gold, label_smoothing=smoothing, reduction="sum")
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)


def test_balanced_classes_weigh_an_example_by_how_rare_its_class_is(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, {"training.class_weights": "balanced"})
    task, model, valid = parts(prepared)
    assert dict(prepared.facts)["class weights"] == "balanced, from 0.67 (good) to 2.00 (bad)"
    batch = valid.batch(np.arange(5), CPU)
    losses = F.cross_entropy(
        model(batch.inputs, batch.lengths, batch.segments), torch.tensor([1, 1, 1, 0, 0]), reduction="none"
    )
    loss, weight = task.loss(model, batch, smoothing=0.0)
    assert weight == pytest.approx(3 * 2 / 3 + 2 * 2)
    assert float(loss.detach()) == pytest.approx(
        float((losses[:3].sum() * 2 / 3 + losses[3:].sum() * 2).detach()), rel=1e-6
    )
    [found, *_] = task.scores(valid.corpus, task.logits(model, valid.sequences))
    assert found.value == pytest.approx(float(loss.detach()) / weight, rel=1e-6)
    assert found.signature == "unit:example|class weights:balanced"


@pytest.mark.parametrize("class_weights", ["none", "balanced"])
def test_the_loss_waits_for_no_device(tmp_path: Path, class_weights: str) -> None:
    task, model, valid = parts(prepare(tmp_path, {"training.class_weights": class_weights}))
    expected = task.loss(model, valid.batch(np.arange(5), CPU), smoothing=0.1)
    # On `meta`, tensors have a shape and no content: whoever looks at them is told so.
    loss, weight = task.loss(model.to("meta"), valid.batch(np.arange(5), torch.device("meta")), smoothing=0.1)
    assert (loss.shape, weight) == (expected[0].shape, expected[1])


def learn_by_heart(task: ClassificationTask, model: nn.Module, examples: SequenceExamples) -> float:
    """Update a network on all examples at once until it knows them; return its last loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batch = examples.batch(np.arange(len(examples)), CPU)
    for _ in range(60):
        optimizer.zero_grad()
        loss, weight = task.loss(model, batch, smoothing=0.0)
        (loss / weight).backward()
        optimizer.step()
    return float(loss.detach()) / weight


@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_a_few_texts_are_learnt_by_heart(tmp_path: Path, pooling: str) -> None:
    prepared = prepare(tmp_path)
    task, _, valid = parts(prepared)
    sizes: dict[str, Any] = task.model_fields()
    model = Bert(BertConfig(**sizes, **SIZES, pooling=pooling), seed=1)
    assert learn_by_heart(task, model, valid) < 0.1
    model.eval()
    validation = task.validate(model, valid, task.config.decoding, n_samples=1)
    assert validation.loss < 0.1
    assert validation.scores == {"accuracy": 100, "macro_f1": 100}
    assert validation.intervals == {"accuracy": wilson(len(valid), len(valid))}
    text, label, predicted = validation.samples[0]
    assert (text, label) == ("a fine dog", "good")
    assert re.fullmatch(r"good \(\d+ %\)", predicted)
    assert len(validation.samples) == 3
    assert not task.validate(model, valid, task.config.decoding, n_samples=0).samples
    assert [one.label for one in task.predict(model, ["a bad day", "good"], OPTIONS)] == ["bad", "good"]


class Own(nn.Module):
    """A network of the caller's own: the mean of embedded tokens."""

    def __init__(self, vocab: int, n_outputs: int, max_length: int | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, 16)
        self.output = nn.Linear(16, n_outputs)
        self.max_length = max_length

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None) -> Tensor:
        real = (torch.arange(inputs.shape[1]) < lengths[:, None])[..., None]
        outputs: Tensor = self.output((self.tokens(inputs) * real).sum(1) / lengths[:, None])
        return outputs


def test_a_network_of_ones_own_and_a_recurrent_one_learn_too(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path))
    sizes: dict[str, Any] = task.model_fields()
    torch.manual_seed(1)
    own = Own(sizes["vocab"], 2)
    recurrent = RecurrentEncoderModel(RecurrentEncoderConfig(**sizes, d_model=16, d_state=16, dropout=0.0), seed=1)
    for model in (own, recurrent):
        task.initialise(model)
        assert learn_by_heart(task, model, valid) < 0.3
        assert task.validate(model, valid, task.config.decoding, n_samples=1).scores["accuracy"] == 100


def test_a_network_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path, {"data.max_length": 20}))
    sizes: dict[str, Any] = task.model_fields()
    with pytest.raises(
        ConfigError, match=r"^The network returned \(5, 3\) for a batch, and \(5, 2\) was expected: 2 numb"
    ):
        task.loss(Own(sizes["vocab"], 3), valid.batch(np.arange(5), CPU), smoothing=0.0)
    with pytest.raises(
        ConfigError, match=r"data\.max_length is 20, but the model has positions for 22 tokens, 3 of them"
    ):
        task.initialise(Own(sizes["vocab"], 2, max_length=22))
    task.initialise(Own(sizes["vocab"], 2, max_length=23))


# Prediction


def test_answers_come_in_order_whatever_their_lengths(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path, {"training.batch_tokens": 16}))
    texts = ["a fine dog", "", "good", "what a bad day this", "bad"]
    done: list[tuple[str, int]] = []
    found = task.predict(model, texts, LabelOptions(progress=lambda *told: done.append(told)))
    assert done[-1] == ("reading", 5) and len(done) > 2
    for text, one in zip(texts, found, strict=True):
        [alone] = task.predict(model, [text], OPTIONS)
        assert isinstance(one, Classified)
        assert one.label == alone.label and one.probability == pytest.approx(alone.probability, abs=1e-6)
        assert list(one.probabilities.values()) == sorted(one.probabilities.values(), reverse=True)
        assert sum(one.probabilities.values()) == pytest.approx(1)
        assert one.probabilities[one.label] == one.probability
        assert not one.cut and not one.truncation
    assert task.predict(model, [], OPTIONS) == []


def test_a_text_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    short, long = task.predict(model, ["a" * 37, "a" * 37 + "good day"], OPTIONS)
    assert (short.cut, long.cut) == (False, True)
    assert (short.truncation, long.truncation) == ("", "cut at the end")
    assert long.probability == pytest.approx(short.probability)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    with pytest.raises(UsageError, match=r"^The model learned from single texts, and second ones are given\."):
        task.predict(model, ["a", "b"], LabelOptions(texts_b=("c",)))
    with pytest.raises(UsageError, match=r"^Input 1 is no text, but of type ndarray: the run was trained on texts\."):
        task.predict(model, ["a", np.zeros((2, 2))], OPTIONS)


def test_a_second_text_is_read_too(tmp_path: Path) -> None:
    rows = [("a dog", "a cat", "no"), ("a dog", "a dog", "yes")]
    train = write(tmp_path / "pairs.csv", rows * 20, header="text,second,label")
    settings = {"data.train": [train], "data.valid": [train], "data.text_b": "second"}
    task, model, valid = parts(prepare(tmp_path, settings))
    batch = valid.batch(np.arange(2), CPU)
    assert batch.segments is not None and batch.segments.sum(1).tolist() == [6, 6]
    assert valid.text(0) == "a dog | a cat"
    first, second = task.predict(model, ["a dog", "a dog"], LabelOptions(texts_b=("a cat", "a dog")))
    assert first.probability != second.probability
    assert task.table.pairs
    with pytest.raises(
        UsageError, match=r"^The model learned from pairs of texts, and there is no second text\.\nGive one"
    ):
        task.predict(model, ["a dog"], LabelOptions(texts_b=("",)))
    with pytest.raises(UsageError, match=r"^There are 2 texts and 1 second ones\.\nGive one for each text"):
        task.predict(model, ["a dog", "a cat"], LabelOptions(texts_b=("a dog",)))


# Evaluation


def test_a_test_set_is_scored(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    test = write(tmp_path / "test.csv", ROWS)
    done: list[tuple[str, int]] = []
    found = task.evaluate(model, [test], LabelOptions(progress=lambda *told: done.append(told)))
    assert [score.name for score in found.scores] == ["loss", "accuracy", "macro_f1"]
    assert done[-1] == ("reading", 4)
    assert (found.count, found.unit, found.notes) == (4, "texts", ())
    assert found.expected == tuple(label for _, label in ROWS)
    predicted = task.predict(model, [text for text, _ in ROWS], OPTIONS)
    assert [one.label for one in predicted] == [one.label for one in found.predictions if isinstance(one, Classified)]
    assert found["accuracy"] == 25 * sum(one.label == label for one, (_, label) in zip(predicted, ROWS, strict=True))
    assert [score.value for score in found.scores[1:]] == pytest.approx([one.value for one in found.statistics])
    assert [len(one) for one in found.statistics] == [4, 4]
    first = found.predictions[0]
    assert isinstance(first, Classified)
    assert found.output[0] == f"good\t{first.label}\t{first.probability:.4f}"
    assert len(found.output) == 4
    long = write(tmp_path / "long.csv", [*ROWS, ("a" * 50, "good")])
    [note] = task.evaluate(model, [long], OPTIONS).notes
    assert note.startswith("Cut: ") and f"{long}:6" in note


def test_a_report_on_each_class_and_the_confusion_matrix(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    model.train()
    learn_by_heart(task, model, valid)
    test = write(tmp_path / "test.csv", [*ROWS, ("a bad day", "good")])
    found = task.evaluate(model.eval(), [test], OPTIONS)
    assert found.confusion is not None
    assert (found.confusion.labels, found.confusion.counts) == (("bad", "good"), ((1, 0), (1, 3)))
    facts = found.to_json()
    assert (list(facts["labels"]), [list(row) for row in facts["confusion"]]) == (["bad", "good"], [[1, 0], [1, 3]])
    assert facts["classes"]["classes"][1] == {
        "label": "good",
        "precision": 100,
        "recall": 75,
        "f1": pytest.approx(600 / 7),
        "support": 4,
    }
    assert [section.name for section in found.sections if section.table is not None] == ["classes", "confusion"]


def test_runs_compare_by_macro_f1_if_they_know_the_same_classes(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    test = write(tmp_path / "test.csv", ROWS)
    accuracy, macro_f1 = (one.signature for one in task.evaluate(model, [test], OPTIONS).statistics)
    other = prepare(tmp_path, {"data.train": [write(tmp_path / "o.csv", [*ROWS, ("so so", "fair")] * 9)]})
    other_task, other_model, _ = parts(other)
    found = other_task.evaluate(other_model, [test], OPTIONS).statistics
    assert (found[0].signature == accuracy, found[1].signature == macro_f1) == (True, False)


def test_a_column_tells_which_rows_are_of_the_test_set(tmp_path: Path) -> None:
    rows = [
        ("a fine dog", "good", "train"),
        ("a bad day", "bad", "train"),
        ("good", "good", "test"),
        ("bad", "bad", "dev"),
    ]
    file = write(tmp_path / "all.csv", rows * 5, header="text,label,set")
    task, _, valid = parts(prepare(tmp_path, {"data.train": [file], "data.valid": [], "data.split_column": "set"}))
    assert {valid.text(row) for row in range(len(valid))} == {"bad"}
    for split, text in (("", "good"), ("test", "good"), ("valid", "bad")):
        examples = task.read([file], LabelOptions(split=split))
        assert [examples.text(row) for row in range(len(examples))] == [text] * 5
    assert len(task.read([file], LabelOptions(split="all"))) == 20
    single, _, _ = parts(prepare(tmp_path))
    with pytest.raises(UsageError) as caught:
        single.read([file], LabelOptions(split="test"))
    assert (caught.value.problem, caught.value.remedy) == (
        "No column says which rows are of the split 'test'.",
        "Name the column with --split-column.",
    )
    data = replace(single.config.data, split_column="set")
    assert len(single.read([file], LabelOptions(split="train", data=data))) == 10


def test_a_long_sample_is_shortened(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    file = write(tmp_path / "long.csv", [("a dog " * 90, "good")])
    examples = task.read([file], OPTIONS)
    [(text, _, _)] = task.validate(model, examples, task.config.decoding, n_samples=-1).samples
    assert len(text) == 201 and text.endswith("…")


def test_an_unknown_label_is_an_error_with_its_place(tmp_path: Path) -> None:
    task, _, _ = parts(prepare(tmp_path))
    test = write(tmp_path / "test.csv", [*ROWS, ("a day", "goood")])
    with pytest.raises(DataError, match=rf"^{re.escape(test)}:6: .*'goood'.*\n.*good"):
        task.read([test], OPTIONS)


# Vectors


def test_sequences_of_vectors_are_classified(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(30, 6, 2)).astype(np.float32)
    labels = np.arange(30) % 2
    vectors[labels == 1] += 2
    file = str(tmp_path / "train.npz")
    np.savez(file, vectors=vectors, lengths=np.arange(30) % 5 + 2, labels=labels)
    settings = {"data.train": [file], "data.valid": [file], "model.max_positions": 5}
    prepared = prepare(tmp_path, settings)
    facts = dict(prepared.facts)
    assert (prepared.throughput_unit, prepared.batch_unit) == ("sequences", "vectors")
    assert facts["training"].startswith("30 sequences, ") and facts["training"].endswith(" vectors")
    assert facts["features"] == "2 a vector"
    assert facts["max length"] == "5 vectors: the model has positions for 5"
    task, model, valid = parts(prepared)
    assert task.model_fields() == {"vocab": 0, "n_outputs": 2, "head": "sequence", "n_features": 2}
    assert valid.batch(np.array([4]), CPU).inputs.shape == (1, 5, 2)
    model.train()
    assert learn_by_heart(task, model, valid) < 0.3
    model.eval()
    task.save(tmp_path / "vocabulary")
    assert [path.name for path in (tmp_path / "vocabulary").iterdir()] == ["labels.json"]
    again = ClassificationTask.load(task.config, tmp_path / "vocabulary")
    found = again.predict(model, [np.full((3, 2), 2.0), np.zeros((9, 2))], OPTIONS)
    assert [one.label for one in found] == ["1", "0"]
    assert [one.cut for one in found] == [False, True]
    evaluation = task.evaluate(model, [file], OPTIONS)
    assert evaluation["accuracy"] > 90
    assert (evaluation.unit, evaluation.count) == ("sequences", 30)
    with pytest.raises(
        UsageError, match=r"^Input 1 is an array of shape \(3, 4\): the run was trained on sequences of vec"
    ):
        task.predict(model, [np.zeros((2, 2)), np.zeros((3, 4))], OPTIONS)
    with pytest.raises(
        UsageError, match=r"^Input 0 is a text: the run was trained on sequences of vectors of 2 features\."
    ):
        task.predict(model, ["a dog"], OPTIONS)
    with pytest.raises(UsageError, match=r"^A sequence of vectors has no second text\."):
        task.predict(model, [np.zeros((2, 2))], LabelOptions(texts_b=("a dog",)))


# Results


def test_a_class_shows_itself() -> None:
    found = Classified(label="a\tb", probability=0.7, probabilities={"a\tb": 0.7, "c": 0.2, "d": 0.1})
    assert found.lines() == found.lines(top=1) == ["a b\t0.7000"]
    assert found.lines(top=2) == ["a b\t0.7000\tc\t0.2000"]
    assert found.cells() == {"prediction": "a\tb", "probability": 0.7}
    assert list(found.cells(top=2).items()) == [
        ("prediction", "a\tb"),
        ("probability", 0.7),
        ("prediction_2", "c"),
        ("probability_2", 0.2),
    ]
    assert found.cells(top=4) == found.cells(top=3)  # there are no more classes
    assert found.to_json(top=1) == {
        "label": "a\tb",
        "probability": 0.7,
        "probabilities": {"a\tb": 0.7},
        "cut": False,
    }
    assert len(found.to_json()["probabilities"]) == 3
    assert repr(found) == "Classified(prediction='a\\tb', probability=0.7)"
