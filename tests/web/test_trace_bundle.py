import json

import numpy as np
import pytest
from tests.inspection.families import ATTENDING, FAMILIES, OF_NUMBERS, traced

from regard.inspection.overview import overview_attention
from regard.inspection.trace_file import load_trace
from regard.web.packing import pack, unpack
from regard.web.row_bundle import row_bundle
from regard.web.trace_bundle import page_weights, trace_bundle
from regard.web.trace_parts import difference_bundle, embedding_bundle, gradient_facts, map_bundle, tree_facts


@pytest.mark.parametrize("family", [*FAMILIES, *OF_NUMBERS])
def test_a_trace_of_every_family_becomes_a_message(family: str) -> None:
    trace = traced(family)
    facts, arrays = unpack(pack(*trace_bundle(trace)))
    assert (facts["format"], facts["version"], facts["output"]) == ("regard page trace", 1, trace.output)
    assert [path for paths in facts["kinds"].values() for path in paths] == list(facts["attentions"])
    assert set(facts["attentions"]) == set(trace.attentions())
    assert facts["write_ids"] == list(trace.reading.writes)
    assert facts["positions"][facts["own"]]["labels"] == list(trace.reading.own.labels)
    assert [tap["name"] for tap in facts["taps"]] == list(trace)
    for path, own in facts["attentions"].items():
        weights = trace[f"{path}.weights"].values
        weights = weights if weights.ndim == 3 else weights[None]
        assert own["shape"] == list(weights.shape) == list(arrays[own["array"]].shape)
        assert own["n_heads"] == len(own["heads"]) == len(weights)
        assert (len(own["row_labels"]), len(own["column_labels"])) == weights.shape[1:]
        assert len(facts["positions"][own["rows"]]["labels"]) == weights.shape[1]
        assert len(facts["positions"][own["columns"]]["labels"]) == weights.shape[2]
        np.testing.assert_array_equal(np.nan_to_num(arrays[own["array"]]), weights)
        assert own["has_rows"]
    assert (facts["image"] is not None) == (trace.reading.image is not None)
    if facts["norms"]:
        assert len(facts["norms"]["sublayers"]) == len(arrays["norms"])


@pytest.mark.parametrize("family", ["transformer", "gpt", "t5"])
def test_what_a_decoder_may_not_see_is_told_from_what_has_no_weight(family: str) -> None:
    trace = traced(family)
    path = next(path for path in trace.attentions() if "decoder" in path and path.endswith("self_attention"))
    weights = page_weights(trace, path)
    later = np.triu(np.ones(weights.shape[1:], bool), 1)
    assert np.isnan(weights[:, later]).all()
    assert np.isfinite(weights[:, ~later]).all()


@pytest.mark.parametrize("family", ATTENDING)
def test_a_row_says_of_each_key_what_its_cell_says(family: str) -> None:
    trace = traced(family)
    for path in (trace.attentions()[0], trace.attentions()[-1]):
        weights = page_weights(trace, path)
        for head, query in ((0, 0), (len(weights) - 1, weights.shape[1] - 1)):
            facts, arrays = row_bundle(trace, path, head=head, query=query)
            for key in (0, weights.shape[2] - 1):
                cell = trace.cell(path, head=head, query=query, key=key)
                assert (facts["reads"], facts["writes"], facts["key_labels"][key]) == (
                    cell.reads,
                    cell.writes,
                    cell.attends_to,
                )
                assert (facts["scale"], facts["largest"], facts["denominator"]) == (
                    cell.scale,
                    cell.largest,
                    cell.denominator,
                )
                np.testing.assert_array_equal(arrays["query"], cell.query_vector)
                np.testing.assert_array_equal(arrays["keys"][key], cell.key_vector)
                np.testing.assert_array_equal(arrays["summands"][key], cell.summands)
                np.testing.assert_array_equal(arrays["weighted_values"][key], cell.weighted_value)
                np.testing.assert_array_equal(arrays["head_output"], cell.head_output)
                numbers = {
                    "sums": cell.sum,
                    "scores": cell.score,
                    "recorded_scores": cell.recorded_score,
                    "weights": cell.weight,
                    "recorded_weights": cell.recorded_weight,
                    "exponentials": cell.exponentials[key],
                    "visible": not cell.hidden,
                }
                assert {name: arrays[name][key] for name in numbers} == numbers
                assert ("biases" in arrays) == (cell.bias is not None)
                if cell.bias is not None:
                    assert arrays["biases"][key] == cell.bias
            np.testing.assert_allclose(arrays["weights"], arrays["recorded_weights"], atol=1e-5)


