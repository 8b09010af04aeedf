"""Labelled images by whatever a person names: every good one comes with its label and its place; lies are found out."""

import gzip
import io
import os
import struct
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.data.formats import image_folder
from regard.data.formats.image_arrays import LabelledImage
from regard.data.formats.image_folder import in_order
from regard.data.formats.rows import Bad
from regard.data.images.decoding import ImageShape
from regard.data.images.sources import find_images, find_split
from regard.errors import DataError

SHAPE = ImageShape(4, 3)
GREY = ImageShape(4, 1)
Bytes = npt.NDArray[np.uint8]


def draw(count: int, *size: int, seed: int = 3) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, *size), dtype=np.uint8)


def save(path: Path, colour: int = 9, size: tuple[int, int] = (4, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (colour, colour, colour)).save(path)


def idx(path: Path, array: npt.NDArray[np.generic], *, kind: int = 8, shape: tuple[int, ...] | None = None) -> str:
    """Write an IDX file; `shape` is what its header says, if that is another."""
    said = shape or array.shape
    content = struct.pack(f">BBBB{len(said)}I", 0, 0, kind, len(said), *said) + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def mnist(folder: Path, *, ending: str = "", count: int = 5) -> tuple[str, Bytes, Bytes]:
    images, labels = draw(count, 4, 4), (np.arange(count) % 3).astype(np.uint8)
    idx(folder / f"train-labels-idx1-ubyte{ending}", labels)
    return idx(folder / f"train-images-idx3-ubyte{ending}", images), images, labels


def read(*names: str, shape: ImageShape = SHAPE, split: str = "train") -> list[LabelledImage | Bad]:
    return [image for source in find_images(names, split=split) for image in source.images(shape)]


def good(*names: str, shape: ImageShape = SHAPE, split: str = "train") -> list[LabelledImage]:
    found = read(*names, shape=shape, split=split)
    assert not [one for one in found if isinstance(one, Bad)]
    return [one for one in found if isinstance(one, LabelledImage)]


def fault(*names: str, shape: ImageShape = SHAPE, split: str = "train") -> DataError:
    with pytest.raises(DataError) as caught:
        read(*names, shape=shape, split=split)
    return caught.value


# -- folders ------------------------------------------------------------------------------------------------------------


def test_class_folders(tmp_path: Path) -> None:
    for number, name in enumerate(("dog/b.png", "cat/2.png", "cat/10.png", "cat/more/1.png", "dog/a.PNG")):
        save(tmp_path / name, number)
    for hidden in (".git/x.png", "cat/.thumbs/1.png", "cat/.1.png"):
        save(tmp_path / hidden)
    found = good(f"{tmp_path}/")
    assert [(one.label, one.member, int(one.pixels[0, 0, 0])) for one in found] == [
        ("cat", "/cat/10.png", 2),
        ("cat", "/cat/2.png", 1),
        ("cat", "/cat/more/1.png", 3),
        ("dog", "/dog/a.PNG", 4),
        ("dog", "/dog/b.png", 0),
    ]
    assert found[0].place == f"{tmp_path}/cat/10.png"
    assert not any(one.fitted for one in found)


def test_images_of_other_sizes_are_fitted(tmp_path: Path) -> None:
    save(tmp_path / "cat/1.png", size=(9, 5))
    save(tmp_path / "cat/2.png")
    found = good(str(tmp_path))
    assert [one.fitted for one in found] == [True, False]
    assert {one.pixels.shape for one in found} == {(4, 4, 3)}


def test_what_is_bad_in_folders(tmp_path: Path) -> None:
    save(tmp_path / "cat/1.png")
    save(tmp_path / "loose.png")
    (tmp_path / "README.txt").write_text("about")
    (tmp_path / "cat/2.jpg").write_bytes(b"nothing")
    (tmp_path / "cat/3.png").write_bytes(b"")
    (tmp_path / "cat/4.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    (tmp_path / "cat/Thumbs.db").write_bytes(b"thumbs")
    os.mkfifo(tmp_path / "cat/pipe.png")
    (tmp_path / "cat/gone.png").symlink_to(tmp_path / "nowhere.png")
    bad = [(one.line, one.reason) for one in read(str(tmp_path)) if isinstance(one, Bad)]
    assert bad == [
        ("/README.txt", "no image by its name"),
        ("/loose.png", "in no class folder"),
        ("/cat/2.jpg", "no image"),
        ("/cat/3.png", "no image"),
        ("/cat/4.HEIC", "no image"),
        ("/cat/Thumbs.db", "no image by its name"),
        ("/cat/gone.png", "cannot be opened"),
        ("/cat/pipe.png", "cannot be opened"),
    ]


def test_linked_folders_are_read_and_loops_end(tmp_path: Path) -> None:
    save(tmp_path / "pets/cat/1.png")
    save(tmp_path / "elsewhere/2.png")
    save(tmp_path / "elsewhere/in/3.png")
    (tmp_path / "pets/cat/more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "pets/cat/again").symlink_to(tmp_path / "elsewhere/in")
    (tmp_path / "pets/cat/up").symlink_to(tmp_path / "pets")
    (tmp_path / "elsewhere/back").symlink_to(tmp_path / "pets/cat")
    (tmp_path / "pets/dog").symlink_to(tmp_path / "elsewhere/in")
    found = good(str(tmp_path / "pets"))
    assert [(one.label, one.member) for one in found] == [
        ("cat", "/cat/1.png"),
        ("cat", "/cat/again/3.png"),
        ("cat", "/cat/more/2.png"),
        ("dog", "/dog/3.png"),
    ]


def test_splits_of_a_folder(tmp_path: Path) -> None:
    for name in ("train/cat/1.png", "Val/cat/2.png", "test/dog/3.png", "labels/cat/4.png"):
        save(tmp_path / name)
    for split, member, label in (("train", "/train/cat/1.png", "cat"), ("valid", "/Val/cat/2.png", "cat")):
        [only] = good(str(tmp_path), split=split)
        assert (only.member, only.label, only.place) == (member, label, f"{tmp_path}{member}")
    assert find_split([str(tmp_path), str(tmp_path / "train")], "test") == find_images([str(tmp_path)], split="test")
    assert find_split([str(tmp_path / "train")], "test") == []
    [only] = good(str(tmp_path / "train"), split="test")  # a folder without splits is taken whole
    assert only.member == "/cat/1.png"


def test_a_split_that_is_not_there(tmp_path: Path) -> None:
    save(tmp_path / "train/cat/1.png")
    save(tmp_path / "val/cat/1.png")
    error = fault(str(tmp_path), split="test")
    assert error.problem == f"{tmp_path}: it is divided into train and valid, and has no split test."
    assert error.remedy == "It may be called 'test' or 'testing'."


def test_a_class_may_have_the_name_of_a_split(tmp_path: Path) -> None:
    for name in ("test", "exam", "quiz"):
        save(tmp_path / name / "1.png")
    assert [one.label for one in good(str(tmp_path))] == ["exam", "quiz", "test"]


def test_a_folder_without_class_folders(tmp_path: Path) -> None:
    assert fault(str(tmp_path)).problem == f"{tmp_path}: no class folder is in it."
    for number in range(3):
        save(tmp_path / f"{number}.png")
    error = fault(str(tmp_path))
    assert error.problem == f"{tmp_path}: no class folder is in it, only 3 images without a label."
    assert error.remedy == (
        "Give a folder with a folder of images for each class; or name files inside it: IDX, or .npz."
    )


def test_a_part_without_class_folders(tmp_path: Path) -> None:
    save(tmp_path / "train/1.png")
    save(tmp_path / "test/1.png")
    [source] = find_images([str(tmp_path)], split="train")
    with pytest.raises(DataError) as caught:
        source.own_shape()
    assert caught.value.problem == f"{tmp_path}/train: no class folder is in it, only 1 image without a label."


@pytest.mark.parametrize(
    ("sides", "size"),
    [((30, 30, 30), 30), ((30, 30, 31), 28), ((53, 45, 47), 40), ((213, 100, 480), 208), ((300, 400, 500), 224)],
)
def test_images_of_several_sizes_become_what_patches_divide(tmp_path: Path, sides: tuple[int, ...], size: int) -> None:
    for number, side in enumerate(sides):
        save(tmp_path / f"cat/{number}.png", size=(side, side + 9))
    [source] = find_images([str(tmp_path)], split="train")
    assert source.own_shape() == ImageShape(size, 3)


def test_the_shape_that_suits_a_folder(tmp_path: Path) -> None:
    for number, side in enumerate((5, 7, 400)):
        save(tmp_path / f"cat/{number}.png", size=(side, side + 1))
    (tmp_path / "cat/bad.png").write_bytes(b"bad")
    [source] = find_images([str(tmp_path)], split="train")
    assert source.own_shape() == ImageShape(7, 3)
    assert source.class_folders() == [("cat", "/cat")]
    Image.new("L", (300, 300)).save(tmp_path / "cat/0.png")
    for name in ("1", "2", "bad"):
        (tmp_path / f"cat/{name}.png").unlink()
    assert source.own_shape() == ImageShape(224, 1)
    (tmp_path / "cat/0.png").unlink()
    with pytest.raises(DataError) as caught:
        source.own_shape()
    assert caught.value.problem == f"{tmp_path}: no image can be read."


def test_the_fingerprint_of_a_folder(tmp_path: Path) -> None:
    save(tmp_path / "cat/1.png")
    save(tmp_path / "dog/1.png", 7)
    [source] = find_images([str(tmp_path)], split="train")
    seen = [source.fingerprint()]
    changes: list[Callable[[], object]] = [
        lambda: save(tmp_path / "dog/1.png", 8),
        lambda: (tmp_path / "dog/1.png").rename(tmp_path / "cat/0.png"),
        lambda: (tmp_path / "dog").rmdir(),
        lambda: (tmp_path / "cat/notes.txt").write_text("a"),
    ]
    for change in changes:
        change()
        seen.append(source.fingerprint())
    assert len(set(seen)) == len(seen)
    (tmp_path / "cat/.hidden.png").write_text("a")
    assert source.fingerprint() == seen[-1]


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"caf\xe9")  # noqa: PTH118
    os.mkdir(folder)  # noqa: PTH102
    save(tmp_path / "cat/1.png")
    (tmp_path / "cat/1.png").rename(os.fsdecode(os.path.join(folder, b"\xff.png")))  # noqa: PTH118
    (tmp_path / "cat").rmdir()
    [only] = good(str(tmp_path))
    assert (only.label, only.member) == (r"caf\xe9", r"/caf\xe9/\xff.png")


def test_threads_keep_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_folder, "cores", lambda: 4)
    threads = set()

    def work(number: int) -> int:
        threads.add(threading.get_ident())
        time.sleep(0.002 * (number % 3))
        return number * number

    asked: list[int] = []
    results = in_order(work, (asked.append(number) or number for number in range(100)))  # type: ignore[func-returns-value]
    assert next(results) == 0
    assert len(asked) <= 4 * image_folder.AHEAD + 1  # no more is read ahead
    assert list(results) == [number * number for number in range(1, 100)]
    assert len(threads) > 1


def test_an_error_in_a_thread_is_raised() -> None:
    def work(number: int) -> int:
        return 1 // (number - 2)

    with pytest.raises(ZeroDivisionError):
        list(in_order(work, range(9)))


# -- IDX ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx(tmp_path: Path, ending: str) -> None:
    file, images, labels = mnist(tmp_path, ending=ending)
    found = good(file, shape=GREY)
    assert (np.stack([one.pixels for one in found])[:, :, :, 0] == images).all()
    assert [one.label for one in found] == [str(label) for label in labels]
    assert found[3].place == f"{file}:3"
    assert (good(file)[1].pixels == images[1][:, :, None]).all()  # three channels
    [source] = find_images([file], split="train")
    assert (source.own_shape(), source.class_folders()) == (ImageShape(4, 1), [])
    assert [one.fitted for one in good(file, shape=ImageShape(3, 1))] == [True] * 5


def test_the_labels_of_an_idx_file_may_be_named(tmp_path: Path) -> None:
    images = [idx(tmp_path / f"a{number}", draw(2, 4, 4)) for number in range(2)]
    labels = [idx(tmp_path / f"b{number}", np.array([number, 7], np.uint8)) for number in range(2)]
    found = good(images[0], labels[0], labels[1], images[1])
    assert [one.label for one in found] == ["0", "7", "1", "7"]
    assert [one.root for one in found] == [images[0], images[0], images[1], images[1]]


def test_colours_and_wide_labels_in_idx(tmp_path: Path) -> None:
    images = draw(2, 4, 4, 3)
    idx(tmp_path / "x-labels.idx1-ubyte", np.array([300, 2], ">i4"), kind=0x0C)
    found = good(idx(tmp_path / "x-images.idx4-ubyte", images))
    assert (found[1].pixels == images[1]).all()
    assert [one.label for one in found] == ["300", "2"]


def test_images_without_labels(tmp_path: Path) -> None:
    file = idx(tmp_path / "t10k-images-idx3-ubyte.gz", draw(2, 4, 4))
    error = fault(file)
    beside = tmp_path / "t10k-labels-idx1-ubyte.gz"
    assert error.problem == f"{file}: there is no file of labels beside it, such as {beside}."
    assert error.remedy == "Name the labels file behind it."
    idx(tmp_path / "t10k-labels-idx1-ubyte", np.array([1, 2], np.uint8))  # not packed, and found all the same
    assert len(good(file)) == 2
    plain = idx(tmp_path / "pictures", draw(2, 4, 4))
    assert fault(plain).problem == f"{plain}: there is no file of labels beside it."


def test_labels_are_found_among_what_is_named(tmp_path: Path) -> None:
    files = {}
    for name, first in (("a", 0), ("b", 4)):
        files[f"{name}-images"] = idx(tmp_path / f"{name}-images", draw(4, 4, 4, seed=first))
        files[f"{name}-labels"] = idx(tmp_path / f"{name}-labels", np.arange(first, first + 4, dtype=np.uint8))
    for order in (("a-images", "b-images", "a-labels", "b-labels"), ("b-labels", "a-images", "a-labels", "b-images")):
        found = good(*(files[name] for name in order), shape=GREY)
        assert {(one.place, one.label) for one in found} == {
            (f"{files[f'{name}-images']}:{number}", str(first + number))
            for name, first in (("a", 0), ("b", 4))
            for number in range(4)
        }


def test_labels_without_images(tmp_path: Path) -> None:
    file = idx(tmp_path / "train-labels-idx1-ubyte", np.array([1], np.uint8))
    error = fault(file)
    assert error.problem == f"{file}: these are labels, and no file of images came with it."
    assert error.remedy == "Name the images file too."


def test_numbers_of_images_and_labels_differ(tmp_path: Path) -> None:
    file, _, _ = mnist(tmp_path)
    labels = idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(4, np.uint8))
    error = fault(file)
    assert error.problem == f"{file}: 5 images, and {labels} holds 4 labels."
    assert error.remedy == "Give each image its label."


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("shape", "plain", "packed"),
    [
        ((6, 4, 4), "80 bytes follow instead of 96", "the data ends in row 5"),
        ((5, 4, 5), "80 bytes follow instead of 100", "the data ends in row 4"),
        ((5, 4, 3), "80 bytes follow instead of 60", "more data follows"),
        ((5, 2**13, 2**13), "80 bytes follow instead of 335,544,320", "the data ends in row 0"),
    ],
)
def test_an_idx_header_that_lies(tmp_path: Path, ending: str, shape: tuple[int, ...], plain: str, packed: str) -> None:
    labels = np.zeros(shape[0], np.uint8)
    idx(tmp_path / f"train-labels-idx1-ubyte{ending}", labels)
    file = idx(tmp_path / f"train-images-idx3-ubyte{ending}", draw(5, 4, 4), shape=shape)
    error = fault(file, shape=GREY)
    said = " × ".join(f"{count:,}" for count in shape)
    assert error.problem == f"{file}: its header says {said} numbers of uint8, and {packed if ending else plain}."
    assert error.remedy == "Copy the file again, or fix it."


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_idx_header_of_millions_of_images_fills_no_memory(tmp_path: Path, ending: str) -> None:
    count = 2**32 - 1
    idx(tmp_path / f"train-labels-idx1-ubyte{ending}", np.zeros(5, np.uint8), shape=(count,))
    file = idx(tmp_path / f"train-images-idx3-ubyte{ending}", draw(5, 4, 4), shape=(count, 4, 4))
    said = f"{file}: its header says 4,294,967,295 × 4 × 4 numbers of uint8, and "
    assert fault(file).problem.startswith(said + ("the data ends in row 5" if ending else "80 bytes follow"))


