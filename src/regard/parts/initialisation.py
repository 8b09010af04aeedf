"""First weights, in one place: each parameter is drawn from a generator of its own, seeded by its name.

So the first weights do not depend on the order in which a model builds its parts, nor on what was drawn before.
"""

import hashlib
import math

import torch
from torch import nn

from regard.parts.norms import LayerNorm, RMSNorm


def initialise(model: nn.Module, seed: int) -> None:
    """Xavier-uniform matrices (Glorot & Bengio 2010), zero biases, N(0, 1/D) embeddings; norms keep their ones and zeros."""
    seen: set[nn.Parameter] = set()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            if parameter in seen:
                continue
            seen.add(parameter)
            _fill(module, name, parameter, _generator(seed, name))


def _fill(module: nn.Module, name: str, parameter: nn.Parameter, generator: torch.Generator) -> None:
    with torch.no_grad():
        if isinstance(module, nn.Linear) and parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter, generator=generator)
        elif isinstance(module, nn.Linear):
            parameter.zero_()
        elif parameter.dim() == 2:
            # An embedding, learned positions or an output layer: a row a token or position.
            nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[1]), generator=generator)
        elif not isinstance(module, LayerNorm | RMSNorm):
            raise NotImplementedError(f"nobody has said how the first weights of {name} are drawn")


def _generator(seed: int, name: str) -> torch.Generator:
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
