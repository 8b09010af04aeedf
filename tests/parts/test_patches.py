"""Patches: what is cut where, and what an image becomes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError, DataError
from regard.parts.initialisation import initialise
from regard.parts.patches import PatchEmbedding, check_patches, cut_patches


def some_images(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def make(dropout: float = 0.0) -> PatchEmbedding:
    module = PatchEmbedding(3, 12, 4, 8, dropout=dropout)
    initialise(module, seed=1)
    return module


def test_patches_are_cut_row_by_row() -> None:
    image = torch.arange(24.0).view(1, 1, 4, 6)
    patches = cut_patches(image, 2)
    assert patches.shape == (1, 6, 4)
    assert patches[0, 0].tolist() == [0, 1, 6, 7]
    assert patches[0, 1].tolist() == [2, 3, 8, 9]
    assert patches[0, 3].tolist() == [12, 13, 18, 19]


def test_a_patch_holds_all_channels() -> None:
    images = some_images(2, 3, 8, 12)
    patches = cut_patches(images, 4)
    assert patches.shape == (2, 6, 48)
    assert torch.equal(patches[1, 4].view(3, 4, 4), images[1, :, 4:8, 4:8])


def test_it_is_a_convolution_as_wide_as_its_stride() -> None:
    module, images = make(), some_images(2, 3, 12, 12)
    weight = module.patches.weight.view(8, 3, 4, 4)
    expected = F.conv2d(images, weight, module.patches.bias, stride=4).flatten(2).transpose(1, 2)
    torch.testing.assert_close(module.patches(cut_patches(images, 4)), expected, atol=1e-5, rtol=0)


def test_the_class_token_stands_first() -> None:
    module, images = make(), some_images(2, 3, 12, 12)
    x = module(images)
    assert x.shape == (2, 1 + module.n_patches, 8) == (2, 10, 8)
    torch.testing.assert_close(x[:, 0], (module.class_token + module.positions.weight[0]).expand(2, 8))
    fifth = module.patches(images[1, :, 4:8, 4:8].flatten()) + module.positions.weight[5]
    torch.testing.assert_close(x[1, 5], fifth)


def test_the_sum_may_be_dropped() -> None:
    zeros = make(dropout=0.5)(some_images(8, 3, 12, 12)) == 0
    assert 0.4 < float(zeros.float().mean()) < 0.6


def test_patches_that_do_not_fit_are_refused() -> None:
    check_patches(28, 28)
    for image_size, patch_size in ((28, 8), (4, 8)):
        with pytest.raises(ConfigError, match=f"× {image_size} pixels cannot be cut into patches of {patch_size} ×"):
            PatchEmbedding(3, image_size, patch_size, 8, dropout=0.0)


@pytest.mark.parametrize("size", [(16, 12), (12, 8)])
def test_images_of_another_size_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(DataError) as caught:
        make()(some_images(2, 3, *size))
    assert str(caught.value) == (
        f"The model reads images of 12 × 12 pixels, not of {size[0]} × {size[1]}.\n"
        "Scale them to that size, or train a model on such images."
    )
