"""The checks of a trace: all hold in every family, and each of them can fail."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inspection.families import FAMILIES, OF_NUMBERS, subject_of, traced

from regard.errors import UsageError
from regard.inspection import attention_replay, checks, model_checks
from regard.inspection import trace as trace_module
from regard.inspection.checks import Check, Checks, check_trace
from regard.inspection.interventions import sublayers
from regard.inspection.named_array import NamedArray, Values
from regard.inspection.rounding import Doubled
from regard.inspection.trace import Trace, trace_input
from regard.inspection.trace_file import load_trace
from regard.tasks.reading import Reading

PATH = "decoder.0.self_attention"


def damaged(trace: Trace, name: str, change: Callable[[Values], Values]) -> Trace:
    """The same trace with other numbers in one array."""
    arrays = {own: trace[own] for own in trace}
    old = arrays[name]
    arrays[name] = NamedArray(change(old.values.copy()), old.axes, old.labels)
    return Trace(
        title=trace.title,
        output=trace.output,
        reading=trace.reading,
        arrays=arrays,
        left_out={},
        formulas=trace.formulas,
        result=trace.result,
        subject=trace.subject,
    )


def failing(found: Checks) -> set[str]:
    return {row.name for row in found.rows if row.passed is False}


@pytest.mark.parametrize("name", [*FAMILIES, *OF_NUMBERS])
def test_all_hold_in_every_family(name: str) -> None:
    found = check_trace(traced(name))
    assert found.passed, str(found)
    assert found.largest_error <= 1e-5
    made = {row.name for row in found.rows if row.passed}
    assert model_checks.FUSED in made
    if {**FAMILIES, **OF_NUMBERS}[name].task in ("translate", "language", "denoise", "caption"):
        assert {model_checks.CACHED, model_checks.LEAF, model_checks.SUM} <= made


@pytest.mark.parametrize("beam", [1, 4])
def test_greedy_search_and_wide_beams_hold(beam: int) -> None:
    assert check_trace(traced("transformer", beam=beam, length_penalty=0.6)).passed


@pytest.mark.parametrize("name", ["transformer", "llama", "rnn-additive", "captioner-vit", "resnet"])
def test_all_hold_under_interventions(name: str) -> None:
    trace = traced(name)
    for path in sublayers(trace.live("").model):
        cut = trace.without(path)
        assert cut.checks().passed, f"{path}\n{cut.checks()}"
    assert cut.rewritten().checks().passed
    if trace.reading.cached is not None:
        assert cut.checks()[model_checks.LEAF].note == "of what is written under the interventions"


@pytest.mark.parametrize("tap", ["query", "scores", "weights", "heads"])
def test_all_hold_with_a_patch(tap: str) -> None:
    trace = traced("gpt")
    found = trace.patched({f"{PATH}.{tap}": trace[f"{PATH}.{tap}"].values * 0.5}).checks()
    assert found.passed, str(found)
    assert found[model_checks.CACHED].note == "a patch fits a pass over whole sequences only"


@pytest.mark.parametrize(
    ("tap", "name"),
    [
        (f"{PATH}.weights", checks.ROWS),
        (f"{PATH}.scores", checks.SCORES),
        (f"{PATH}.query", checks.SCORES),
        (f"{PATH}.key", checks.WEIGHTS),
        (f"{PATH}.value", checks.HEADS),
        (f"{PATH}.heads", checks.OUTPUT),
        (f"{PATH}.output", checks.OUTPUT),
        ("logits", model_checks.FUSED),
        ("logits", model_checks.CACHED),
    ],
)
def test_damaged_numbers_fail(tap: str, name: str) -> None:
    found = check_trace(damaged(traced("gpt"), tap, lambda values: values * 1.01))
    assert name in failing(found), str(found)
    assert not found.passed


def test_a_context_that_is_not_its_weights_fails() -> None:
    found = check_trace(damaged(traced("rnn-additive"), "decoder.attention.context", lambda values: values + 0.01))
    assert failing(found) >= {checks.HEADS}


def test_nan_fails() -> None:
    def spoil(values: Values) -> Values:
        values[0, 0, 0] = np.nan
        return values

    assert checks.SCORES in failing(check_trace(damaged(traced("gpt"), f"{PATH}.scores", spoil)))


@pytest.mark.parametrize(
    ("name", "path", "query", "key"),
    [("gpt", PATH, 1, 2), ("transformer-window", "encoder.0.self_attention", 0, 3), ("transformer-window", PATH, 4, 1)],
)
def test_a_weight_behind_the_mask_fails(name: str, path: str, query: int, key: int) -> None:
    def look(values: Values) -> Values:
        values[0, query, key] = 1e-7
        return values

    assert checks.MASKED in failing(check_trace(damaged(traced(name), f"{path}.weights", look)))


def test_a_row_without_any_weight_is_none_that_fails() -> None:
    def blind(values: Values) -> Values:
        values[:, 0] = 0.0
        return values

    found = check_trace(damaged(traced("gpt"), f"{PATH}.weights", blind))
    assert checks.ROWS not in failing(found)


def test_another_output_than_the_search_finds_fails() -> None:
    trace = traced("gpt")
    writes = (*trace.reading.writes[:-1], (trace.reading.writes[-1] + 1) % 13)
    trace.reading = replace(trace.reading, writes=writes)
    assert failing(check_trace(trace)) >= {model_checks.LEAF, model_checks.SUM}


def test_another_score_fails() -> None:
    trace = traced("transformer")
    reading = trace.reading
    assert reading.watch is not None
    search = reading.watch([])
    best = search.found[0].best
    wrong = replace(search, found=(replace(search.found[0], hypotheses=(replace(best, score=best.score - 0.1),)),))
    trace.reading = replace(reading, watch=lambda beginning: wrong)
    assert failing(check_trace(trace)) == {model_checks.SUM}


def test_other_cached_logits_fail() -> None:
    trace = traced("transformer")
    cached = trace.reading.cached
    assert cached is not None
    trace.reading = replace(trace.reading, cached=lambda ends: torch.flip(cached(ends), (0,)))
    assert failing(check_trace(trace)) == {model_checks.CACHED}


@pytest.mark.parametrize("name", ["transformer", "gpt", "rnn-additive", "captioner-vit"])
def test_of_many_positions_cached_decoding_is_checked_at_some(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_checks, "MOST_PIECES", 4)
    trace = traced(name)
    found = trace.checks()[model_checks.CACHED]
    assert found.passed and found.note == f"at 4 of {len(trace.reading.own)} positions, the others in pieces"
    wrong = trace["logits"].values.copy()
    wrong[-1] += 1.0
    trace._arrays["logits"] = replace(trace["logits"], values=wrong)
    assert not trace.checks()[model_checks.CACHED].passed


def test_pieces_of_cached_decoding() -> None:
    assert model_checks.piece_ends(5) == [0, 1, 2, 3, 4]
    ends = model_checks.piece_ends(500)
    assert len(ends) == model_checks.MOST_PIECES
    assert ends == sorted(set(ends)) and ends[-17:] == list(range(483, 500)) and ends[0] == 29


def test_sampling_has_no_tree() -> None:
    found = check_trace(traced("gpt", sample=True, beam=1))
    assert found.passed
    assert found[model_checks.LEAF] == Check(name=model_checks.LEAF, note="sampling has no tree")


def test_what_is_skipped_says_why() -> None:
    found = check_trace(traced("bert-tag"))
    assert found[model_checks.CACHED].note == "nothing is decoded"
    assert found[checks.MASKED].note == "no mask hides anything"
    assert check_trace(traced("resnet"))[checks.ROWS].note == "no attention"


@pytest.mark.parametrize("full_precision", [True, False])
@pytest.mark.parametrize("name", ["transformer", "rnn-additive", "vit", "convnet"])
def test_files_are_checked_without_the_model(name: str, full_precision: bool, tmp_path: Path) -> None:
    trace = load_trace(traced(name).save(tmp_path / "a.trace", full_precision=full_precision))
    found = trace.checks()
    assert found.passed, str(found)
    assert found[model_checks.FUSED].note == "needs the model"


def test_lines_and_json() -> None:
    found = check_trace(damaged(traced("gpt"), f"{PATH}.output", lambda values: values + 1))
    lines = found.lines()
    assert lines[-1].startswith("9 of 10 checks hold; largest error ")
    assert any(line.startswith("FAILS    heads add up to the output") and line.endswith(PATH) for line in lines)
    kept = json.loads(json.dumps(found.to_json()))
    assert kept["passed"] is False
    assert len(kept["checks"]) == 10


def test_a_file_from_which_large_attentions_were_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MOST_BYTES", 6_000)
    trace = traced("transformer")
    path = trace.save(tmp_path / "a.trace", full_precision=True)
    found = load_trace(path).checks()
    assert found.passed
    assert found[checks.ROWS].note.endswith("attentions are not in the file")
    with pytest.raises(UsageError, match=r"was left out of the trace, as it is large, and the model is not here"):
        load_trace(path).cell(trace.attentions()[-1], query=0, key=0)
    monkeypatch.setattr(attention_replay, "MOST_NUMBERS", 1_000)  # several in a pass, or one
    assert trace.checks().passed
    assert len(attention_replay.attention_groups(trace)) > 1


def test_errors_of_weights_are_measured_by_their_scores() -> None:
    """Scores of 1000 have the rounding of 1000, and what the softmax makes of it is no error of ours."""
    trace = traced("gpt")
    model = trace.live("").model
    with torch.no_grad():
        model.get_submodule(PATH).query.weight *= 3000
    found = trace.patched({}).checks()
    assert found[checks.SCORES].passed
    assert found[checks.WEIGHTS].passed


@pytest.fixture
def chaotic(monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A deep network with large weights, whose layers make rounding larger than is tolerated here without a proof."""
    monkeypatch.setattr(model_checks, "TOLERANCE", 1e-6)
    fields = {"n_layers": 12, "d_model": 64, "n_heads": 4, "context": 16}
    monkeypatch.setitem(FAMILIES, "gpt-deep", replace(FAMILIES["gpt"], fields=fields))
    subject = subject_of("gpt-deep")
    with torch.no_grad():
        for parameter in subject.model.parameters():
            parameter *= 3.0
    return trace_input(subject)