def test_an_idx_image_that_is_too_large(tmp_path: Path) -> None:
    idx(tmp_path / "train-labels-idx1-ubyte.gz", np.zeros(1, np.uint8))
    file = idx(tmp_path / "train-images-idx3-ubyte.gz", draw(1, 4, 4), shape=(1, 2**16, 2**16))
    problem = f"{file}: the image has 65,536 × 65,536 pixels, at most 67,108,864 pixels are read."
    assert fault(file).problem == problem


def test_an_idx_file_of_something_else(tmp_path: Path) -> None:
    idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, np.uint8))
    file = idx(tmp_path / "train-images-idx3-ubyte", np.zeros((2, 4, 4), ">f4"), kind=0x0D)
    assert fault(file).problem == f"{file}: images of bytes were expected, not 2 × 4 × 4 numbers of >f4."
    file = idx(tmp_path / "train-images-idx3-ubyte", draw(2, 4))
    assert fault(file).problem == (
        f"{file}: images were expected, (N, height, width) or with 1, 3 or 4 channels, not 2 × 4 numbers of uint8."
    )
    file = idx(tmp_path / "train-images-idx3-ubyte", draw(2, 4, 4))
    labels = idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, ">f4"), kind=0x0D)
    error = fault(file)
    assert error.problem == f"{labels}: one whole number or text an image was expected, not 2 numbers of >f4."
    assert error.remedy == "Save the number or the name of the class of each image."


