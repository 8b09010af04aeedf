"""Similarity: a bi-encoder whose cosines follow scores, and whose vectors are those of `embed`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard import config as configuration
from regard.errors import ConfigError, DataError, UsageError
from regard.models.bert import Bert, BertConfig
from regard.models.recurrent_encoder import RecurrentEncoderConfig, RecurrentEncoderModel
from regard.tasks.embedding import Embedder
from regard.tasks.labelling.base import LabelOptions
from regard.tasks.labelling.examples import SequenceExamples
from regard.tasks.labelling.similarity import SimilarityTask
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
ROWS = [
    ("a dog runs", "the dog ran away", 4.0),
    ("a dog runs", "an old house", 1.0),
    ("the house is old", "an old house", 5.0),
    ("the dog ran away", "the house is old", 1.5),
]
SIZES: dict[str, Any] = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 32, "max_positions": 24, "dropout": 0.0}


def write(path: Path, header: str = "sentence1,sentence2,score") -> str:
    path.write_text(f"{header}\n" + "".join(f"{one},{other},{score}\n" for one, other, score in ROWS * 5))
    return str(path)


def prepare(tmp_path: Path, settings: dict[str, Any] | None = None) -> Prepared:
    file = write(tmp_path / "pairs.csv")
    tables = {"task": "similarity", "data": {"train": [file], "valid": [file]}}
    config = configuration.from_tables(tables, origin="test")
    common = {"tokenizer.kind": "words", "model.preset": "bert-tiny", "model.max_positions": 24}
    config = configuration.override(config, {**common, **(settings or {})})
    return SimilarityTask.prepare(config, vocabulary=None, progress=lambda what, done: None)


def parts(prepared: Prepared) -> tuple[SimilarityTask, Bert, SequenceExamples]:
    assert isinstance(prepared.task, SimilarityTask) and isinstance(prepared.valid, SequenceExamples)
    sizes: dict[str, Any] = prepared.task.model_fields()
    return prepared.task, Bert(BertConfig(**sizes, **SIZES), seed=1).eval(), prepared.valid


def learn_by_heart(task: SimilarityTask, model: nn.Module, examples: SequenceExamples, *, rate: float = 0.01) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batch = examples.batch(np.arange(len(examples)), CPU)
    for _ in range(80):
        optimizer.zero_grad()
        loss, weight = task.loss(model, batch, smoothing=0.0)
        (loss / weight).backward()
        optimizer.step()
    return float(loss.detach()) / weight


def test_each_text_is_read_by_itself(tmp_path: Path) -> None:
    task, _, valid = parts(prepared := prepare(tmp_path))
    assert task.tokenizer is not None
    assert task.model_fields() == {
        "vocab": task.tokenizer.vocab_size,
        "n_outputs": 0,
        "head": "none",
        "pooling": "mean",
    }
    facts = dict(prepared.facts)
    assert facts["training"] == "20 pairs, 220 tokens"
    assert facts["scores"] == "from 1 to 5"
    batch = valid.batch(np.array([1, 2]), CPU)
    start, end = task.tokenizer.start_id, task.tokenizer.end_id
    texts = ["a dog runs", "the house is old", "an old house", "an old house"]
    for row, length, text in zip(batch.inputs, batch.lengths, texts, strict=True):
        assert row[: int(length)].tolist() == [start, *task.tokenizer.encode(text), end]
    assert batch.segments is None and batch.targets is not None
    assert batch.targets.tolist() == [0.0, 1.0]


def test_the_loss_is_the_squared_error_of_cosines(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    assert task.tokenizer is not None
    vectors = {
        one.text: one.vector
        for one in Embedder(task.tokenizer, model).embed([text for row in ROWS for text in row[:2]])
    }

    def cosine(one: str, other: str) -> float:
        first, second = vectors[one], vectors[other]
        return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))

    cosines = [cosine(one, other) for one, other, _ in ROWS]
    loss, weight = task.loss(model, valid.batch(np.arange(4), CPU), smoothing=0.1)
    assert weight == 4
    errors = [(own - (score - 1) / 4) ** 2 for own, (_, _, score) in zip(cosines, ROWS, strict=True)]
    assert float(loss.detach()) == pytest.approx(sum(errors), rel=1e-4)
    options = LabelOptions(texts_b=tuple(other for _, other, _ in ROWS))
    found = task.predict(model, [one for one, _, _ in ROWS], options)
    assert [one.value for one in found] == pytest.approx([1 + 4 * own for own in cosines], abs=1e-4)


def test_pairs_are_learned_and_scored(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    assert learn_by_heart(task, model, valid) < 0.003
    task.save(tmp_path / "vocabulary")
    again = SimilarityTask.load(task.config, tmp_path / "vocabulary")
    options = LabelOptions(texts_b=("an old house", "the dog ran away"))
    found = again.predict(model, ["the house is old", "a dog runs"], options)
    assert [one.value for one in found] == pytest.approx([5, 4], abs=0.5)
    validation = task.validate(model, valid, task.config.decoding, n_samples=1)
    assert validation.scores.keys() == {"spearman", "pearson"}
    assert validation.scores["spearman"] == pytest.approx(1)
    assert validation.scores["pearson"] > 0.95
    texts, score, predicted = validation.samples[0]
    assert (texts, score) == ("a dog runs | the dog ran away", "4")
    assert float(predicted) == pytest.approx(4, abs=0.5)
    evaluation = task.evaluate(model, task.config.data.valid, LabelOptions())
    assert (evaluation.count, evaluation.unit) == (20, "pairs")
    assert [one.metric for one in evaluation.statistics] == ["spearman", "pearson"]
    assert evaluation.scores[0].signature == "unit:example|of:cosines"
    assert evaluation["loss"] == pytest.approx(validation.loss) and validation.loss < 0.003
    assert evaluation.output[0].startswith("4\t")


class Own(nn.Module):
    """A network of the caller's own: the mean of embedded tokens."""

    def __init__(self, vocab: int, *, flat: bool = True) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, 16)
        self.flat = flat

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None) -> Tensor:
        mask = (torch.arange(inputs.shape[1]) < lengths[:, None])[..., None]
        states: Tensor = self.tokens(inputs) * mask
        return states.sum(1) if self.flat else states


