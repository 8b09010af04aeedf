"""The moving average of the weights (EMA), kept beside the model and put in its place to validate."""

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn


class MovingAverage:
    """average = decay × average + (1 - decay) × weights after each update, a decay that starts low and rises."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = dict(model.named_parameters())
        self.average = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    def update(self, step: int) -> None:
        """Move the average towards the weights."""
        # Early on the average would otherwise be mostly the random first weights.
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.average.values()), [p.detach() for p in self.parameters.values()], 1 - decay)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back a saved average."""
        for name, tensor in self.average.items():
            tensor.copy_(tensors[name])

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the model have the averaged weights inside the block."""
        kept = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}
        self._copy(self.average)
        try:
            yield
        finally:
            self._copy(kept)

    def _copy(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[name])
