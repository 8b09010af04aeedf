"""The character map of SentencePiece's normaliser: a check that it leads nowhere outside itself.

It is a trie from the bytes of characters to places in a text of replacements, as a double array (Aoki 1989): 4 bytes that
say how long the trie is, its units of 4 bytes each, and the replacements, each ended by a zero byte. `Precompiled` of the
`tokenizers` library walks it without looking whether a unit leads beyond the end, and would then abort.
"""

import numpy as np
import numpy.typing as npt

from regard.errors import DataError

LONGEST = 256  # bytes of a replacement; the longest of Unicode's NFKC has 33
_LABEL = np.uint32(0x8000_00FF)  # of a unit: the byte that leads to it, and a bit that is set in none but values
_BYTES = np.arange(1, 256, dtype=np.uint32)

Units = npt.NDArray[np.uint32]


def check_charsmap(content: bytes) -> None:
    """Refuse a character map that is damaged, or has a replacement longer than any language needs."""
    size = int.from_bytes(content[:4], "little")
    if len(content) < 8 or size % 4 or not 4 <= size <= len(content) - 4:
        raise DataError("its character map is damaged.")
    units = np.frombuffer(content[4 : 4 + size], dtype="<u4").astype(np.uint32)
    replacements = content[4 + size :]
    try:
        text = replacements.decode()
    except UnicodeDecodeError:
        raise DataError("its character map is damaged: its replacements are not UTF-8.") from None
    if max((len(one.encode()) for one in text.split("\0")), default=0) > LONGEST:
        raise DataError(f"its character map has a replacement of more than {LONGEST} bytes.")
    starts = {0, *(place + 1 for place, byte in enumerate(replacements) if byte == 0)}
    allowed = np.array(sorted(start for start in starts if start < len(replacements)), dtype=np.uint32)
    if not np.isin(_values(units), allowed).all():
        raise DataError("its character map is damaged: a character leads to no replacement.")


def _values(units: Units) -> Units:
    """Walk the trie from its root; return the places of all replacements that it can lead to."""
    found: list[Units] = []
    bases = _offsets(units[:1])  # where the children of each node stand, xor their bytes
    seen = np.zeros(len(units), np.bool_)
    while len(bases):
        children = bases[:, None] ^ _BYTES
        if int(children.max()) >= len(units):
            raise DataError("its character map is damaged: it leads beyond its end.")
        places = children[(units[children] & _LABEL) == _BYTES]
        places = np.unique(places[~seen[places]])
        seen[places] = True
        here = units[places]
        bases = places ^ _offsets(here)
        leaves = bases[(here >> 8) & 1 == 1]
        if len(leaves) and int(leaves.max()) >= len(units):
            raise DataError("its character map is damaged: it leads beyond its end.")
        found.append(units[leaves] & np.uint32(0x7FFF_FFFF))
    return np.concatenate(found) if found else units[:0]


def _offsets(units: Units) -> Units:
    """How far from a node its children stand (of darts-clone: 21 bits, and a bit that shifts them by a byte)."""
    shifts = (units & np.uint32(1 << 9)) >> np.uint32(6)
    return (units >> np.uint32(10)) << shifts