def test_other_networks_learn_too(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path))
    sizes: dict[str, Any] = task.model_fields()
    torch.manual_seed(1)
    recurrent = RecurrentEncoderModel(RecurrentEncoderConfig(**sizes, d_model=16, d_state=16, dropout=0.0), seed=1)
    for model in (Own(sizes["vocab"]), recurrent):
        task.initialise(model)
        assert learn_by_heart(task, model, valid, rate=0.03) < 0.01
    with pytest.raises(
        ConfigError, match=r"^The network returned \(8, 6, 16\) for 8 texts, and a vector for each was exp"
    ):
        task.loss(Own(sizes["vocab"], flat=False), valid.batch(np.arange(4), CPU), smoothing=0.0)


def test_a_text_that_is_too_long_is_cut(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path, {"data.max_length": 8}))
    options = LabelOptions(texts_b=("an old house", "an old house"))
    short, long = task.predict(model, ["a dog", "a dog runs the old house"], options)
    assert (short.truncation, long.truncation) == ("", "cut at the end")


def test_a_second_text_is_needed(tmp_path: Path) -> None:
    task, model, _ = parts(prepare(tmp_path))
    single = tmp_path / "single.csv"
    single.write_text("text,score\na dog,1\na cat,2\n")
    with pytest.raises(DataError) as caught:
        prepare(tmp_path, {"data.train": [str(single)]})
    assert (caught.value.problem, caught.value.remedy) == (
        f"{single}: two texts are compared, and no column holds the second one.",
        "Say which column it is with --text-b.",
    )
    with pytest.raises(DataError, match=r"single\.csv: two texts are compared"):
        task.evaluate(model, [str(single)], LabelOptions())
    with pytest.raises(UsageError, match=r"^The model learned from pairs of texts, and there is no second text\."):
        task.predict(model, ["a dog"], LabelOptions())
    with pytest.raises(UsageError, match=r"^Text 1 has no second text\.\nGive each text one to be compared with\."):
        task.predict(model, ["a dog", "a dog"], LabelOptions(texts_b=("a cat", " ")))
    with pytest.raises(ConfigError, match=r"^Texts are compared, and these files hold vectors\."):
        prepare(tmp_path, {"data.train": ["a.npz"], "data.valid": []})
    with pytest.raises(DataError, match=r"nowhere\.csv"):
        prepare(tmp_path, {"data.train": [str(tmp_path / "nowhere.csv")]})
    named = prepare(
        tmp_path,
        {
            "data.train": [write(tmp_path / "named.csv", "one,two,score")],
            "data.valid": [],
            "data.text": "one",
            "data.text_b": "two",
        },
    )
    assert dict(named.facts)["columns"] == "text 'one', second text 'two', label 'score'"


def test_a_run_predicts_and_embeds_alike(tmp_path: Path) -> None:
    settings = {f"model.{name}": value for name, value in SIZES.items()}
    run = regard.train(
        "similarity",
        train=write(tmp_path / "pairs.csv"),
        run=tmp_path / "run",
        settings={**settings, "tokenizer.kind": "words", "training.steps": 20, "runtime.threads": 1},
    )
    assert isinstance(run, regard.Similarity)
    found = run.predict("a dog runs", texts_b="the dog ran away")
    first, second = (one.vector for one in run.embed(["a dog runs", "the dog ran away"]))
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    table = run.task.table
    assert found.value == pytest.approx(table.offset + table.scale * cosine, abs=1e-4)
    labels = json.loads((tmp_path / "run" / "vocabulary" / "labels.json").read_text())
    assert (labels["task"], labels["offset"], labels["scale"], labels["pairs"]) == (
        "similarity",
        table.offset,
        table.scale,
        True,
    )
    again = regard.load(tmp_path / "run")
    assert again.predict(["a dog runs"], texts_b=["the dog ran away"]) == [found]
