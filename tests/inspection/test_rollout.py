"""Attention rollout and flow: small cases by hand, and the maximum flow against a search that is slow and plain."""

from collections import deque

import numpy as np
import pytest
from tests.inspection.families import traced

from regard.errors import UsageError
from regard.inspection import rollout as module
from regard.inspection.max_flow import Matrix, all_flows, most_flow
from regard.inspection.rollout import roll, with_residual

# Two positions, two layers. The first: each position passes half of itself on, and takes half of the other.
FIRST = np.array([[0.5, 0.5], [0.25, 0.75]])
SECOND = np.array([[0.9, 0.1], [0.4, 0.6]])


def random_layers(n_layers: int, length: int, *, sharpness: float, causal: bool, seed: int) -> list[Matrix]:
    random = np.random.default_rng(seed)
    scores = sharpness * random.normal(size=(n_layers, 2, length, length))
    if causal:
        scores[..., np.triu(np.ones((length, length), np.bool_), 1)] = -np.inf
    weights = np.exp(scores)
    return [with_residual(layer) for layer in weights / weights.sum(-1, keepdims=True)]


def augmenting_paths(layers: list[Matrix], source: int, sink: int) -> float:
    """Edmonds & Karp 1972: the maximum flow by shortest augmenting paths."""
    room: dict[tuple[int, int], dict[tuple[int, int], float]] = {}
    for level, capacities in enumerate(layers):
        for (above, below), capacity in np.ndenumerate(capacities):
            room.setdefault((level + 1, above), {})[level, below] = float(capacity)
            room.setdefault((level, below), {}).setdefault((level + 1, above), 0.0)
    start, end, total = (len(layers), source), (0, sink), 0.0
    while True:
        came_from, waiting = {start: start}, deque([start])
        while waiting and end not in came_from:
            node = waiting.popleft()
            for other, left in room[node].items():
                if left > 1e-12 and other not in came_from:
                    came_from[other] = node
                    waiting.append(other)
        if end not in came_from:
            return total
        path = [end]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        edges = list(zip(path[1:], path, strict=False))
        width = min(room[one][other] for one, other in edges)
        for one, other in edges:
            room[one][other] -= width
            room[other][one] += width
        total += width


def test_the_residual_connection_is_half_of_each_row() -> None:
    heads = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.6, 0.4]]])
    np.testing.assert_allclose(with_residual(heads), [[0.75, 0.25], [0.15, 0.85]])


def test_rollout_by_hand() -> None:
    np.testing.assert_allclose(roll([FIRST, SECOND]), [[0.475, 0.525], [0.35, 0.65]])


def test_flow_by_hand() -> None:
    """Through the middle, a path takes what the narrower of its two edges takes."""
    expected = [[0.5 + 0.1, 0.5 + 0.1], [0.4 + 0.25, 0.4 + 0.6]]
    np.testing.assert_allclose(all_flows([FIRST, SECOND]), expected)


def test_one_layer_is_its_own_rollout_and_flow() -> None:
    np.testing.assert_allclose(roll([FIRST]), FIRST)
    np.testing.assert_allclose(all_flows([FIRST]), FIRST)
    trace = traced("t5-denoise")  # of one encoder layer
    expected = with_residual(trace["encoder.0.self_attention.weights"].values)
    np.testing.assert_allclose(trace.rollout().values, expected, atol=1e-6)
    np.testing.assert_allclose(trace.flow().values, expected, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_layers", "sharpness"), [(2, 3.0), (3, 1.0), (4, 5.0), (5, 12.0)])
def test_flow_is_the_maximum(n_layers: int, sharpness: float, causal: bool) -> None:
    layers = random_layers(n_layers, 5, sharpness=sharpness, causal=causal, seed=n_layers)
    expected = [[augmenting_paths(layers, source, sink) for sink in range(5)] for source in range(5)]
    np.testing.assert_allclose(all_flows(layers), expected, atol=1e-9)
    assert (most_flow(layers) >= np.array(expected) - 1e-9).all(), "the bound is one"


def test_positions_of_more_than_a_word_of_bits() -> None:
    """Beyond 64 positions distances are found in several words."""
    layers = random_layers(2, 70, sharpness=4.0, causal=False, seed=3)
    above, below = layers[1], layers[0]
    np.testing.assert_allclose(all_flows(layers), np.minimum(above[:, :, None], below[None]).sum(1), atol=1e-9)


@pytest.mark.parametrize("name", ["transformer", "gpt", "bert-tag", "vit", "captioner-vit"])
def test_of_a_trace(name: str) -> None:
    trace = traced(name)
    rolled = trace.rollout()
    np.testing.assert_allclose(rolled.values.sum(1), 1.0, atol=1e-5)
    assert set(rolled.labels) == set(rolled.axes)
    if len(rolled) < 10:
        flows = trace.flow()
        assert flows.axes == rolled.axes
        assert (flows.values <= 1 + 1e-6).all()
        assert ((flows.values > 0) == (rolled.values > 0)).all()


def test_stacks_are_chosen_by_name() -> None:
    trace = traced("transformer")
    assert trace.rollout().axes == ("source", "key")
    assert trace.rollout("decoder").axes == ("target", "key")
    assert (np.triu(trace.flow("decoder").values, 1) == 0).all()
    assert traced("captioner-vit").rollout("decoder").axes == ("target", "key")
    with pytest.raises(UsageError, match=r"There is no self-attention of a stack 'encodr'\.\nDid you mean encoder\?"):
        trace.rollout("encodr")
    with pytest.raises(UsageError, match="There is no self-attention of a stack 'encoder'"):
        traced("gpt").flow("encoder")
    with pytest.raises(UsageError, match="This model has no self-attention that could be followed"):
        traced("rnn-dot").rollout()


def test_a_flow_of_too_many_positions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_POSITIONS", 5)
    with pytest.raises(UsageError) as caught:
        traced("gpt").flow()
    assert str(caught.value) == (
        "Attention flow is for at most 5 positions, and here are 9: it finds a maximum flow for each two of them.\n"
        "Use attention rollout, trace.rollout(), which takes any number of them, or give a shorter input."
    )
