"""The optimizer: AdamW (decoupled weight decay), or Muon for the matrices inside of layers and AdamW for the rest.

Its state is named tensors, for checkpoints free of pickle. Embeddings, output layers, heads, norms and biases are AdamW's in
either case.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.errors import CheckpointError
from regard.parts.stack import find_stacks
from regard.training.muon import Muon

_ADAM_MOMENTS = ("exp_avg", "exp_avg_sq")  # torch's names for the averages of the gradient and of its square
_ADAM = (*_ADAM_MOMENTS, "step")
_MUON = ("momentum_buffer",)
_REMEDY = "Resume with the model and the optimizer that wrote the checkpoint."


class Optimizer:
    """AdamW (Loshchilov & Hutter 2019), with Muon if so set; weight decay touches matrices only, not biases and norms.

    lr_factors: on the learning rate of parameters by name; any other has 1.
    """

    def __init__(
        self, model: nn.Module, config: TrainingConfig, *, lr_factors: Mapping[str, float] | None = None
    ) -> None:
        self.learning_rate = config.learning_rate
        self.named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        hidden = set(hidden_matrices(model)) if config.optimizer == "muon" else set()
        self.of_muon = {name for name, parameter in self.named.items() if parameter in hidden}
        for_adam: dict[tuple[float, bool], list[nn.Parameter]] = {}
        for_muon: dict[float, list[nn.Parameter]] = {}
        for name, parameter in self.named.items():
            factor = (lr_factors or {}).get(name, 1.0)
            if name in self.of_muon:
                for_muon.setdefault(factor, []).append(parameter)
            else:
                for_adam.setdefault((factor, parameter.dim() >= 2), []).append(parameter)
        self.muon = Muon(for_muon.items(), learning_rate=config.muon_learning_rate, weight_decay=config.weight_decay)
        self.adam = torch.optim.AdamW(
            [
                {"params": parameters, "factor": factor, "weight_decay": config.weight_decay if decayed else 0.0}
                for (factor, decayed), parameters in for_adam.items()
            ],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.named.values():
            parameter.grad = None

    def gradients(self) -> list[Tensor]:
        """Return the gradients there are."""
        return [parameter.grad for parameter in self.named.values() if parameter.grad is not None]

    def update(self, share: float) -> None:
        """Move the parameters by one step at this share of the peak learning rates, times their factors."""
        for group in self.adam.param_groups:
            group["lr"] = self.learning_rate * share * group["factor"]
        self.adam.step()
        self.muon.step(share)

    def state(self) -> dict[str, Tensor]:
        """Return what is kept by parameter: `<name>.exp_avg`, `.exp_avg_sq`, `.step`, or Muon's `<name>.momentum_buffer`."""
        return {
            f"{name}.{key}": value for name, parameter in self.named.items() for key, value in self._kept(parameter)
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `state` returned; a parameter that never had a gradient has none of it."""
        for name in sorted(tensors):
            self._check(name, tensors)
        for name, parameter in self.named.items():
            kept = {
                key: tensors[f"{name}.{key}"].to(parameter.device)
                for key in self._keys(name)
                if f"{name}.{key}" in tensors
            }
            if kept and name in self.of_muon:
                self.muon.momentum[parameter] = kept["momentum_buffer"]
            elif kept:
                self.adam.state[parameter] = kept

    def _kept(self, parameter: nn.Parameter) -> Iterator[tuple[str, Tensor]]:
        yield from self.adam.state.get(parameter, {}).items()
        if parameter in self.muon.momentum:
            yield "momentum_buffer", self.muon.momentum[parameter]

    def _keys(self, name: str) -> tuple[str, ...]:
        return _MUON if name in self.of_muon else _ADAM

    def _check(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Refuse a tensor of the state that is not the model's, of another shape, or without the others of its parameter."""
        parameter, _, key = name.rpartition(".")
        if parameter not in self.named or key not in self._keys(parameter):
            raise CheckpointError(f"The optimizer's {name} belongs to no parameter that the model trains.", _REMEDY)
        found, expected = tensors[name], torch.Size() if key == "step" else self.named[parameter].shape
        if found.shape != expected or not found.is_floating_point():
            raise CheckpointError(
                f"The optimizer's {name} has the shape {tuple(found.shape)} ({found.dtype}), expected {tuple(expected)}.",
                _REMEDY,
            )
        for other in self._keys(parameter):
            if f"{parameter}.{other}" not in tensors:
                raise CheckpointError(f"The optimizer's {parameter}.{other} is missing.", _REMEDY)


def count_state(model: nn.Module, optimizer: str) -> int:
    """How many numbers are kept beside the weights: two for each that AdamW trains, one for each of Muon."""
    of_muon = sum(matrix.numel() for matrix in hidden_matrices(model)) if optimizer == "muon" else 0
    return 2 * sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad) - of_muon


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights of at least two dimensions inside of the network's layers, between embeddings and head."""
    layers = [layer for stack in find_stacks(model) for layer in stack.layers]
    found = dict.fromkeys(parameter for layer in layers for parameter in layer.parameters() if parameter.dim() >= 2)
    below = {parameter for stack in find_stacks(model) for module in stack.below for parameter in module.parameters()}
    return [parameter for parameter in found if parameter not in below and parameter.requires_grad]
