"""Hashes: of the bytes of a file, by which a dataset is known again, and of a sentence, by which examples are the same."""

import hashlib
import os
import unicodedata

from regard.data.formats.files import check_regular, open_packed


def content_hash(file: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the bytes of a file."""
    name = os.fspath(file)
    check_regular(name)
    with open_packed(name) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sentence_hash(text: str) -> int:
    """Return 64 bits that are equal for sentences that differ only in Unicode's normal form, in case, or in spaces."""
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return int.from_bytes(hashlib.blake2b(plain.encode(), digest_size=8).digest(), "little")
