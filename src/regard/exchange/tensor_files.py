"""The weights of a stranger's folder: one safetensors file or several with an index, opened lazily, never trusted.

A name in the index, or a link, may lead anywhere; a header may promise more than the file holds. Each is refused before
a tensor is read. Files that were pickled stand apart (`pickled_weights.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from regard.errors import LONGEST_SHOWN, DataError
from regard.regular_files import MEGABYTE
from regard.runs.json_files import read_json
from regard.runs.tensor_header import Shape, read_header
from regard.runs.tensors import opened

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
MOST_JSON = 64 * MEGABYTE  # an index names every tensor
MOST_FILES = 1_000


@dataclass(frozen=True)
class TensorFiles:
    """Which tensors a folder holds: the shape of each by its name, and in which file it is."""

    shapes: Mapping[str, Shape]
    files: Mapping[str, Path]

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Tensor]]:
        """Read tensors one by one inside the `with`; a file is opened when the first of its tensors is asked for."""
        with ExitStack() as stack:

            @cache
            def file(path: Path) -> Any:
                return stack.enter_context(_opened(path))

            def read(name: str) -> Tensor:
                path = self.files[name]
                try:
                    tensor: Tensor = file(path).get_tensor(name)
                except SafetensorError as error:
                    raise _damaged(path, error) from None
                return tensor

            yield read


def find_weights(folder: Path) -> TensorFiles | None:
    """Return the tensors of a folder, of which no more than names and shapes is read; None where it holds no safetensors."""
    if (single := find_file(folder, WEIGHTS)) is not None:
        paths = [single]
    elif (index := find_file(folder, INDEX)) is not None:
        paths = [_named_file(folder, index, name) for name in file_names(index, suffix=".safetensors")]
    else:
        return None
    shapes: dict[str, Shape] = {}
    files: dict[str, Path] = {}
    for path in paths:
        for name, shape in _shapes(path).items():
            if name in shapes:
                raise DataError(f"{path} and {files[name]} both hold {name}.", "Download the model again.")
            shapes[name], files[name] = shape, path
    return TensorFiles(shapes, files)


def file_names(index: Path, *, suffix: str) -> list[str]:
    """Return the files that an index names, each a plain name beside it."""
    table = read_table(index)
    weight_map = table.get("weight_map")
    names = list(weight_map.values()) if isinstance(weight_map, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise DataError(f"{index} does not say which file holds which tensor (weight_map).", "Download it again.")
    names = sorted(set(names))
    if len(names) > MOST_FILES:
        raise DataError(f"{index} names {len(names):,} files, more than {MOST_FILES:,}.", "Download it again.")
    for name in names:
        if "/" in name or "\\" in name or "\0" in name or not name.endswith(suffix):
            raise DataError(
                f"{index} names the file '{name[:LONGEST_SHOWN]}', which is no {suffix} file of its folder.",
                "Do not use this folder: an index names only files beside it.",
            )
    return names


def read_table(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds a table."""
    content = _read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold a table, not {type(content).__name__}.", "Download it again.")
    return content


def read_list(path: Path) -> list[Any]:
    """Read a JSON file that holds a list."""
    content = _read_json(path)
    if not isinstance(content, list):
        raise DataError(f"{path} must hold a list, not {type(content).__name__}.", "Download it again.")
    return content


def _read_json(path: Path) -> Any:
    try:
        return read_json(path, most=MOST_JSON)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", "Give a folder of readable files.") from None
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}.", "Download it again.") from None


def find_file(folder: Path, name: str) -> Path | None:
    """Return a file of the folder, behind its links, or None where there is none; no link may lead elsewhere."""
    path, home = folder / name, folder.resolve()
    # The cache of the Hub keeps a snapshot as links to files two folders above, which belong to the same model.
    homes = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
    try:
        target = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        target = None
    except (OSError, RuntimeError) as error:  # links in a circle, or a folder that is closed to us
        raise DataError(f"{path} cannot be read: {error}.", "Give a folder of readable files.") from None
    if target is None and not path.is_symlink():
        return None
    if target is None or not any(target.is_relative_to(one) for one in homes):
        raise DataError(
            f"{path} is a link that leads out of its folder, or nowhere.", "Put the file itself in its place."
        )
    return target


def _named_file(folder: Path, index: Path, name: str) -> Path:
    path = find_file(folder, name)
    if path is None:
        raise DataError(f"{folder} lacks the file {name}, which {index.name} names.", "Download it too.")
    return path


def _shapes(path: Path) -> Mapping[str, Shape]:
    """The shapes of a file's tensors; its header is checked against its size."""
    try:
        shapes = read_header(path).stored
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", "Give a folder of readable files.") from None
    except ValueError as error:
        raise _damaged(path, error) from None
    with _opened(path):
        return shapes


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(opened(path))
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from None
        yield file


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} is no safetensors file, or a damaged one: {error}.", "Download it again.")
