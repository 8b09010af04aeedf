"""The picture of importance: a panel for each kind of attention, numbers where they fit, hatching where nothing is sure."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_rgb

from regard.inspection.importance import Change, Importance, PartImportance
from regard.inspection.importance_picture import _number, importance_picture
from regard.inspection.render import save

KINDS = ("encoder.{}.self_attention", "decoder.{}.self_attention", "decoder.{}.cross_attention")


def importance(*, layers: int = 2, heads: int = 3, metric: str = "loss", sign: float = 1.0) -> Importance:
    parts = [
        PartImportance(
            module=kind.format(layer),
            head=head,
            changes={metric: Change(value=1.0, delta=sign * (head - 1), low=head - 1.1, high=head - 0.9)},
        )
        for kind in KINDS
        for layer in range(layers)
        for head in (*range(heads), None)
        if head is not None
    ]
    return Importance(whole={metric: 1.0}, n_examples=7, parts=tuple(parts))


def cells(axes: Any) -> list[Any]:
    return [patch for patch in axes.patches if not patch.get_hatch()]


def test_a_panel_for_each_kind_of_attention() -> None:
    *panels, scale = importance_picture(importance()).axes
    assert [axes.get_title("left") for axes in panels] == [
        "encoder self-attention",
        "decoder self-attention",
        "decoder cross-attention",
    ]
    assert all(len(cells(axes)) == 6 for axes in panels)
    assert scale.get_ylabel() == "change of loss"


def test_cells_that_are_not_sure_are_hatched_and_zero_is_grey() -> None:
    first, *_ = importance_picture(importance()).axes
    hatched = [patch for patch in first.patches if patch.get_hatch()]
    assert len(hatched) == 2  # head 1 of both layers
    red, green, blue = to_rgb(cells(first)[1].get_facecolor())
    assert max(red, green, blue) - min(red, green, blue) < 0.02


@pytest.mark.parametrize(("metric", "sign"), [("loss", 1.0), ("bleu", -1.0)])
def test_what_is_missed_is_orange_by_any_metric(metric: str, sign: float) -> None:
    first, *_ = importance_picture(importance(metric=metric, sign=sign)).axes
    better, _, worse, *_ = (to_rgb(cell.get_facecolor()) for cell in cells(first))
    assert worse[0] > worse[2] and better[2] > better[0]


def test_sublayers_have_panels_of_their_own() -> None:
    change = Change(value=1.0, delta=0.5, low=0.4, high=0.6)
    names = ("encoder.0.self_attention", "encoder.0.feed_forward", "stage.1.block.0")
    parts = tuple(PartImportance(module=name, head=None, changes={"loss": change}) for name in names)
    figure = importance_picture(Importance(whole={"loss": 0.5}, n_examples=3, parts=parts))
    encoder, stage, _ = figure.axes
    assert [label.get_text() for label in encoder.get_xticklabels()] == ["self-attention", "feed-forward"]
    assert [label.get_text() for label in stage.get_xticklabels()] == ["block 0"]


def test_many_heads_have_no_room_for_numbers(tmp_path: Path) -> None:
    figure = importance_picture(importance(layers=12, heads=16))
    assert not any(axes.texts for axes in figure.axes)
    assert figure.get_figwidth() < 16
    save(figure, tmp_path / "importance.png")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0431, 3, "+.043"),
        (-0.0002, 3, "0"),
        (-3.14, 1, "−3.1"),
        (0.3, 1, "+0.3"),
        (10.5, 2, "+10.50"),
        (float("nan"), 2, "—"),
    ],
)
def test_numbers_in_cells(value: float, digits: int, text: str) -> None:
    assert _number(value, digits) == text