def test_an_idx_file_that_ends_in_its_header(tmp_path: Path) -> None:
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(bytes([0, 0, 8, 3, 0, 0]))
    error = fault(str(file))
    assert error.problem == f"{file}: the IDX file ends within its header, after 6 bytes."
    assert error.remedy == "Check that it is the right file, and whole."


def test_images_of_the_wrong_magic(tmp_path: Path) -> None:
    file, _, _ = mnist(tmp_path)
    Path(file).write_bytes(b"\x12\x34\x08\x03" + bytes(40))
    assert fault(file).problem == (
        f"{file}: an IDX file begins with 00 00, a type and 1 to 4 dimensions, not with 12 34 08 03."
    )


def test_an_idx_header_of_huge_images_does_not_fit_its_file(tmp_path: Path) -> None:
    idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(5, np.uint8))
    file = idx(tmp_path / "train-images-idx3-ubyte", draw(5, 4, 4), shape=(5, 2**31, 2**31))
    assert "its header says 5 × 2,147,483,648 × 2,147,483,648 numbers of uint8" in fault(file).problem


def test_labels_of_the_wrong_magic(tmp_path: Path) -> None:
    file, _, _ = mnist(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(b"PK\x03\x04 and more")
    assert fault(file).problem == (
        f"{labels}: an IDX file begins with 00 00, a type and 1 to 4 dimensions, not with 50 4b 03 04."
    )


def test_a_gzipped_idx_file_that_breaks_off(tmp_path: Path) -> None:
    file, _, _ = mnist(tmp_path, ending=".gz", count=200)
    path = Path(file)
    path.write_bytes(path.read_bytes()[:-40])
    error = fault(file)
    assert error.problem.startswith(f"{file}: its packed data is damaged or incomplete (")
    assert error.remedy == "Copy the file again."


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=40) | st.integers(0, 9).map(lambda width: struct.pack(">3I", 1, 1, width) + bytes(5)))
def test_any_bytes_as_idx_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("idx")
    idx(folder / "train-labels-idx1-ubyte", np.zeros(1, np.uint8))
    file = folder / "train-images-idx3-ubyte"
    file.write_bytes(b"\0\0\x08\x03" + content)
    try:
        assert len(read(str(file))) == 1
    except DataError as error:
        assert error.problem.startswith(f"{file}: ")


