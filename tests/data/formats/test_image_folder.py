"""The images that tables name: read in their order, each once; the files that no row names."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data.captions.source import unnamed
from regard.data.formats.image_arrays import LabelledImage
from regard.data.formats.image_folder import ListedImages
from regard.data.formats.rows import Bad
from regard.data.images.decoding import ImageShape
from regard.data.images.storage import stored_images
from regard.errors import DataError

SHAPE = ImageShape(4, 3)


def quiet(what: str, done: int) -> None:
    pass


def save(path: Path, colour: int = 9, size: tuple[int, int] = (4, 4), mode: str = "RGB") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, (colour, 0, 0) if mode == "RGB" else colour).save(path, format="PNG")
    return str(path)


def listed(folder: Path, *members: str) -> ListedImages:
    return ListedImages(root=str(folder), members=tuple(f"/{member}" for member in members))


def test_images_come_as_they_are_listed(tmp_path: Path) -> None:
    for number, name in enumerate(("b.png", "x/a.png", "0017")):
        save(tmp_path / name, number)
    found = list(listed(tmp_path, "x/a.png", "0017", "b.png").images(SHAPE))
    assert [(one.member, one.label, int(one.pixels[0, 0, 0])) for one in found if isinstance(one, LabelledImage)] == [
        ("/x/a.png", "", 1),
        ("/0017", "", 2),
        ("/b.png", "", 0),
    ]
    assert found[0].place == f"{tmp_path}/x/a.png"
    assert listed(tmp_path).class_folders() == []


def test_bad_images_have_a_reason(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"nothing")
    found = list(listed(tmp_path, "a.png", "none.png").images(SHAPE))
    root = str(tmp_path)
    assert found == [Bad(root, "/a.png", "no image"), Bad(root, "/none.png", "cannot be opened")]


def test_the_shape_that_suits_them(tmp_path: Path) -> None:
    for number, size in enumerate(((6, 9), (5, 5), (7, 7))):
        save(tmp_path / f"{number}.png", size=size, mode="L")
    assert listed(tmp_path, "none.png", "0.png", "1.png", "2.png").own_shape() == ImageShape(6, 1)
    save(tmp_path / "3.png", size=(900, 700))
    assert listed(tmp_path, "3.png").own_shape() == ImageShape(224, 3)
    with pytest.raises(DataError) as caught:
        listed(tmp_path, "none.png").own_shape()
    assert caught.value.problem == f"{tmp_path}/none.png: neither this nor any other of the first images can be read."
    assert caught.value.remedy == "Check that these are images."


def test_the_fingerprint_is_of_names_order_and_contents(tmp_path: Path) -> None:
    for place in ("here", "there"):
        save(tmp_path / place / "a.png")
        save(tmp_path / place / "b.png", 3)
    here = listed(tmp_path / "here", "a.png", "b.png").fingerprint()
    assert listed(tmp_path / "there", "a.png", "b.png").fingerprint() == here
    assert listed(tmp_path / "here", "b.png", "a.png").fingerprint() != here
    save(tmp_path / "there/a.png", 4)
    assert listed(tmp_path / "there", "a.png", "b.png").fingerprint() != here


def test_listed_images_are_stored_like_others(tmp_path: Path) -> None:
    for number in range(8):
        save(tmp_path / f"{number}.png", number)
        (tmp_path / f"bad{number}.png").write_bytes(b"nothing")
    names = [f"{prefix}{number}.png" for number in range(8) for prefix in ("bad", "")]
    found = stored_images([listed(tmp_path, *names)], SHAPE, quiet)
    assert found.images(np.arange(8))[:, 0, 0, 0].tolist() == list(range(8))
    assert found.places([3]) == [f"{tmp_path}/3.png"]
    # All of them, not the first: the rows that name these images go with them.
    bad = found.bad_images.examples
    assert [one.place for one in bad["no image"]] == [f"{tmp_path}/bad{number}.png" for number in range(8)]


def test_which_images_are_held_out(tmp_path: Path) -> None:
    for number in range(40):
        save(tmp_path / f"{number}.png", number)
        save(tmp_path / f"{number}-again.png", number)
    names = [f"{number}{again}.png" for again in ("", "-again") for number in range(40)]
    held_out = stored_images([listed(tmp_path, *names)], SHAPE, quiet).held_out(0)[0]
    assert held_out.sum() == 8
    assert (held_out[:40] == held_out[40:]).all()
    assert stored_images([listed(tmp_path, *names)], SHAPE, quiet).held_out(20)[0].sum() == 20
    with pytest.raises(DataError, match=r"^data\.valid_size asks for 99 images, and there are 80\."):
        stored_images([listed(tmp_path, *names)], SHAPE, quiet).held_out(99)


def test_files_that_no_row_names(tmp_path: Path) -> None:
    places = [save(tmp_path / name) for name in ("a.png", "images/b.png", "images/c.png", "images/d.JPG")]
    save(tmp_path / "elsewhere/e.png")
    save(tmp_path / "images/.hidden.png")
    (tmp_path / "images/notes.txt").write_text("x")
    (tmp_path / "images/folder.png").mkdir()
    assert unnamed(places[:2], set(places[:2])) == [f"{tmp_path}/images/c.png", f"{tmp_path}/images/d.JPG"]
    assert unnamed(places[1:2], set(places)) == []
    assert unnamed([], set()) == []
