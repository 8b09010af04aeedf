"""Convolution over sequences and images: torch's own as a witness, and what the lectures say of it."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError, DataError, TrainingError
from regard.parts.convolution import (
    BatchNorm,
    Concatenation,
    Convolution,
    ImageConvolution,
    PlainBlock,
    ResidualBlock,
    Sum,
    check_images,
)
from regard.parts.initialisation import initialise
from regard.parts.taps import listening, recording

D = 6
either_way = pytest.mark.parametrize("causal", [True, False], ids=["causal", "centred"])


def make(width: int, *, causal: bool) -> Convolution:
    torch.manual_seed(1)
    return Convolution(D, width, causal=causal)


@either_way
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_it_equals_torchs_convolution(width: int, causal: bool) -> None:
    module, x = make(width, causal=causal), torch.randn(2, 9, D, requires_grad=True)
    # Of an even width, torch's padding "same" has the odd one after, too.
    theirs = nn.Conv1d(D, D, width, padding=0 if causal else "same")
    theirs.weight.data = module.features.weight.detach().view(D, width, D).transpose(1, 2).contiguous()
    theirs.bias.data = module.features.bias.detach()  # type: ignore[union-attr]
    source = x.transpose(1, 2)
    expected = theirs(F.pad(source, (width - 1, 0)) if causal else source).transpose(1, 2)
    out = module(x)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)
    direction = torch.randn_like(out)
    ours, wanted = (torch.autograd.grad(y, x, direction)[0] for y in (out, expected))
    torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=0)


@either_way
def test_a_shift_of_the_input_shifts_the_features(causal: bool) -> None:
    module, x = make(3, causal=causal), torch.zeros(1, 12, D)
    x[:, 3:6] = torch.randn(3, D)
    out, shifted = module(x), module(x.roll(4, dims=1))
    torch.testing.assert_close(shifted, out.roll(4, dims=1), atol=1e-6, rtol=0)
    assert not torch.allclose(shifted, out, atol=1e-2)


@pytest.mark.parametrize(
    ("width", "causal", "seen"),
    [(1, True, [4]), (3, True, [2, 3, 4]), (3, False, [3, 4, 5]), (4, False, [3, 4, 5, 6]), (4, True, [1, 2, 3, 4])],
)
def test_what_a_position_sees(width: int, causal: bool, seen: list[int]) -> None:
    x = torch.randn(1, 9, D, requires_grad=True)
    make(width, causal=causal)(x)[0, 4].sum().backward()
    assert x.grad is not None
    assert x.grad[0].any(-1).nonzero().flatten().tolist() == seen


def test_causal_does_not_see_the_future() -> None:
    module, x = make(5, causal=True), torch.randn(2, 9, D)
    changed = x.clone()
    changed[:, 6:] += 1
    out, other = module(x), module(changed)
    assert torch.equal(other[:, :6], out[:, :6])
    assert not torch.allclose(other[:, 6], out[:, 6], atol=1e-2)


@either_way
def test_a_sequence_may_be_shorter_than_the_width(causal: bool) -> None:
    assert make(7, causal=causal)(torch.randn(2, 1, D)).shape == (2, 1, D)


LENGTHS = torch.tensor([9, 4, 1, 0])


def stack(width: int, *, causal: bool) -> list[Convolution]:
    """Three layers, whose biases would give padding a value."""
    layers = [make(width, causal=causal) for _ in range(3)]
    for number, layer in enumerate(layers):
        torch.manual_seed(number)
        nn.init.normal_(layer.features.weight, std=0.3)
        nn.init.normal_(layer.features.bias)
    return layers


def read(layers: list[Convolution], x: Tensor, lengths: Tensor | None) -> Tensor:
    """The layers on top of each other; between them something that leaves no zero."""
    for number, layer in enumerate(layers):
        x = layer(x if number == 0 else x.tanh() + 1, lengths)
    return x


@either_way
@pytest.mark.parametrize("padding", [0.0, 7.0, float("nan")])
@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("width", [2, 3, 5])
def test_padded_equals_alone(width: int, n_layers: int, padding: float, causal: bool) -> None:
    layers = stack(width, causal=causal)[:n_layers]
    x = torch.randn(4, 9, D).masked_fill((torch.arange(9) >= LENGTHS[:, None])[..., None], padding).requires_grad_()
    out = read(layers, x, LENGTHS)
    [gradient] = torch.autograd.grad(out.square().sum(), x)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = read(layers, x[row : row + 1, :length], None)
        torch.testing.assert_close(out[row, :length], alone[0], atol=1e-5, rtol=0)
        assert not out[row, length:].any(), "zeros, as a recurrent layer has there"
        assert not gradient[row, length:].any()
        assert bool(gradient[row, :length].all())


def test_without_lengths_padding_reaches_into_a_stack() -> None:
    layers = stack(3, causal=False)
    x = torch.randn(1, 9, D)
    x[:, 4:] = 0
    assert not torch.allclose(read(layers, x, None)[:, :4], read(layers, x[:, :4], None), atol=1e-2)


def test_its_first_weights_and_its_tap_have_names() -> None:
    module = make(3, causal=True)
    initialise(module, seed=1)
    assert not module.features.bias.any()
    with recording(module) as record:
        out = module(torch.randn(1, 4, D))
    assert list(record) == ["output"]
    assert torch.equal(record["output"], out)


def test_a_width_of_nothing() -> None:
    with pytest.raises(ConfigError) as caught:
        Convolution(D, 0, causal=True)
    assert str(caught.value) == "A convolution is at least 1 position wide, not 0.\nChoose a width of 1 or more."


# -- over images --------------------------------------------------------------------------------------------------------


def some_images(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def make_layer(n_inputs: int = 3, *, norm: str = "none", activation: str = "relu", **options: int) -> ImageConvolution:
    layer = ImageConvolution(n_inputs, 4, norm=norm, activation=activation, **options)
    initialise(layer, seed=1)
    return layer


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (1, 2), (3, 1), (3, 2), (7, 2)])
def test_over_images_it_equals_torchs(size: int, stride: int) -> None:
    layer, images = make_layer(size=size, stride=stride), some_images(2, 3, 9, 12)
    nn.init.normal_(layer.convolution.bias)
    theirs = nn.Conv2d(3, 4, size, stride=stride, padding=size // 2)
    theirs.load_state_dict(layer.convolution.state_dict())
    out = layer(images)
    assert out.shape == (2, 4, -(-9 // stride), -(-12 // stride))
    torch.testing.assert_close(out, theirs(images).relu(), atol=1e-5, rtol=0)


def test_a_shift_of_the_image_shifts_the_features() -> None:
    layer, image = make_layer(), torch.zeros(1, 3, 12, 14)
    image[:, :, 3:6, 2:6] = some_images(3, 3, 4)
    out, shifted = layer(image), layer(image.roll((4, 5), dims=(2, 3)))
    torch.testing.assert_close(shifted, out.roll((4, 5), dims=(2, 3)), atol=1e-6, rtol=0)
    assert not torch.allclose(shifted, out, atol=1e-2)


def test_a_shift_towards_the_border_shifts_what_is_away_from_it() -> None:
    layer, image = make_layer(), some_images(1, 3, 12, 14)
    out, shifted = layer(image), layer(image.roll(1, dims=3))
    torch.testing.assert_close(shifted[..., 2:-1], out[..., 1:-2], atol=1e-6, rtol=0)
    assert not torch.allclose(shifted[..., 0], out[..., -1], atol=1e-2), "zeros stand outside, not the other border"


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "none"])
def test_the_activation_of_a_layer(activation: str) -> None:
    layer, images = make_layer(activation=activation), some_images(2, 3, 5, 5)
    found = layer.convolution(images)
    expected = found if activation == "none" else getattr(torch, activation)(found)
    torch.testing.assert_close(layer(images), expected)


def test_only_without_a_norm_there_is_a_bias() -> None:
    assert make_layer(norm="batch").convolution.bias is None
    assert make_layer(norm="none").convolution.bias is not None
    assert [name for name, _ in make_layer(norm="none").named_parameters()] == [
        "convolution.weight",
        "convolution.bias",
    ]


# -- batch norm


def make_norms() -> tuple[BatchNorm, nn.BatchNorm2d]:
    ours, theirs = BatchNorm(3), nn.BatchNorm2d(3)
    for parameter, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(7))
        other.data = parameter.detach().clone()
    return ours, theirs


def test_batch_norm_is_torchs() -> None:
    ours, theirs = make_norms()
    for number in range(3):
        x = some_images(4, 3, 5, 5) * 3 + number
        torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_variance, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


def test_batch_norm_is_the_formula() -> None:
    x = some_images(4, 3, 5, 5) * 3 + 1
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
    torch.testing.assert_close(BatchNorm(3)(x), (x - mean) / (variance + 1e-5).sqrt())


def test_statistics_move_while_training_only_and_are_saved() -> None:
    norm = BatchNorm(3)
    first = {name: value.clone() for name, value in norm.state_dict().items()}
    assert {"running_mean", "running_variance"} < set(first)
    norm.eval()(some_images(4, 3, 5, 5) + 2)
    assert all(torch.equal(value, first[name]) for name, value in norm.state_dict().items())
    norm.train()(some_images(4, 3, 5, 5) + 2)
    assert not torch.equal(norm.running_mean, first["running_mean"])
    assert not torch.equal(norm.running_variance, first["running_variance"])


def test_batch_norm_looks_at_the_whole_batch_while_training() -> None:
    # Why sequences take layer norm: who else is in the batch changes the result.
    norm, x = BatchNorm(3), some_images(4, 3, 5, 5)
    assert not torch.allclose(norm(x)[:2], norm(x[:2]), atol=1e-3)
    norm.eval()
    assert torch.equal(norm(x)[:2], norm(x[:2]))


def test_a_batch_of_one_place_has_no_deviation() -> None:
    with pytest.raises(TrainingError) as caught:
        BatchNorm(3)(some_images(1, 3, 1, 1))
    assert str(caught.value) == (
        "Batch norm learns nothing from a batch of one image that has shrunk to one place.\n"
        "Use larger batches or images, or model.norm = none."
    )
    BatchNorm(3).eval()(some_images(1, 3, 1, 1))


# -- blocks


def make_layers(activation: str) -> ImageConvolution:
    return make_layer(4, activation=activation)


def test_the_skip_joins_before_or_after_the_last_activation() -> None:
    x = some_images(2, 4, 5, 5)
    found = make_layers("none")(x)
    before = ResidualBlock(make_layers("none"), nn.Identity(), Sum(), activation="relu")
    torch.testing.assert_close(before(x), (found + x).relu())
    after = ResidualBlock(make_layers("relu"), nn.Identity(), Sum(), activation="none")
    torch.testing.assert_close(after(x), found.relu() + x)


def test_the_shortcut_brings_the_input_to_the_layers_shape() -> None:
    layers, shortcut = make_layer(3, stride=2), make_layer(3, size=1, stride=2, activation="none")
    x = some_images(2, 3, 5, 5)
    block = ResidualBlock(layers, shortcut, Sum(), activation="none")
    torch.testing.assert_close(block(x), layers(x) + shortcut(x))


def test_concatenation_mixes_both_back_to_the_width() -> None:
    join, residual, skipped = Concatenation(4, norm="none"), some_images(2, 4, 5, 5), some_images(3, 4, 5, 5)[1:]
    weight = join.mix.convolution.weight[..., 0, 0]  # (4, 8)
    bias = join.mix.convolution.bias
    assert bias is not None
    expected = torch.einsum("oi,bihw->bohw", weight[:, :4], residual)
    expected = expected + torch.einsum("oi,bihw->bohw", weight[:, 4:], skipped) + bias[:, None, None]
    torch.testing.assert_close(join(residual, skipped), expected, atol=1e-5, rtol=0)


def test_a_plain_block_has_no_skip() -> None:
    block, x = PlainBlock(make_layers("none"), activation="relu"), some_images(2, 4, 5, 5)
    torch.testing.assert_close(block(x), make_layers("relu")(x))
    with listening(block, "residual", lambda name, residual: torch.zeros_like(residual)):
        assert not block(x).any(), "nothing goes past the layers"


def test_with_a_skip_a_block_can_be_the_identity() -> None:
    block = ResidualBlock(make_layers("none"), nn.Identity(), Sum(), activation="relu")
    x = some_images(2, 4, 5, 5).relu()
    with listening(block, "residual", lambda name, residual: torch.zeros_like(residual)):
        assert torch.equal(block(x), x)
    with recording(block) as record:
        out = block(x)
    assert set(record) == {"layers.features", "residual", "output"}
    assert torch.equal(record["output"], out)
    assert torch.equal((record["residual"] + x).relu(), out)


# -- what is no image


def test_other_images_are_refused() -> None:
    check_images(some_images(2, 3, 4, 5), 3)
    with pytest.raises(DataError) as caught:
        check_images(some_images(2, 3, 4, 5), 1)
    assert str(caught.value) == (
        "The model reads images of 1 channel, not of 3.\n"
        "Convert them (grey has 1, colour 3), or train a model on such images."
    )
    with pytest.raises(DataError) as caught:
        check_images(some_images(3, 4, 5), 3)
    assert str(caught.value) == (
        "Images come as (batch, channels, height, width), not in the shape (3, 4, 5).\n"
        "Give one image as a batch of one."
    )


def test_a_frozen_batch_norm_is_as_in_evaluation() -> None:
    norm = BatchNorm(3)
    x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(1))
    norm(x)
    kept = norm.running_mean.clone()
    norm.requires_grad_(False)
    frozen = norm.train()(3 * x + 1)
    assert torch.equal(norm.running_mean, kept)
    assert torch.equal(frozen, norm.eval()(3 * x + 1))


def test_batch_norm_over_the_shares_of_one_process_is_batch_norm() -> None:
    """What adds up over all processes hands on its argument where there is one."""
    torch.manual_seed(0)
    images = torch.randn(5, 3, 4, 4, dtype=torch.float64)
    found = []
    for total in (None, lambda x: x):
        norm = BatchNorm(3).double()
        norm.total = total
        x = images.clone().requires_grad_()
        y = norm(x)
        (y * images.flip(0)).sum().backward()
        assert x.grad is not None and norm.weight.grad is not None and norm.bias.grad is not None
        found.append((y, x.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_variance))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-12)
    norm.eval()
    assert torch.allclose(norm(images), BatchNorm(3).double().eval()(images)) is False  # its statistics have moved
