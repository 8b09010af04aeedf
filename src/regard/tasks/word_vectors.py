"""Word vectors that others have learnt, put into a model's embedding, and kept as they are if so wished."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.tokenizers import Tokenizer
from regard.data.vectors import read_vectors
from regard.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """The vectors (N, width) of those words of a vocabulary that the file has, and their ids (N,)."""

    path: str
    ids: Tensor
    vectors: Tensor

    @classmethod
    def read(cls, path: str, tokenizer: Tokenizer) -> "WordVectors":
        """Read what a vocabulary needs of a file in word2vec's text format."""
        if tokenizer.kind != "words":
            raise ConfigError(
                f"tokenizer.vectors are of words, and the tokens of kind {tokenizer.kind} are none.",
                "Set tokenizer.kind = words, or leave tokenizer.vectors out.",
            )
        table, n_found = read_vectors(path, tokenizer.vocabulary)
        if not n_found:
            raise DataError(
                f"{path}: it has a vector for none of the {tokenizer.vocab_size:,} words of the corpus.",
                "Check the language of the vectors, and whether case and spelling agree with the corpus.",
            )
        ids = np.flatnonzero(table.any(axis=1))
        return cls(path=path, ids=torch.from_numpy(ids), vectors=torch.from_numpy(table[ids]))

    def put_into(self, weight: nn.Parameter, *, freeze: bool) -> None:
        """Write them into an embedding (words, width); the other words keep their own rows, and learn in any case."""
        width = self.vectors.shape[1]
        if width != weight.shape[1]:
            raise ConfigError(
                f"The vectors of {self.path} have {width} features, the model's embedding {weight.shape[1]}.",
                f"Set model.d_model = {width}.",
            )
        with torch.no_grad():
            weight[self.ids] = self.vectors.to(weight)
        if freeze:
            weight.register_hook(lambda gradient: gradient.index_fill(0, self.ids.to(gradient.device), 0.0))
