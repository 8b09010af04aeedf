"""What a network counts of the batches while it learns, beside its weights: the statistics of batch norms and their like."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Statistics:
    """The buffers that are saved with the weights; a table that is worked out anew, as of positions, is none of them."""

    def __init__(self, model: nn.Module) -> None:
        saved = model.state_dict().keys()
        self.model = model
        self.names = tuple(name for name, _ in model.named_buffers() if name in saved)

    def tensors(self) -> dict[str, Tensor]:
        """Return them as they are now, by name; a network may have put others in the place of earlier ones."""
        return {name: self.model.get_buffer(name) for name in self.names}

    def copy(self) -> dict[str, Tensor]:
        """Return copies, for `restore`."""
        return {name: tensor.clone() for name, tensor in self.tensors().items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `copy` returned, or some of it."""
        for name, tensor in tensors.items():
            self.model.get_buffer(name).copy_(tensor)