# -- NPZ ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("images", "labels"), ("x", "y"), ("X", "Y")])
def test_npz(tmp_path: Path, names: tuple[str, str]) -> None:
    images, labels = draw(3, 4, 4, 3), np.array([2, 0, 11])
    file = tmp_path / "a.npz"
    np.savez_compressed(file, **{names[0]: images, names[1]: labels})  # type: ignore[arg-type]
    found = good(str(file))
    assert (np.stack([one.pixels for one in found]) == images).all()
    assert [(one.label, one.place) for one in found] == [("2", f"{file}:0"), ("0", f"{file}:1"), ("11", f"{file}:2")]


def test_parts_of_an_npz(tmp_path: Path) -> None:
    train, test = draw(3, 4, 4), draw(2, 4, 4, seed=4)
    file = tmp_path / "a.npz"
    labels = {"y_train": np.array(["a", "b", " "]), "y_test": np.array([["b"], ["a"]])}
    np.savez(file, x_train=train, x_test=test, **labels)  # type: ignore[arg-type]
    found = read(str(file), shape=GREY)
    assert [one.place for one in found] == [f"{file}:x_train[{number}]" for number in range(3)]
    assert found[2] == Bad(str(file), ":x_train[2]", "empty label")
    assert [one.label for one in good(str(file), split="test")] == ["b", "a"]
    assert (
        fault(str(file), split="valid").problem == f"{file}: it is divided into test and train, and has no split valid."
    )
    other = tmp_path / "b.npz"
    np.savez(other, train_images=train, train_labels=[1, 2, 3], val_images=test, val_labels=[1, 2])
    assert len(good(str(other), split="valid")) == 2


