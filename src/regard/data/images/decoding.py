"""Image decoding, safely: bounded before a pixel is decoded, of any colours, upright, square, eight bits.

Whatever a file holds becomes (size, size, channels) of uint8: turned as its EXIF says, transparent pixels on white, 16
bits scaled to 8, the shorter side scaled to the size and the centre kept. Of a film or a stack of pages, the first.
"""

import os
import stat
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image

from regard.errors import DataError, UsageError

Pixels = npt.NDArray[np.uint8]

MAX_PIXELS = 1 << 26  # 67 million: more than the sensors of most cameras have
# Of names that claim to be images; the last are not read, but photographs, and left out they must not go unseen.
SMALL = 96  # pixels of an edge: larger images are photographs, which are scaled to what suits a model
_ENDINGS = ".jpg .jpeg .jfif .png .bmp .gif .tif .tiff .webp .ppm .pgm .pbm .pnm .jp2 .avif .heic .heif .jxl"
ENDINGS = frozenset(_ENDINGS.split())
# No others: Pillow would run Ghostscript on EPS, and hand some rarer ones to programs of the system.
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
_GREY = frozenset(("1", "L", "LA", "La", "I", "F"))
# How to turn an image upright, by what EXIF says of it.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# The filters of warnings belong to the whole process: only one thread at a time may change them for a moment.
_opening = threading.Lock()


@dataclass(frozen=True)
class ImageShape:
    """What images become: size × size pixels of 1 channel (grey) or 3 (red, green, blue)."""

    size: int
    channels: int

    def __post_init__(self) -> None:
        if self.size < 1 or self.size * self.size > MAX_PIXELS:
            raise UsageError(f"An image cannot have {self.size:,} × {self.size:,} pixels.", "Give another size.")
        if self.channels not in (1, 3):
            raise UsageError(
                f"An image has 1 or 3 channels, not {self.channels}.", "Give 1 for grey, or 3 for red, green and blue."
            )

    @property
    def dimensions(self) -> tuple[int, int, int]:
        """Height, width and channels of the pixels."""
        return self.size, self.size, self.channels


def suited(own: int, usual: int) -> int:
    """Return the size that images of their `own` become where none is asked for: of photographs that which is usual."""
    return min(own, usual) if own > SMALL else own


class BadImageError(DataError):
    """An image that cannot be used. `reason` is a fixed phrase, so that equal reasons can be counted."""

    def __init__(self, place: str, reason: str, detail: str, remedy: str) -> None:
        super().__init__(f"{place}: {detail}.", remedy)
        self.reason = reason


def read_image(file: str | os.PathLike[str], shape: ImageShape) -> Pixels:
    """Return the pixels of an image file, (size, size, channels)."""
    pixels, _ = read_and_measure(file, shape)
    return pixels


def read_and_measure(file: str | os.PathLike[str], shape: ImageShape) -> tuple[Pixels, bool]:
    """Return the pixels of an image file, and whether it had another size."""
    name = os.fspath(file)
    with _opened(name) as stream:
        image = _header(stream, name)
        other_size = image.size != (shape.size, shape.size)
        # A large JPEG is decoded at a half, a quarter or an eighth of its size where that leaves twice what is needed.
        image.draft(None, (2 * shape.size, 2 * shape.size))
        try:
            image.load()
            return fit(_upright(image), shape, name), other_size
        except BadImageError:
            raise
        except Exception as error:  # Pillow's decoders raise almost anything on damaged data
            cut_off = isinstance(error, OSError) and "truncated" in str(error)
            raise BadImageError(
                name,
                "truncated" if cut_off else "damaged",
                f"the image breaks off before its end ({error})" if cut_off else f"the image is damaged ({error})",
                "Copy it again from where it came.",
            ) from None


def pixels_of(values: npt.NDArray[Any], shape: ImageShape) -> Pixels:
    """Return the pixels of an array (H, W), (H, W, 1) or (H, W, 3), of bytes, 16 bits or numbers from 0 to 1."""
    plain = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if (plain.ndim != 2 and (plain.ndim != 3 or plain.shape[2] != 3)) or not plain.size:
        raise UsageError(
            f"An array of the shape {values.shape} is no image.", "Give one of (H, W), (H, W, 1) or (H, W, 3)."
        )
    place = "an array"
    check_pixels(place, plain.shape[1], plain.shape[0])
    return fit(Image.fromarray(scaled(plain, place)), shape, place)


