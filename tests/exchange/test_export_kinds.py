"""The kinds of export: what each takes is what its function takes, and a wrong name gets the near one."""

import importlib
import inspect
from pathlib import Path

import pytest

from regard.errors import UsageError
from regard.exchange.export_kinds import KINDS, MODULE, ExportKind, find_kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_takes_what_its_function_takes(kind: ExportKind) -> None:
    module, _, function = kind.home.partition(":")
    signature = inspect.signature(getattr(importlib.import_module(f"{MODULE}.{module}"), function))
    options = [name for name, one in signature.parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY]
    assert {*kind.options} <= {*options}
    assert len(signature.parameters) - len(options) == 2
    if "compute_type" in kind.options:
        assert signature.parameters["compute_type"].default == kind.compute_type


def test_a_function_gets_what_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, given: str, *, compute_type: str) -> list[str]:
        return [f"{path.name} {given} {compute_type}"]

    monkeypatch.setattr("regard.exchange.safetensors_export.written_by_a_test", write, raising=False)
    kind = ExportKind(name="mine", about="", home="safetensors_export:written_by_a_test")
    assert kind.write(tmp_path / "out", "run", {"compute_type": "int8"}) == ["out run int8"]


def test_names() -> None:
    assert find_kind("onnx").name == "onnx"
    with pytest.raises(UsageError) as caught:
        find_kind("hugging-face")
    assert str(caught.value) == "There is no export to 'hugging-face'.\nDid you mean huggingface?"
    with pytest.raises(UsageError) as caught:
        find_kind("tflite")
    assert caught.value.remedy == "Available: argos, ctranslate2, huggingface, onnx, safetensors."
