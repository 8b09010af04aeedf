"""The Transformer: torch's own as a witness, and what is its own (test_generators.py has the rest)."""

from typing import Any

import pytest
import torch
from tests.models.generators import LENGTHS, SOURCE, TARGET, V
from tests.models.generators import make_transformer as make
from torch import Tensor, nn

from regard.errors import ConfigError, DataError
from regard.models.transformer import Transformer, TransformerConfig
from regard.parts.attention import MultiHeadAttention
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.encoder_layer import EncoderLayer
from regard.parts.taps import listening, recording


def assert_close(first: Tensor, second: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(first, second, atol=atol, rtol=0)


# -- parity with torch.nn.Transformer -----------------------------------------------------------------------------------


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.data = torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]).detach()
    theirs.in_proj_bias.data = torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]).detach()
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_layer(ours: EncoderLayer | DecoderLayer, theirs: Any) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    residuals = [ours.self_attention_residual, ours.feed_forward_residual]
    if isinstance(ours, DecoderLayer):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        residuals.insert(1, ours.cross_attention_residual)
    for number, residual in enumerate(residuals, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(residual.norm.state_dict())  # type: ignore[union-attr]
    theirs.linear1.load_state_dict(ours.feed_forward.up.state_dict())  # type: ignore[union-attr]
    theirs.linear2.load_state_dict(ours.feed_forward.down.state_dict())  # type: ignore[union-attr]


def reference(model: Transformer) -> nn.Transformer:
    """torch's Transformer with our weights; its final norms stand only where ours do, after pre-norm."""
    config = model.config
    pre = config.norm_order == "pre"
    options: dict[str, Any] = {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "batch_first": True,
        "norm_first": pre,
    }
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**options),
        config.n_encoder_layers,
        norm=nn.LayerNorm(config.d_model) if pre else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(**options),
        config.n_decoder_layers,
        norm=nn.LayerNorm(config.d_model) if pre else None,
    )
    whole = nn.Transformer(
        config.d_model, config.n_heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    )
    for layers, others in ((model.encoder, encoder.layers), (model.decoder, decoder.layers)):
        for ours, theirs in zip(layers, others, strict=True):
            copy_layer(ours, theirs)  # type: ignore[arg-type]
    if encoder.norm is not None and decoder.norm is not None:
        encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    return whole


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_it_equals_torchs_transformer(norm_order: str, activation: str) -> None:
    model = make(norm_order=norm_order, activation=activation)
    torch.manual_seed(2)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)  # biases and norms too
    theirs = reference(model)
    padded = torch.arange(SOURCE.shape[1]) >= LENGTHS[:, None]
    expected = theirs(
        model.source_embedding(SOURCE, torch.arange(6), LENGTHS),
        model.target_embedding(TARGET, torch.arange(5)),
        tgt_mask=~torch.ones(5, 5, dtype=torch.bool).tril(),
        src_key_padding_mask=padded,
        memory_key_padding_mask=padded,
    )
    states = model.states(SOURCE, LENGTHS, TARGET)
    assert float(states.detach().std()) > 0.1
    assert_close(states, expected)
    assert_close(model(SOURCE, LENGTHS, TARGET), expected @ model.output.weight.T, atol=3e-5)
    memory = theirs.encoder(model.source_embedding(SOURCE, torch.arange(6), LENGTHS), src_key_padding_mask=padded)
    assert_close(model.encode(SOURCE, LENGTHS)[~padded], memory[~padded])


# -- one result by every way --------------------------------------------------------------------------------------------


def test_sequences_beyond_the_short_ones_are_the_same_by_every_way() -> None:
    """Longer than what the explicit formula takes: the fused kernel, the open one and the cache agree."""
    model = make(norm_order="pre")
    torch.manual_seed(3)
    source, target, lengths = torch.randint(V, (2, 90)), torch.randint(V, (2, 80)), torch.tensor([90, 20])
    silent = model(source, lengths, target)
    with recording(model, "*.weights") as record:
        heard = model(source, lengths, target)
    assert len(record) == 6
    assert_close(heard, silent)
    with torch.no_grad():
        _, state = model.step(model.start((source, lengths)), target[:, :79])
        logits, _ = model.step(state, target[:, 79:])
    assert_close(logits, silent[:, -1])


# -- a window -----------------------------------------------------------------------------------------------------------

