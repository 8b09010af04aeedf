"""One attention weight: every family's replay, its text, its program, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.inspection.families import ATTENDING, traced

from regard.errors import UsageError
from regard.inspection.cell import Cell
from regard.inspection.trace import Trace
from regard.inspection.trace_file import load_trace


def run_program(cell: Cell) -> dict[str, Any]:
    """Run the program of a cell, which asserts what was recorded; return its names."""
    names: dict[str, Any] = {"print": lambda *parts: None}
    exec(cell.python(), names)
    return names


def corners(trace: Trace, attention: str) -> list[tuple[int, int, int]]:
    n_heads, n_queries, n_keys = trace[f"{attention}.weights"].shape
    return [(head, query, key) for head in range(n_heads) for query in (0, n_queries - 1) for key in (0, n_keys - 1)]


@pytest.mark.parametrize("name", ATTENDING)
def test_every_family_explains_its_cells(name: str) -> None:
    trace = traced(name)
    for attention in trace.attentions():
        weights = trace[f"{attention}.weights"].values
        for head, query, key in corners(trace, attention):
            cell = trace.cell(attention, head=head, query=query, key=key)
            assert cell.error <= 1e-5
            assert cell.weight == pytest.approx(weights[head, query, key], abs=1e-6)
            assert cell.sum * cell.scale + (cell.bias or 0.0) == pytest.approx(cell.score)
            if not cell.hidden:
                assert cell.weight == pytest.approx(cell.exponentials[key] / cell.denominator)
            np.testing.assert_allclose(cell.weights @ cell.values, cell.recorded_head_output, atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_the_program_recomputes_weight_and_head(name: str) -> None:
    trace = traced(name)
    for attention in trace.attentions():
        cell = trace.cell(attention, query=1, key=1)
        found = run_program(cell)
        assert found["weights"][1] == pytest.approx(cell.weight, abs=1e-7)
        np.testing.assert_allclose(found["head"], cell.head_output, atol=1e-6)


def test_the_program_fails_on_other_numbers() -> None:
    cell = traced("gpt").cell("decoder.0.self_attention", query=2, key=1)
    with pytest.raises(AssertionError):
        run_program(replace(cell, recorded_weight=cell.recorded_weight + 0.01))
    with pytest.raises(AssertionError):
        run_program(replace(cell, recorded_head_output=cell.recorded_head_output + 0.01))


@pytest.mark.parametrize("name", ATTENDING)
def test_the_lines_fit_a_terminal(name: str) -> None:
    trace = traced(name)
    for attention in trace.attentions():
        cell = trace.cell(attention, query=0, key=1)
        assert max(map(len, cell.lines())) <= 100
        assert str(cell) == "\n".join(cell.lines())


def test_long_vectors_are_cut() -> None:
    trace = traced("captioner-rnn")  # 64 keys
    shown = str(trace.cell("text.decoder.attention", query=0, key=1))
    assert "… (64)" in shown


def test_a_decoder_reads_and_writes() -> None:
    trace = traced("transformer")
    cell = trace.cell("decoder.0.cross_attention", query=1, key=1)
    assert (cell.reads, cell.writes, cell.attends_to) == (trace.reading.own.labels[1], trace.reading.written(1), "dog")
    assert f"reads {cell.reads}, writes {cell.writes}" in str(cell)
    assert trace.cell("encoder.0.self_attention", query=1, key=1).writes == ""


def test_a_masked_cell_says_so() -> None:
    trace = traced("gpt")
    later = trace.cell("decoder.0.self_attention", query=1, key=3)
    assert later.hidden
    assert (later.weight, later.recorded_weight) == (0.0, 0.0)
    assert "hides this key from this query: its weight is 0" in str(later)
    assert not trace.cell("decoder.0.self_attention", query=3, key=1).hidden
    run_program(later)


def test_a_window_hides_what_is_far() -> None:
    trace = traced("transformer-window")
    hidden = [trace.cell("encoder.0.self_attention", query=3, key=key).hidden for key in range(7)]
    assert hidden == [True, False, False, False, False, False, True]


def test_t5_adds_its_bias_and_does_not_scale() -> None:
    trace = traced("t5")
    own = trace.cell("decoder.1.self_attention", head=1, query=3, key=2)
    assert own.scale == 1.0
    assert own.bias == pytest.approx(trace["decoder_relative_bias.bias"].values[1, 3, 2])
    assert trace.cell("encoder.1.self_attention", query=3, key=2).bias == pytest.approx(
        trace["encoder_relative_bias.bias"].values[0, 3, 2]
    )
    assert trace.cell("decoder.1.cross_attention", query=3, key=2).bias is None


def test_grouped_heads_read_the_keys_of_their_group() -> None:
    trace = traced("llama")  # 4 heads of queries, 2 of keys
    cell = trace.cell("decoder.0.self_attention", head=3, query=2, key=1)
    np.testing.assert_allclose(cell.key_vector, trace["decoder.0.self_attention.key"].values[1, 1])
    np.testing.assert_allclose(cell.values, trace["decoder.0.self_attention.value"].values[1])


@pytest.mark.parametrize("name", ["transformer", "llama", "t5"])
def test_what_the_heads_add_is_the_output(name: str) -> None:
    trace = traced(name)
    attention = "decoder.0.self_attention"
    module = trace.live("").model.get_submodule(attention)
    cells = [trace.cell(attention, head=head, query=2, key=0) for head in range(module.n_heads)]
    total = np.sum([cell.added for cell in cells], axis=0)
    bias = 0.0 if module.output.bias is None else module.output.bias.detach().numpy()
    np.testing.assert_allclose(total + bias, cells[0].sublayer_output, atol=1e-5)


def test_a_recurrent_attention_has_no_output_projection() -> None:
    cell = traced("rnn-additive").cell("decoder.attention", query=2, key=1)
    assert cell.output_slice is None
    assert cell.added is None
    assert "tanh(query + key)" in str(cell)


def test_json_holds_all_of_it() -> None:
    cell = traced("rnn-additive").cell("decoder.attention", query=2, key=1)
    kept = json.loads(json.dumps(cell.to_json()))
    assert kept["weight"] == cell.weight
    assert kept["formula"]["kind"] == "additive"
    assert len(kept["formula"]["constants"]["weight"]) == 8
    assert len(kept["exponentials"]) == 7


def test_a_cut_head_is_told_and_not_an_error() -> None:
    cut = traced("transformer").without("decoder.0.cross_attention", heads=[1])
    cell = cut.cell("decoder.0.cross_attention", head=1, query=2, key=1)
    assert cell.error <= 1e-5
    assert cell.compared == ("score", "weight")
    assert not cell.recorded_head_output.any()
    assert cell.head_output.any()
    assert cell.notes[0].startswith("An intervention took the place of decoder.0.cross_attention.heads")
    assert cell.added is not None
    assert not cell.added.any()
    run_program(cell)


@pytest.mark.parametrize(("full_precision", "tolerance"), [(True, 1e-5), (False, 2e-2)])
@pytest.mark.parametrize("name", ATTENDING)
def test_a_trace_from_a_file_explains_its_cells(
    name: str, full_precision: bool, tolerance: float, tmp_path: Path
) -> None:
    trace = load_trace(traced(name).save(tmp_path / "a.trace", full_precision=full_precision))
    for attention in trace.attentions():
        for head, query, key in corners(trace, attention):
            cell = trace.cell(attention, head=head, query=query, key=key)
            assert cell.error <= cell.tolerance == tolerance * max(1.0, np.abs(cell.scores).max())
            assert cell.output_slice is None
            run_program(cell)
    assert any("float16" in note for note in cell.notes) is not full_precision


def test_unknown_places_are_refused() -> None:
    trace = traced("transformer")
    with pytest.raises(
        UsageError, match=r"no attention 'decoder.0.cros_attention'.*\n.*mean decoder.0.cross_attention\?"
    ):
        trace.cell("decoder.0.cros_attention", query=0, key=0)
    with pytest.raises(UsageError, match=r"^decoder.0.cross_attention has the heads 0 to 1, and no head 2."):
        trace.cell("decoder.0.cross_attention", head=2, query=0, key=0)
    with pytest.raises(UsageError, match=r"has the queries 0 to 5, and no query -1.\nChoose a query from 0 to 5"):
        trace.cell("decoder.0.cross_attention", query=-1, key=0)
    with pytest.raises(UsageError, match=r"has the keys 0 to 6, and no key 7."):
        trace.cell("decoder.0.cross_attention", query=0, key=7)
    with pytest.raises(UsageError, match=r"^There is no attention in this trace"):
        traced("resnet").cell("encoder.0.self_attention", query=0, key=0)


def test_hostile_tokens_neither_run_nor_move_the_cursor() -> None:
    trace = traced("gpt")
    cell = trace.cell("decoder.0.self_attention", query=2, key=1)
    token = "\x1b[2J\n__import__('os').abort()\u2028\r'"
    hostile = replace(cell, reads=token, attends_to=token, key_labels=(token,) * len(cell.key_labels))
    run_program(hostile)
    assert all(character.isprintable() for line in hostile.lines() for character in line)
