"""Llama: equal to that of the transformers package, and to itself with a cache."""

from typing import Any

import pytest
import torch
from tests.models.generators import shaken
from torch import Tensor
from transformers import LlamaConfig as PeerConfig
from transformers import LlamaForCausalLM

from regard.config import as_table, build
from regard.errors import ConfigError
from regard.models.llama import ROTARY_SCALINGS, LinearScaling, Llama, Llama3Scaling, LlamaConfig, NoScaling
from regard.parts.taps import recording

SIZES = {"vocab": 40, "n_layers": 2, "n_heads": 4, "n_key_heads": 2, "d_model": 32, "d_ff": 48, "context": 24}


def make_model(**changes: Any) -> Llama:
    model: Llama = shaken(Llama(LlamaConfig(**{**SIZES, **changes}), seed=1).eval())
    return model


def halves(weight: Tensor, n_heads: int) -> Tensor:
    """Our rotation turns features 2i and 2i + 1 together, theirs i and i + K/2: the rows of a head in their order."""
    heads = weight.unflatten(0, (n_heads, -1))
    return torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1)


def llama_like(model: Llama) -> LlamaForCausalLM:
    config = model.config
    peer = LlamaForCausalLM(
        PeerConfig(
            vocab_size=config.vocab,
            hidden_size=config.d_model,
            intermediate_size=config.d_ff,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            num_key_value_heads=config.n_key_heads,
            max_position_embeddings=64,
            tie_word_embeddings=True,
            rms_norm_eps=1e-6,
            bos_token_id=1,
            eos_token_id=1,
            pad_token_id=0,
        )
    ).eval()
    pairs = [
        (peer.model.embed_tokens.weight, model.embedding.tokens.weight),
        (peer.model.norm.weight, model.decoder_norm.weight),
    ]
    for theirs, ours in zip(peer.model.layers, model.decoder, strict=True):
        pairs += [
            (theirs.self_attn.q_proj.weight, halves(ours.self_attention.query.weight, config.n_heads)),
            (theirs.self_attn.k_proj.weight, halves(ours.self_attention.key.weight, config.n_key_heads)),
            (theirs.self_attn.v_proj.weight, ours.self_attention.value.weight),
            (theirs.self_attn.o_proj.weight, ours.self_attention.output.weight),
            (theirs.mlp.gate_proj.weight, ours.feed_forward.gate.weight),
            (theirs.mlp.up_proj.weight, ours.feed_forward.up.weight),
            (theirs.mlp.down_proj.weight, ours.feed_forward.down.weight),
            (theirs.input_layernorm.weight, ours.self_attention_residual.norm.weight),
            (theirs.post_attention_layernorm.weight, ours.feed_forward_residual.norm.weight),
        ]
    with torch.no_grad():
        for parameter, value in pairs:
            parameter.copy_(value)
    return peer


def some_ids(rows: int, length: int) -> Tensor:
    return torch.randint(2, SIZES["vocab"], (rows, length), generator=torch.Generator().manual_seed(5))


def test_logits_equal_those_of_the_reference() -> None:
    model, ids = make_model(), some_ids(3, 20)
    with torch.inference_mode():
        assert torch.allclose(model(ids), llama_like(model)(ids).logits, atol=1e-5)


def test_a_cache_holds_shared_keys_once() -> None:
    model = make_model()
    _, state = model.step(model.start(1), some_ids(1, 3))
    assert state.cache[0][0].shape == (1, 2, 3, 8)


@pytest.mark.parametrize("counts", [None, [5, 2]])
@pytest.mark.parametrize("window", [0, 3])
def test_who_listens_to_the_weights_of_a_step_changes_nothing(window: int, counts: list[int] | None) -> None:
    model, ids = make_model(window=window), some_ids(2, 6)
    with torch.inference_mode():
        _, state = model.step(model.start(2), ids[:, :5], None if counts is None else torch.tensor(counts))
        logits, _ = model.step(state, ids[:, 5:])
        with recording(model, "*.weights") as record:
            heard, _ = model.step(state, ids[:, 5:])
    assert torch.allclose(logits, heard, atol=1e-5)
    assert {weights.shape[1:3] for weights in record.values()} == {(4, 1)}


def test_one_query_reads_shared_keys_without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = make_model(), some_ids(1, 4)
    with torch.inference_mode():
        _, state = model.step(model.start(1), ids[:, :3])
        monkeypatch.setattr(torch.Tensor, "repeat_interleave", None, raising=False)
        model.step(state, ids[:, 3:])


def test_it_is_told_how_far_it_was_trained_to_look() -> None:
    assert (make_model().context, make_model(window=5).context) == (SIZES["context"], None)


def test_heads_must_divide() -> None:
    with pytest.raises(ConfigError, match=r"model\.n_heads = 4 cannot be divided by n_key_heads = 3\."):
        LlamaConfig(**{**SIZES, "n_key_heads": 3})


def test_heads_of_a_width_of_their_own_need_not_divide_the_model() -> None:
    model = Llama(LlamaConfig(**{**SIZES, "d_model": 30, "d_head": 10}))
    assert model.decoder[0].self_attention.query.weight.shape == (40, 30)


def test_slowing_must_begin_below_where_it_ends() -> None:
    with pytest.raises(ConfigError, match=r"model\.rotary_scaling\.low = 4\.0 is not below high = 4\.0\."):
        Llama3Scaling(low=4.0)


@pytest.mark.parametrize("scaling", ROTARY_SCALINGS.values(), ids=ROTARY_SCALINGS)
def test_a_scaling_is_a_table_of_the_run_file(scaling: NoScaling | LinearScaling | Llama3Scaling) -> None:
    config = LlamaConfig(**SIZES, rotary_scaling=scaling)
    assert build(LlamaConfig, as_table(config), origin="run", path="model") == config


def test_linear_scaling_lets_positions_pass_more_slowly() -> None:
    usual = make_model()
    slowed = make_model(rotary_scaling=LinearScaling(factor=4.0))
    assert torch.equal(slowed.rotation(torch.tensor([8.0])).turns, usual.rotation(torch.tensor([2.0])).turns)


def test_llama3_scaling_keeps_quick_angles_and_divides_slow_ones() -> None:
    wavelengths = torch.tensor([10.0, 24.0, 48.0, 96.0, 1000.0])  # of a first context of 96 positions: 9.6 turns to 0.1
    multipliers = Llama3Scaling(factor=8.0, first_context=96).slowed(wavelengths)
    torch.testing.assert_close(multipliers, torch.tensor([1.0, 1.0, 1 / 3 + 2 / 3 / 8, 1 / 8, 1 / 8]))
