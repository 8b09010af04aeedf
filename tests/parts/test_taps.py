"""Taps: names, listeners, replacements, and nothing left behind."""

import pytest
import torch
from torch import Tensor, nn

from regard.parts.taps import listened, listening, recording, tap


class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return tap(self, "output", tap(self, "hidden", x + 1) * 10)


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return tap(self, "logits", x)


ZERO = torch.zeros(1)


def names(model: nn.Module, patterns: str | list[str]) -> list[str]:
    with recording(model, patterns) as record:
        model(ZERO)
    return list(record)


def test_a_public_name_is_the_modules_path_and_the_taps_own() -> None:
    everything = ["layers.0.hidden", "layers.0.output", "layers.1.hidden", "layers.1.output", "logits"]
    assert names(Stack(), "*") == everything


def test_patterns_choose_taps() -> None:
    model = Stack()
    assert names(model, "layers.*.hidden") == ["layers.0.hidden", "layers.1.hidden"]
    assert names(model, ["logits", "layers.1.output"]) == ["layers.1.output", "logits"]
    assert names(model, "hidden") == []
    assert names(model, "LOGITS") == []


def test_a_record_is_detached() -> None:
    model = Stack()
    with recording(model, "logits") as record:
        out = model(torch.ones(1, requires_grad=True))
    assert record["logits"].tolist() == [210]
    assert out.requires_grad
    assert not record["logits"].requires_grad


def test_a_record_has_the_last_call_of_each_name_and_all_of_them_in_order() -> None:
    model = Stack()
    with recording(model, ["logits", "layers.0.output"]) as record:
        for number in range(3):
            model(torch.full((1,), float(number)))
    assert [one.tolist() for one in record.calls("logits")] == [[110], [210], [310]]
    assert record["logits"].tolist() == [310]
    assert list(record) == ["layers.0.output", "logits"]
    assert len(record) == 2
    with pytest.raises(KeyError):
        record.calls("hidden")


def test_a_listener_may_put_another_tensor_in_place() -> None:
    model = Stack()
    assert model(ZERO).tolist() == [110]
    with listening(model, "layers.0.output", lambda name, tensor: torch.full_like(tensor, 4.0)):
        assert model(ZERO).tolist() == [50]
    assert model(ZERO).tolist() == [110]


def test_listeners_nest_and_the_later_sees_what_the_earlier_left() -> None:
    model, heard = Stack(), []

    def double(name: str, tensor: Tensor) -> Tensor:
        return tensor * 2

    def hear(name: str, tensor: Tensor) -> None:
        heard.append((name, tensor.item()))

    with listening(model, "logits", double):
        with listening(model, ["logits"], hear):
            assert model(ZERO).tolist() == [220]
        assert model(ZERO).tolist() == [220]
    assert heard == [("logits", 220)]


def test_nothing_is_left_after_the_block_also_after_an_exception() -> None:
    model = Stack()
    with pytest.raises(ZeroDivisionError), recording(model) as record:
        raise ZeroDivisionError
    model(ZERO)
    assert record == {}
    assert not listened(model, "logits")


def test_an_exception_of_a_listener_reaches_the_caller() -> None:
    model = Stack()

    def refuse(name: str, tensor: Tensor) -> None:
        raise LookupError(name)

    with pytest.raises(LookupError, match=r"layers\.0\.hidden"), listening(model, "*", refuse):
        model(ZERO)
    assert model(ZERO).tolist() == [110]


def test_another_model_is_not_heard() -> None:
    model, other = Stack(), Stack()
    with recording(model) as record:
        other(ZERO)
    assert record == {}


def test_a_part_alone_has_names_of_its_own() -> None:
    model = Stack()
    with recording(model.layers[1]) as record:
        model(ZERO)
    assert list(record) == ["hidden", "output"]


def test_listened() -> None:
    model = Stack()
    first = model.layers[0]
    assert not listened(first, "hidden", "output")
    with recording(model, "layers.0.hidden"):
        assert listened(first, "hidden")
        assert listened(first, "output", "hidden")
        assert not listened(first, "output")
        assert not listened(model.layers[1], "hidden")
        assert not listened(Layer(), "hidden")


def test_a_tap_without_a_listener_returns_the_same_tensor() -> None:
    tensor = torch.ones(2)
    assert tap(Layer(), "hidden", tensor) is tensor
