"""Positional encodings as pictures: what is drawn, and that it is drawn."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from regard.errors import UsageError
from regard.inspection.position_picture import DRAWN, LEARNED, encoding_panels, model_panels, positions_picture
from regard.inspection.render import save
from regard.parts.positions import Learned, RelativeBias, sinusoids


def model(**modules: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    for module in modules.values():
        for parameter in module.parameters():
            nn.init.normal_(parameter)
    return nn.ModuleDict(modules)


@pytest.mark.parametrize("kind", [kind for kind in DRAWN if kind not in LEARNED])
def test_each_kind_is_drawn(kind: str, tmp_path: Path) -> None:
    panels = encoding_panels(kind, 12, 8)
    assert panels.values.shape == (12, 8)
    assert panels.by_distance.shape == (12, 4)
    figure = positions_picture([panels])
    left, right, legend = figure.axes
    assert (left.get_xlabel(), left.get_ylabel(), legend.get_ylabel()) == ("feature", "position", "value")
    assert right.get_xlabel() == "distance"
    assert "dot product" in right.get_title(loc="left")
    assert save(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_sinusoids_depend_on_the_distance_alone() -> None:
    panels = encoding_panels("sinusoidal", 100, 512)
    np.testing.assert_allclose(panels.values, sinusoids(torch.arange(100), 512))
    distances, mean, least, greatest = panels.by_distance.T
    assert distances.tolist() == list(range(100))
    assert mean[0] == pytest.approx(256)
    np.testing.assert_allclose(greatest, least, atol=1e-3)
    assert len(positions_picture([panels]).axes[1].collections) == 0, "there is no range to draw"


def test_rotary_depends_on_the_distance_alone_and_the_index_does_not() -> None:
    *_, least, greatest = encoding_panels("rotary", 50, 64).by_distance.T
    np.testing.assert_allclose(greatest, least, atol=1e-5)
    assert encoding_panels("rotary", 50, 64).by_distance[0, 1] == pytest.approx(1)
    index = encoding_panels("index", 50, 64)
    assert (index.by_distance[:-1, 3] > index.by_distance[:-1, 2]).all()
    assert len(positions_picture([index]).axes[1].collections) == 1


def test_learned_positions_of_a_model() -> None:
    own = model(source=Learned(6, limit=20), target=Learned(6, limit=9))
    panels = model_panels(own, "learned")
    assert [(one.name, one.values.shape) for one in panels] == [("source", (20, 6)), ("target", (9, 6))]
    assert [len(one.values) for one in model_panels(own, "learned", 10)] == [10, 9]
    assert len(positions_picture(panels, title="runs/a").axes) == 6


def test_a_relative_bias_is_that_of_each_head_by_distance() -> None:
    sizes = {"n_buckets": 8, "max_distance": 10}
    both = RelativeBias(3, **sizes, backwards_only=False)
    before = RelativeBias(3, **sizes, backwards_only=True)
    encoder, decoder = model_panels(model(encoder=both, decoder=before), "relative")
    assert encoder.values.shape == (3, 21)
    assert decoder.values.shape == (3, 11), "a decoder reads no key behind its query"
    assert (encoder.first_column, decoder.first_column) == (-10, -10)
    expected = both(torch.tensor([5]), torch.tensor([3]))[0, :, 0, 0].detach().numpy()
    np.testing.assert_allclose(encoder.values[:, 10 - 2], expected)
    assert encoder.by_distance[8, 1] == pytest.approx(expected.mean())
    left, right, _ = positions_picture([encoder]).axes
    assert left.get_ylabel() == "head"
    assert right.get_xlabel() == "distance of the key from the query"


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(UsageError) as caught:
        encoding_panels("sinusodal", 4, 4)
    assert str(caught.value) == "There are no positions 'sinusodal' to draw.\nDid you mean sinusoidal?"
    with pytest.raises(UsageError) as caught:
        model_panels(model(), "rotary")
    assert caught.value.problem == "rotary positions are not learned: they are the same in every run."
    with pytest.raises(UsageError) as caught:
        model_panels(model(), "learned")
    assert caught.value.problem == "This model has no learned positions."
