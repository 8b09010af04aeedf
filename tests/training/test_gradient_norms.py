"""The gradient's norm by layer: what counts as a layer, and the numbers."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config import ModelTable
from regard.models.presets import build_model, model_config
from regard.training.gradient_norms import is_recorded, layer_names, norms_by_layer


def build(preset: str, **fields: Any) -> nn.Module:
    return build_model(model_config(ModelTable(preset=preset, fields=fields), origin="test"), seed=1)


def layers(model: nn.Module) -> list[str]:
    """The layers that have a weight matrix, in their order."""
    names = layer_names(model)
    return list(dict.fromkeys(names[name] for name, weight in model.named_parameters() if weight.dim() > 1))


def test_a_layer_of_a_stack_is_one_layer() -> None:
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 8, "n_heads": 2, "d_ff": 8}
    model = build("transformer-tiny", source_vocab=9, target_vocab=7, tied="none", **sizes)
    assert layers(model) == [
        "source_embedding",
        "encoder.0",
        "encoder.1",
        "target_embedding",
        "decoder.0",
        "decoder.1",
        "decoder.2",
        "output",
    ]
    gpt = build("gpt-nano", vocab=9, n_layers=2, d_model=8, n_heads=2)
    assert layers(gpt) == ["embedding", "decoder.0", "decoder.1"]


def test_a_convolution_is_a_layer_wherever_it_stands() -> None:
    plain = build("plain-20", n_channels=3, n_outputs=10)
    found = layers(plain)
    assert found[:3] == ["stem.layer", "stage.0.block.0.layers.0", "stage.0.block.0.layers.1"]
    assert found[-2:] == ["stage.2.block.2.layers.1", "head"]
    assert len(found) == 20, "as the paper counts them"
    residual = layers(build("resnet-20", n_channels=3, n_outputs=10))
    assert set(residual) - set(found) == {"stage.1.block.0.shortcut", "stage.2.block.0.shortcut"}
    joined = layers(build("resnet-20", n_channels=3, n_outputs=10, skip="concatenate"))
    assert joined[3] == "stage.0.block.0.join.mix"
    assert layers(build("convnet", n_channels=1, n_outputs=2)) == ["layers.0", "layers.1", "layers.2", "head"]


def test_layers_of_other_networks() -> None:
    vit = build("vit-tiny", n_channels=3, image_size=8, n_outputs=2, patch_size=4, n_layers=2, d_model=8, n_heads=2)
    assert layers(vit) == ["embedding", "encoder.0", "encoder.1", "head"]
    birnn = build("birnn", vocab=9, head="tokens", n_outputs=3, d_model=8, d_state=8)
    assert layers(birnn) == ["embedding", "encoder.layers.0", "encoder.layers.1", "head"]
    translator = build("birnn-attention", source_vocab=9, target_vocab=9, d_model=8, d_state=8, n_layers=1, tied="none")
    assert layers(translator) == [
        "source_embedding",
        "encoder.layers.0",
        "bridge.layers.0.0",
        "target_embedding",
        "decoder.attention",
        "decoder.layers.0",
        "decoder.context_input",
        "decoder.prediction",
        "output",
    ]
    own = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)))
    assert layers(own) == ["0", "2.0", "2.1"]
    assert layers(nn.Linear(2, 2)) == ["weight"]


class TwoLayers(nn.Module):
    """Two layers, each with a matrix and vectors, and one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(2, 2)])
        self.norm = nn.LayerNorm(2)
        self.layers[2].requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).tanh()
        return self.norm(x)


def test_the_norm_is_that_of_the_mean_gradient_of_all_matrices_of_a_layer() -> None:
    torch.manual_seed(1)
    model = TwoLayers()
    x = torch.randn(5, 4)
    (model(x) ** 3).sum().backward()
    expected = {
        f"layers.{number}": float((model.layers[number].weight.grad / 5).norm())  # type: ignore[operator]
        for number in (0, 1)
    }
    assert norms_by_layer(model, weight=5.0) == pytest.approx(expected, rel=1e-6)
    assert list(norms_by_layer(model, weight=5.0)) == ["layers.0", "layers.1"], "neither the frozen one nor the norm"
    gpt = build("gpt-nano", vocab=9, n_layers=1, d_model=8, n_heads=2)
    for parameter in gpt.parameters():
        parameter.grad = torch.full_like(parameter, 2.0)
    inside = [weight for name, weight in gpt.named_parameters() if name.startswith("decoder.0.") and weight.dim() > 1]
    assert len(inside) > 3
    n_numbers = sum(weight.numel() for weight in inside)
    assert norms_by_layer(gpt, weight=4.0)["decoder.0"] == pytest.approx(0.5 * n_numbers**0.5, rel=1e-6)


def test_every_so_many_updates_from_the_first_on() -> None:
    assert [step for step in range(1, 12) if is_recorded(step, every=4)] == [1, 5, 9]
    assert [step for step in range(1, 4) if is_recorded(step, every=1)] == [1, 2, 3]
    assert not any(is_recorded(step, every=0) for step in range(1, 100))
