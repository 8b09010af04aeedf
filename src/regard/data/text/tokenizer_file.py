"""The file of a tokenizer: written whole or not at all, and read as one that anybody may have written."""

import json
import os
import tempfile
from pathlib import Path

import tokenizers

from regard.data.formats.rows import excerpt
from regard.data.text.imported_check import check_imported, check_patterns
from regard.data.text.roles import Roles, roles_file
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_check import check_ids, check_parts
from regard.data.text.tokenizer_parts import IMPORTED
from regard.errors import DataError
from regard.regular_files import MEGABYTE, read_regular

MOST_FILE, MOST_ROLES = 256 * MEGABYTE, MEGABYTE
_REMEDY = "Give a tokenizer.json that regard has written."


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write the file, and beside it the roles of an imported one."""
    if tokenizer.kind == IMPORTED:
        _write(roles_file(path), tokenizer.roles.to_json())
    else:
        roles_file(path).unlink(missing_ok=True)  # which an imported one has left, and would speak for this one
    _write(path, tokenizer.to_json())


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a file that `save_tokenizer` wrote, with its roles if they stand beside it."""
    content = _read(path)
    beside = roles_file(path)
    try:
        return _checked(content.decode(), _load_roles(beside) if os.path.lexists(beside) else None)
    except DataError as error:
        if error.remedy == _REMEDY:
            raise
        raise DataError(f"{path}: not a tokenizer of regard: {error.problem}", _REMEDY) from None
    except BaseException as error:  # the library raises nothing more particular; a panic of it is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)):
            raise
        raise DataError(f"{path}: not a tokenizer file: {excerpt(str(error), characters=200)}.", _REMEDY) from error


def _checked(text: str, roles: Roles | None) -> Tokenizer:
    """The tokenizer of a file's text, all of whose parts are known."""
    if roles is not None:
        check_patterns(json.loads(text))  # before the library compiles any
    library = tokenizers.Tokenizer.from_str(text)
    check_ids(library)
    if roles is not None:
        check_imported(library, roles)
        return Tokenizer(library, roles)
    tokenizer = Tokenizer(library)
    form = tokenizer.normalisation
    check_parts(library, kind=tokenizer.kind, lowercase=tokenizer.lowercase, normalisation=form)
    return tokenizer


def _read(path: Path, *, most: int = MOST_FILE) -> bytes:
    try:
        return read_regular(path, most=most)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.", _REMEDY) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.", _REMEDY) from None


def _load_roles(path: Path) -> Roles:
    content = _read(path, most=MOST_ROLES)
    try:
        return Roles.from_json(content.decode())
    except DataError as error:
        raise DataError(f"{path}: not the roles of a tokenizer: {error.problem}", _REMEDY) from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not the roles of a tokenizer: it is not UTF-8.", _REMEDY) from None


def _write(path: Path, text: str) -> None:
    # Under such a name, a run deletes what a kill leaves of it.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".tmp-{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
