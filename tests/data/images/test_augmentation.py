"""Augmentation: a function of the seed, right on every image of a batch, and told where it cannot be."""

import pytest
import torch
from torch import Tensor

from regard.data.images.augmentation import Augmentation, crop, cutout, flip, mixup
from regard.errors import ConfigError


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(count: int = 64, channels: int = 2, height: int = 5, width: int = 6) -> Tensor:
    """Images no two pixels of which are alike, none of them 0."""
    return torch.arange(1.0, count * channels * height * width + 1).view(count, channels, height, width)


def test_a_crop_moves_each_image() -> None:
    images = numbered()
    moved = crop(images, generator(), padding=2)
    assert moved.shape == images.shape
    shifts = set()
    for before, after in zip(images, moved, strict=True):
        padded = torch.nn.functional.pad(before, (2, 2, 2, 2))
        [place] = [
            (row, column)
            for row in range(5)
            for column in range(5)
            if torch.equal(padded[:, row : row + 5, column : column + 6], after)
        ]
        shifts.add(place)
    assert len(shifts) > 15  # of 25
    assert {row for row, _ in shifts} == {column for _, column in shifts} == set(range(5))


def test_a_crop_of_bytes_stays_bytes() -> None:
    images = torch.randint(1, 256, (4, 3, 8, 8), dtype=torch.uint8, generator=generator())
    assert crop(images, generator(), padding=1).dtype == torch.uint8


def test_half_of_the_images_are_mirrored() -> None:
    images = numbered(400)
    mirrored = flip(images, generator())
    same = (mirrored == images).flatten(1).all(1)
    other = (mirrored == images.flip(-1)).flatten(1).all(1)
    assert (same ^ other).all()
    assert 160 < int(other.sum()) < 240


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_square_is_cut_out(size: int) -> None:
    images = numbered(300)
    found = cutout(images, generator(), size=size)
    hidden = found == 0
    assert torch.equal(found[~hidden], images[~hidden])
    assert (hidden.any(1) == hidden.all(1)).all()  # the same in every channel
    areas = []
    for one in hidden[:, 0]:
        rows, columns = one.any(1).nonzero().ravel(), one.any(0).nonzero().ravel()
        assert one.sum() == len(rows) * len(columns)  # a rectangle: a square, or what the border leaves of it
        assert int(rows[-1] - rows[0]) + 1 == len(rows)
        areas.append(len(rows) * len(columns))
    assert max(areas) == size * size
    assert min(areas) >= (size - size // 2) ** 2
    assert hidden[:, 0].any(0).all()  # any pixel may be hit


def test_mixup_mixes_images_and_classes_alike() -> None:
    labels = torch.arange(32) % 4
    images = torch.nn.functional.one_hot(labels, 4).float()[:, :, None, None].expand(32, 4, 2, 2)
    mixed, targets = mixup(images, labels, generator(), alpha=0.4, n_classes=4)
    assert (mixed.shape, targets.shape) == ((32, 4, 2, 2), (32, 4))
    torch.testing.assert_close(mixed[:, :, 1, 0], targets)
    torch.testing.assert_close(targets.sum(1), torch.ones(32))
    own = targets[torch.arange(32), labels]
    assert len(own.unique()) > 10  # each pair has a share of its own
    assert ((targets > 0).sum(1) <= 2).all()


def test_the_shares_of_mixup_are_of_the_beta_distribution() -> None:
    count = 20_000
    labels = torch.zeros(count, dtype=torch.int64)
    labels[: count // 2] = 1
    images = labels.float()[:, None, None, None]
    for alpha in (0.2, 1.0):
        _, targets = mixup(images, labels, generator(), alpha=alpha, n_classes=2)
        mixed = targets[:, 0] * targets[:, 1]  # 0 where both of a pair are of one class: half of them
        assert float(mixed.mean()) == pytest.approx(0.5 * alpha / (4 * alpha + 2), abs=0.003)


ALL = Augmentation(crop=2, mirror=True, cutout=2, mixup=0.5)


def test_a_seed_tells_everything() -> None:
    images, labels = numbered(16), torch.arange(16) % 3
    untouched = images.clone()
    first, targets = ALL(images, labels, n_classes=3, seed=2**62 + 5)
    torch.rand(7)  # the global generator plays no part
    again, same_targets = ALL(images, labels, n_classes=3, seed=2**62 + 5)
    assert first.numpy().tobytes() == again.numpy().tobytes()
    assert targets.numpy().tobytes() == same_targets.numpy().tobytes()
    other, _ = ALL(images, labels, n_classes=3, seed=6)
    assert not torch.equal(first, other)
    assert torch.equal(images, untouched)


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    ALL(numbered(4), torch.zeros(4, dtype=torch.int64), n_classes=3, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_without_any_images_stay_as_they_are() -> None:
    images, labels = numbered(4), torch.arange(4)
    found, targets = Augmentation()(images, labels, n_classes=4, seed=1)
    assert found is images
    assert targets is labels
    _, targets = Augmentation(crop=1, mirror=True, cutout=1)(images, labels, n_classes=4, seed=1)
    assert targets is labels


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"^Augmentation by crop cannot be -1\.\nGive 0 or more\.$"):
        Augmentation(crop=-1)
    with pytest.raises(ConfigError, match=r"^Augmentation by mixup cannot be nan\."):
        Augmentation(mixup=float("nan"))
    for settings in ({"crop": 5}, {"cutout": 5}):
        [name] = settings
        with pytest.raises(ConfigError) as caught:
            Augmentation(**settings)(numbered(2), torch.arange(2), n_classes=2, seed=1)  # type: ignore[arg-type]
        assert caught.value.problem == f"Augmentation by {name} 5 leaves nothing of images of 5 × 6 pixels."
        assert caught.value.remedy == "Give less than 5."
