"""The optimizer: AdamW (decoupled weight decay), its state as named tensors for checkpoints free of pickle."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.errors import CheckpointError

_MOMENTS = ("exp_avg", "exp_avg_sq")  # torch's names for the averages of the gradient and of its square
_KEYS = (*_MOMENTS, "step")
_REMEDY = "Resume with the model that wrote the checkpoint."


class Optimizer:
    """AdamW (Loshchilov & Hutter 2019); weight decay touches matrices only, not biases and norms.

    lr_factors: on the learning rate of parameters by name; any other has 1.
    """

    def __init__(
        self, model: nn.Module, config: TrainingConfig, *, lr_factors: Mapping[str, float] | None = None
    ) -> None:
        self.named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
        for name, parameter in self.named.items():
            groups.setdefault(((lr_factors or {}).get(name, 1.0), parameter.dim() >= 2), []).append(parameter)
        self.adam = torch.optim.AdamW(
            [
                {"params": parameters, "factor": factor, "weight_decay": config.weight_decay if decayed else 0.0}
                for (factor, decayed), parameters in groups.items()
            ],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self.adam.zero_grad(set_to_none=True)

    def gradients(self) -> list[Tensor]:
        """Return the gradients there are."""
        return [parameter.grad for parameter in self.named.values() if parameter.grad is not None]

    def update(self, rate: float) -> None:
        """Move the parameters by one step at this learning rate, times their factor."""
        for group in self.adam.param_groups:
            group["lr"] = rate * group["factor"]
        self.adam.step()

    def state(self) -> dict[str, Tensor]:
        """Return the moments and counts by parameter: `<name>.exp_avg`, `<name>.exp_avg_sq`, `<name>.step`."""
        return {
            f"{name}.{key}": value
            for name, parameter in self.named.items()
            for key, value in self.adam.state.get(parameter, {}).items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `state` returned; a parameter that never had a gradient has none of it."""
        shapes = {
            f"{name}.{key}": parameter.shape if key in _MOMENTS else torch.Size()
            for name, parameter in self.named.items()
            for key in _KEYS
        }
        for name in sorted(tensors):
            _check(name, tensors, shapes)
        for name, parameter in self.named.items():
            if f"{name}.step" in tensors:
                state = {key: tensors[f"{name}.{key}"].to(parameter.device) for key in _KEYS}
                self.adam.state[parameter] = state


def _check(name: str, tensors: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]) -> None:
    """Refuse a tensor of the state that is not the model's, of another shape, or without the others of its parameter."""
    if name not in shapes:
        raise CheckpointError(f"The optimizer's {name} belongs to no parameter that the model trains.", _REMEDY)
    found, expected = tensors[name], shapes[name]
    if found.shape != expected or not found.is_floating_point():
        raise CheckpointError(
            f"The optimizer's {name} has the shape {tuple(found.shape)} ({found.dtype}), expected {tuple(expected)}.",
            _REMEDY,
        )
    parameter = name.rpartition(".")[0]
    for key in _KEYS:
        if f"{parameter}.{key}" not in tensors:
            raise CheckpointError(f"The optimizer's {parameter}.{key} is missing.", _REMEDY)
