"""Batches of images: every image once per epoch, of nearly equal size."""

import numpy as np

from regard.tasks.images.image_examples import ImageList, in_order, shuffled


def test_an_epoch_has_every_image_once_in_batches_of_like_size() -> None:
    first, again, second = (shuffled(50, 16, seed=1, epoch=epoch) for epoch in (0, 0, 1))
    for order in (first, second):
        assert sorted(np.concatenate(order).tolist()) == list(range(50))
        assert [len(batch) for batch in order] == [13, 13, 12, 12]
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    assert any((one != other).any() for one, other in zip(first, second, strict=True))


def test_batches_in_order() -> None:
    assert [batch.tolist() for batch in in_order(5, 2)] == [[0, 1], [2, 3], [4]]
    assert in_order(0, 2) == []


def test_images_in_memory() -> None:
    images = ImageList([np.full((2, 2, 1), number, np.uint8) for number in range(3)])
    assert len(images) == 3
    assert images.images([2, 0])[:, 0, 0, 0].tolist() == [2, 0]
