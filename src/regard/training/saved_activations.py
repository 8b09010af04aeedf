"""Saved activations: the tensors that autograd keeps from a forward pass for the backward pass, counted in bytes."""

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks


class SavedActivations:
    """What autograd keeps for the backward pass inside `hooks`, each block of memory once, without the model's own."""

    def __init__(self, model: nn.Module) -> None:
        own = (*model.parameters(), *model.buffers())
        self._own = {tensor.untyped_storage()._cdata for tensor in own}
        self._storages: dict[int, torch.UntypedStorage] = {}  # held, so that no other takes the place of one

    def hooks(self) -> saved_tensors_hooks:
        """The block in which is counted."""
        return saved_tensors_hooks(self._save, lambda tensor: tensor)

    @property
    def n_bytes(self) -> int:
        return sum(storage.nbytes() for storage in self._storages.values())

    def _save(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._own:
            self._storages[storage._cdata] = storage
        return tensor