WINDOW = 3
rotary_or_sinusoidal = pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])


def windowed(positions: str) -> tuple[Transformer, Tensor, Tensor]:
    """A model, targets many times longer than its window, and their logits from one forward pass."""
    model = make(norm_order="pre", window=WINDOW, positions=positions)
    torch.manual_seed(4)
    target = torch.randint(V, (3, 80))
    with torch.no_grad():
        return model, target, model(SOURCE, LENGTHS, target)


@rotary_or_sinusoidal
def test_a_long_sequence_with_a_window_is_the_same_by_every_way(positions: str) -> None:
    model, target, expected = windowed(positions)
    source, lengths = torch.randint(V, (3, 90)), torch.tensor([90, 20, 1])
    silent = model(source, lengths, target)
    assert not torch.allclose(silent, expected, atol=1e-2)
    with recording(model, "*.weights") as record:
        heard = model(source, lengths, target)
    far = (torch.arange(90)[:, None] - torch.arange(90)).abs() > WINDOW
    assert not record["encoder.1.self_attention.weights"][..., far].any()
    assert not record["decoder.1.self_attention.weights"][..., far[:80, :80]].any()
    assert_close(heard, silent)


@rotary_or_sinusoidal
@pytest.mark.parametrize("n_ids", [1, 2, 7])
@torch.no_grad()
def test_the_cache_is_no_longer_than_the_window(n_ids: int, positions: str) -> None:
    model, target, expected = windowed(positions)
    state = model.start((SOURCE, LENGTHS))
    for begin in range(0, 77, n_ids):
        logits, state = model.step(state, target[:, begin : begin + n_ids])
        assert_close(logits, expected[:, begin + n_ids - 1])
        assert state.n_slots <= WINDOW
    assert state.lengths.tolist() == [77 + 77 % n_ids] * 3


@torch.no_grad()
def test_beams_forget_with_their_rows() -> None:
    """Hypotheses of one sentence that part and are reordered, after more tokens than the window holds."""
    model, _, _ = windowed("rotary")
    torch.manual_seed(6)
    state, written = model.start((SOURCE[:1], LENGTHS[:1])), torch.empty(2, 0, dtype=torch.long)
    state = state.reorder(torch.tensor([0, 0]))
    for _ in range(12):
        ids, parents = torch.randint(V, (2, 1)), torch.randint(2, (2,))
        logits, state = model.step(state, ids)
        written = torch.cat([written, ids], dim=1)
        assert_close(logits, model(SOURCE[[0, 0]], LENGTHS[[0, 0]], written)[:, -1])
        state, written = state.reorder(parents), written[parents]
    assert state.n_slots == WINDOW


# -- first weights ------------------------------------------------------------------------------------------------------


def test_a_shared_part_starts_the_same_whatever_else_is_chosen() -> None:
    plain, gated = make(5), make(5, feed_forward="gated", positions="learned")
    assert torch.equal(plain.encoder[0].self_attention.query.weight, gated.encoder[0].self_attention.query.weight)  # type: ignore[union-attr]


# -- tied weights -------------------------------------------------------------------------------------------------------


def matrices(model: Transformer) -> tuple[int, int, int]:
    """Where the matrices of source, target and output are kept."""
    source, target = model.source_embedding.tokens.weight, model.target_embedding.tokens.weight
    return source.data_ptr(), target.data_ptr(), model.output.weight.data_ptr()


def test_one_matrix_for_three() -> None:
    model = make(tied="all")
    model.load_state_dict(make(2, tied="all").state_dict())
    assert len(set(matrices(model))) == 1
    assert sum(parameter.shape == (V, 16) for parameter in model.parameters()) == 1


def test_one_matrix_for_target_and_output() -> None:
    config = TransformerConfig(source_vocab=9, target_vocab=V, tied="target", d_model=16, n_heads=2, d_ff=8)
    model = Transformer(config)
    source, target, output = matrices(model)
    assert source != target == output
    assert model.source_embedding.tokens.weight.shape == (9, 16)
    assert model.output.weight.shape == (V, 16)


def test_three_matrices() -> None:
    assert len(set(matrices(make(tied="none")))) == 3


# -- names --------------------------------------------------------------------------------------------------------------


