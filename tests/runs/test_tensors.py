import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import TrainingError
from regard.runs import tensors


def test_tensors_of_all_kinds_come_back_bit_for_bit(tmp_path: Path) -> None:
    written = {
        "float": torch.randn(3, 4, generator=torch.Generator().manual_seed(1)),
        "half": torch.tensor([1.5, -0.0]).bfloat16(),
        "count": torch.tensor(7),
        "mask": torch.tensor([True, False]),
        "empty": torch.zeros(0, 3),
        "also empty": torch.zeros(0, 3),
        "transposed": torch.arange(6).reshape(2, 3).T,
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    tensors.save(tmp_path / "file", written)
    read = tensors.load(tmp_path / "file")
    assert read.keys() == written.keys()
    for name, tensor in written.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor), name


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path: Path) -> None:
    weight = torch.arange(1000.0)
    tied = {"embedding": weight, "output": weight, "third": weight, "view": weight.reshape(10, 100)[:1].clone()}
    tensors.save(tmp_path / "tied", tied)
    assert (tmp_path / "tied").stat().st_size < 1.5 * weight.nbytes
    assert tensors.count_bytes(tied) == 1100 * 4
    read = tensors.load(tmp_path / "tied")
    assert read.keys() == tied.keys()
    assert read["embedding"].data_ptr() == read["output"].data_ptr() == read["third"].data_ptr()
    assert torch.equal(read["output"], weight)


def test_parts_of_one_buffer_are_not_tied(tmp_path: Path) -> None:
    buffer = torch.arange(10.0)
    tensors.save(tmp_path / "file", {"a": buffer[:5], "b": buffer[5:]})
    assert tensors.load(tmp_path / "file")["b"].tolist() == [5, 6, 7, 8, 9]


def test_equal_tensors_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        weight = torch.ones(3)
        tensors.save(tmp_path / name, {"a": weight, "b": torch.zeros(2), "c": weight})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_files_have_the_mode_that_the_umask_grants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        tensors.save(tmp_path / "file", {"a": torch.ones(1)})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_tensor_that_is_not_finite_is_named(value: float) -> None:
    weights = {"count": torch.tensor(3), "good": torch.ones(2), "layer.weight": torch.tensor([1.0, value])}
    with pytest.raises(TrainingError) as caught:
        tensors.refuse_non_finite(weights)
    assert caught.value.problem == "Not saving: layer.weight contains NaN or Inf."
    assert (
        caught.value.remedy
        == "Resume from the last checkpoint with a lower training.learning_rate, or with training.clip."
    )


def test_a_file_deleted_while_it_is_opened_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    tensors.save(file, {"a": torch.ones(2)})
    map_file = torch.UntypedStorage.from_file

    def deleted_before(*args: Any, **options: Any) -> Any:
        file.unlink()
        return map_file(*args, **options)

    monkeypatch.setattr(torch.UntypedStorage, "from_file", staticmethod(deleted_before))
    with pytest.raises(OSError, match="No such file"):
        tensors.load(file)
    assert not file.exists()
