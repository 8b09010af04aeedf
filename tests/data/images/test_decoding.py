"""One image, decoded: every kind of colours becomes eight bits, upright and square; what is bad is refused by name."""

import io
import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.data.images.decoding import (
    MAX_PIXELS,
    BadImageError,
    ImageShape,
    own_shape,
    read_image,
)
from regard.errors import UsageError

RGB = ImageShape(4, 3)
GREY = ImageShape(4, 1)


def colours(height: int = 4, width: int = 4, *, seed: int = 1) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def saved(folder: Path, name: str, image: Image.Image, **options: object) -> str:
    image.save(folder / name, **options)  # type: ignore[arg-type]
    return str(folder / name)


def fault(file: str, shape: ImageShape = RGB) -> BadImageError:
    with pytest.raises(BadImageError) as caught:
        read_image(file, shape)
    return caught.value


def png_header(width: int, height: int, *, depth: int = 8) -> bytes:
    """A PNG that says it is so large, and has next to nothing in it."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.ppm", "a.webp", "a.JPG"])
def test_pixels_of_the_right_size_stay_as_they_are(tmp_path: Path, name: str) -> None:
    pixels = np.full((4, 4, 3), (200, 100, 50), np.uint8) if name.endswith("JPG") else colours()
    file = saved(tmp_path, name, Image.fromarray(pixels), **({"lossless": True} if name.endswith("webp") else {}))
    read = read_image(file, RGB)
    assert (read.dtype, read.shape) == (np.uint8, (4, 4, 3))
    assert np.abs(read.astype(int) - pixels).max() <= (3 if name.endswith("JPG") else 0)


def test_grey_and_colours_become_one_another(tmp_path: Path) -> None:
    grey = colours()[:, :, 0]
    file = saved(tmp_path, "grey.png", Image.fromarray(grey))
    assert (read_image(file, RGB) == grey[:, :, None]).all()
    assert (read_image(file, GREY) == grey[:, :, None]).all()
    red = saved(tmp_path, "red.png", Image.new("RGB", (4, 4), (255, 0, 0)))
    assert set(read_image(red, GREY).ravel().tolist()) == {76}  # 0.299 of 255


def test_black_and_white(tmp_path: Path) -> None:
    image = Image.new("1", (4, 4))
    image.putpixel((1, 2), 1)
    read = read_image(saved(tmp_path, "a.png", image), GREY)
    assert read[2, 1, 0] == 255
    assert read.sum() == 255


def test_a_palette(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 10, 200, 30])
    for name in ("a.png", "a.gif"):
        assert (read_image(saved(tmp_path, name, image), RGB) == (10, 200, 30)).all()


def test_transparent_pixels_are_on_white(tmp_path: Path) -> None:
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    image.putpixel((0, 0), (10, 20, 30, 255))
    image.putpixel((1, 0), (0, 0, 0, 51))  # a fifth of black
    read = read_image(saved(tmp_path, "a.png", image), RGB)
    assert read[0, :3].tolist() == [[10, 20, 30], [204, 204, 204], [255, 255, 255]]
    grey = Image.new("LA", (4, 4), (0, 0))
    assert (read_image(saved(tmp_path, "grey.png", grey), GREY) == 255).all()
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 10, 200, 30])
    for index, transparency in enumerate((1, b"\xff\x00")):  # as a number and as bytes
        file = saved(tmp_path, f"palette{index}.png", palette, transparency=transparency)
        assert (read_image(file, RGB) == 255).all()


def test_sixteen_bits_are_scaled(tmp_path: Path) -> None:
    values = np.array([[0, 256, 257, 65_535], [32_768, 128, 129, 65_406]] * 2, np.uint16)
    expected = [[0, 1, 1, 255], [128, 0, 1, 254]] * 2
    for name in ("a.png", "a.tif", "a.pgm"):
        read = read_image(saved(tmp_path, name, Image.fromarray(values)), GREY)
        assert read[:, :, 0].tolist() == expected


def test_numbers_from_0_to_1_are_scaled_and_others_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, "a.tif", Image.fromarray(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)))
    assert read_image(file, GREY).ravel().tolist() == [17 * index for index in range(16)]
    for value, told in ((2.5, "2.5"), (np.nan, "nan")):
        image = Image.fromarray(np.full((4, 4), value, np.float32))
        error = fault(saved(tmp_path, "b.tif", image))
        assert error.reason == "not of values from 0 to 1, and not saved as uint8"
        assert error.problem.endswith(f"b.tif: its pixels go from {told} to {told}, and 0 to 1 was expected.")
        assert error.remedy == "Save it with 8 bits a channel, as uint8."
    error = fault(saved(tmp_path, "c.tif", Image.fromarray(np.full((4, 4), -1, np.int32))))
    assert error.reason == "not of values from 0 to 65,535"
    assert error.problem.endswith("c.tif: its pixels go from -1 to -1, and 0 to 65,535 was expected.")


def test_the_colours_of_print(tmp_path: Path) -> None:
    image = Image.new("CMYK", (4, 4), (0, 255, 255, 0))
    assert (read_image(saved(tmp_path, "a.tif", image), RGB) == (255, 0, 0)).all()
    red = read_image(saved(tmp_path, "a.jpg", image), RGB)
    assert (np.abs(red.astype(int) - (255, 0, 0)) < 4).all()


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_turned_once_as_its_exif_says(tmp_path: Path, orientation: int, name: str) -> None:
    upright = colours()
    # What the camera stored, so that turning it back gives the image upright.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: np.rot90(upright.transpose(1, 0, 2), 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"exif": exif, **({"lossless": True} if name.endswith("webp") else {})}
    file = saved(tmp_path, name, Image.fromarray(np.ascontiguousarray(stored)), **options)
    assert (read_image(file, RGB) == upright).all()


def test_the_centre_is_kept(tmp_path: Path) -> None:
    wide = np.zeros((4, 12, 3), np.uint8)
    wide[:, 4:8] = colours()
    assert (read_image(saved(tmp_path, "a.png", Image.fromarray(wide)), RGB) == colours()).all()
    tall = np.ascontiguousarray(wide.transpose(1, 0, 2))
    assert (read_image(saved(tmp_path, "b.png", Image.fromarray(tall)), RGB) == colours().transpose(1, 0, 2)).all()


def test_scaling_down_is_smooth(tmp_path: Path) -> None:
    """A fine chequerboard becomes grey, not black or white; a ramp stays a ramp."""
    board = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)
    read = read_image(saved(tmp_path, "board.png", Image.fromarray(board)), GREY)
    assert np.abs(read.astype(int) - 127).max() <= 4
    ramp = np.repeat(np.arange(64, dtype=np.uint8)[None] * 4, 64, 0)
    read = read_image(saved(tmp_path, "ramp.png", Image.fromarray(ramp)), GREY)
    assert np.abs(read[0, :, 0].astype(int) - [30, 94, 158, 222]).max() <= 6


def test_a_small_image_is_scaled_up(tmp_path: Path) -> None:
    file = saved(tmp_path, "a.png", Image.new("RGB", (1, 3), (9, 8, 7)))
    assert (read_image(file, RGB) == (9, 8, 7)).all()


def test_a_large_jpeg_is_what_scaling_makes_of_it(tmp_path: Path) -> None:
    ramp = np.stack(np.broadcast_arrays(np.arange(256)[:, None], np.arange(256)[None], 99), -1).astype(np.uint8)
    pixels = np.kron(ramp, np.ones((2, 2, 1), np.uint8))
    file = saved(tmp_path, "a.jpg", Image.fromarray(pixels), quality=95)
    expected = Image.fromarray(pixels).resize((16, 16), Image.Resampling.BICUBIC)
    read = read_image(file, ImageShape(16, 3))
    assert np.abs(read.astype(int) - np.asarray(expected)).max() <= 4


def test_of_a_film_the_first_picture_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("white", "black")]
    file = saved(tmp_path, "a.gif", frames[0], save_all=True, append_images=frames[1:])
    assert (read_image(file, RGB) == 255).all()


# -- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(10_000, 7_000), (12_000, 9_000), (60_000, 60_000)])
def test_a_huge_image_is_refused_before_it_is_decoded(
    tmp_path: Path, width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*args: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", loaded)
    file = tmp_path / "bomb.png"
    file.write_bytes(png_header(width, height))
    before = list(warnings.filters)
    error = fault(str(file))
    what = f"the image has {width:,} × {height:,} pixels" if width < 11_000 else "the image is huge"
    assert error.reason == "too large"
    assert error.problem == f"{file}: {what}, at most 67,108,864 pixels are read."
    assert error.remedy == "Scale it down first."
    assert list(warnings.filters) == before


def test_the_limit_is_below_that_of_pillow() -> None:
    assert Image.MAX_IMAGE_PIXELS is not None
    assert MAX_PIXELS < Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.bmp", "a.gif", "a.webp"])
def test_an_image_that_breaks_off(tmp_path: Path, name: str) -> None:
    file = Path(saved(tmp_path, name, Image.fromarray(colours(64, 64))))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])
    error = fault(str(file))
    assert error.reason in ("truncated", "damaged", "no image")
    assert error.problem.startswith(f"{file}: ")


def test_a_truncated_jpeg_is_told_as_such(tmp_path: Path) -> None:
    file = Path(saved(tmp_path, "a.jpg", Image.fromarray(colours(64, 64))))
    file.write_bytes(file.read_bytes()[:-2000])
    error = fault(str(file))
    assert error.reason == "truncated"
    assert error.problem.startswith(f"{file}: the image breaks off before its end (image file is truncated")
    assert error.remedy == "Copy it again from where it came."


def test_what_is_no_image(tmp_path: Path) -> None:
    for name, content in (("text.jpg", b"hello"), ("empty.png", b""), ("run.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n")):
        file = tmp_path / name
        file.write_bytes(content)
        error = fault(str(file))
        assert error.reason == "no image"
        assert error.problem == (
            f"{file}: no image of a known kind (JPEG, PNG, GIF, BMP, TIFF, WebP, PPM, JPEG 2000 or AVIF), "
            "or its beginning is damaged."
        )
        assert error.remedy == "Check that it is an image, or convert it to PNG."


def test_a_missing_file(tmp_path: Path) -> None:
    error = fault(f"{tmp_path}/a.png")
    assert error.problem == f"{tmp_path}/a.png: the image cannot be opened (No such file or directory)."
    assert error.remedy == "Check its name and its permissions."
    assert fault("a\0.png").reason == "cannot be opened"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    error = fault(f"{tmp_path}/a.png")
    assert error.reason == "cannot be opened"
    assert error.problem == f"{tmp_path}/a.png: the image cannot be opened (no file, but a pipe, a device or a folder)."


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(["PNG", "JPEG", "GIF", "TIFF", "WEBP"]), data=st.data())
def test_a_damaged_image_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    stream = io.BytesIO()
    Image.fromarray(colours(8, 9)).save(stream, kind)
    content = bytearray(stream.getvalue())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=5)):
        content[place] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("damaged") / "photo"
    file.write_bytes(content)
    try:
        read = read_image(file, RGB)
    except BadImageError as error:
        assert error.problem.startswith(f"{file}: ")
    else:
        assert (read.shape, read.dtype) == ((4, 4, 3), np.uint8)


def test_the_shape_that_an_image_has_itself(tmp_path: Path) -> None:
    assert own_shape(saved(tmp_path, "a.png", Image.fromarray(colours(5, 7)))) == ImageShape(5, 3)
    assert own_shape(saved(tmp_path, "b.png", Image.fromarray(colours(5, 3)[:, :, 0]))) == ImageShape(3, 1)
    assert own_shape(saved(tmp_path, "c.png", Image.fromarray(np.zeros((2, 2), np.uint16)))) == ImageShape(2, 1)


def test_shapes_that_cannot_be() -> None:
    with pytest.raises(UsageError, match=r"^An image has 1 or 3 channels, not 2\.\nGive 1 for grey, or 3 for red"):
        ImageShape(4, 2)
    with pytest.raises(UsageError, match=r"^An image cannot have 0 × 0 pixels\.\nGive another size\.$"):
        ImageShape(0, 3)
