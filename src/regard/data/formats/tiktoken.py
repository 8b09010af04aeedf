"""tiktoken files: a BPE vocabulary that others have learned, read from OpenAI's text format, with the very same ids.

A line is a token's bytes in base64, a space, and its rank, which is its id. The file holds neither the merges, which
follow from the ranks, nor the pattern by which text is cut before any merging, which is known by the number of ranks.
Unlike our own `bpe`, no space is put in front of a text: a word has another token at the start of a sentence than
inside it. What encodes and decodes is in `text/tokenizer.py`.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import BinaryIO

import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers

from regard.data.formats.files import empty, open_file
from regard.data.text.roles import SPECIALS
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import byte_symbols
from regard.errors import DataError


@dataclass(frozen=True, kw_only=True)
class KnownVocabulary:
    """What a file of so many ranks does not say itself."""

    name: str
    n_ranks: int
    pattern: str
    reserved: Mapping[int, str] = field(default_factory=dict)  # ids between the ranks, and their special tokens


# The splits of tiktoken, spelt for the engine of `tokenizers`: to it "$" is the end of any line, and "{1,3}+" repeats.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

MAX_DIGITS = 9  # of a rank
KNOWN = (
    KnownVocabulary(name="r50k_base", n_ranks=50_256, pattern=_GPT2),
    KnownVocabulary(name="p50k_base", n_ranks=50_280, pattern=_GPT2, reserved={50_256: "<|endoftext|>"}),
    KnownVocabulary(name="cl100k_base", n_ranks=100_256, pattern=_GPT4),
    KnownVocabulary(name="o200k_base", n_ranks=199_998, pattern=_GPT4O),
)


def read_tiktoken(path: str | Path, *, known: Sequence[KnownVocabulary] = KNOWN) -> Tokenizer:
    """Return the tokenizer of a tiktoken file, such as cl100k_base.tiktoken: to each text the ids that tiktoken gives.

    Our special tokens follow its last rank. A path that ends in .gz is unpacked on the way.
    """
    name = os.fspath(path)
    with open_file(name) as file:
        ranks, lines = _read(name, file)
    vocabulary = next((one for one in known if one.n_ranks == len(ranks)), None)
    _check_ranks(name, ranks, lines, reserved=vocabulary.reserved if vocabulary else {})
    if vocabulary is None:
        names = ", ".join(f"{one.name} ({one.n_ranks:,})" for one in known)
        raise DataError(
            f"{name}: a vocabulary of {len(ranks):,} ranks is not known, nor the pattern by which it cuts text.",
            f"Give the file of one of these: {names}.",
        )
    return Tokenizer(_library(ranks, vocabulary))


def _read(path: str, file: BinaryIO) -> tuple[dict[bytes, int], list[int]]:
    """Return the rank of each token, in the order of the file, and the number of the line that each stands in."""
    ranks: dict[bytes, int] = {}
    lines: list[int] = []
    for number, line in enumerate(file, start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not fields[1].isdigit() or len(fields[1]) > MAX_DIGITS:
            shown = line[:40].decode("utf-8", errors="replace").strip()
            raise _wrong(path, number, f"expected a token in base64 and its rank, as in 'IQ== 0', found '{shown}'")
        try:
            token = base64.b64decode(fields[0], validate=True)
        except binascii.Error:
            shown = fields[0][:40].decode("utf-8", errors="replace")
            raise _wrong(path, number, f"'{shown}' is not base64") from None
        if token in ranks:
            before = lines[list(ranks).index(token)]
            raise _wrong(path, number, f"the token of line {before} stands here again")
        ranks[token] = int(fields[1])
        lines.append(number)
    if not ranks:
        raise empty(path)
    return ranks, lines


def _check_ranks(path: str, ranks: Mapping[bytes, int], lines: Sequence[int], *, reserved: Mapping[int, str]) -> None:
    """Refuse a file whose ranks do not count up from 0, or that has not every byte as a token."""
    expected = (id for id in count() if id not in reserved)
    for rank, line, id in zip(ranks.values(), lines, expected, strict=False):
        if rank != id:
            raise _wrong(path, line, f"expected rank {id}, found {rank}")
    missing = next((byte for byte in range(256) if bytes([byte]) not in ranks), None)
    if missing is not None:
        raise DataError(
            f"{path}: the byte {missing:02X} has no token, and so not every text could be written.", _REMEDY
        )


def _library(ranks: Mapping[bytes, int], vocabulary: KnownVocabulary) -> tokenizers.Tokenizer:
    symbols = {byte: symbol for symbol, byte in byte_symbols().items()}
    spelt = {token: "".join(symbols[byte] for byte in token) for token in ranks}
    ids = {spelt[token]: rank for token, rank in ranks.items()}
    ids |= {special: id for id, special in vocabulary.reserved.items()}
    merges = [(spelt[left], spelt[right]) for left, right in _merges(ranks)]
    # Text between two cuts that is a token as a whole becomes that token, whatever merging would have made of it.
    library = tokenizers.Tokenizer(models.BPE(ids, merges, ignore_merges=True))
    library.pre_tokenizer = pre_tokenizer(vocabulary)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens([*vocabulary.reserved.values(), *SPECIALS])
    return library


def pre_tokenizer(vocabulary: KnownVocabulary) -> pre_tokenizers.PreTokenizer:
    """Return what cuts a text before any merging."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(vocabulary.pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _merges(ranks: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs to be merged, first things first.

    tiktoken merges any two neighbours that make up a token, the lowest rank first. By the time a token is made, all
    merges of lower rank inside it are done: its pair is what they leave of its bytes. Where they leave more than two
    parts, later merges can still lead to it, from any two tokens that it consists of.
    """
    for token, rank in ranks.items():
        if len(token) == 1:
            continue
        parts = _merged(token, ranks, below=rank)
        if len(parts) == 2:
            yield parts[0], parts[1]
        else:
            halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
            yield from ((left, right) for left, right in halves if left in ranks and right in ranks)


def _merged(token: bytes, ranks: Mapping[bytes, int], *, below: int) -> list[bytes]:
    """Return what merging leaves of a token's bytes, with only the ranks below a given one."""
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 2:
        found = [ranks.get(left + right, below) for left, right in pairwise(parts)]
        lowest = min(found)
        if lowest >= below:
            break
        place = found.index(lowest)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


_REMEDY = "Is this a file of tiktoken, as cl100k_base.tiktoken is, and complete?"


def _wrong(path: str, line: int, reason: str) -> DataError:
    return DataError(f"{path}, line {line}: {reason}.", _REMEDY)