def test_other_numbers_in_an_npz(tmp_path: Path) -> None:
    file = str(tmp_path / "a.npz")
    labels = np.arange(2)
    bytes_of = draw(2, 3, 4, 4)
    np.savez(file, x=bytes_of, y=labels)  # channels first
    assert (good(file)[1].pixels == bytes_of[1].transpose(1, 2, 0)).all()
    np.savez(file, x=(bytes_of[:, 0] / 255).astype(np.float32), y=labels)
    assert (good(file, shape=GREY)[0].pixels[:, :, 0] == bytes_of[0, 0]).all()
    np.savez(file, x=bytes_of[:, 0].astype(np.uint16) * 257, y=labels)
    assert (good(file, shape=GREY)[0].pixels[:, :, 0] == bytes_of[0, 0]).all()
    np.savez(file, x=np.stack([np.zeros((4, 4)), np.full((4, 4), 2.0)]), y=labels)
    found = read(file)
    assert isinstance(found[0], LabelledImage)
    assert found[1] == Bad(file, ":1", "not of values from 0 to 1, and not saved as uint8")
    np.savez(file, x=np.zeros((2, 4, 4), np.int64), y=labels)
    assert fault(file).remedy == "Save them so, as uint8."


def test_arrays_that_an_npz_lacks(tmp_path: Path) -> None:
    file = str(tmp_path / "a.npz")
    np.savez(file, pictures=draw(1, 4, 4), y=[1])
    error = fault(file)
    assert error.problem == f"{file}: no array is called images or x; there is: pictures and y."
    assert error.remedy == "Save it with numpy.savez(file, images=…, labels=…)."
    np.savez(file, x_train=draw(1, 4, 4), y_train=[1], x_test=draw(1, 4, 4))
    error = fault(file)
    assert error.problem == f"{file}: the images 'x_test' have no labels; there is: x_test, x_train and y_train."
    assert error.remedy == "Save the labels beside them, as test_labels."
    np.savez(file, x=draw(1, 4, 4), y=[1], y_test=[1])
    assert fault(file).problem == f"{file}: the labels 'y_test' have no images; there is: x, y and y_test."
    np.savez(file, x=draw(1, 4, 4), images=draw(1, 4, 4), y=[1])
    error = fault(file)
    assert error.problem == f"{file}: both 'x' and 'images' are images by their names."
    assert error.remedy == "Leave one of them out, or name splits: x_train, x_test."
    np.savez(file, x=draw(1, 4, 4), y=1)
    assert fault(file).problem == f"{file}, array 'y': numbers were expected, not one number of int64."
    np.savez(file, x=draw(2, 4, 4), y=[1])
    assert fault(file).problem == f"{file}, array 'x': 2 images, and {file}, array 'y' holds 1 labels."


