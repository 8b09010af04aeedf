"""The captioner: what is its own of every pair of a backbone and a decoder (test_generators.py has the rest)."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.models.generators import CAPTIONER, CAPTIONER_PAIRS, IMAGES, TARGET, V, captioner_config, make_captioner
from torch import Tensor

from regard.config import ModelTable, RunConfig, from_tables, override, to_toml
from regard.errors import ConfigError, DataError
from regard.models.captioner import (
    DECODERS,
    ENCODERS,
    Captioner,
    CaptionerConfig,
    TransformerTextConfig,
)
from regard.models.presets import check_model, model_config, resolved
from regard.models.resnet import ResNet, ResNetConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vit import ViT, ViTBackboneConfig, ViTConfig
from regard.parts.dropout import seeded
from regard.parts.masks import EVERYTHING
from regard.parts.taps import listening, recording

RECURRENT: dict[str, Any] = {"decoder": "recurrent"}
every_pair = pytest.mark.parametrize("choices", CAPTIONER_PAIRS.values(), ids=CAPTIONER_PAIRS.keys())


def make(seed: int = 1, **choices: Any) -> Captioner:
    return make_captioner(seed, **choices).eval()


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def assert_close(first: Tensor, second: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(first, second, atol=atol, rtol=0)


# -- its two networks ---------------------------------------------------------------------------------------------------


@every_pair
def test_a_backbone_drops_as_the_network_that_names_images_does(choices: dict[str, Any]) -> None:
    model = make(dropout=0.3, **choices).train()
    with seeded(1):
        memory = model.encode(IMAGES)
    with seeded(2):
        assert torch.equal(model.encode(IMAGES), memory) == (choices["encoder"] == "resnet")  # which has no dropout


@torch.no_grad()
def test_the_transformers_decoder_is_that_of_translation() -> None:
    model = make()
    sizes = {"n_decoder_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24, "norm_order": "pre", "tied": "target"}
    theirs = Transformer(TransformerConfig(source_vocab=9, target_vocab=V, **sizes)).eval()
    missing, unexpected = theirs.load_state_dict(model.text.state_dict(), strict=False)
    assert not unexpected
    assert all(name.startswith(("source_embedding", "encoder")) for name in missing)
    assert torch.equal(theirs.decode(model.encode(IMAGES), TARGET, EVERYTHING), model.states(IMAGES, TARGET))


@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_the_image_is_read_by_the_networks_that_name_images(encoder: str) -> None:
    model = make(encoder=encoder)
    classifier: Any
    if encoder == "vit":
        sizes = {
            name: CAPTIONER[name] for name in ("n_channels", "image_size", "patch_size", "n_heads", "d_model", "d_ff")
        }
        classifier = ViT(ViTConfig(n_outputs=5, n_layers=2, dropout=0.0, **sizes), seed=1).eval()
    else:
        classifier = ResNet(ResNetConfig(n_channels=3, n_outputs=5, n_blocks=(1, 2), width=4), seed=1).eval()
    weights = classifier.state_dict()
    assert {*model.image.state_dict(), "head.output.weight", "head.output.bias"} == set(weights)
    for name, weight in model.image.state_dict().items():
        assert torch.equal(weight, weights[name]), "drawn alike, by one seed"
    assert torch.equal(model.encode(IMAGES), model.projection(classifier.features(IMAGES)))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@torch.no_grad()
def test_a_recurrent_decoder_begins_with_the_mean_of_the_memory(cell: str) -> None:
    model: Any = make(**RECURRENT, cell=cell)
    mean, state = model.encode(IMAGES).mean(1), model.start(IMAGES)
    assert len(state.layers) == 2
    for layer, first in enumerate(state.layers):
        assert len(first) == (2 if cell == "lstm" else 1)
        for number, tensor in enumerate(first):
            project = model.text.bridge.layers[layer][number]
            assert_close(tensor, mean @ project.weight.T + project.bias)


@torch.no_grad()
def test_without_attention_the_mean_is_all_that_is_seen() -> None:
    model, other = make(**RECURRENT, attention="none"), make(**RECURRENT)

    def turned(name: str, memory: Tensor) -> Tensor:
        return 2 * memory.mean(1, keepdim=True) - memory  # of the same mean

    for one, is_equal in ((model, True), (other, False)):
        logits = one(IMAGES, TARGET)
        with listening(one, "memory", turned):
            assert torch.allclose(one(IMAGES, TARGET), logits, atol=1e-5) == is_equal
    assert model.start(IMAGES).memory is None
    assert model.alignment_tap is None


@pytest.mark.parametrize(
    ("choices", "edge"),
    [
        ({"patch_size": 4}, 3),
        ({"patch_size": 12}, 1),
        ({"image_size": 96, "patch_size": 8}, 12),
        ({"encoder": "resnet"}, 6),
        ({"encoder": "resnet", "n_blocks": (1,)}, 12),
        ({"encoder": "resnet", "n_blocks": (1, 1, 1), "image_size": 13}, 4),
        ({"encoder": "resnet", "n_blocks": (1, 1, 1), "image_size": 13, "stem": "large"}, 1),
        ({"encoder": "resnet", "n_blocks": (1, 1), "image_size": 33, "stem": "large"}, 5),
        ({"encoder": "resnet", "n_blocks": (2, 2), "image_size": 96, "stem": "large"}, 12),
    ],
    ids=str,
)
def test_the_grid_is_that_of_the_places(choices: dict[str, Any], edge: int) -> None:
    with torch.device("meta"):
        model = make(**choices)
        size = model.config.image_size
        assert model.grid == (edge, edge)
        assert model.encode(torch.empty(1, 3, size, size)).shape == (1, edge * edge, 16)


@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_places_come_row_by_row(encoder: str) -> None:
    """A change in one corner is felt there most."""
    model = make(encoder=encoder, n_encoder_layers=1, n_blocks=(1, 1))
    rows, columns = model.grid
    changed = IMAGES.clone()
    changed[:, :, :4, 8:] += 1  # above, at the right
    felt = (model.encode(changed) - model.encode(IMAGES)).norm(dim=-1).mean(0).view(rows, columns)
    assert int(felt[0].argmax()) >= columns // 2
    assert float(felt[0, -1]) > 3 * float(felt[-1, 0])


def test_the_parameters_can_be_counted_by_hand() -> None:
    d, f, v, s = 16, 24, V, 10
    attention, feed_forward, norm = 4 * (d * d + d), d * f + f + f * d + d, 2 * d
    patches = (3 * 4 * 4 * d + d) + d + (1 + 9) * d  # a linear layer, the class token, the positions
    vit = patches + 2 * (attention + feed_forward + 2 * norm) + norm
    # The stem, a block of 4 channels, one from 4 to 8 with a shortcut, one of 8; each convolution with its norm.
    stages = 2 * (4 * 4 * 9 + 8) + (4 * 8 * 9 + 16) + (4 * 8 + 16) + 3 * (8 * 8 * 9 + 16)
    resnet = (3 * 4 * 9 + 8) + stages + (8 * d + d) + norm
    transformer = v * d + 2 * (2 * attention + feed_forward + 3 * norm) + norm

    def gru(d_input: int) -> int:
        return 3 * s * (d_input + s + 1) + s

    bridge = 2 * (d * s + s)
    recurrent = v * d + bridge + d * s + gru(d) + d * 3 * s + gru(s + d) + ((s + d) * d + d)
    for encoder, n_image in (("vit", vit), ("resnet", resnet)):
        for decoder, n_text in (("transformer", transformer), ("recurrent", recurrent)):
            model = make(encoder=encoder, decoder=decoder)
            assert count(model) == n_image + n_text
            assert count(make(encoder=encoder, decoder=decoder, tied="none")) == n_image + n_text + v * d


# -- names --------------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_taps_are_named_by_their_place() -> None:
    attention = {f"self_attention.{name}" for name in ("query", "key", "value", "scores", "weights", "heads", "output")}
    own = {
        "self_attention_residual.output",
        "feed_forward.hidden",
        "feed_forward.output",
        "feed_forward_residual.output",
    }
    cross = {name.replace("self_", "cross_") for name in (*attention, "self_attention_residual.output")}
    vit = {f"image.encoder.{number}.{name}" for number in range(2) for name in attention | own}
    vit |= {"image.embedding.patches", "image.embedding.positions", "image.embedding.sum", "image.states"}
    blocks = ("image.stage.0.block.0", "image.stage.1.block.0", "image.stage.1.block.1")
    inside = ("residual", "output", "layers.0.features", "layers.1.features")
    resnet = {f"{block}.{name}" for block in blocks for name in inside}
    resnet |= {"image.stem.layer.features", "image.stem.output", "image.stage.1.block.0.shortcut.features"}
    resnet |= {"image.states"}
    embedding = {"text.target_embedding.tokens", "text.target_embedding.sum"}
    transformer = {f"text.decoder.{number}.{name}" for number in range(2) for name in attention | own | cross}
    transformer |= {"text.target_embedding.positions"}
    gates = ("reset_gate", "update_gate", "candidate", "state", "states")
    recurrent = {f"text.decoder.layers.{number}.{gate}" for number in range(2) for gate in gates}
    recurrent |= {
        f"text.decoder.attention.{name}" for name in ("query", "key", "value", "scores", "weights", "context")
    }
    recurrent |= {"text.decoder.output"}
    for encoder, image in (("vit", vit), ("resnet", resnet)):
        for decoder, text in (("transformer", transformer), ("recurrent", recurrent)):
            model = make(encoder=encoder, decoder=decoder)
            with recording(model) as whole:
                logits = model(IMAGES, TARGET)
            assert set(whole) == image | embedding | text | {"memory", "logits"}
            assert torch.equal(whole["logits"], logits)
            with recording(model) as stepped:
                model.step(model.start(IMAGES), TARGET)
            # What a layer hands on for whole sequences is not there while decoding.
            assert set(whole) - set(stepped) <= {f"text.decoder.layers.{number}.states" for number in range(2)}
            assert set(stepped) <= set(whole)


@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_the_tap_that_shows_where_a_word_was_read(encoder: str) -> None:
    model = make(encoder=encoder, n_decoder_layers=3)
    assert model.alignment_tap == "text.decoder.1.cross_attention.weights"
    rows, columns = model.grid
    with recording(model, model.alignment_tap) as record:
        model(IMAGES, TARGET)
    weights = record[model.alignment_tap]
    assert weights.shape == (3, 2, 5, rows * columns)
    assert_close(weights.sum(-1), torch.ones(3, 2, 5))
    model = make(encoder=encoder, **RECURRENT)
    assert model.alignment_tap == "text.decoder.attention.weights"
    with recording(model, model.alignment_tap) as record:
        model(IMAGES, TARGET)
    calls = record.calls(model.alignment_tap)
    assert [tuple(one.shape) for one in calls] == [(3, 1, 1, rows * columns)] * 5
    assert_close(torch.cat(calls, dim=2).sum(-1), torch.ones(3, 1, 5))


@every_pair
def test_attention_can_be_turned_away(choices: dict[str, Any]) -> None:
    model = make(**choices)
    before = model(IMAGES, TARGET)
    assert model.alignment_tap is not None

    def to_the_first(name: str, weights: Tensor) -> Tensor:
        return F.one_hot(torch.zeros(weights.shape[:-1], dtype=torch.long), weights.shape[-1]).to(weights.dtype)

    with listening(model, model.alignment_tap, to_the_first):
        assert not torch.allclose(model(IMAGES, TARGET), before, atol=1e-3)
    assert torch.equal(model(IMAGES, TARGET), before)


def test_one_matrix_for_target_and_output() -> None:
    for decoder in DECODERS:
        model = make(decoder=decoder)
        assert model.output.weight is model.text.target_embedding.tokens.weight
        untied = make(decoder=decoder, tied="none")
        assert untied.output.weight is not untied.text.target_embedding.tokens.weight


# -- its config: two tables ---------------------------------------------------------------------------------------------


def table(**fields: Any) -> ModelTable:
    return ModelTable(preset="captioner-vit", fields=fields)


def config(**fields: Any) -> Any:
    return model_config(table(**fields), origin="run.toml", vocab=50, n_channels=3, image_size=96)


def test_a_table_changes_what_it_names_and_leaves_the_rest_to_the_preset() -> None:
    found, usual = config(encoder={"n_layers": 2}, decoder={"d_ff": 64}), config()
    assert found.encoder == replace(usual.encoder, n_layers=2)
    assert found.decoder == replace(usual.decoder, d_ff=64)


def test_another_kind_begins_from_its_own_sizes() -> None:
    found = config(encoder={"kind": "resnet", "width": 16}, decoder={"kind": "recurrent"})
    assert found.encoder == replace(ENCODERS["resnet"], width=16)
    assert found.decoder == DECODERS["recurrent"]


def test_the_resolved_tables_say_of_which_kind_they_are_and_build_the_same() -> None:
    for fields in ({}, {"encoder": {"kind": "resnet"}, "decoder": {"kind": "recurrent"}}):
        found = config(**fields)
        written = resolved(table(**fields), found)
        run = RunConfig(task="caption", model=written)
        assert from_tables(tomllib.loads(to_toml(run)), origin="run.toml").model == written
        assert model_config(written, origin="run.toml") == found
    assert list(written.fields["encoder"].items())[:2] == [("kind", "resnet"), ("n_blocks", [2, 2])]


def test_a_table_inside_is_set_by_dots() -> None:
    run = override(
        RunConfig(task="caption", model=table()), {"model.encoder.n_layers": "2", "model.decoder.tied": "none"}
    )
    assert run.model.fields == {"encoder": {"n_layers": 2}, "decoder": {"tied": "none"}}


def test_with_two_widths_the_memory_is_projected() -> None:
    encoder, decoder = ViTBackboneConfig(patch_size=4, n_heads=2, d_model=8, d_ff=8), TransformerTextConfig(d_model=16)
    model = Captioner(CaptionerConfig(vocab=V, n_channels=3, image_size=12, encoder=encoder, decoder=decoder))
    assert model.encode(IMAGES).shape == (3, 9, 16)
    assert "projection.norm.weight" in model.state_dict()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"encoder": {"kind": "resnt"}},
            "run.toml: model.encoder.kind must be vit or resnet, not 'resnt'.\nDid you mean resnet?",
        ),
        (
            {"encoder": "resnet"},
            "run.toml: model.encoder must be a table, not 'resnet'.\n"
            'Write: [model.encoder] and below it kind = "resnet"',
        ),
        ({"encoder": {"n_layer": 3}}, "run.toml: there is no key model.encoder.n_layer.\nDid you mean n_layers?"),
        (
            {"decoder": {"n_layers": 0}},
            "run.toml: model.decoder.n_layers must be at least 1, not 0.\n"
            "Correct model.decoder.n_layers and run the command again.",
        ),
        (
            {"n_encoder_layers": 3},
            "run.toml: model.n_encoder_layers is now called model.encoder.n_layers.\n"
            "Write model.encoder.n_layers instead.",
        ),
        (
            {"d_model": 64},
            "run.toml: model.d_model is now called model.encoder.d_model and model.decoder.d_model.\n"
            "Write model.encoder.d_model and model.decoder.d_model instead.",
        ),
        (
            {"encoder": {"kind": "resnet", "n_blocks": ()}},
            "model.n_blocks names no stage.\nGive the blocks of each stage: [3, 3, 3].",
        ),
        (
            {"decoder": {"kind": "recurrent", "attention": "dot"}},
            "model.decoder.attention = dot needs d_state and d_model of one width, not 256 and 128.\n"
            "Make them equal, or use model.decoder.attention = bilinear or additive.",
        ),
    ],
    ids=str,
)
def test_a_config_that_cannot_be(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_model(table(**fields), task="caption", origin="run.toml")
    assert str(caught.value) == text


def test_patches_fill_the_image() -> None:
    with pytest.raises(ConfigError, match="Images of 28 × 28 pixels cannot be cut into patches of 8 × 8"):
        captioner_config(image_size=28, patch_size=8)


def test_heads_share_the_width_among_them() -> None:
    with pytest.raises(ConfigError, match="A width of 16 cannot be divided among 5 heads"):
        make(encoder="resnet", n_heads=5)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_other_images_are_refused(encoder: str) -> None:
    model = make(encoder=encoder)
    with pytest.raises(DataError, match="The model reads images of 12 × 12 pixels, not of 16 × 12"):
        model.encode(torch.zeros(1, 3, 16, 12))
    with pytest.raises(DataError, match="The model reads images of 3 channels, not of 1"):
        model.encode(torch.zeros(1, 1, 12, 12))
    with pytest.raises(DataError, match=r"not in the shape \(3, 12, 12\)"):
        model.start(IMAGES[0])
