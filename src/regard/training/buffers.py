"""Saved buffers: what a network tracks of the batches beside its weights, such as the running statistics of batch norms."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class SavedBuffers:
    """The buffers in a model's state dict; one that is not persistent, as a table of positions, is not among them."""

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
