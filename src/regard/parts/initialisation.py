"""First weights, in one place: each parameter is drawn from a generator of its own, seeded by its name.

So the first weights do not depend on the order in which a model builds its parts, nor on what was drawn before.
"""

import hashlib
import math
from collections.abc import Callable

import torch
from torch import nn

from regard.parts.convolution import BatchNorm
from regard.parts.embedding import OutputLayer
from regard.parts.norms import LayerNorm, RMSNorm
from regard.parts.recurrent import LSTM, Cell


def initialise(model: nn.Module, seed: int, *, deviation: Callable[[str], float] | None = None) -> None:
    """Xavier-uniform matrices (Glorot & Bengio 2010), zero biases, N(0, 1/D) embeddings; norms keep their ones and zeros.

    Convolutions over images: N(0, 2/n) of n inputs, which a ReLU halves (He et al. 2015, "Delving Deep into Rectifiers").
    Recurrent cells: uniform up to 1/√D, as torch has them, and an LSTM's forget gate open.
    deviation: of a parameter by its name, for a model whose matrices and embeddings are all drawn from N(0, deviation²).
    """
    seen: set[nn.Parameter] = set()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            if parameter in seen or parameter.is_meta:  # on `meta` there is nothing to draw into
                continue
            seen.add(parameter)
            if deviation is not None and parameter.dim() == 2:
                nn.init.normal_(parameter, std=deviation(name), generator=_generator(seed, name))
            else:
                _fill(module, name, parameter, _generator(seed, name))


def _fill(module: nn.Module, name: str, parameter: nn.Parameter, generator: torch.Generator) -> None:
    with torch.no_grad():
        if isinstance(module, nn.Linear) and parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter, generator=generator)
        elif isinstance(module, nn.Conv2d) and parameter.dim() == 4:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu", generator=generator)
        elif isinstance(module, nn.Linear | OutputLayer | nn.Conv2d) and parameter.dim() == 1:
            parameter.zero_()
        elif isinstance(module, Cell):
            _fill_cell(module, parameter, generator)
        elif parameter.dim() == 2:
            # An embedding, learned positions or an output layer: a row a token or position.
            nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[1]), generator=generator)
        elif not isinstance(module, LayerNorm | RMSNorm | BatchNorm):
            raise NotImplementedError(f"nobody has said how the first weights of {name} are drawn")


def _fill_cell(cell: Cell, parameter: nn.Parameter, generator: torch.Generator) -> None:
    if parameter.dim() == 2:
        bound = 1 / math.sqrt(cell.d_state)
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
        return
    parameter.zero_()
    if isinstance(cell, LSTM):
        # A gate at σ(0) halves what the cell holds at every step; open, gradients reach far back from the beginning
        # (Gers et al. 2000; Jozefowicz et al. 2015, section 2.2).
        parameter[cell.rows("forget_gate")] = 1.0


def _generator(seed: int, name: str) -> torch.Generator:
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
