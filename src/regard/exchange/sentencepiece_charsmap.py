"""The character map of a SentencePiece model, written: lower case, of which its normaliser has no other notion.

A trie from the bytes of characters to their replacements, as a double array; `data/text/charsmap.py` has the format and
the check of such maps.
"""

import struct
from collections.abc import Mapping
from itertools import count
from typing import Any

from tokenizers import normalizers

_BLOCK = 256  # units: a byte leads from a place to another of the same block, and the library wants whole blocks
_LEAF, _VALUE = 1 << 8, 1 << 31
_OFFSET = 10  # bits below that of a unit which say where its children are

Node = dict[int, Any]  # by byte, the nodes below; by 0, the replacement's place


def lower_case() -> dict[str, str]:
    """Return each character that the `tokenizers` library lower-cases, with what it becomes."""
    characters = [chr(code) for code in range(0x11_0000) if not 0xD800 <= code <= 0xDFFF and code != ord("\n")]
    small = str(normalizers.Lowercase().normalize_str("\n".join(characters))).split("\n")
    return {one: other for one, other in zip(characters, small, strict=True) if one != other}


def charsmap_bytes(replacements: Mapping[str, str]) -> bytes:
    """Return the map of characters to what they are replaced by."""
    root: Node = {}
    text = bytearray()
    for character, replacement in replacements.items():
        node = root
        for byte in character.encode():
            node = node.setdefault(byte, {})
        node[0] = len(text)
        text += replacement.encode() + b"\0"
    units = _double_array(root)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + bytes(text)


def _double_array(root: Node) -> list[int]:
    """Lay a trie out so that a node's child by a byte stands at the node's base, xor the byte.

    No two nodes have the same base, so that a unit's label says whose child it is.
    """
    units: dict[int, int] = {0: 0}
    bases: set[int] = set()
    waiting = [(0, 0, root)]
    first = 1
    while waiting:
        place, label, node = waiting.pop()
        while first in bases:
            first += 1
        base = next(one for one in count(first) if one not in bases and not any(one ^ byte in units for byte in node))
        bases.add(base)
        units[place] = label | (place ^ base) << _OFFSET | (_LEAF if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = _VALUE | child if byte == 0 else 0
        waiting += [(base ^ byte, byte, child) for byte, child in node.items() if byte]
    length = (max(*units, *bases) // _BLOCK + 1) * _BLOCK
    # A value where nothing stands: a unit of 0 would be the child of any node by a zero byte.
    return [units.get(place, _VALUE) for place in range(length)]
