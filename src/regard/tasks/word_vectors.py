"""Word vectors that others have learned, put into a model's embedding, and kept as they are if so wished."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import RunConfig
from regard.data.formats.word2vec import read_vectors
from regard.data.text.tokenizer import Tokenizer
from regard.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """The vectors (N, width) of those of a vocabulary's `n_words` words that the file has, and their ids (N,)."""

    path: str
    n_words: int
    ids: Tensor
    vectors: Tensor

    @classmethod
    def given(cls, config: RunConfig, tokenizer: Tokenizer | None) -> "WordVectors | None":
        """Read what a run's settings name; None if they name nothing, or if there are no words."""
        path = config.tokenizer.vectors
        return cls.read(path, tokenizer) if path and tokenizer is not None else None

    @classmethod
    def read(cls, path: str, tokenizer: Tokenizer) -> "WordVectors":
        """Read what a vocabulary needs of a file in word2vec's text format."""
        if tokenizer.kind != "words":
            raise ConfigError(
                f"tokenizer.vectors are of words, and the tokens of kind {tokenizer.kind} are none.",
                "Set tokenizer.kind = words, or leave tokenizer.vectors out.",
            )
        ids, vectors = read_vectors(path, tokenizer.vocabulary)
        if not len(ids):
            raise DataError(
                f"{path}: it has a vector for none of the {tokenizer.vocab_size:,} words of the corpus.",
                "Check the language of the vectors, and whether case and spelling agree with the corpus.",
            )
        n_words = tokenizer.vocab_size
        return cls(path=path, n_words=n_words, ids=torch.from_numpy(ids), vectors=torch.from_numpy(vectors))

    def about(self, words: str) -> str:
        """What a report says of them; `words` is what the vocabulary has."""
        return f"{len(self.ids):,} of {self.n_words:,} {words}, from {self.path}"

    def put_into(self, model: nn.Module, name: str, config: RunConfig, *, width: str = "model.d_model") -> None:
        """Write them into the embedding (words, width) of that name; the other words keep their own rows, and learn.

        `width` is the setting of the embedding's width. With `tokenizer.freeze_vectors` they stay as they are.
        """
        freeze = config.tokenizer.freeze_vectors
        if freeze and config.training.weight_decay:
            raise ConfigError(
                "Weight decay would shrink the vectors that tokenizer.freeze_vectors keeps as they are.",
                "Set training.weight_decay = 0, or let the vectors be tuned.",
            )
        try:
            weight = model.get_parameter(name)
        except AttributeError:  # a network of the caller's own
            raise ConfigError(
                f"tokenizer.vectors go into {name}, which this network does not have.",
                "Give its embedding that name, or leave tokenizer.vectors out.",
            ) from None
        n_features = self.vectors.shape[1]
        if n_features != weight.shape[1]:
            raise ConfigError(
                f"The vectors of {self.path} have {n_features} features, the model's embedding {weight.shape[1]}.",
                f"Set {width} = {n_features}.",
            )
        with torch.no_grad():
            weight[self.ids] = self.vectors.to(weight)
        if freeze:
            weight.register_hook(lambda gradient: gradient.index_fill(0, self.ids.to(gradient.device), 0.0))
