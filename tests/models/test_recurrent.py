"""The recurrent encoder and decoder: its formulas, and what is its own (test_generators.py has the rest)."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.models.generators import LENGTHS, ONE_WAY, SOURCE, TARGET, V
from tests.models.generators import make_recurrent as make
from torch import Tensor

import regard
from regard.config import DecodingConfig
from regard.errors import ConfigError, UsageError
from regard.models.recurrent import Recurrent, RecurrentConfig
from regard.parts.recurrent_state import RecurrentState
from regard.parts.taps import listening, recording


def assert_close(first: Tensor, second: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(first, second, atol=atol, rtol=0)


# -- the formulas, written out ------------------------------------------------------------------------------------------


@torch.no_grad()
def test_attention_joins_the_next_input_the_layer_above_and_the_prediction() -> None:
    """One sentence, step by step, with every concatenation in its place."""
    model = make(cell="elman", attention="bilinear")
    decoder, source, length = model.decoder, SOURCE[:1], LENGTHS[:1]
    assert decoder.attention is not None
    assert decoder.context_input is not None
    score: Any = decoder.attention.score
    states, final = model.encoder(model.source_embedding.tokens(source), length)
    bottom, top = (state[0][0] for state in model.bridge(final))
    below, above = decoder.cells
    whole = torch.cat([below.state_weight, below.input_weight, decoder.context_input.weight], dim=1)
    context = torch.zeros(20)
    logits = []
    for x in model.target_embedding.tokens(TARGET[0]):
        bottom = torch.tanh(whole @ torch.cat([bottom, x, context]) + below.bias)
        scores = torch.stack([bottom @ score.key.weight @ s for s in states[0]])
        context = scores.softmax(0) @ states[0]
        both = torch.cat([above.state_weight, above.input_weight], dim=1)
        top = torch.tanh(both @ torch.cat([top, bottom, context]) + above.bias)
        predicted = torch.tanh(decoder.prediction(torch.cat([top, context])))
        logits.append(model.output.weight @ predicted)
    assert_close(model(source, length, TARGET[:1])[0], torch.stack(logits))


@pytest.mark.parametrize("functions", list(itertools.permutations(["identity", "linear", "sigmoid"])), ids="-".join)
@torch.no_grad()
def test_queries_keys_and_values_are_functions_of_their_own(functions: tuple[str, str, str]) -> None:
    settings = dict(zip(("query_function", "key_function", "value_function"), functions, strict=True))
    attention = make(attention="additive", **settings).decoder.attention
    assert attention is not None
    states = torch.randn(3, 4, 20)
    for given, function, x in zip(
        functions, (attention.query, attention.key, attention.value), (states[..., :10], states, states), strict=True
    ):
        if given == "identity":
            assert function(x) is x
        else:
            weight, bias = function.parameters()
            total = x @ weight.T + bias
            assert_close(function(x), total if given == "linear" else 1 / (1 + (-total).exp()))


@torch.no_grad()
def test_without_attention_only_the_final_state_passes() -> None:
    model = make(attention="none", bidirectional=False)
    state = model.start((SOURCE, LENGTHS))
    _, final = model.encoder(model.source_embedding.tokens(SOURCE), LENGTHS)
    assert state.memory is None
    assert state.context is None
    for (mine,), (theirs,) in zip(state.layers, final, strict=True):
        assert torch.equal(mine, theirs)
    assert model.alignment_tap is None


# -- tied weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tied", "n_matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_tied_matrices_are_kept_once(tied: str, n_matrices: int) -> None:
    model = make(tied=tied)
    model.load_state_dict(make(2, tied=tied).state_dict())
    weights = (model.source_embedding.tokens.weight, model.target_embedding.tokens.weight, model.output.weight)
    assert len({weight.data_ptr() for weight in weights}) == n_matrices
    if tied != "none":
        assert model.output.weight is model.target_embedding.tokens.weight
    assert sum(parameter.shape == (V, 12) for parameter in model.parameters()) == n_matrices


def test_two_vocabularies() -> None:
    model = Recurrent(RecurrentConfig(source_vocab=9, target_vocab=V, tied="target", d_model=12, d_state=10))
    assert model.source_embedding.tokens.weight.shape == (9, 12)
    assert model(SOURCE.clamp(max=8), LENGTHS, TARGET).shape == (3, 5, V)


# -- names --------------------------------------------------------------------------------------------------------------


def test_taps_have_their_documented_names() -> None:
    model = make()
    with recording(model) as record:
        logits = model(SOURCE, LENGTHS, TARGET)
    gates = ("reset_gate", "update_gate", "candidate", "state")
    expected = {f"{side}_embedding.{name}" for side in ("source", "target") for name in ("tokens", "sum")}
    for layer in ("encoder.layers.0", "encoder.layers.1"):
        expected |= {f"{layer}.states"} | {
            f"{layer}.{way}.{gate}" for way in ("forwards", "backwards") for gate in gates
        }
    for layer in ("decoder.layers.0", "decoder.layers.1"):
        expected |= {f"{layer}.states"} | {f"{layer}.{gate}" for gate in gates}
    expected |= {f"decoder.attention.{name}" for name in ("query", "key", "value", "scores", "weights", "context")}
    assert set(record) == expected | {"decoder.output", "logits"}
    assert torch.equal(record["logits"], logits)
    assert record["encoder.layers.1.states"].shape == (3, 6, 20)
    assert record["decoder.layers.0.states"].shape == (3, 5, 10)
    assert record["decoder.layers.0.state"].shape == (3, 10)
    assert record["decoder.output"].shape == (3, 5, 12)
    weights = record.calls("decoder.attention.weights")
    assert [tuple(one.shape) for one in weights] == [(3, 1, 1, 6)] * 5
    assert not weights[0][1, :, :, 3:].any()
    assert record["decoder.attention.context"].shape == (3, 1, 20)
    assert_close(torch.stack(record.calls("decoder.layers.0.state"), dim=1), record["decoder.layers.0.states"])


@torch.no_grad()
def test_taps_while_decoding() -> None:
    model = make()
    with recording(model, "decoder.*") as whole:
        model(SOURCE, LENGTHS, TARGET)
    state: RecurrentState = model.start((SOURCE, LENGTHS))
    with recording(model, "decoder.*") as stepped:
        model.step(state, TARGET)
    for name in ("decoder.attention.weights", "decoder.layers.1.state"):
        for one, other in zip(stepped.calls(name), whole.calls(name), strict=True):
            assert_close(one, other)
    with recording(model, "decoder.attention.*") as beam:
        model.step(state.reorder(torch.arange(3).repeat_interleave(2)), TARGET[:, :1].repeat_interleave(2, dim=0))
    assert beam["decoder.attention.weights"].shape == (3, 1, 2, 6)
    assert beam["decoder.attention.context"].shape == (3, 2, 20)


def test_attention_can_be_turned_away() -> None:
    model = make()
    before = model(SOURCE, LENGTHS, TARGET)

    def to_the_first(name: str, weights: Tensor) -> Tensor:
        return F.one_hot(torch.zeros(weights.shape[:-1], dtype=torch.long), weights.shape[-1]).to(weights.dtype)

    with listening(model, "decoder.attention.weights", to_the_first):
        assert not torch.allclose(model(SOURCE, LENGTHS, TARGET), before, atol=1e-3)
    assert torch.equal(model(SOURCE, LENGTHS, TARGET), before)


def test_the_tap_that_aligns_and_the_longest_sequence() -> None:
    model = make()
    assert model.max_length is None
    assert model.alignment_tap == "decoder.attention.weights"


def test_parameters_are_named_by_their_role() -> None:
    assert {
        "source_embedding.tokens.weight",
        "encoder.layers.0.backwards.state_weight",
        "bridge.layers.1.0.weight",
        "decoder.layers.1.input_weight",
        "decoder.attention.score.key.weight",
        "decoder.context_input.weight",
        "decoder.prediction.bias",
        "output.weight",
    } <= set(make().state_dict())


# -- complaints ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (
            {"source_vocab": 9},
            "Source and target have 9 and 17 tokens and cannot share a matrix.\n"
            "Use one vocabulary (tokenizer.shared = true), or model.tied = target.",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_a_config_that_cannot_be(choices: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Recurrent(RecurrentConfig(**{"source_vocab": V, "target_vocab": V, **choices}))
    assert str(caught.value) == text


def test_a_dot_product_of_two_widths_is_refused_before_a_model_is_built() -> None:
    choices: dict[str, Any] = {"source_vocab": V, "target_vocab": V, "attention": "dot", "d_state": 8}
    with pytest.raises(ConfigError) as caught:
        RecurrentConfig(**choices, query_function="linear", value_function="linear")
    assert str(caught.value) == (
        "model.attention = dot needs queries and keys of one width, not 8 and 16.\n"
        "Use model.key_function = linear or sigmoid, model.attention = bilinear or additive, or model.bidirectional = false."
    )
    for remedy in ({"key_function": "linear"}, {"key_function": "sigmoid"}, {"attention": "additive"}, ONE_WAY):
        RecurrentConfig(**{**choices, **remedy})


# -- from files to translations -----------------------------------------------------------------------------------------

TINY: dict[str, Any] = {
    "model.d_model": 24,
    "model.d_state": 24,
    "model.n_layers": 1,
    "model.dropout": 0.0,
    "tokenizer.vocab_size": 320,
    "training.batch_tokens": 512,
    "training.warmup": 5,
    "training.learning_rate": 0.02,
    "training.steps": 20,
    "training.validate_every": 20,
    "training.validate_samples": 4,
    "runtime.device": "cpu",
    "runtime.threads": 1,
}


def test_a_run_is_trained_and_translates_with_its_alignment(tmp_path: Path, corpus: tuple[str, str]) -> None:
    run = regard.train("translate", model="birnn-attention", train=corpus, run=tmp_path / "run", settings=TINY)
    assert isinstance(run.model, Recurrent)
    loaded = regard.load(tmp_path / "run", threads=1)
    loss, _ = loaded.task.reference_loss(loaded.model, *(Path(file).read_text().splitlines() for file in corpus))
    assert loss < math.log(320) - 1
    lines = ["a dog runs", "", "the big old house"]
    (first, empty, last) = loaded.translate(lines, decoding=DecodingConfig(beam=3, n_best=2, max_length=9), align=True)
    assert empty.text == ""
    for line, one in ((lines[0], first), (lines[2], last)):
        assert len(one.outputs) == 2
        for candidate in one.outputs:
            assert all(0 <= link.source < len(line.split()) for link in candidate.alignment)
    assert any(candidate.alignment for candidate in (*first.outputs, *last.outputs))


def test_without_attention_there_is_nothing_to_align(tmp_path: Path, corpus: tuple[str, str]) -> None:
    settings = {**TINY, "training.steps": 2, "training.validate_every": 2}
    run = regard.train("translate", model="rnn", train=corpus, run=tmp_path / "run", settings=settings)
    assert len(run.translate(["a dog runs"], decoding=DecodingConfig(max_length=4))) == 1
    with pytest.raises(UsageError) as caught:
        run.translate(["a dog runs"], align=True)
    assert str(caught.value) == (
        "This model has no attention to read alignments from.\n"
        "Leave the alignment out, or use a model with attention, such as rnn-attention."
    )
