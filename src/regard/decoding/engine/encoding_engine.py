"""An encoder of CTranslate2: the states of an encoder-only model, in place of the network's."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from regard.decoding.engine.library import Engine, EngineSettings


class EncodingEngine(Engine):
    """An encoder-only model: it reads, and writes nothing.

    max_length: the most tokens that its positions reach, special tokens counted
    """

    library_class = "Encoder"
    compared = "states"

    def __init__(self, folder: Path, *, max_length: int, settings: EngineSettings) -> None:
        super().__init__(folder, settings=settings)
        self.max_length = max_length

    def encode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (B, T), padded behind, of (B,) lengths, to the last states (B, T, D); those of padding mean nothing."""
        library = self.open(len(ids))
        workers, _ = self.settings.of(len(ids))
        parts = ids.int().chunk(workers), lengths.int().chunk(workers)
        if len(parts[0]) == 1:
            return _states(library, ids.int(), lengths.int())
        with ThreadPoolExecutor(workers) as pool:  # the library's workers each wait for a thread of Python's that asks
            return torch.cat(list(pool.map(partial(_states, library), *parts)))


def _states(library: Any, ids: Tensor, lengths: Tensor) -> Tensor:
    """The last states (B, T, D) of ids (B, T)."""
    from ctranslate2 import DataType, StorageView

    found = library.forward_batch(*(StorageView.from_array(given.contiguous().numpy()) for given in (ids, lengths)))
    return torch.from_numpy(numpy.array(found.last_hidden_state.to(DataType.float32)))
