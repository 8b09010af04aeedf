"""Convolution over sequences: torch's own as a witness, and what the lectures say of it."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.convolution import Convolution
from regard.parts.initialisation import initialise
from regard.parts.taps import recording

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
