"""Packed messages: JSON facts and binary arrays as one byte string, about 15 times smaller than numbers in JSON.

    4 bytes, the length N of the JSON, little-endian    N bytes of JSON, UTF-8    the arrays, each at a multiple of 8 bytes

The JSON says under "arrays" where each begins, of what type and shape. It has no NaN: what is not finite becomes null. In
an array NaN may stand, and means what is hidden by a mask.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.runs.disk import as_json
from regard.runs.json_files import parse_json

Arrays = Mapping[str, npt.NDArray[Any]]
ALIGNMENT = 8
# Little-endian, as browsers' typed arrays are on every machine that has one.
DTYPES = {"float16": "<f2", "float32": "<f4", "uint8": "|u1", "int32": "<i4"}
_STORED_AS = {"float64": "float32", "bool": "uint8", "int64": "int32"}


def pack(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Facts and arrays as one message."""
    places: dict[str, Any] = {}
    blob: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        dtype = _STORED_AS.get(array.dtype.name, array.dtype.name)
        content = np.ascontiguousarray(array, DTYPES[dtype]).tobytes()
        places[name] = {"dtype": dtype, "shape": list(array.shape), "offset": offset}
        content += bytes(-len(content) % ALIGNMENT)
        offset += len(content)
        blob.append(content)
    head = as_json({**facts, "arrays": places})
    # Arrays are aligned in the message too. A multiple of 3 as well: what is equal in two messages is so in base64, and
    # packs well.
    head += b" " * (-(4 + len(head)) % (3 * ALIGNMENT))
    return b"".join((len(head).to_bytes(4, "little"), head, *blob))


def unpack(message: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The facts, without "arrays", and the arrays of a message."""
    size = int.from_bytes(message[:4], "little")
    facts = parse_json(message[4 : 4 + size])
    assert isinstance(facts, dict)
    arrays = {}
    for name, own in facts.pop("arrays").items():
        begin, dtype = 4 + size + own["offset"], np.dtype(DTYPES[own["dtype"]])
        n_numbers = math.prod(own["shape"])
        arrays[name] = np.frombuffer(message, dtype, n_numbers, begin).reshape(own["shape"])
    return facts, arrays
