"""Images for training and validation: every good one once, equal ones on one side, decoded once, with exact statistics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from regard.config import DataConfig
from regard.data.formats import image_folder
from regard.data.images.dataset import ImageDataset, prepare_images, read_images
from regard.data.images.decoding import ImageShape
from regard.data.images.storage import ImageSet
from regard.errors import DataError

Bytes = npt.NDArray[np.uint8]


def quiet(what: str, done: int) -> None:
    pass


def draw(count: int, size: int = 4, *, seed: int = 5) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def folder(root: Path, counts: Mapping[str, int], *, size: int = 4, seed: int = 5) -> str:
    """Write so many images into each class folder, no two alike."""
    for number, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True)
        for index, pixels in enumerate(draw(count, size, seed=seed + 100 * number)):
            Image.fromarray(pixels).save(root / name / f"{index:03}.png")
    return str(root)


def npz(path: Path, images: Bytes, labels: Any) -> str:
    np.savez(path, images=images, labels=np.asarray(labels))
    return str(path)


def prepare(*train: str, labels: tuple[str, ...] | None = None, **settings: Any) -> ImageDataset:
    return prepare_images(DataConfig(train=train, **settings), labels=labels, progress=quiet)


def fault(*train: str, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        prepare(*train, **settings)
    return caught.value


def contents(images: ImageSet) -> list[bytes]:
    return [pixels.tobytes() for pixels in images.images(np.arange(len(images)))]


def test_every_image_is_stored_once(tmp_path: Path) -> None:
    root = folder(tmp_path, {"dog": 30, "cat": 20})
    data = prepare(root)
    assert data.labels == ("cat", "dog")
    assert data.train.shape == ImageShape(4, 3)
    assert (len(data.train), len(data.valid), data.n_held_out) == (45, 5, 5)
    expected = {pixels.tobytes(): "dog" for pixels in draw(30)} | {p.tobytes(): "cat" for p in draw(20, seed=105)}
    found = {
        content: data.labels[number]
        for images in (data.train, data.valid)
        for content, number in zip(contents(images), images.classes.tolist(), strict=True)
    }
    assert found == expected
    assert data.counts == {label: list(found.values()).count(label) - held for label, held in held_out(data).items()}
    assert data.notes == ()
    assert list(data.hashes) == [root]
    for index, place in enumerate(data.valid.places(np.arange(5))):
        assert Path(place).parent.name == data.labels[data.valid.classes[index]]
        assert (np.asarray(Image.open(place)) == data.valid.images([index])[0]).all()


def held_out(data: ImageDataset) -> dict[str, int]:
    return {label: int((data.valid.classes == number).sum()) for number, label in enumerate(data.labels)}


def test_images_are_views_of_a_map_until_they_are_asked_for(tmp_path: Path) -> None:
    data = prepare(npz(tmp_path / "a.npz", draw(40), [0, 1] * 20))
    assert data.train.corpus is data.valid.corpus
    base = data.train.corpus.ragged["image"].values
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base  # type: ignore[assignment]
    assert isinstance(base, np.memmap)
    batch = data.train.images([3, 0])
    assert (batch.shape, batch.dtype, batch.flags.writeable) == ((2, 4, 4, 3), np.uint8, True)


def test_equal_images_fall_on_one_side(tmp_path: Path) -> None:
    images = draw(60)
    data = prepare(npz(tmp_path / "a.npz", np.concatenate([images, images]), [0, 1] * 60))
    assert not set(contents(data.train)) & set(contents(data.valid))
    assert len(data.valid) == 12


def test_what_is_held_out_does_not_depend_on_the_order(tmp_path: Path) -> None:
    images, labels = draw(50), np.arange(50) % 2
    one = prepare(npz(tmp_path / "a.npz", images, labels))
    other = prepare(npz(tmp_path / "b.npz", images[::-1], labels[::-1]))
    assert set(contents(one.valid)) == set(contents(other.valid))
    assert len(prepare(npz(tmp_path / "c.npz", images, labels), valid_size=20).valid) == 20


def test_near_equal_class_folders_are_pointed_out(tmp_path: Path) -> None:
    names = [name for name in ("Red_Fox", "red fox", "wolf") for _ in range(20)]
    data = prepare(npz(tmp_path / "a.npz", draw(60), names))
    [told] = [text for what, text in data.notes if what == "near-equal"]
    n_first, n_second = data.counts["Red_Fox"], data.counts["red fox"]
    assert told.startswith(f"labels 'Red_Fox' ({n_first}) and 'red fox' ({n_second}): trained as different classes")


def test_holding_out_all_is_an_error(tmp_path: Path) -> None:
    same = npz(tmp_path / "b.npz", np.repeat(draw(1), 20, 0), [0, 1] * 10)
    problem = "Nearly all images have one and the same content: held out by it, none is left for training."
    assert fault(same).problem == problem


def test_a_rare_class_is_not_held_out(tmp_path: Path) -> None:
    labels = ["common"] * 60 + [f"rare {number:02}" for number in range(30)]
    data = prepare(npz(tmp_path / "a.npz", draw(90), labels))
    assert all(data.counts.values())
    assert {data.labels[number] for number in data.valid.classes} == {"common"}
    [kept] = [text for what, text in data.notes if what == "not held out"]
    assert kept.startswith("all images of 'rare ")
    assert kept.endswith(", of which too few are there")
    every = npz(tmp_path / "b.npz", draw(12), [f"{number}" for number in range(12)])
    assert fault(every).problem == "No image is left for validation."


def test_the_mean_and_the_deviation_are_those_of_training(tmp_path: Path) -> None:
    data = prepare(npz(tmp_path / "a.npz", draw(50), [0, 1] * 25))
    pixels = data.train.images(np.arange(len(data.train))) / 255
    mean, deviation = data.train.statistics()
    np.testing.assert_allclose(mean, pixels.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(deviation, pixels.std((0, 1, 2)), rtol=1e-12)


def test_the_deviation_of_a_single_colour_is_not_0(tmp_path: Path) -> None:
    images = draw(20)
    images[..., 1] = 51
    data = prepare(npz(tmp_path / "a.npz", images, [0, 1] * 10))
    mean, deviation = data.train.statistics()
    assert (mean[1], deviation[1]) == (0.2, 1 / 255)


def test_given_validation_images(tmp_path: Path) -> None:
    train = folder(tmp_path / "a", {"cat": 5, "dog": 5})
    valid = folder(tmp_path / "b", {"dog": 2, "cat": 1}, seed=9)
    data = prepare(train, valid=(valid,))
    assert (len(data.train), len(data.valid), data.n_held_out) == (10, 3, 0)
    assert data.valid.classes.tolist() == [0, 1, 1]
    assert set(data.hashes) == {train, valid}
    assert ("note", "3 of 3 validation images stand in training too") not in data.notes
    again = prepare(train, valid=(train,))
    assert ("note", "10 of 10 validation images stand in training too") in again.notes
    assert len(again.hashes) == 1


def test_splits_of_a_folder(tmp_path: Path) -> None:
    folder(tmp_path / "train", {"cat": 20, "dog": 20})
    folder(tmp_path / "test", {"cat": 2, "dog": 2}, seed=9)
    root = str(tmp_path)
    held_out = prepare(root)
    assert (len(held_out.train), len(held_out.valid)) == (36, 4)
    assert ("held out", "no split is of validation; the split test is left for `regard evaluate`") in held_out.notes
    test = read_images([root], DataConfig(), shape=held_out.train.shape, labels=held_out.labels, progress=quiet)
    assert (len(test), test.places([0])) == (4, [f"{root}/test/cat/000.png"])
    folder(tmp_path / "val", {"cat": 3, "dog": 2}, seed=10)
    data = prepare(root)
    assert (len(data.train), len(data.valid), data.n_held_out) == (40, 5, 0)
    assert data.valid.places([0]) == [f"{root}/val/cat/000.png"]
    assert list(data.hashes) == [root]
    assert data.hashes[root] != held_out.hashes[root]


def test_what_has_no_splits_is_learnt_from_beside_what_has_them(tmp_path: Path) -> None:
    folder(tmp_path / "a/train", {"cat": 20, "dog": 20})
    folder(tmp_path / "a/val", {"cat": 3, "dog": 2}, seed=9)
    folder(tmp_path / "b/train", {"cat": 4, "dog": 4}, seed=10)
    folder(tmp_path / "b/test", {"cat": 4}, seed=11)
    flat = npz(tmp_path / "c.npz", draw(10, seed=12), ["cat", "dog"] * 5)
    data = prepare(str(tmp_path / "a"), str(tmp_path / "b"), flat)
    assert (len(data.train), len(data.valid), data.n_held_out) == (58, 5, 0)
    assert {place.split("/val/")[0] for place in data.valid.places(np.arange(5))} == {str(tmp_path / "a")}
    assert data.notes == ()


def test_a_class_only_in_validation_is_an_error(tmp_path: Path) -> None:
    train = folder(tmp_path / "a", {"cat": 5, "dog": 5})
    valid = folder(tmp_path / "b", {"cat": 2, "fox": 2}, seed=9)
    error = fault(train, valid=(valid,))
    assert error.problem == f"{valid}/fox/000.png: the class 'fox' does not occur in training."
    assert error.remedy == "Add training examples of it, or leave such examples out of validation."


def test_labels_that_are_known_already(tmp_path: Path) -> None:
    train = folder(tmp_path / "a", {"cat": 20, "dog": 20})
    data = prepare(train, labels=("fox", "dog", "cat"))
    assert data.labels == ("fox", "dog", "cat")
    assert set(data.train.classes.tolist()) == {1, 2}
    assert ("empty", "no training image has the label 'fox'") in data.notes
    error = fault(train, labels=("cats", "dog"))
    assert error.problem == f"{train}/cat/000.png: the class 'cat' is none of the 2 that the model knows."
    assert error.remedy == "Did you mean cats?"


def test_numbers_are_sorted_as_such(tmp_path: Path) -> None:
    assert prepare(npz(tmp_path / "a.npz", draw(36), [10, 9, 2] * 12)).labels == ("2", "9", "10")


def test_one_class_is_an_error(tmp_path: Path) -> None:
    root = folder(tmp_path, {"cat": 5})
    error = fault(root)
    assert error.problem == f"{root}: all images are of the class 'cat'."
    assert error.remedy == "Give images of two classes at least, each class in a folder of its own."


def test_an_empty_class_folder(tmp_path: Path) -> None:
    root = folder(tmp_path, {"cat": 20, "dog": 20, "fox": 0})
    (tmp_path / "fox" / "notes.txt").write_text("later")
    error = fault(root)
    assert error.problem == f"{root}/fox: no image that can be read is in this class folder."
    assert error.remedy == "Add images, remove the folder, or leave it out with --on-bad keep-going."
    data = prepare(root, on_bad="keep-going")
    assert data.labels == ("cat", "dog")
    assert ("empty", f"no image in {root}/fox") in data.notes
    assert ("left out", f"1 file, no image by its name: {root}/fox/notes.txt") in data.notes


def test_bad_images_are_left_out_and_told(tmp_path: Path) -> None:
    root = folder(tmp_path, {"cat": 150, "dog": 149})
    whole = (tmp_path / "cat/000.png").read_bytes()
    (tmp_path / "cat/bad.png").write_bytes(whole[: len(whole) // 2])
    data = prepare(root)
    assert len(data.train) + len(data.valid) == 299
    [left_out] = [text for what, text in data.notes if what == "left out"]
    assert left_out in {f"1 bad image, {reason}: {root}/cat/bad.png" for reason in ("truncated", "damaged")}


def test_too_many_bad_images(tmp_path: Path) -> None:
    root = folder(tmp_path, {"cat": 20, "dog": 20})
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / "dog" / name).write_bytes(b"nothing")
    (tmp_path / "loose.png").write_bytes((tmp_path / "cat/000.png").read_bytes())
    (tmp_path / "dog/Thumbs.db").write_bytes(b"thumbs")
    error = fault(root)
    assert error.problem == (
        "3 of 43 images are bad (7.0%, at most 1% may be): 2 no image, 1 in no class folder. "
        f"First: {root}/dog/a.jpg (no image); {root}/loose.png (in no class folder)."
    )
    data = prepare(root, on_bad="keep-going")
    assert [text for what, text in data.notes if what == "left out"] == [
        f"2 bad images, no image: {root}/dog/a.jpg; {root}/dog/b.jpg",
        f"1 bad image, in no class folder: {root}/loose.png",
        f"1 file, no image by its name: {root}/dog/Thumbs.db",
    ]


def test_nothing_good(tmp_path: Path) -> None:
    root = folder(tmp_path, {"cat": 0, "dog": 0})
    error = fault(root, image_size=4, channels=3)
    assert error.problem == f"{root}: no images were found."
    (tmp_path / "cat/bad.png").write_bytes(b"nothing")
    error = fault(root, image_size=4, channels=3, on_bad="keep-going")
    assert error.problem.startswith("1 of 1 images are bad")


def test_images_of_different_sizes_are_told(tmp_path: Path) -> None:
    root = folder(tmp_path, {"cat": 30, "dog": 10})
    Image.new("RGB", (9, 6)).save(tmp_path / "cat/wide.png")
    data = prepare(root)
    assert data.train.shape == ImageShape(4, 3)
    fitted = "1 of 41 images have another size: the shorter side is scaled to 4 pixels, and the centre kept"
    assert data.notes == (("size", fitted),)
    assert prepare(root, image_size=6, channels=1).train.images([0]).shape == (1, 6, 6, 1)


def test_grey_and_colours_together_are_colours(tmp_path: Path) -> None:
    grey, colours = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(grey, x=draw(20)[..., 0], y=[0, 1] * 10)
    assert prepare(str(grey)).train.shape == ImageShape(4, 1)
    data = prepare(str(grey), npz(colours, draw(20, seed=6), [0, 1] * 10))
    assert data.train.shape == ImageShape(4, 3)
    assert set(data.train.roots) == {str(grey), str(colours)}
    assert {Path(place.split(":")[0]).name for place in data.train.places(np.arange(len(data.train)))} == {
        "a.npz",
        "b.npz",
    }


def test_images_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(tmp_path / "here", {"cat": 20, "dog": 20})
    (tmp_path / "here/cat/x.txt").write_text("x")
    first = prepare(root)

    def decoded(*args: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(image_folder, "read_and_measure", decoded)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = str(tmp_path / "there")
    again = prepare(moved, valid_size=7)
    assert len(again.valid) == 7
    assert again.valid.places([0])[0].startswith(f"{moved}/")
    assert again.notes == (("left out", f"1 file, no image by its name: {moved}/cat/x.txt"),)
    assert again.hashes == {moved: first.hashes[root]}
    Image.new("RGB", (4, 4)).save(tmp_path / "there/cat/new.png")
    with pytest.raises(AssertionError, match="decoded again"):
        prepare(moved)


def test_the_order_does_not_depend_on_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    root = folder(tmp_path / "a", {"cat": 40, "dog": 40}, seed=77)
    stored = []
    for threads in (1, 5):
        monkeypatch.setenv("REGARD_CACHE", str(tmp_path / f"cache{threads}"))
        monkeypatch.setattr(image_folder, "cores", lambda threads=threads: threads)
        corpus = prepare(root).train.corpus.folder
        stored.append({path.name: path.read_bytes() for path in corpus.iterdir()})
    assert stored[0] == stored[1]


def test_progress_is_told(tmp_path: Path) -> None:
    said: list[tuple[str, int]] = []
    np.savez(tmp_path / "a.npz", x=draw(1100)[..., 0], y=np.arange(1100) % 2)
    prepare_images(DataConfig(train=(f"{tmp_path}/a.npz",)), progress=lambda what, done: said.append((what, done)))
    assert said == [("looking at the images", 0), ("decoding", 1000)]
