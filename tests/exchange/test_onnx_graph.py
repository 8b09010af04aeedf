"""Graphs as files: weights are written once, inside a graph or beside several."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from regard.exchange import onnx_graph
from regard.exchange.onnx_graph import Graph, WeightFile


class Tied(nn.Module):
    """A matrix that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(600.0).view(30, 20) / 600)
        self.output = self.table


def drawn(network: Tied) -> Graph:
    graph = Graph(network)
    rows = graph.op("Gather", network.table, graph.input("ids", np.int64, "batch"))
    logits = graph.op("MatMul", rows, graph.op("Transpose", network.output, perm=[1, 0]))
    graph.output("logits", graph.op("Add", logits, 1.0), np.float32, "batch", 30)
    return graph


def logits(path: Path) -> Any:
    return onnxruntime.InferenceSession(str(path)).run(["logits"], {"ids": np.array([3, 0])})[0]


@pytest.fixture
def expected() -> Any:
    table = Tied().table.detach().numpy()
    return table[[3, 0]] @ table.T + 1


def test_a_graph_holds_its_weights_by_their_names(tmp_path: Path, expected: Any) -> None:
    drawn(Tied()).save(tmp_path / "model.onnx")
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]
    stored = onnx.load(tmp_path / "model.onnx").graph.initializer
    assert [one.name for one in stored if len(one.dims) == 2] == ["table"]
    assert np.abs(logits(tmp_path / "model.onnx") - expected).max() < 1e-5


def test_graphs_share_a_file_of_weights(tmp_path: Path, expected: Any) -> None:
    weights = WeightFile(tmp_path / "weights.data")
    for name in ("first", "next"):
        drawn(Tied()).save(tmp_path / f"{name}.onnx", weights)
        assert np.abs(logits(tmp_path / f"{name}.onnx") - expected).max() < 1e-5
    assert (tmp_path / "weights.data").stat().st_size == 30 * 20 * 4


def test_weights_that_are_too_many_for_one_file_stand_beside_it(
    tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_graph, "MOST_INSIDE", 2000)
    drawn(Tied()).save(tmp_path / "model.onnx")
    assert {one.name for one in tmp_path.iterdir()} == {"model.onnx", "model.weights"}
    assert np.abs(logits(tmp_path / "model.onnx") - expected).max() < 1e-5


def test_what_was_written_is_checked(tmp_path: Path) -> None:
    network = Tied()
    graph = Graph(network)
    product = graph.op("MatMul", graph.input("x", np.float32, "batch", 7), network.table)  # 7 columns for 30 rows
    graph.output("logits", product, np.float32, "batch", 20)
    with pytest.raises(onnx.shape_inference.InferenceError, match="MatMul"):
        graph.save(tmp_path / "model.onnx")
