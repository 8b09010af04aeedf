"""How a network wants its images: the preprocessor_config.json of a Hugging Face folder, read and written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.exchange.tensor_files import find_file, read_table
from regard.exchange.their_config import TheirConfig
from regard.runs.disk import as_json, write_synced
from regard.runs.json_files import is_number

FILE = "preprocessor_config.json"
_USUAL_SIZE = 224
_BICUBIC = 3  # by Pillow's number
_SHIFTED = (0.5, 0.5, 0.5)  # from 0 … 1 to -1 … 1, where nothing else is said


@dataclass(frozen=True, kw_only=True)
class ImagePreprocessing:
    """size: of the square that a network reads; pixels from 0 to 1 are read as (pixel - mean) / deviation by channel."""

    size: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


def read_preprocessing(folder: Path, *, size: int = 0, n_channels: int = 3) -> ImagePreprocessing:
    """Read how a folder's images are prepared; `size` is that of the network, if it has one of its own."""
    path = find_file(folder, FILE)
    if path is None:
        raise DataError(
            f"{folder} does not say how images are prepared: there is no {FILE} in it.",
            f"Download {FILE} of the model too.",
        )
    config = TheirConfig(read_table(path), str(folder / FILE))
    config.must_be(True, "do_rescale", "do_resize")
    if abs(config.number("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        config.refuse("rescale_factor", "only 1/255 has")
    if config.flag("do_normalize", True):
        mean, deviation = (_by_channel(config, key, n_channels) for key in ("image_mean", "image_std"))
    else:
        mean, deviation = (0.0,) * n_channels, (1.0,) * n_channels
    if not all(deviation):
        config.refuse("image_std", "a deviation is above 0")
    return ImagePreprocessing(size=size or _edge(config), mean=mean, deviation=deviation)


def scaling_notes(folder: Path, *, size: int) -> tuple[str, ...]:
    """Note where images of another size than the network's are scaled otherwise than here: a little else is seen."""
    path = find_file(folder, FILE)
    if path is None:
        return ()
    config = TheirConfig(read_table(path), str(folder / FILE))
    edges, share = config.values.get("size"), config.number("crop_pct", 1.0)
    # A plain number is the shorter side only to the class that has a share to keep (ConvNext's, of ResNets too).
    shortest = edges.get("shortest_edge") if isinstance(edges, dict) else edges if "crop_pct" in config.values else None
    theirs = []
    if is_number(shortest) and share > 0 and (scaled := int(shortest / share)) > size:
        theirs.append(f"scaled to {scaled} pixels and cut to {size}")
    elif shortest is None and not config.flag("do_center_crop", False):
        theirs.append("squeezed into the square")
    if config.count("resample", _BICUBIC) != _BICUBIC:
        theirs.append("scaled with another filter")
    if not theirs:
        return ()
    return (
        f"An image of another size is scaled here by its shorter side to {size} pixels (bicubic), and its centre kept; by"
        f" {FILE} it would be {', and '.join(theirs)}. Images of {size} × {size} pixels are read the same.",
    )


def _by_channel(config: TheirConfig, key: str, n_channels: int) -> tuple[float, ...]:
    values: Any = config.values.get(key) or _SHIFTED[:n_channels]
    if not isinstance(values, list | tuple) or len(values) != n_channels or not all(map(is_number, values)):
        config.refuse(key, f"{n_channels} numbers have")
    return tuple(float(value) for value in values)


def _edge(config: TheirConfig) -> int:
    """The side of the square that is read: of the crop, or of what the image is scaled to."""
    for key in ("crop_size", "size"):
        value = config.values.get(key)
        if isinstance(value, dict):
            inner = config.table(key)
            edges = {inner.count(name) for name in ("height", "width", "shortest_edge") if name in inner.values}
            if len(edges) != 1:
                config.refuse(key, "one side of a square has")
            return edges.pop()
        if value is not None:
            return config.count(key)
    return _USUAL_SIZE


def write_preprocessing(folder: Path, given: ImagePreprocessing) -> None:
    """Write the file that says how images are prepared, as `read_preprocessing` and transformers read it.

    CLIP's is the class that does as we do: the shorter side is scaled, and the square in the middle kept.
    """
    table = {
        "image_processor_type": "CLIPImageProcessor",
        "do_convert_rgb": len(given.mean) == 3,
        "do_resize": True,
        "size": {"shortest_edge": given.size},
        "resample": _BICUBIC,
        "do_center_crop": True,
        "crop_size": {"height": given.size, "width": given.size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(given.mean),
        "image_std": list(given.deviation),
    }
    write_synced(folder / FILE, as_json(table, indent=2) + b"\n")
