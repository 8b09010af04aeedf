"""What the tests of attention share: inputs, every kind of mask, and the formula written out in double precision."""

from dataclasses import replace

import torch
from torch import Tensor

from regard.parts.attention_kernels import SHORT
from regard.parts.masks import EVERYTHING, Mask, padding

LONG = SHORT + 9
K = 8


def masks_of(n_queries: int, n_keys: int) -> dict[str, Mask]:
    """Every kind of mask; in `nothing` and `sparse` some rows may attend to nothing."""
    torch.manual_seed(3)
    lengths = torch.tensor([n_keys, n_keys // 2])
    return {
        "everything": EVERYTHING,
        "padding": padding(lengths, n_keys),
        "causal": Mask(causal=True),
        "window": Mask(window=2),
        "padding and window": replace(padding(lengths, n_keys), window=2),
        "causal and window": Mask(causal=True, window=2),
        "a window of all": Mask(causal=True, window=n_keys),
        "nothing": padding(torch.tensor([0, n_keys]), n_keys),
        "sparse": Mask(torch.rand(2, 1, n_queries, n_keys) < 0.02),
    }


def inputs(n_queries: int, n_keys: int, d_value: int = K) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(n_queries * 1000 + n_keys)
    query, key = torch.randn(2, 3, n_queries, K), torch.randn(2, 3, n_keys, K)
    return query.requires_grad_(), key.requires_grad_(), torch.randn(2, 3, n_keys, d_value).requires_grad_()


def by_hand(query: Tensor, key: Tensor, value: Tensor, mask: Mask, *, scale: float, bias: Tensor | None) -> Tensor:
    """The formula in double precision, without softmax: exponentials of what is allowed, over their sum if there is one."""
    scores = torch.einsum("bhtk,bhsk->bhts", query.double(), key.double()) * scale
    scores = scores if bias is None else scores + bias.double()
    allowed = mask.tensor(query.shape[2], key.shape[2], query.device)
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed.expand(scores.shape)
    powers = torch.where(allowed, scores.exp(), 0.0)
    total = powers.sum(-1, keepdim=True)
    return torch.einsum("bhts,bhsv->bhtv", powers / torch.where(total == 0, 1.0, total), value.double())
