"""T5: equal to that of the transformers package, and to itself by every way."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.models.generators import END, LENGTHS, SOURCE, START, T5_SIZES, T5S, TARGET, make_t5
from tests.models.generators import shaken_t5 as shaken
from torch import Tensor, nn
from transformers import T5Config as TheirConfig
from transformers import T5ForConditionalGeneration

from regard.config import DecodingConfig, ModelTable
from regard.decoding.request import Request
from regard.decoding.search import decode
from regard.errors import ConfigError
from regard.models.presets import PRESETS, check_model, count_parameters, model_config
from regard.models.t5 import T5, T5Config
from regard.parts import attention_kernels
from regard.parts.positions import RelativeBias
from regard.parts.taps import listening, recording

V = 23  # of its own, so that vocabularies of two sizes are told apart
every_variant = pytest.mark.parametrize("choices", T5S.values(), ids=T5S.keys())


def make(seed: int = 1, **choices: Any) -> T5:
    return make_t5(seed, **{"source_vocab": V, "target_vocab": V, **choices})


def assert_close(first: Tensor, second: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(first, second, atol=atol, rtol=0)


def some_pairs(n: int, n_source: int, n_target: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sources (n, S) of (n,) lengths, padded behind with 0, and targets (n, T)."""
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(2, n_source + 1, (n,), generator=generator)
    lengths[0] = n_source
    source = torch.randint(3, V, (n, n_source), generator=generator)
    source = source.masked_fill(torch.arange(n_source) >= lengths[:, None], 0)
    target = torch.randint(3, V, (n, n_target), generator=generator)
    target[:, 0] = START
    return source, lengths, target


# -- parity with the transformers package -------------------------------------------------------------------------------


def copied_attention(ours: Any, theirs: Any) -> list[tuple[Tensor, Tensor]]:
    names = {"q": "query", "k": "key", "v": "value", "o": "output"}
    return [(getattr(theirs, name).weight, getattr(ours, own).weight) for name, own in names.items()]


def copied_layer(ours: Any, theirs: Any) -> list[tuple[Tensor, Tensor]]:
    first, *middle, last = theirs.layer
    pairs = [(first.layer_norm.weight, ours.self_attention_residual.norm.weight)]
    pairs += copied_attention(ours.self_attention, first.SelfAttention)
    for cross in middle:
        pairs += [(cross.layer_norm.weight, ours.cross_attention_residual.norm.weight)]
        pairs += copied_attention(ours.cross_attention, cross.EncDecAttention)
    network, own = last.DenseReluDense, ours.feed_forward
    pairs += [(last.layer_norm.weight, ours.feed_forward_residual.norm.weight), (network.wo.weight, own.down.weight)]
    if hasattr(own, "gate"):
        return [*pairs, (network.wi_0.weight, own.gate.weight), (network.wi_1.weight, own.up.weight)]
    return [*pairs, (network.wi.weight, own.up.weight)]


def reference(model: T5) -> T5ForConditionalGeneration:
    """Their network with our weights."""
    config = model.config
    tied, gated = config.tied == "all", config.feed_forward == "gated"
    network = T5ForConditionalGeneration(
        TheirConfig(
            vocab_size=config.source_vocab,
            d_model=config.d_model,
            d_kv=config.d_head,
            d_ff=config.d_ff,
            num_layers=config.n_encoder_layers,
            num_decoder_layers=config.n_decoder_layers,
            num_heads=config.n_heads,
            relative_attention_num_buckets=config.n_buckets,
            relative_attention_max_distance=config.max_distance,
            feed_forward_proj="gated-gelu" if gated else "relu",
            tie_word_embeddings=tied,
            pad_token_id=0,
            eos_token_id=END,
            decoder_start_token_id=START,
        )
    ).eval()
    if not tied:  # their package scales no states then, and shares the matrix all the same
        network.lm_head.weight = nn.Parameter(torch.empty_like(model.output.weight))
    longer = model.source_embedding.tokens.weight * config.d_model**0.5  # they divide the states instead
    pairs = [(network.shared.weight, longer), (network.lm_head.weight, longer if tied else model.output.weight)]
    for name in ("encoder", "decoder"):
        theirs, ours = getattr(network, name), getattr(model, name)
        table = theirs.block[0].layer[0].SelfAttention.relative_attention_bias
        pairs += [(table.weight, getattr(model, f"{name}_relative_bias").weight)]
        pairs += [(theirs.final_layer_norm.weight, getattr(model, f"{name}_norm").weight)]
        for own, other in zip(ours, theirs.block, strict=True):
            pairs += copied_layer(own, other)
    parameters = [parameter for parameter, _ in pairs]
    assert {id(one) for one in network.parameters()} == {id(one) for one in parameters}
    with torch.no_grad():
        for parameter, value in pairs:
            parameter.copy_(value)
    return network


