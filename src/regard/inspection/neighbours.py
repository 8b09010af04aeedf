"""Nearest neighbours of a token's embedding: the tokens whose vectors point the same way, by cosine similarity."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import torch
from torch import nn

from regard.errors import UsageError, did_you_mean
from regard.parts.embedding import TokenEmbedding

SIDES = ("source", "target")
_N_NEAR = 20_000  # tokens among which a misspelt one is looked for


class Vocabulary(Protocol):
    """What is asked of a tokenizer."""

    @property
    def n_tokens(self) -> int: ...

    @property
    def specials(self) -> Mapping[str, int]: ...

    def encode(self, text: str) -> Sequence[int]: ...

    def piece_text(self, id: int) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A token, and the cosine of the angle between its vector and that of the token that was asked about."""

    token: str
    id: int
    similarity: float

    def to_json(self) -> dict[str, Any]:
        """As data that `json.dumps` takes."""
        return asdict(self)


@torch.inference_mode()
def nearest_neighbours(
    model: nn.Module, tokenizer: Vocabulary, token: str | int, n: int = 10, *, side: str = ""
) -> list[Neighbour]:
    """The n tokens whose embeddings are most like that of a token (its text, or its id), the nearest first.

    Itself, special tokens and rows that no token has are left out. tokenizer: that of the side.
    side: source or target; empty for the only embedding, or else the source's.
    """
    if n < 1:
        raise UsageError(f"There are 1 or more neighbours to show, not {n}.")
    weight = find_embedding(model, side).weight.detach().float()
    id = find_token(tokenizer, token)
    vectors = nn.functional.normalize(weight[: tokenizer.n_tokens], dim=1)
    similarities = vectors @ vectors[id]
    similarities[[id, *(special for special in tokenizer.specials.values() if special < len(vectors))]] = -torch.inf
    values, ids = similarities.topk(min(n, len(vectors)))
    return [
        Neighbour(token=tokenizer.piece_text(other), id=other, similarity=value)
        for value, other in zip(values.tolist(), ids.tolist(), strict=True)
        if value > -torch.inf
    ]


def find_embedding(model: nn.Module, side: str = "") -> TokenEmbedding:
    """A model's token embedding, of a side where it has two."""
    if side not in ("", *SIDES):
        raise UsageError(f"There is no side '{side}'.", did_you_mean(side, SIDES))
    modules = model.named_modules(remove_duplicate=False)  # source and target may share one
    found = {path: module for path, module in modules if isinstance(module, TokenEmbedding)}
    of_side = [module for path, module in found.items() if f"{side}_embedding" in path.split(".")]
    if not found:
        raise UsageError("This model has no token embedding.", "Use one that reads text.")
    if side and not of_side and len(found) > 1:
        raise UsageError(f"This model has no {side} embedding.", f"There are {', '.join(found)}.")
    return (of_side or list(found.values()))[0]


def find_token(tokenizer: Vocabulary, token: str | int) -> int:
    """The id of a token by its text, with or without the space in front, or the id itself."""
    if isinstance(token, int):
        if not 0 <= token < tokenizer.n_tokens:
            raise UsageError(f"There is no token {token}: they are 0 to {tokenizer.n_tokens - 1}.")
        return token
    ids = tokenizer.encode(token)
    texts = [tokenizer.piece_text(id) for id in range(tokenizer.n_tokens)]
    if token in texts:
        return texts.index(token)
    if len(ids) == 1 and texts[ids[0]].strip() == token.strip():
        return ids[0]
    raise UsageError(
        f"'{token}' is not one token of the vocabulary.",
        did_you_mean(
            token,
            (text.strip() for text in texts[:_N_NEAR]),
            otherwise=f"It is read as {', '.join(repr(texts[id]) for id in ids[:12])}: ask about one of them.",
        ),
    )
