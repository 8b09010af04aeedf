"""Regression: numbers are learned standardised and told in the unit of the data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard import config as configuration
from regard.models.bert import Bert, BertConfig
from regard.tasks.labelling.base import LabelOptions
from regard.tasks.labelling.examples import SequenceExamples
from regard.tasks.labelling.regression import Measured, RegressionTask
from regard.tasks.task import Prepared

CPU = torch.device("cpu")
ROWS = [("MKV", 100.0), ("MKKV", 300.0), ("MA", 500.0), ("MAAAV", 700.0)]
OPTIONS = LabelOptions()
SIZES: dict[str, Any] = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 32, "max_positions": 16, "dropout": 0.0}


def prepare(tmp_path: Path, settings: dict[str, Any] | None = None) -> Prepared:
    file = tmp_path / "proteins.csv"
    file.write_text("sequence,fitness\n" + "".join(f"{text},{value}\n" for text, value in ROWS * 5))
    columns = {"text": "sequence", "label": "fitness"}
    tables = {"task": "regress", "data": {"train": [str(file)], "valid": [str(file)], **columns}}
    config = configuration.from_tables(tables, origin="test")
    common = {"tokenizer.kind": "characters", "model.preset": "bert-tiny", "model.max_positions": 16}
    config = configuration.override(config, {**common, **(settings or {})})
    return RegressionTask.prepare(config, vocabulary=None, progress=lambda what, done: None)


def parts(prepared: Prepared) -> tuple[RegressionTask, Bert, SequenceExamples]:
    assert isinstance(prepared.task, RegressionTask) and isinstance(prepared.valid, SequenceExamples)
    sizes: dict[str, Any] = prepared.task.model_fields()
    assert sizes["n_outputs"] == 1 and sizes["head"] == "sequence"
    return prepared.task, Bert(BertConfig(**sizes, **SIZES), seed=1).eval(), prepared.valid


def test_numbers_are_standardised_by_those_of_training(tmp_path: Path) -> None:
    task, model, valid = parts(prepared := prepare(tmp_path))
    deviation = np.std([value for _, value in ROWS])
    assert dict(prepared.facts)["numbers"] == f"mean 400, standard deviation {deviation:.4g}"
    batch = valid.batch(np.arange(4), CPU)
    assert batch.targets is not None and batch.targets.dtype == torch.float32
    assert batch.targets.tolist() == pytest.approx([(value - 400) / deviation for _, value in ROWS])
    loss, weight = task.loss(model, batch, smoothing=0.1)
    outputs = model(batch.inputs, batch.lengths, batch.segments)[:, 0]
    assert weight == 4
    assert float(loss.detach()) == pytest.approx(float((outputs - batch.targets).square().sum().detach()))


def test_numbers_are_learnt_and_told_in_their_own_unit(tmp_path: Path) -> None:
    task, model, valid = parts(prepare(tmp_path))
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    batch = valid.batch(np.arange(len(valid)), CPU)
    for _ in range(120):
        optimizer.zero_grad()
        loss, weight = task.loss(model, batch, smoothing=0.0)
        (loss / weight).backward()
        optimizer.step()
    model.eval()
    task.save(tmp_path / "vocabulary")
    again = RegressionTask.load(task.config, tmp_path / "vocabulary")
    found = again.predict(model, [text for text, _ in ROWS], OPTIONS)
    assert all(isinstance(one, Measured) and not one.cut for one in found)
    assert [one.value for one in found] == pytest.approx([value for _, value in ROWS], abs=60)
    [cut] = again.predict(model, ["M" * 14], OPTIONS)
    assert cut.cut and cut.truncation == "cut at the end"
    validation = task.validate(model, valid, task.config.decoding, n_samples=1)
    assert validation.scores["spearman"] == pytest.approx(1)
    assert validation.scores["r_squared"] > 0.9
    off = np.mean([abs(one.value - value) for one, (_, value) in zip(found, ROWS, strict=True)])
    assert validation.scores["mae"] == pytest.approx(off, rel=1e-4)
    batch_loss, weight = task.loss(model, batch, smoothing=0.0)
    assert validation.loss == pytest.approx(float(batch_loss.detach()) / weight, rel=1e-3, abs=1e-6)
    text, value, predicted = validation.samples[0]
    assert (text, value) == ("MKV", "100")
    assert float(predicted) == pytest.approx(found[0].value, abs=0.1)
    evaluation = task.evaluate(model, task.config.data.valid, OPTIONS)
    assert evaluation.expected == tuple(value for _, value in ROWS * 5)
    assert [one.value for one in evaluation.predictions if isinstance(one, Measured)] == pytest.approx(
        [one.value for one in found] * 5, rel=1e-4
    )
    assert [score.name for score in evaluation.scores] == ["loss", "spearman", "r_squared", "mae"]
    assert [score.value for score in evaluation.scores[1:]] == pytest.approx(list(validation.scores.values()))
    assert [one.metric for one in evaluation.statistics] == ["spearman", "r_squared", "mae"]
    assert [one.value for one in evaluation.statistics] == pytest.approx(list(validation.scores.values()))
    gold, predicted = evaluation.output[0].split("\t")
    assert gold == "100" and float(predicted) == pytest.approx(found[0].value, abs=0.1)


class Own(nn.Module):
    """A network of the caller's own: how long a sequence is, times a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.5))

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None) -> Tensor:
        return (self.weight * lengths)[:, None]


def test_a_network_of_ones_own_measures_too(tmp_path: Path) -> None:
    task, _, valid = parts(prepare(tmp_path))
    task.initialise(Own())
    found = task.predict(Own(), ["MKV", "M"], OPTIONS)
    deviation = np.std([value for _, value in ROWS])
    assert [one.value for one in found] == pytest.approx([400 + deviation * 0.5 * 5, 400 + deviation * 0.5 * 3])
    assert task.loss(Own(), valid.batch(np.arange(4), CPU), smoothing=0.0)[1] == 4


def test_a_number_shows_itself() -> None:
    found = Measured(value=1.23456789, cut=True)
    assert found.lines() == ["1.23456789"]
    single = np.float32(2) / np.float32(3)
    assert np.float32(Measured(value=float(single)).lines()[0]) == single
    assert found.cells() == {"prediction": 1.23456789}
    assert found.to_json() == {"value": 1.23456789, "cut": True}