@every_variant
@torch.no_grad()
def test_logits_equal_those_of_the_transformers_package(choices: dict[str, Any]) -> None:
    model = shaken(make(**choices)).eval()
    source, lengths, target = some_pairs(4, 21, 17)
    mask = (torch.arange(21) < lengths[:, None]).long()
    theirs = reference(model)
    memory = theirs.encoder(input_ids=source, attention_mask=mask).last_hidden_state
    assert_close(model.encode(source, lengths)[mask.bool()], memory[mask.bool()])
    expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    assert float(expected.std()) > 0.5
    assert_close(model(source, lengths, target), expected)


@every_variant
def test_greedy_tokens_equal_those_of_the_transformers_package(choices: dict[str, Any]) -> None:
    # Equally deep: their cache counts the encoder's layers.
    model = shaken(make(3, n_encoder_layers=3, **choices)).eval()
    with torch.no_grad():
        model.source_embedding.tokens.weight.mul_(0.1)  # or each token, which is its own output layer, names itself
    source, lengths, _ = some_pairs(12, 9, 1)
    mask = (torch.arange(9) < lengths[:, None]).long()
    limits = torch.full((12,), 16)
    request = Request(prompt=START, end_id=END, limits=limits)
    found = decode(model, model.start((source, lengths)), request, DecodingConfig(beam=1))
    written = reference(model).generate(source, attention_mask=mask, max_new_tokens=16, do_sample=False, num_beams=1)
    expected = [row[: row.index(END)] if END in row else row for row in written[:, 1:].tolist()]
    assert [list(one.best.ids) for one in found] == expected
    assert len({tuple(row) for row in expected}) > 9
    assert min(map(len, expected)) < 16


def test_the_small_one_has_as_many_parameters_as_published() -> None:
    assert count_parameters(PRESETS["t5-small"], 32_128) == 60_506_624
    config = model_config(ModelTable(preset="t5-small"), origin="test", source_vocab=9, target_vocab=9)
    assert config == T5Config(source_vocab=9, target_vocab=9)


# -- the bias, the cache, the ways --------------------------------------------------------------------------------------


def test_order_is_known_by_the_bias_alone() -> None:
    """Without it, an encoder hears a bag of words."""
    model, lengths = shaken(make()), torch.tensor([6])
    order = torch.tensor([5, 2, 0, 4, 1, 3])
    words, shuffled = SOURCE[:1], SOURCE[:1, order]
    assert not torch.allclose(model.encode(shuffled, lengths), model.encode(words, lengths)[:, order], atol=0.1)
    with listening(model, "encoder_relative_bias.bias", lambda name, bias: torch.zeros_like(bias)):
        assert_close(model.encode(shuffled, lengths), model.encode(words, lengths)[:, order])


@every_variant
@torch.no_grad()
def test_cached_decoding_equals_the_whole_forward_pass(choices: dict[str, Any]) -> None:
    model = shaken(make(**choices))
    source, lengths, target = some_pairs(3, 8, 30)  # distances beyond the greatest
    expected = model(source, lengths, target)
    state = model.start((source, lengths))
    for position in range(30):
        logits, state = model.step(state, target[:, position : position + 1])
        assert_close(logits, expected[:, position])
    assert state.lengths.tolist() == [30, 30, 30]
    _, state = model.step(model.start((source, lengths)), target[:, :13])
    logits, state = model.step(state, target[:, 13:])
    assert_close(logits, expected[:, -1])


