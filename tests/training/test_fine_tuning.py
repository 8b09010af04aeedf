"""How weights of another run learn: which layer is how far from the top, what is frozen, what is refused."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from regard.config import ModelTable, TrainingConfig
from regard.errors import ConfigError
from regard.models.presets import PRESETS, Preset, build_model, model_config
from regard.parts.stack import HasStacks
from regard.training.fine_tuning import check_fine_tuning, facts, layers_above, prepare_fine_tuning


def build(preset: str, **fields: Any) -> nn.Module:
    return build_model(model_config(ModelTable(preset=preset, fields=fields), origin="test"), seed=1)


def heights(model: nn.Module) -> dict[str, set[int]]:
    """The layers above the weights of each place of a model."""
    found: dict[str, set[int]] = {}
    for name, height in layers_above(model).items():
        parts = name.split(".")
        numbers = [index for index, part in enumerate(parts) if part.isdigit()]
        place = ".".join(parts[: numbers[0] + 1]) if numbers else parts[0]
        found.setdefault(place, set()).add(height)
    return found


def test_layers_are_counted_from_the_top_and_embeddings_lie_below_them() -> None:
    model = build("gpt-nano", vocab=9, n_layers=3, d_model=8, n_heads=2)
    assert heights(model) == {
        "embedding": {3},
        "decoder.0": {2},
        "decoder.1": {1},
        "decoder.2": {0},
        "decoder_norm": {0},
    }


def test_each_stack_is_counted_from_its_own_top() -> None:
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 2, "d_model": 8, "n_heads": 2, "d_ff": 8}
    model = build("transformer-tiny", source_vocab=9, target_vocab=7, tied="none", **sizes)
    assert heights(model) == {
        "source_embedding": {1},
        "encoder.0": {0},
        "encoder_norm": {0},
        "target_embedding": {2},
        "decoder.0": {1},
        "decoder.1": {0},
        "decoder_norm": {0},
        "output": {0},
    }


def test_the_positions_of_a_t5_lie_below_its_layers() -> None:
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 3, "d_model": 8, "n_heads": 2, "d_head": 4, "d_ff": 8}
    found = heights(build("t5-tiny", source_vocab=9, target_vocab=9, **sizes))
    assert (found["encoder_relative_bias"], found["decoder_relative_bias"]) == ({1}, {3})
    assert (found["decoder.0"], found["decoder.2"], found["decoder_norm"]) == ({2}, {0}, {0})


def test_the_top_of_an_encoder_has_nothing_above_it() -> None:
    sizes = {"n_layers": 2, "d_model": 8, "n_heads": 2, "d_ff": 8}
    found = heights(build("bert-tiny", vocab=9, head="sequence", n_outputs=3, **sizes))
    assert found == {"embedding": {2}, "encoder.0": {1}, "encoder.1": {0}, "pooler": {0}, "head": {0}}
    recurrent = heights(build("birnn", vocab=9, head="tokens", n_outputs=3, d_model=8, d_state=8))
    assert recurrent == {"embedding": {2}, "encoder.layers.0": {1}, "encoder.layers.1": {0}, "head": {0}}


def test_the_blocks_of_a_resnet_are_counted_over_its_stages() -> None:
    model = build("resnet-20", n_channels=3, n_outputs=10, n_blocks=(2, 1, 3), width=4)
    found = layers_above(model)
    blocks = {name: {found[weight] for weight in found if weight.startswith(f"{name}.")} for name in model.block_names}
    assert blocks == {
        "stage.0.block.0": {5},
        "stage.0.block.1": {4},
        "stage.1.block.0": {3},
        "stage.2.block.0": {2},
        "stage.2.block.1": {1},
        "stage.2.block.2": {0},
    }
    assert {found[name] for name in found if name.startswith("stem.")} == {6}
    assert {found[name] for name in found if name.startswith("head.")} == {0}


def test_the_patches_of_a_vit_lie_below_its_layers() -> None:
    sizes = {"image_size": 8, "patch_size": 4, "n_layers": 2, "d_model": 8, "n_heads": 2, "d_ff": 8}
    found = heights(build("vit-tiny", n_channels=3, n_outputs=2, **sizes))
    assert found == {"embedding": {2}, "encoder.0": {1}, "encoder.1": {0}, "encoder_norm": {0}, "head": {0}}
    convnet = heights(build("convnet", n_channels=1, n_outputs=2))
    assert convnet == {"layers.0": {2}, "layers.1": {1}, "layers.2": {0}, "head": {0}}


def test_each_network_within_a_network_has_its_own_bottom() -> None:
    image = build("resnet-20", n_channels=3, n_outputs=10, n_blocks=(2, 1), width=4)
    text = build("gpt-nano", vocab=9, n_layers=2, d_model=8, n_heads=2)
    found = layers_above(nn.ModuleDict({"image": image, "text": text}))
    assert found["image.stem.layer.convolution.weight"] == 3
    assert found["image.stage.0.block.1.layers.0.convolution.weight"] == 1
    assert found["text.embedding.tokens.weight"] == 2
    assert found["text.decoder.0.feed_forward.up.bias"] == 1


def test_recurrent_layers_and_bare_networks() -> None:
    model = build("birnn-attention", source_vocab=9, target_vocab=9, d_model=8, d_state=8)
    found = heights(model)
    assert found["encoder.layers.0"] == {1} and found["encoder.layers.1"] == {0}
    assert found["bridge.layers.0"] == {1}, "a list inside a layer counts no layers"
    assert found["source_embedding"] == {2}
    assert set(layers_above(nn.Linear(2, 2)).values()) == {0}


FAMILIES = {preset.family: preset for preset in reversed(PRESETS.values())}


@pytest.mark.parametrize("preset", [*FAMILIES.values(), PRESETS["captioner-rnn"]], ids=lambda preset: preset.name)
def test_every_family_declares_its_stacks(preset: Preset) -> None:
    sizes = {"n_channels": 3, "image_size": 112}
    undecided = [field.name for field in dataclasses.fields(preset.config) if field.default is dataclasses.MISSING]
    with torch.device("meta"):
        model = build(preset.name, **{name: sizes.get(name, 20) for name in undecided})
    declared = [stack for module in model.modules() if isinstance(module, HasStacks) for stack in module.stacks()]
    layers = [layer for stack in declared for layer in stack.layers]
    assert layers
    assert len(set(layers)) == len(layers), "no layer is in two stacks"


class Custom(nn.Module):
    """A network that declares no stacks."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.blocks = nn.ModuleList(nn.ModuleList(nn.Linear(4, 4) for _ in range(2)) for _ in range(3))
        self.top = nn.Linear(4, 5)


