"""The plain ConvNet: its formula, and what pooling makes of a shift."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError, DataError
from regard.models.convnet import ConvNet, ConvNetConfig
from regard.parts.taps import recording


def make_model(**changes: Any) -> ConvNet:
    return ConvNet(ConvNetConfig(**{"n_channels": 3, "n_outputs": 5, "widths": (4, 8), **changes}), seed=1)


def some_images(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def test_it_is_convolution_relu_and_pooling_repeated() -> None:
    model, images = make_model(), some_images(2, 3, 12, 8)
    weights = model.state_dict()
    x = images
    for number in range(2):
        name = f"layers.{number}.convolution"
        x = F.max_pool2d(F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1).relu(), 2)
    torch.testing.assert_close(model.features(images), x.flatten(2).transpose(1, 2), atol=1e-5, rtol=0)
    logits = x.mean((2, 3)) @ weights["head.output.weight"].T + weights["head.output.bias"]
    torch.testing.assert_close(model(images), logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("size", "n_places"), [((12, 8), 6), ((28, 28), 49), ((7, 5), 4), ((1, 1), 1)])
def test_images_may_be_of_any_size(size: tuple[int, int], n_places: int) -> None:
    model, images = make_model(), some_images(2, 3, *size)
    assert model.features(images).shape == (2, n_places, 8)
    assert model(images).shape == (2, 5)


def test_a_shift_of_the_image_shifts_the_last_map() -> None:
    model, image = make_model(), torch.zeros(1, 3, 32, 32)
    image[:, :, 8:14, 8:14] = some_images(3, 6, 6)
    # By eight pixels, which two poolings make two places.
    found, shifted = (model.features(one)[0].view(8, 8, 8) for one in (image, image.roll((8, 8), dims=(2, 3))))
    torch.testing.assert_close(shifted, found.roll((2, 2), dims=(0, 1)), atol=1e-6, rtol=0)
    assert not torch.allclose(shifted, found, atol=1e-3)


def test_the_mean_over_all_places_does_not_see_the_shift() -> None:
    model, image = make_model(), torch.zeros(1, 3, 32, 32)
    image[:, :, 8:14, 8:14] = some_images(3, 6, 6)
    torch.testing.assert_close(model(image.roll(8, dims=3)), model(image), atol=1e-6, rtol=0)


def test_taps_are_named_by_their_place() -> None:
    model = make_model()
    with recording(model) as record:
        logits = model(some_images(2, 3, 12, 8))
    assert {name: tuple(tensor.shape) for name, tensor in record.items()} == {
        "layers.0.features": (2, 4, 12, 8),
        "layers.1.features": (2, 8, 6, 4),
        "states": (2, 6, 8),
        "logits": (2, 5),
    }
    assert torch.equal(record["logits"], logits)


def test_every_weight_learns() -> None:
    model = make_model()
    model(some_images(4, 3, 12, 8)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_first_weights_are_a_function_of_the_seed() -> None:
    config = ConvNetConfig(n_channels=1, n_outputs=10)
    first, again, other = (ConvNet(config, seed=seed).state_dict() for seed in (1, 1, 2))
    assert len(first) == 8
    for name, weight in first.items():
        assert torch.equal(weight, again[name])
        assert torch.equal(weight, other[name]) == (weight.dim() == 1)


def test_there_is_a_layer() -> None:
    with pytest.raises(ConfigError) as caught:
        make_model(widths=())
    assert str(caught.value) == "model.widths names no layer.\nGive the width of each layer: [32, 64, 128]."


def test_images_of_other_channels_are_refused() -> None:
    with pytest.raises(DataError, match="The model reads images of 3 channels, not of 1"):
        make_model()(some_images(2, 1, 8, 8))