@every_variant
def test_the_formula_is_the_fused_kernel(monkeypatch: pytest.MonkeyPatch, choices: dict[str, Any]) -> None:
    """One result by the formula that listeners get, by the one of short sequences, and by the fused kernel."""
    model = shaken(make(**choices))
    source, lengths, target = some_pairs(4, 90, 80)
    with torch.no_grad():
        formula = model(source, lengths, target)
        monkeypatch.setattr(attention_kernels, "SHORT", 0)
        fused = model(source, lengths, target)
    with recording(model, "*.weights") as record:
        heard = model(source, lengths, target)
    assert len(record) == 2 + 2 * 3
    assert_close(fused, formula, atol=5e-5)
    assert_close(heard.detach(), formula, atol=5e-5)
    assert_close(model(source, lengths, target).detach(), formula, atol=5e-5)


def test_a_bias_is_made_once_a_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []
    forward = RelativeBias.forward

    def counted(module: RelativeBias, queries: Tensor, keys: Tensor) -> Tensor:
        bias = forward(module, queries, keys)
        calls.append(tuple(bias.shape))
        return bias

    monkeypatch.setattr(RelativeBias, "forward", counted)
    model = make()
    model(SOURCE, LENGTHS, TARGET)
    assert calls == [(1, 3, 6, 6), (1, 3, 5, 5)]  # the same for all sentences
    _, state = model.step(model.start((SOURCE, LENGTHS)), TARGET[:, :2])
    model.step(state, TARGET[:, 2:3])
    assert calls[2:] == [(1, 3, 6, 6), (1, 3, 2, 2), (1, 3, 1, 3)]


# -- first weights, dropout ---------------------------------------------------------------------------------------------


def test_first_weights_are_those_of_t5() -> None:
    sizes: dict[str, Any] = {
        "d_model": 64,
        "n_heads": 8,
        "d_head": 16,
        "d_ff": 100,
        "n_buckets": 32,
        "max_distance": 128,
    }
    both = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    config = T5Config(source_vocab=900, target_vocab=900, feed_forward="gated", tied="inputs", **sizes, **both)
    weights = T5(config).state_dict()
    expected = {
        "source_embedding.tokens.weight": 64**-0.5,
        "output.weight": 64**-0.5,
        "encoder_relative_bias.weight": 64**-0.5,
        "decoder.0.cross_attention.query.weight": (64 * 16) ** -0.5,
        "encoder.0.self_attention.key.weight": 64**-0.5,
        "encoder.0.self_attention.value.weight": 64**-0.5,
        "decoder.0.self_attention.output.weight": 128**-0.5,
        "encoder.0.feed_forward.gate.weight": 64**-0.5,
        "encoder.0.feed_forward.up.weight": 64**-0.5,
        "decoder.0.feed_forward.down.weight": 100**-0.5,
    }
    for name, deviation in expected.items():
        assert float(weights[name].std()) == pytest.approx(deviation, rel=0.1 if "bias" in name else 0.03), name
    assert all(bool((weights[name] == 1).all()) for name in weights if "norm" in name)


@every_variant
def test_first_tokens_and_logits_vary_around_one(choices: dict[str, Any]) -> None:
    model = make(d_model=64, d_ff=128, **choices)
    with recording(model, ["*.sum", "logits"]) as record:
        model(SOURCE, LENGTHS, TARGET)
    assert len(record) == 3
    assert all(0.5 < float(tensor.std()) < 1.5 for tensor in record.values())


def test_what_leaves_a_stack_is_dropped_in_part() -> None:
    model = make(dropout=0.5)
    for name, states in {
        "encoder": model.encode(SOURCE, LENGTHS),
        "decoder": model.states(SOURCE, LENGTHS, TARGET),
    }.items():
        assert 0.3 < float((states == 0).float().mean()) < 0.7, name


