import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.runs import tensors
from regard.runs.tensor_header import read_header


def write(path: Path, header: Any, data: bytes = b"1234") -> Path:
    """Write a file of tensors by hand."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}


def test_names_and_shapes_are_known_before_anything_is_read(tmp_path: Path) -> None:
    weight = torch.zeros(3, 4)
    tensors.save(tmp_path / "file", {"embedding": weight, "output": weight, "bias": torch.zeros(4)})
    header = read_header(tmp_path / "file")
    assert header.stored == {"embedding": (3, 4), "bias": (4,)}
    assert header.shapes == {"embedding": (3, 4), "output": (3, 4), "bias": (4,)}
    assert header.n_parameters == 16


def test_what_batch_norms_track_is_not_learned(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    tensors.save(tmp_path / "file", network.state_dict())
    assert read_header(tmp_path / "file").n_parameters == sum(one.numel() for one in network.parameters())


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[" * 100_000,
        [1],
        3,
        {"a": 3},
        {"a": entry(shape="x")},
        {"a": entry(shape=[-1])},
        {"a": entry(shape=[1.5])},
        {"a": entry(shape=[10**30])},
        {"a": entry(dtype="C64")},
        {"a": entry(dtype=["F32"])},
        {"a": entry(), "__metadata__": 3},
        {"a": entry(), "__metadata__": {"tied": "{"}},
        {"a": entry(), "__metadata__": {"tied": "[1]"}},
        {"a": entry(), "__metadata__": {"tied": '{"b": 1}'}},
        {"a": entry(), "__metadata__": {"tied": '{"b": ["a"]}'}},
        {"a": entry(), "__metadata__": {"tied": '{"b": "none"}'}},
        {"a": entry(), "__metadata__": {"tied": '{"a": "a"}'}},
        {"a": entry(), "__metadata__": {"tied": "[" * 100_000}},
    ],
)
def test_a_header_of_anothers_making_is_refused(tmp_path: Path, header: Any) -> None:
    with pytest.raises(ValueError):
        read_header(write(tmp_path / "file", header))


def test_a_length_beyond_all_headers_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="its header has more than 16 MB"):
        read_header(tmp_path / "file")
