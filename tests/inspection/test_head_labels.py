"""Labels of heads, on weights whose kind is plain to see, and on traces of every family."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.inspection.families import FAMILIES, traced

from regard.inspection.head_labels import (
    MIXED,
    entropies,
    is_punctuation,
    label_heads,
    label_table,
    separator_mask,
)
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.tasks.reading import Positions, Reading

LABELS = ("(start)", "the", "dog", ",", "barks", "(end)")
TOKENS = Positions(
    name="token",
    labels=LABELS,
    ids=(1, 10, 11, 12, 13, 2),
    text="the dog , barks",
    words=(None, 0, 1, 2, 3, None),
)
N = len(TOKENS)


def sharp(keys: Any, *, causal: bool = False, share: float = 0.9, length: int = N) -> np.ndarray:
    """Weights that lie on one key of each row, the rest spread over the others."""
    allowed = np.tril(np.ones((length, length))) if causal else np.ones((length, length))
    weights = allowed * (1 - share)
    for query, key in enumerate(np.clip(keys, 0, length - 1)):
        weights[query, key] = share * (length if allowed[query, key] else 0)
    return weights / weights.sum(1, keepdims=True)


def trace_of(path: str, heads: list[np.ndarray], *, memory: Positions | None = None, **fields: Any) -> Trace:
    own = replace(TOKENS, name="target") if memory is not None else TOKENS
    axes = ("head", own.name, "key" if memory is None else memory.name)
    reading = Reading(
        forward=lambda: None, places=(("", own),), outputs=lambda id: f"word{id}", memory=memory, **fields
    )
    array = NamedArray(np.array(heads), axes)
    return Trace(title="", output="", reading=reading, arrays={f"{path}.weights": array}, left_out={}, formulas={})


@pytest.mark.parametrize("causal", [False, True])
def test_kinds_of_self_attention(causal: bool) -> None:
    places = np.arange(N)
    kinds = {"previous": places - 1, "itself": places, "first": places * 0}
    if not causal:
        kinds |= {"next": places + 1, "separators": places * 0 + 3}
    trace = trace_of("encoder.0.self_attention", [sharp(keys, causal=causal) for keys in kinds.values()])
    labels = label_heads(trace)
    assert [one.label for one in labels] == list(kinds)
    assert all(one.numbers[one.label] > 0.8 for one in labels)
    assert [(one.attention, one.head) for one in labels] == [("encoder.0.self_attention", n) for n in range(len(kinds))]


def test_equal_weights_are_mixed_and_of_the_largest_entropy() -> None:
    [label] = label_heads(trace_of("encoder.0.self_attention", [np.full((N, N), 1 / N)]))
    assert label.label == MIXED
    assert label.numbers == pytest.approx(
        {"previous": 1 / N, "itself": 1 / N, "next": 1 / N, "first": 1 / N, "separators": 2 / N}
    )
    assert (label.entropy, label.entropy_share) == pytest.approx((np.log(N), 1.0))


def test_rows_without_a_choice_do_not_count() -> None:
    causal = np.tril(np.ones((3, 3)))
    causal /= causal.sum(1, keepdims=True)
    entropy, share = entropies(causal)
    assert entropy == pytest.approx((np.log(2) + np.log(3)) / 2)
    assert share == pytest.approx(1.0)
    assert entropies(np.ones((1, 1))) == (0.0, 0.0)


def test_kinds_of_attention_to_a_memory() -> None:
    source = replace(TOKENS, name="source")
    writes = (10, 11, 13, 10, 11, 13)
    aligned = sharp([1, 2, 4, 1, 2, 4])
    heads = [aligned, sharp([5] * N), sharp([0] * N), np.full((N, N), 1 / N)]
    labels = label_heads(trace_of("decoder.0.cross_attention", heads, memory=source, writes=writes))
    assert [one.label for one in labels] == ["alignment", "separators", "first", MIXED]
    assert labels[0].numbers["alignment"] > 0.8
    diagonal, spread = label_heads(
        trace_of("decoder.0.cross_attention", [np.eye(N), np.full((N, N), 1 / N)], memory=source, writes=writes)
    )
    assert diagonal.near_diagonal == pytest.approx(1.0)
    assert spread.near_diagonal == pytest.approx((2 + 3 * (N - 2) + 2) / N**2)
    assert labels[0].to_json()["numbers"]["alignment"] == labels[0].numbers["alignment"]


def test_separators_are_special_tokens_and_punctuation() -> None:
    assert separator_mask(TOKENS).tolist() == [True, False, False, True, False, True]
    without_words = replace(TOKENS, words=())
    assert separator_mask(without_words).tolist() == [True, False, False, True, False, True]
    assert not separator_mask(Positions(name="patch", labels=("(class)", "0,0"))).any()
    assert [is_punctuation(one) for one in (".", " …", "。", "a.", "", " ", "$")] == [True] * 3 + [False] * 4


@pytest.mark.parametrize("name", FAMILIES)
def test_every_head_of_every_family_has_a_label(name: str) -> None:
    trace = traced(name)
    labels = trace.head_labels()
    assert len(labels) == sum(len(trace[f"{path}.weights"]) for path in trace.attentions())
    for one in labels:
        assert all(0 <= value <= 1 + 1e-6 for value in (*one.numbers.values(), one.entropy_share))
        assert one.label == MIXED or one.numbers[one.label] == max(one.numbers.values())
    json.dumps([one.to_json() for one in labels])
    assert len(label_table(labels).lines()) == len(labels) + 1