def npz(path: Path, shape: str, content: bytes, *, kind: str = "|u1", columns_first: bool = False) -> str:
    """Write an NPZ whose header of `x` says what it likes."""
    header = f"{{'descr': '{kind}', 'fortran_order': {columns_first}, 'shape': {shape}, }}".ljust(117) + "\n"
    labels = io.BytesIO()
    np.save(labels, np.zeros(2, np.int64))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)
        archive.writestr("y.npy", labels.getvalue())
    return str(path)


def test_an_npz_header_that_lies(tmp_path: Path) -> None:
    file = npz(tmp_path / "a.npz", "(2, 4, 4)", bytes(32))
    assert len(good(file)) == 2
    file = npz(tmp_path / "a.npz", "(1000000000, 4, 4)", bytes(32))
    assert fault(file).problem == (
        f"{file}, array 'x': its header says 1,000,000,000 × 4 × 4 numbers of uint8, "
        "and 32 bytes follow instead of 16,000,000,000."
    )
    file = npz(tmp_path / "a.npz", "(2, 4, 4)", bytes(32), columns_first=True)
    assert fault(file).problem == f"{file}, array 'x': its columns are stored first, and rows are read."
    file = npz(tmp_path / "a.npz", "(2,)", bytes(16), kind="|O")
    error = fault(file)
    assert error.problem == f"{file}, array 'x': it holds Python objects, which are never read."
    assert error.remedy == "Save numbers as numbers, and the names of classes as text: array.astype(str)."
    file = npz(tmp_path / "a.npz", "(2, 4", bytes(16))
    assert fault(file).problem.startswith(f"{file}: not a whole NPZ file of numbers: ")