def test_taps_have_their_documented_names() -> None:
    model = make(n_encoder_layers=1, n_decoder_layers=3)
    with recording(model) as record:
        logits = model(SOURCE, LENGTHS, TARGET)
    attention = ("query", "key", "value", "scores", "weights", "heads", "output")
    expected = {f"{side}_embedding.{name}" for side in ("source", "target") for name in ("tokens", "positions", "sum")}
    for layer in ("encoder.0", "decoder.0", "decoder.1", "decoder.2"):
        sublayers = ["self_attention"] if layer == "encoder.0" else ["self_attention", "cross_attention"]
        expected |= {f"{layer}.{sublayer}.{name}" for sublayer in sublayers for name in attention}
        expected |= {f"{layer}.feed_forward.{name}" for name in ("hidden", "output")}
        expected |= {f"{layer}.{sublayer}_residual.output" for sublayer in [*sublayers, "feed_forward"]}
    assert set(record) == expected | {"logits"}
    assert torch.equal(record["logits"], logits)
    assert record["decoder.2.cross_attention.weights"].shape == (3, 2, 5, 6)
    assert not record["decoder.2.cross_attention.weights"][1, :, :, 3:].any()
    assert record["decoder.0.self_attention.weights"].triu(1).abs().max() == 0


def test_a_silenced_head_changes_the_output() -> None:
    model = make()

    def silence(name: str, heads: Tensor) -> Tensor:
        return heads * torch.tensor([0.0, 1.0]).view(1, 2, 1, 1)

    before = model(SOURCE, LENGTHS, TARGET)
    with listening(model, "encoder.0.self_attention.heads", silence):
        assert not torch.allclose(model(SOURCE, LENGTHS, TARGET), before, atol=1e-3)
    assert torch.equal(model(SOURCE, LENGTHS, TARGET), before)


def test_parameters_are_named_by_their_role() -> None:
    names = set(make(norm_order="pre").state_dict())
    assert {
        "source_embedding.tokens.weight",
        "encoder.0.self_attention.query.weight",
        "decoder.1.cross_attention.output.bias",
        "decoder.1.feed_forward.up.weight",
        "decoder.1.feed_forward_residual.norm.weight",
        "decoder_norm.bias",
        "output.weight",
    } <= names
    assert not any("table" in name for name in names)


def test_the_longest_sequence() -> None:
    assert make().max_length is None
    model = make(positions="learned", max_positions=7)
    assert model.max_length == 7
    with pytest.raises(DataError, match=r"A sequence of 8 tokens is longer than the 7 learned positions\."):
        model(torch.ones(1, 8, dtype=torch.long), torch.tensor([8]), TARGET[:1])


def test_padding_may_pass_the_last_learned_position() -> None:
    model = make(positions="learned", max_positions=4)
    _, state = model.step(model.start((SOURCE[:2, :4], LENGTHS[:2].clamp(max=4))), TARGET[:2, :3], torch.tensor([3, 1]))
    logits, state = model.step(state, TARGET[:2, :3], torch.tensor([1, 3]))
    assert state.lengths.tolist() == [4, 4]
    assert bool(logits.isfinite().all())


@pytest.mark.parametrize(("n_layers", "expected"), [(1, 0), (2, 0), (4, 2)])
def test_the_tap_that_aligns(n_layers: int, expected: int) -> None:
    model = make(n_decoder_layers=n_layers)
    assert model.alignment_tap == f"decoder.{expected}.cross_attention.weights"
    with recording(model, model.alignment_tap) as record:
        model(SOURCE, LENGTHS, TARGET)
    assert list(record) == [model.alignment_tap]


# -- complaints ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (
            {"source_vocab": 9},
            "Source and target have 9 and 17 tokens and cannot share a matrix.\n"
            "Use one vocabulary (tokenizer.shared = true), or model.tied = target.",
        ),
        (
            {"n_heads": 3},
            "A width of 16 cannot be divided among 3 heads.\nChoose d_model as a multiple of n_heads.",
        ),
        (
            {"positions": "rotary", "d_model": 6},
            "Rotary positions need heads of even width, not 3.\nChange d_model or n_heads.",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_a_config_that_cannot_be(choices: dict[str, Any], text: str) -> None:
    sizes = {"source_vocab": V, "target_vocab": V, "d_model": 16, "n_heads": 2, "d_ff": 24}
    with pytest.raises(ConfigError) as caught:
        Transformer(TransformerConfig(**{**sizes, **choices}))
    assert str(caught.value) == text