def test_lists_of_layers_are_the_stacks_of_a_custom_network() -> None:
    found = heights(Custom())
    assert found == {"words": {3}, "blocks.0": {2}, "blocks.1": {1}, "blocks.2": {0}, "top": {0}}


def test_the_rate_falls_from_the_top_downwards() -> None:
    model = build("gpt-nano", vocab=9, n_layers=2, d_model=8, n_heads=2)
    loaded = [name for name, _ in model.named_parameters() if not name.startswith("decoder_norm")]
    training = TrainingConfig(init="runs/x", init_lr_scale=0.5, layer_decay=0.8)
    factors = prepare_fine_tuning(model, loaded, training)
    assert set(factors) == set(loaded), "what is new has no factor"
    assert factors["decoder.1.feed_forward.up.bias"] == 0.5
    assert factors["decoder.0.feed_forward.up.bias"] == pytest.approx(0.5 * 0.8)
    assert factors["embedding.tokens.weight"] == pytest.approx(0.5 * 0.8**2)
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert facts(model, factors, training) == (("lr scale", "0.5 (top layer) to 0.32 (bottom layer)"),)
    slow = TrainingConfig(init="runs/x", init_lr_scale=0.1)
    assert facts(model, prepare_fine_tuning(model, loaded, slow), slow) == (("lr scale", "0.1"),)
    plain = TrainingConfig(init="runs/x")
    assert facts(model, prepare_fine_tuning(model, loaded, plain), plain) == ()
    assert facts(model, prepare_fine_tuning(model, (), TrainingConfig()), TrainingConfig()) == ()


def test_frozen_layers_need_no_gradient() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    training = TrainingConfig(init="runs/x", freeze_init=True)
    factors = prepare_fine_tuning(model, ["0.weight", "0.bias"], training)
    assert [parameter.requires_grad for parameter in model.parameters()] == [False, False, True, True]
    assert facts(model, factors, training) == (("frozen", "15 parameters"),)
    model(torch.ones(1, 4)).sum().backward()
    assert model[0].weight.grad is None


@pytest.mark.parametrize(
    "training", [TrainingConfig(init="x", freeze_init=True), TrainingConfig(init="x", init_lr_scale=0.0)]
)
def test_something_must_be_left_to_learn(training: TrainingConfig) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare_fine_tuning(nn.Linear(2, 2), ["weight", "bias"], training)
    assert caught.value.problem == ("Nothing to train: all weights were loaded from the other run and are frozen.")
    assert caught.value.remedy == "Leave training.freeze_init out, or set training.init_lr_scale above 0."


@pytest.mark.parametrize("setting", [{"freeze_init": True}, {"init_lr_scale": 0.5}, {"layer_decay": 0.9}])
def test_fine_tuning_needs_another_run(setting: dict[str, Any]) -> None:
    [name] = setting
    with pytest.raises(ConfigError) as caught:
        check_fine_tuning(TrainingConfig(**setting))
    assert caught.value.problem == f"--{name.replace('_', '-')} needs --init RUN."
    assert caught.value.remedy == f"Name the run to load weights from, or leave training.{name} out."
    check_fine_tuning(TrainingConfig(init="runs/x", **setting))


@pytest.mark.parametrize("name", ["init_lr_scale", "layer_decay"])
def test_what_is_frozen_has_no_rate(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_fine_tuning(TrainingConfig(init="runs/x", freeze_init=True, **{name: 0.5}))
    assert caught.value.problem == (
        f"--freeze-init and --{name.replace('_', '-')} exclude each other: frozen weights have no learning rate."
    )
    assert caught.value.remedy == "Give one of the two."


def test_lower_layers_learn_no_faster() -> None:
    with pytest.raises(ConfigError) as caught:
        check_fine_tuning(TrainingConfig(init="runs/x", layer_decay=2.0))
    assert caught.value.problem == ("training.layer_decay must be at most 1, not 2: lower layers learn more slowly.")
    assert caught.value.remedy == "Usual are 0.7 to 0.95."
