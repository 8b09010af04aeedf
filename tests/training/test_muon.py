"""Muon: singular values near 1, as torch's own up to bfloat16, and the same for a matrix alone and among others."""

import math

import pytest
import torch
from torch import nn

from regard.training.muon import Muon, _by_gram, _by_iterates, orthogonalise

SHAPES = [(16, 16), (12, 40), (40, 12), (8, 3, 3, 3)]


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def trained(shape: tuple[int, ...], gradients: list[torch.Tensor], *, rate: float, decay: float) -> torch.Tensor:
    parameter = nn.Parameter(drawn(*shape, seed=9))
    muon = Muon([(1.0, [parameter])], learning_rate=rate, weight_decay=decay)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        muon.step(1.0)
    return parameter.detach()


@pytest.mark.parametrize("shape", [(3, 10, 40), (3, 40, 10), (1, 64, 200)])
def test_directions_stay_and_their_sizes_become_one(shape: tuple[int, ...]) -> None:
    matrices = drawn(*shape)
    found = orthogonalise(matrices)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    among = u.mT @ found @ v.mT  # diagonal if the singular vectors are the same
    sizes = among.diagonal(dim1=1, dim2=2)
    assert sizes.min() > 0.65
    assert sizes.max() < 1.25
    assert (among - torch.diag_embed(sizes)).abs().max() < 1e-4


@pytest.mark.parametrize("shape", [(2, 8, 8), (2, 16, 64)])
def test_both_ways_of_the_iteration_are_one(shape: tuple[int, ...]) -> None:
    matrices = drawn(*shape) / math.sqrt(shape[1] * shape[2])
    torch.testing.assert_close(_by_gram(matrices), _by_iterates(matrices), rtol=0, atol=1e-5)


def test_scale_does_not_matter_and_zeros_stay_zeros() -> None:
    matrices = drawn(2, 5, 8)
    torch.testing.assert_close(orthogonalise(1e4 * matrices), orthogonalise(matrices))
    assert torch.equal(orthogonalise(torch.zeros(1, 5, 8)), torch.zeros(1, 5, 8))


def test_a_matrix_among_others_is_treated_as_if_alone() -> None:
    matrices = drawn(4, 6, 9)
    for alone, among in zip(matrices, orthogonalise(matrices), strict=True):
        torch.testing.assert_close(orthogonalise(alone[None])[0], among)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_updates_are_those_of_torch_up_to_bfloat16(shape: tuple[int, int]) -> None:
    gradients = [drawn(*shape, seed=seed) for seed in range(4)]
    other = nn.Parameter(drawn(*shape, seed=9))
    reference = torch.optim.Muon([other], lr=0.1, weight_decay=0.2, momentum=0.95, nesterov=True)
    for gradient in gradients:
        other.grad = gradient.clone()
        reference.step()
    found = trained(shape, gradients, rate=0.1, decay=0.2)
    moved = (other.detach() - drawn(*shape, seed=9)).norm()
    assert (found - other.detach()).norm() < 0.03 * moved


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_in_bfloat16_computes_directions_in_it_and_keeps_weights_and_momentum_in_full(
    shape: tuple[int, ...],
) -> None:
    gradients = [drawn(*shape, seed=seed) for seed in range(4)]
    full = trained(shape, gradients, rate=0.1, decay=0.2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = trained(shape, gradients, rate=0.1, decay=0.2)
        rounded = orthogonalise(drawn(2, 5, 8))
    assert rounded.dtype == torch.bfloat16
    assert found.dtype == torch.float32
    assert not torch.equal(found, full)
    assert (found - full).norm() < 0.03 * (full - drawn(*shape, seed=9)).norm()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_update_by_the_formula(shape: tuple[int, ...]) -> None:
    gradient = drawn(*shape, seed=1)
    flat = gradient.flatten(1)
    direction = orthogonalise(flat[None])[0] * math.sqrt(max(1, flat.shape[0] / flat.shape[1]))
    expected = drawn(*shape, seed=9) * (1 - 0.1 * 0.2) - 0.1 * direction.view(shape)
    torch.testing.assert_close(trained(shape, [gradient], rate=0.1, decay=0.2), expected)


def test_what_has_no_gradient_is_left_alone() -> None:
    one, other = nn.Parameter(drawn(4, 6)), nn.Parameter(drawn(4, 6, seed=1))
    before = other.detach().clone()
    muon = Muon([(1.0, [one, other])], learning_rate=0.1, weight_decay=0.1)
    one.grad = drawn(4, 6, seed=2)
    muon.step(1.0)
    assert torch.equal(other, before)
    assert list(muon.momentum) == [one]