def test_maps_that_are_too_large_together_come_as_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.web.trace_bundle.N_BLOCKS", 3)
    trace = traced("transformer")
    facts, arrays = trace_bundle(trace, most_bytes=10)
    path = facts["kinds"]["decoder"][0]
    own, whole = facts["attentions"][path], page_weights(trace, path)
    assert own["array"] == f"blocks:{path}"
    n_rows, n_columns = own["block"]
    blocks = arrays[own["array"]]
    assert max(blocks.shape[1:]) <= 3
    np.testing.assert_array_equal(blocks[1, 0, 0], np.nanmax(whole[1, :n_rows, :n_columns]))
    assert np.isnan(blocks[:, 0, -1]).all()  # all of it is later than the decoder's positions


@pytest.mark.parametrize("family", ["transformer", "gpt", "vit", "resnet"])
def test_a_trace_from_a_file_is_shown_without_its_model(family: str, tmp_path: object) -> None:
    file = traced(family).save(f"{tmp_path}/one.trace")
    facts, arrays = trace_bundle(load_trace(file))
    assert facts["live"] is False
    assert facts["full_precision"] is False
    assert set(facts["attentions"]) == set(traced(family).attentions())
    assert unpack(pack(facts, arrays))[0]["output"] == facts["output"]


@pytest.mark.parametrize("family", ["transformer", "rnn-additive", "captioner-vit"])
def test_every_node_of_the_tree_knows_where_the_model_looked(family: str) -> None:
    trace = traced(family)
    facts = tree_facts(trace)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    nodes = {node["number"]: node for node in facts["nodes"]}
    weights = trace[f"{overview_attention(trace)}.weights"].values
    mean = (weights if weights.ndim == 3 else weights[None]).mean(0)
    place: int | None = facts["best"]
    while place is not None:
        node = nodes[place]
        np.testing.assert_allclose(node["attention"], mean[node["step"]], atol=1e-4)
        place = node.get("parent")
    assert all("attention" in node for node in nodes.values())
    pruned = next(node for node in nodes.values() if node["fate"] == "pruned")
    assert sum(pruned["attention"]) == pytest.approx(1, abs=0.01)


def test_a_tree_of_what_attends_to_no_source_has_nodes_alone() -> None:
    facts = tree_facts(traced("gpt", sample=False, beam=2))
    assert not any("attention" in node for node in facts["nodes"])


@pytest.mark.parametrize("family", [*FAMILIES])
def test_embeddings_are_rows_of_the_positions(family: str) -> None:
    trace = traced(family)
    facts, arrays = embedding_bundle(trace)
    positions = trace_bundle(trace)[0]["positions"]
    for own in facts["embeddings"]:
        for name in own["arrays"].values():
            np.testing.assert_array_equal(arrays[name], trace[name].values)
            assert len(arrays[name]) == len(positions[own["rows"]]["labels"])
    assert bool(facts["embeddings"]) == (family not in ("resnet", "convnet"))


def test_feature_maps_can_be_asked_for() -> None:
    trace = traced("resnet")
    names = trace_bundle(trace)[0]["feature_maps"]
    assert names
    _, arrays = map_bundle(trace, names[0])
    np.testing.assert_array_equal(arrays["map"], trace[names[0]].values)


def test_a_trace_differs_from_itself_by_nothing_and_from_an_ablated_one_by_something() -> None:
    trace = traced("transformer")
    facts, arrays = difference_bundle(trace, trace)
    assert facts["largest"] == 0
    assert not any(np.nan_to_num(array).any() for name, array in arrays.items() if name.startswith("weights:"))
    np.testing.assert_array_equal(arrays["norms:a"], arrays["norms:b"])
    facts, arrays = difference_bundle(trace, trace.without("encoder.0.self_attention", [0]))
    assert facts["largest"] > 0
    assert np.nan_to_num(arrays["weights:encoder.1.self_attention"]).any()
    assert not np.nan_to_num(arrays["weights:encoder.0.self_attention"]).any()  # cut behind its weights


def test_gradients_are_told_by_sublayer_and_position() -> None:
    trace = traced("transformer")
    facts = gradient_facts(trace, "", 2)
    assert np.shape(facts["values"]) == (len(facts["sublayers"]), len(facts["positions"]))
    assert facts["positions"] == list(trace.reading.own.labels)
