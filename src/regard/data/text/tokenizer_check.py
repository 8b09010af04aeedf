"""Checks of a tokenizer file, which may come from somebody else: its parts must be such as regard puts together.

A pattern of another's making could take for ever on a line of text, and an id beyond the others has no row in an embedding.
"""

import json
from collections.abc import Mapping
from typing import Any

import tokenizers

from regard.data.formats.tiktoken import KNOWN, pre_tokenizer
from regard.data.text.tokenizer_training import KINDS, blank
from regard.errors import DataError

PARTS = ("normalizer", "pre_tokenizer", "decoder", "post_processor", "truncation", "padding")


def check_ids(library: tokenizers.Tokenizer) -> None:
    """Refuse ids that leave gaps; to be called first, for the library writes a file in memory by the largest id."""
    ids = sorted(library.get_vocab(with_added_tokens=True).values())
    if ids != list(range(len(ids))):
        raise DataError("its ids do not count up from 0.")


def check_parts(library: tokenizers.Tokenizer, *, kind: str, lowercase: bool, normalisation: str) -> None:
    """Refuse a tokenizer that was not learned by regard, nor read by it from a file of tiktoken."""
    file = json.loads(library.to_str())
    if _parts(file) not in _known_parts(kind, lowercase, normalisation) or file["model"].get("dropout"):
        raise DataError("its parts are not those of a vocabulary that regard has learned.")
    if not all(token["special"] for token in file["added_tokens"]):
        raise DataError("it has added tokens that are not special.")


def _known_parts(kind: str, lowercase: bool, normalisation: str) -> list[dict[str, Any]]:
    """Return the parts that such tokenizers are made of, for sentences and for running text."""
    if kind in KINDS:
        both = (blank(kind, running=one, lowercase=lowercase, normalisation=normalisation) for one in (False, True))
        return [_parts(json.loads(library.to_str())) for library in both]
    bytes_alone = blank("bytes", running=True)
    known = []
    for vocabulary in KNOWN:
        bytes_alone.pre_tokenizer = pre_tokenizer(vocabulary)
        known.append(_parts(json.loads(bytes_alone.to_str())))
    return known


def _parts(file: Mapping[str, Any]) -> dict[str, Any]:
    return {part: file[part] for part in PARTS}
