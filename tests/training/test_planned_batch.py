"""What a planned step reads, as far as no network is needed to say so."""

from typing import Any

import pytest

from regard.config import ModelTable
from regard.errors import UsageError
from regard.models.presets import find_preset
from regard.training.planned_batch import image_size, require_positive


@pytest.mark.parametrize(
    ("preset", "fields", "size"),
    [
        ("vit-tiny", {}, 56),  # 14 patches to an edge
        ("vit-base", {}, 224),
        ("vit-tiny", {"patch_size": 8}, 112),
        ("convnet", {}, 32),
        ("resnet-20", {}, 32),
        ("resnet-20", {"stem": "large"}, 224),
        ("resnet-50", {}, 224),
        ("captioner-vit", {}, 96),
        ("captioner-rnn", {}, 96),
    ],
)
def test_an_image_size_that_suits_the_model(preset: str, fields: dict[str, Any], size: int) -> None:
    table = ModelTable(preset=preset, fields=fields)
    assert image_size(find_preset(preset), table, 0) == size
    assert image_size(find_preset(preset), table, 8) == 8


def test_a_count_below_one_is_refused() -> None:
    require_positive("The number of steps", 1)
    with pytest.raises(UsageError) as caught:
        require_positive("The number of steps", 0)
    assert str(caught.value) == "The number of steps must be at least 1, not 0.\nGive a larger number."
