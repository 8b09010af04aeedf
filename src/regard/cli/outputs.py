"""Files that commands write beside standard output: refused before the work, written whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from regard.errors import UsageError
from regard.runs.disk import temporary_name, write_atomically


def refuse_output(file: str, data: Sequence[str] = (), *, role: str = "a file of the test set") -> None:
    """Refuse a file that cannot be written, or is one that is read: `role` says what. What it holds stays as it is."""
    path = Path(file)
    remedy = "Name another file with --output."
    if path.is_dir():
        raise UsageError(f"{file} is a folder.", remedy)
    if is_one_of(file, data):
        raise UsageError(f"{file} is {role}.", remedy)
    if is_inside(file, data):
        raise UsageError(f"{file} is inside the test set.", remedy)
    if not is_replaced(path):
        return
    try:
        if path.exists():
            path.open("ab").close()
        trial = temporary_name(path.resolve(), purpose="trial")
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.", remedy) from None


def refuse_picture(file: str, data: Sequence[str] = ()) -> None:
    """Refuse a picture of an unknown format, and one in the place of a file that is read."""
    from regard.inspection.render import check_ending

    check_ending(file)
    if is_one_of(file, data) or is_inside(file, data):
        raise UsageError(f"{file} is a file of the test set.", "Name another file with --picture.")


def is_one_of(file: str, files: Sequence[str]) -> bool:
    """Whether a file is one of several, by whatever names."""
    path = Path(file)
    return path.exists() and any(Path(one).exists() and path.samefile(one) for one in files)


def is_inside(file: str, folders: Sequence[str]) -> bool:
    """Whether a file lies in one of the folders, so that it belongs to them."""
    path = Path(file).resolve()
    return path.exists() and any(path.is_relative_to(Path(one).resolve()) for one in folders if Path(one).is_dir())


def write_output(file: str, lines: Sequence[str]) -> None:
    """Write all lines at once: a file holds the old text or the new one, never a part."""
    write_bytes(file, "".join(f"{line}\n" for line in lines).encode())


def write_bytes(file: str, content: bytes) -> None:
    """Write a whole file at once."""
    path = Path(file)
    if is_replaced(path):
        write_atomically(path.resolve(), content)
    else:
        path.write_bytes(content)


def is_replaced(path: Path) -> bool:
    """Whether a new file takes the place of an old one; a device or a pipe is written into."""
    return path.is_file() or not path.exists()
