"""The linear layer is torch's, by whichever way it goes."""

import pytest
import torch
import torch.nn.functional as F

from regard.parts import linear as module
from regard.parts.linear import Linear, linear


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """Let every product be large, of pieces with two outputs at least; the shapes of the batches that were made."""
    made: list[torch.Size] = []
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(module, "NARROW", 2)
    for name in ("bmm", "baddbmm"):
        own = getattr(torch, name)

        def seen(*tensors: torch.Tensor, own: object = own) -> torch.Tensor:
            made.append(tensors[-1].shape)
            return own(*tensors)  # type: ignore[operator, no-any-return]

        monkeypatch.setattr(torch, name, seen)
    return made


@pytest.mark.parametrize("shape", [(6,), (1, 6), (3, 6), (2, 1, 6), (2, 4, 6)])
@pytest.mark.parametrize("bias", [True, False])
def test_few_rows_are_cut_into_pieces_and_give_the_same(
    pieces: list[torch.Size], shape: tuple[int, ...], bias: bool
) -> None:
    layer, x = Linear(6, 8, bias=bias), torch.randn(shape)
    with torch.inference_mode():
        found = layer(x)
    assert pieces == [(4, 6, 2)]
    assert found.shape == (*shape[:-1], 8)
    assert torch.allclose(found, F.linear(x, layer.weight, layer.bias), atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_what_the_pieces_leave_over_is_there_too(
    pieces: list[torch.Size], bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECES", 4)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    layer, x = Linear(6, 15, bias=bias), torch.randn(2, 1, 6)
    with torch.inference_mode():
        found = layer(x)
    assert pieces == [(4, 6, 3)]
    assert torch.allclose(found, F.linear(x, layer.weight, layer.bias), atol=1e-6)


def test_every_thread_gets_a_piece(pieces: list[torch.Size], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECES", 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    with torch.inference_mode():
        Linear(6, 12)(torch.randn(1, 6))
    assert pieces == [(3, 6, 4)]


def test_other_products_are_torch_s_own(pieces: list[torch.Size], monkeypatch: pytest.MonkeyPatch) -> None:
    few, narrow = Linear(6, 8), Linear(6, 3)
    few(torch.randn(3, 6))  # a gradient may be wanted
    with torch.inference_mode():
        few(torch.randn(module.FEW_ROWS + 1, 6))
        narrow(torch.randn(1, 6))
        monkeypatch.setattr(module, "LARGE", 49)
        linear(torch.randn(1, 6), few.weight, few.bias)
    assert pieces == []
