"""Headers of GGUF files: what they say, and that none of it is believed."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.exchange.gguf_files import Draft, Type

from regard.errors import DataError
from regard.exchange import gguf_header
from regard.exchange.gguf_header import StoredTensor, read_gguf_header


def text(content: str | bytes) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return struct.pack("<Q", len(content)) + content


def header(*entries: bytes, tensors: tuple[bytes, ...] = (), version: int = 3) -> bytes:
    return b"".join((b"GGUF", struct.pack("<IQQ", version, len(tensors), len(entries)), *entries, *tensors))


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, *axes: int, start: int = 0, n_axes: int | None = None) -> bytes:
    counted = len(axes) if n_axes is None else n_axes
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", counted, *axes, 0, start)


def refusal(content: bytes, folder: Path) -> str:
    path = folder / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_gguf_header(path)
    problem, remedy = str(caught.value).split("\n")
    assert remedy == "Download it again."
    return problem.removeprefix(f"{path} is no GGUF file, or a damaged one: ")


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_every_type(version: int, tmp_path: Path) -> None:
    numbers = {"B": 7, "b": -7, "H": 500, "h": -500, "I": 2**32 - 1, "i": -5, "?": True, "Q": 2**63, "q": -(2**40)}
    kinds = dict(zip("BbHhIif?", range(8), strict=True)) | {"Q": 10, "q": 11, "d": 12}
    entries = [entry(code, kinds[code], struct.pack(f"<{code}", value)) for code, value in numbers.items()]
    entries += [entry("f", 6, struct.pack("<f", 1e-5)), entry("d", 12, struct.pack("<d", 0.1))]
    entries += [entry("word", 8, text("häuser")), entry("words", 9, struct.pack("<IQ", 8, 2) + text("a") + text(""))]
    entries += [entry("flags", 9, struct.pack("<IQ3?", 7, 3, True, False, True))]
    entries += [entry("counts", 9, struct.pack("<IQ2i", 5, 2, -1, 9)), entry("none", 9, struct.pack("<IQ", 5, 0))]
    (tmp_path / "model.gguf").write_bytes(header(*entries, version=version))
    found = read_gguf_header(tmp_path / "model.gguf")
    assert found.metadata == {
        **numbers,
        "f": 1e-5,
        "d": 0.1,
        "word": "häuser",
        "words": ["a", ""],
        "flags": [True, False, True],
        "counts": [-1, 9],
        "none": [],
    }


@pytest.mark.parametrize("alignment", [8, 32, 64])
def test_places_of_tensors_are_those_of_their_numbers(alignment: int, tmp_path: Path) -> None:
    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.float16)
    draft = Draft({"general.architecture": "llama", "general.alignment": alignment})
    draft.tensors = {"a": (first, Type.F32), "b": (second, Type.F16)}
    path = draft.write(tmp_path / "model.gguf")
    found, content = read_gguf_header(path), path.read_bytes()
    assert found.file_size == len(content)
    assert [(one.shape, one.type) for one in found.tensors.values()] == [((2, 3), 0), ((4,), 1)]
    for name, numbers in (("a", first), ("b", second)):
        start = found.tensors[name].start
        assert content[start : start + numbers.nbytes] == numbers.tobytes()


def test_axes_are_turned_round(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(header(tensors=(tensor("a", 3, 2), tensor("b"))))
    found = read_gguf_header(tmp_path / "model.gguf").tensors
    assert found["a"] == StoredTensor((2, 3), 0, found["a"].start)
    assert found["b"].shape == ()


BEYOND = "its header does not end within {} bytes."
LIST = struct.pack("<I", 9)
DAMAGED: list[tuple[str, bytes, str]] = [
    ("empty", b"", "it does not begin with GGUF."),
    ("another format", b"PK\3\4" + b"\0" * 60, "it does not begin with GGUF."),
    ("version 1", header(version=1), "its version is 1, and 2 and 3 are known."),
    ("big-endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "its version is 50331648, and 2 and 3 are known."),
    ("keys without end", b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), BEYOND.format(24)),
    ("tensors without end", b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), BEYOND.format(24)),
    ("a long key", header(struct.pack("<Q", 2**64 - 1) + b"key"), BEYOND.format(35)),
    ("a long text", header(entry("key", 8, struct.pack("<Q", 2**40))), BEYOND.format(47)),
    (
        "a long list",
        header(entry("key", 9, struct.pack("<IQ", 0, 2**62))),
        f"it has a list of {2**62:,} items, more than 4,000,000.",
    ),
    ("a list beyond the end", header(entry("key", 9, struct.pack("<IQ", 12, 4_000_000))), BEYOND.format(51)),
    ("a list of texts beyond the end", header(entry("key", 9, struct.pack("<IQ", 8, 4_000_000))), BEYOND.format(51)),
    (
        "a list of lists",
        header(entry("key", 9, struct.pack("<IQ", 9, 1))),
        "it has a list of values of the type 9, which GGUF does not have.",
    ),
    ("another type", header(entry("key", 13, b"")), "it has a value of the type 13, which GGUF does not have."),
    ("no UTF-8", header(entry("key", 8, text(b"\xff\xfe"))), "it has text that is not UTF-8."),
    ("a key twice", header(entry("key", 0, b"\1"), entry("key", 0, b"\1")), "it has the key key twice."),
    ("a tensor twice", header(tensors=(tensor("a", 2), tensor("a", 2))), "it has the tensor a twice."),
    ("many axes", header(tensors=(tensor("a", n_axes=2**31),)), "its tensor a has 2,147,483,648 axes, more than 4."),
    ("crooked", header(tensors=(tensor("a", 2, start=5),)), "its tensor a begins at no multiple of 32 bytes."),
    *(
        (
            f"alignment {value}",
            header(entry("general.alignment", 4, struct.pack("<I", value))),
            f"its general.alignment is {value}, and must be a power of two.",
        )
        for value in (0, 24, 2**31)
    ),
    (
        "alignment in words",
        header(entry("general.alignment", 8, text("wide"))),
        "its general.alignment is wide, and must be a power of two.",
    ),
]


@pytest.mark.parametrize(("content", "problem"), [one[1:] for one in DAMAGED], ids=[one[0] for one in DAMAGED])
def test_headers_that_lie(content: bytes, problem: str, tmp_path: Path) -> None:
    assert refusal(content, tmp_path) == problem


def test_a_header_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = header(entry("key", 8, text("a" * 5000)))
    (tmp_path / "model.gguf").write_bytes(content)
    assert read_gguf_header(tmp_path / "model.gguf").metadata["key"] == "a" * 5000
    monkeypatch.setattr(gguf_header, "MOST_HEADER", 4000)
    assert refusal(content, tmp_path) == "its header does not end within 4,000 bytes."


@pytest.mark.parametrize(
    ("make", "reason"), [(Path.mkdir, "it is a folder, not a file"), (None, "No such file or directory")]
)
def test_what_is_no_file(make: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    if make is not None:
        make(path)
    with pytest.raises(DataError) as caught:
        read_gguf_header(path)
    assert str(caught.value) == f"{path} cannot be read: {reason}.\nGive a GGUF file that can be read."