def test_a_damaged_npz(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, x=draw(2, 80, 80), y=[1, 2])
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    assert fault(str(file)).problem.startswith(f"{file}: not a whole NPZ file of numbers: ")
    start = whole.index(draw(2, 80, 80).tobytes())
    file.write_bytes(whole[: start + 3] + bytes([whole[start + 3] ^ 1]) + whole[start + 4 :])
    error = fault(str(file))
    assert error.problem.startswith(f"{file}, array 'x': its packed data is damaged or incomplete (Bad CRC-32")


# -- anything else ------------------------------------------------------------------------------------------------------


def test_what_holds_no_labelled_images(tmp_path: Path) -> None:
    save(tmp_path / "photo.png")
    error = fault(f"{tmp_path}/photo.png")
    assert error.problem == (
        f"{tmp_path}/photo.png: labelled images were expected: a folder of class folders, an IDX file, or an .npz file."
    )
    assert error.remedy == "Put images into a folder for each class, and name the folder around these."
    assert fault(f"{tmp_path}/photos").problem == f"{tmp_path}/photos: there is no such file."
    assert fault().problem == "No image was named."
    error = fault("")
    assert error.problem == "The name of a folder or file is empty."
    assert error.remedy == "Name a folder of class folders, IDX files, or an .npz file."
    for name in ("pets.zip", "pets.tar.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"packed"))
        assert fault(f"{tmp_path}/{name}").remedy == "Unpack it, and name the folder of class folders."
    (tmp_path / "broken.gz").write_bytes(b"no gzip")
    assert fault(f"{tmp_path}/broken.gz").problem == f"{tmp_path}/broken.gz: damaged or incomplete gzip data."