def test_what_a_network_makes_of_rounding_is_no_fault(chaotic: Trace) -> None:
    found = check_trace(chaotic)
    row = found[model_checks.CACHED]
    assert row.error is not None and row.error > model_checks.TOLERANCE
    assert row.note.startswith("rounding: from the same in float64 they are ")
    assert found.passed, str(found)


def test_a_fault_is_no_rounding_however_large_that_is(chaotic: Trace) -> None:
    own, subject = chaotic.reading, chaotic.subject
    cached = own.cached
    assert cached is not None and subject is not None
    chaotic.reading = replace(own, cached=lambda ends: torch.roll(cached(ends), 1, 0))
    assert not check_trace(chaotic)[model_checks.CACHED].passed

    class Faulty:
        """The task, where cached decoding is wrong by little, whatever the precision."""

        spec = subject.task.spec

        def reading(self, *given: Any) -> Reading:
            found = subject.task.reading(*given)
            right = found.cached
            assert right is not None
            return replace(found, cached=lambda ends: right(ends) * 1.001)

    task: Any = Faulty()
    chaotic.subject = replace(subject, task=task)
    chaotic.reading = chaotic.subject.reading(chaotic.result)
    assert not model_checks._cached(chaotic, chaotic.subject, Doubled(chaotic, chaotic.subject)).passed
