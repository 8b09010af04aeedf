"""First weights (initialisation), in one place: each parameter is drawn from a generator of its own, seeded by its name.

So the first weights do not depend on the order in which a model builds its parts, nor on what was drawn before. What is
drawn depends on the layer: torch's own kinds are known here, another may say it itself (`first_weights`), and a model may
ask for other deviations by the role that a layer carries.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

# What a layer does in its model: it makes queries, it is added to the residual stream, or it is a bias by distance.
Role = Literal["", "query", "residual_output", "relative_bias"]
# The standard deviation of a matrix by its layer's role.
Deviation = Callable[[Role, Tensor], float]


@runtime_checkable
class HasFirstWeights(Protocol):
    """A module that knows how its own parameters begin."""

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """Draw one of its parameters, in place."""
        ...


def initialise(model: nn.Module, seed: int, *, deviation: Deviation | None = None) -> None:
    """Xavier-uniform matrices (Glorot & Bengio 2010), zero biases, N(0, 1/D) embeddings; norms keep their ones and zeros.

    Convolutions over images: N(0, 2/n) of n inputs, which a ReLU halves (He et al. 2015, "Delving Deep into Rectifiers").
    deviation: for a model whose matrices and embeddings are all drawn from N(0, deviation²).
    """
    seen: set[nn.Parameter] = set()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            if parameter in seen or parameter.is_meta:  # on `meta` there is nothing to draw into
                continue
            seen.add(parameter)
            generator = _generator(seed, name)
            if deviation is not None and parameter.dim() == 2:
                std = deviation(getattr(module, "role", ""), parameter)
                nn.init.normal_(parameter, std=std, generator=generator)
            elif not _drawn(module, parameter, generator):
                raise NotImplementedError(f"nobody has said how the first weights of {name} are drawn")


@torch.no_grad()
def _drawn(module: nn.Module, parameter: nn.Parameter, generator: torch.Generator) -> bool:
    """Draw a parameter of a module; return whether it is known how."""
    if isinstance(module, HasFirstWeights):
        module.first_weights(parameter, generator)
    elif isinstance(module, nn.Linear) and parameter.dim() == 2:
        nn.init.xavier_uniform_(parameter, generator=generator)
    elif isinstance(module, nn.Conv2d) and parameter.dim() == 4:
        nn.init.kaiming_normal_(parameter, nonlinearity="relu", generator=generator)
    elif isinstance(module, nn.Linear | nn.Conv2d) and parameter.dim() == 1:
        parameter.zero_()
    elif parameter.dim() == 2:
        draw_rows(parameter, generator)
    else:
        return False
    return True


def draw_rows(parameter: nn.Parameter, generator: torch.Generator) -> None:
    """Draw an embedding, learned positions or an output layer, (V, D), a row per token or position: N(0, 1/D)."""
    nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[1]), generator=generator)


def _generator(seed: int, name: str) -> torch.Generator:
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