def own_shape(file: str | os.PathLike[str]) -> ImageShape:
    """Return the shorter side of an image, and whether it is grey; only its header is read."""
    name = os.fspath(file)
    with _opened(name) as stream:
        image = _header(stream, name)
        grey = image.mode in _GREY or image.mode.startswith("I;16")
        return ImageShape(min(image.size), 1 if grey else 3)


def fit(image: Image.Image, shape: ImageShape, place: str) -> Pixels:
    """Return the pixels of an opened image, of eight bits, in the colours and the size of a shape."""
    plain = _without_alpha(_eight_bits(image, place)).convert("L" if shape.channels == 1 else "RGB")
    width, height = plain.size
    side = min(width, height)
    if (width, height) != (shape.size, shape.size):
        left, top = (width - side) / 2, (height - side) / 2
        # Scaling the square in the middle is scaling the shorter side and cutting, without the pixels that are cut off.
        box = (left, top, left + side, top + side)
        plain = plain.resize((shape.size, shape.size), Image.Resampling.BICUBIC, box=box)
    return np.asarray(plain, dtype=np.uint8).reshape(shape.dimensions)


def check_pixels(place: str, width: int, height: int) -> None:
    """Refuse an image of more pixels than are read."""
    if width * height > MAX_PIXELS:
        raise _too_large(place, f"the image has {width:,} × {height:,} pixels")


def _opened(name: str) -> BinaryIO:
    try:
        if stat.S_ISREG(Path(name).stat().st_mode):
            return Path(name).open("rb")
        told = "no file, but a pipe, a device or a folder"  # a pipe that nobody writes to would be waited for, for ever
    except (OSError, ValueError) as error:  # the last is for a NUL in the name
        told = str(error.strerror if isinstance(error, OSError) else error)
    raise BadImageError(
        name, "cannot be opened", f"the image cannot be opened ({told})", "Check its name and its permissions."
    )


def _header(stream: BinaryIO, name: str) -> Image.Image:
    """Open an image of a bearable size without decoding it."""
    try:
        with _opening, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(stream, formats=_FORMATS)
            check_pixels(name, *image.size)
            return image
    except BadImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(name, "the image is huge") from None
    except Exception:  # as in `read_and_measure`
        formats = "JPEG, PNG, GIF, BMP, TIFF, WebP, PPM, JPEG 2000 or AVIF"
        raise BadImageError(
            name,
            "no image",
            f"no image of a known kind ({formats}), or its beginning is damaged",
            "Check that it is an image, or convert it to PNG.",
        ) from None


def _upright(image: Image.Image) -> Image.Image:
    """Turn a decoded image as its EXIF says; Pillow has turned a TIFF by now, and removed what said so."""
    turn = None
    with suppress(Exception), _opening, warnings.catch_warnings():  # EXIF that cannot be read turns nothing
        warnings.simplefilter("ignore")
        turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    return image if turn is None else image.transpose(turn)


def _too_large(place: str, what: str) -> BadImageError:
    return BadImageError(place, "too large", f"{what}, at most {MAX_PIXELS:,} pixels are read", "Scale it down first.")


def _eight_bits(image: Image.Image, place: str) -> Image.Image:
    """Return an image of 16 bits, or of numbers from 0 to 1, as one of 8; any other as it is."""
    if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
        return image
    return Image.fromarray(scaled(np.asarray(image), place))


def scaled(values: npt.NDArray[Any], place: str) -> Pixels:
    """Return pixels of uint8, of 0 to 65,535 or of 0.0 to 1.0 as uint8."""
    if values.dtype == np.uint8:
        return values
    lowest, highest = values.min(), values.max()
    most, hint = (1, ", and not saved as uint8") if values.dtype.kind == "f" else (65_535, "")
    if not (lowest >= 0 and highest <= most):  # so that NaN is refused too
        raise BadImageError(
            place,
            f"not of values from 0 to {most:,}{hint}",
            f"its pixels go from {lowest:g} to {highest:g}, and 0 to {most:,} was expected",
            "Save it with 8 bits a channel, as uint8.",
        )
    return np.rint(values * (255.0 / most)).astype(np.uint8)


def _without_alpha(image: Image.Image) -> Image.Image:
    """Return an image with its transparent pixels on white."""
    if not image.has_transparency_data:
        return image
    whole = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