def test_matrices_are_shared() -> None:
    for tied, n_own in (("all", 1), ("inputs", 2)):
        model = make(tied=tied)
        model.load_state_dict(make(2, tied=tied).state_dict())
        source, target = model.source_embedding.tokens.weight, model.target_embedding.tokens.weight
        assert len({matrix.data_ptr() for matrix in (source, target, model.output.weight)}) == n_own
        assert source.data_ptr() == target.data_ptr()
        assert sum(parameter.shape == (V, 16) for parameter in model.parameters()) == n_own


# -- names and sizes ----------------------------------------------------------------------------------------------------


def test_taps_have_their_documented_names() -> None:
    model = make(n_encoder_layers=1, n_decoder_layers=2)
    with recording(model) as record:
        logits = model(SOURCE, LENGTHS, TARGET)
    names = ("query", "key", "value", "scores", "weights", "heads", "output")
    expected = {f"{side}_embedding.{name}" for side in ("source", "target") for name in ("tokens", "sum")}
    expected |= {f"{stack}_relative_bias.bias" for stack in ("encoder", "decoder")}
    for layer in ("encoder.0", "decoder.0", "decoder.1"):
        sublayers = ["self_attention"] if layer == "encoder.0" else ["self_attention", "cross_attention"]
        expected |= {f"{layer}.{sublayer}.{name}" for sublayer in sublayers for name in names}
        expected |= {f"{layer}.feed_forward.{name}" for name in ("hidden", "output")}
        expected |= {f"{layer}.{sublayer}_residual.output" for sublayer in [*sublayers, "feed_forward"]}
    assert set(record) == expected | {"logits"}
    assert torch.equal(record["logits"], logits)
    # Queries and keys alone, unscaled, and the bias: nothing else.
    dots = record["encoder.0.self_attention.query"] @ record["encoder.0.self_attention.key"].transpose(-1, -2)
    assert torch.equal(record["encoder.0.self_attention.scores"], dots + record["encoder_relative_bias.bias"])
    with recording(model) as stepped, torch.no_grad():
        model.step(model.start((SOURCE, LENGTHS)), TARGET)
    assert set(stepped) == set(record)
    assert model.alignment_tap == "decoder.0.cross_attention.weights"


def test_only_norms_and_matrices_have_weights() -> None:
    for choices in T5S.values():
        names = set(make(**choices).state_dict())
        assert all(name.endswith(".weight") for name in names)
        assert {"encoder_norm.weight", "decoder_norm.weight", "decoder.2.cross_attention.key.weight"} <= names


def test_positions_have_no_end() -> None:
    model = make()
    assert model.max_length is None
    longer = torch.randint(V, (1, 300), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert bool(model(longer, torch.tensor([300]), longer).isfinite().all())


def test_presets() -> None:
    for name in ("t5-tiny", "t5-small"):
        assert PRESETS[name].tasks == ("denoise", "translate")
        for task in PRESETS[name].tasks:
            check_model(ModelTable(preset=name), task=task, origin="test")
    tiny, transformer = (count_parameters(PRESETS[name], 8000) for name in ("t5-tiny", "transformer-tiny"))
    assert np.isclose(tiny, transformer, rtol=0.12)


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (
            {"source_vocab": 9},
            "T5 has one matrix for source and target, which have 9 and 23 tokens.\n"
            "Use one vocabulary (tokenizer.shared = true).",
        ),
        (
            {"n_buckets": 20},
            "With 20 buckets, 10 distances have one of their own, so that the greatest cannot be 9.\n"
            "Choose fewer buckets, or a greater distance; T5 has 32 buckets up to 128.",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_a_config_that_cannot_be(choices: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        T5(T5Config(**{"source_vocab": V, "target_vocab": V, **T5_SIZES, **choices}))
    assert str(caught.value) == text
