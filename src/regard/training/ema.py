"""EMA, the exponential moving average of the weights: kept beside the model, swapped in to validate."""

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from regard.errors import CheckpointError
from regard.training.buffers import SavedBuffers


class WeightEMA:
    """average = decay × average + (1 - decay) × weights after each update, a decay that starts low and rises.

    A batch norm's mean and variance are averaged like the weights (Cai et al. 2021, "Exponential Moving Average
    Normalization"): the model's own are those of other weights, and to take them anew from data, as Izmailov et al. (2018)
    do, would cost a pass at each validation. A count of batches is no average: it stays the model's.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = dict(model.named_parameters())
        self.buffers = SavedBuffers(model)
        self.average = {name: tensor.detach().clone() for name, tensor in self._averaged().items()}

    def update(self, step: int) -> None:
        """Move the average towards the weights."""
        # Early on the average would otherwise be mostly the random first weights.
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.average.values()), [t.detach() for t in self._averaged().values()], 1 - decay)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back a saved average, which must be of the same weights."""
        for name in sorted({*self.average, *tensors}):
            if name not in tensors or name not in self.average or tensors[name].shape != self.average[name].shape:
                raise CheckpointError(
                    f"The saved EMA is not of the model's weights: {name} is missing, unknown or of another shape.",
                    "Resume with the model that wrote the checkpoint.",
                )
            self.average[name].copy_(tensors[name])

    @contextlib.contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Give the model the averaged weights inside the block."""
        kept = {name: tensor.detach().clone() for name, tensor in self._averaged().items()}
        self._copy(self.average)
        try:
            yield
        finally:
            self._copy(kept)

    def _averaged(self) -> dict[str, Tensor]:
        """What there is of the model to be averaged."""
        buffers = self.buffers.tensors().items()
        return {**self.parameters, **{name: tensor for name, tensor in buffers if tensor.is_floating_point()}}

    def _copy(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in self._averaged().items():
                tensor.copy_(tensors[name])
