"""Fine-tuning: weights loaded from another run are frozen, or learn more slowly, with layer-wise learning-rate decay.

Layers decide because the lower ones hold what any text needs, the upper ones what the old task asked for: the rate falls
from the top downwards (Howard & Ruder 2018, 3.2; Clark et al. 2020, appendix B).
"""

from collections.abc import Collection

from torch import nn

from regard.config import TrainingConfig
from regard.errors import ConfigError
from regard.parts.stack import find_stacks


def check_fine_tuning(training: TrainingConfig) -> None:
    """Refuse settings about loaded weights where none are loaded, and such as contradict each other."""
    rates = {"init_lr_scale": training.init_lr_scale, "layer_decay": training.layer_decay}
    slowed = [name for name, rate in rates.items() if rate != 1]
    given = ["freeze_init", *slowed] if training.freeze_init else slowed
    if given and not training.init:
        raise ConfigError(
            f"--{given[0].replace('_', '-')} needs --init RUN.",
            f"Name the run to load weights from, or leave training.{given[0]} out.",
        )
    if training.freeze_init and slowed:
        raise ConfigError(
            f"--freeze-init and --{slowed[0].replace('_', '-')} exclude each other: frozen weights have no learning rate.",
            "Give one of the two.",
        )
    if training.layer_decay > 1:
        raise ConfigError(
            f"training.layer_decay must be at most 1, not {training.layer_decay:g}: lower layers learn more slowly.",
            "Usual are 0.7 to 0.95.",
        )


def prepare_fine_tuning(model: nn.Module, loaded: Collection[str], training: TrainingConfig) -> dict[str, float]:
    """Freeze the loaded parameters, if so set, and return the factor on the learning rate of each."""
    factors = layer_lr_factors(model, loaded, training)
    named = dict(model.named_parameters())
    if training.freeze_init:
        for name in factors:
            named[name].requires_grad_(False)
    if factors and not any(parameter.requires_grad and factors.get(name, 1.0) for name, parameter in named.items()):
        raise ConfigError(
            "Nothing to train: all weights were loaded from the other run and are frozen.",
            "Leave training.freeze_init out, or set training.init_lr_scale above 0.",
        )
    return factors


def layer_lr_factors(model: nn.Module, loaded: Collection[str], training: TrainingConfig) -> dict[str, float]:
    """Return the factor on the learning rate of each loaded parameter: lower for lower layers. Any other has none."""
    heights = layers_above(model)
    return {
        name: training.init_lr_scale * training.layer_decay ** heights[name]
        for name, _ in model.named_parameters()
        if name in loaded
    }


def layers_above(model: nn.Module) -> dict[str, int]:
    """Count for each parameter the layers between it and the top of its own stack; embeddings lie below all layers.

    What belongs to no stack, such as the norm behind it or a head, has none above it.
    """
    heights: dict[nn.Parameter, int] = {}
    for stack in find_stacks(model):
        layers = list(stack.layers)
        for n_above, layer in enumerate(reversed(layers)):
            heights |= dict.fromkeys(layer.parameters(), n_above)
        below = (parameter for module in stack.below for parameter in module.parameters())
        heights = dict.fromkeys(below, len(layers)) | heights  # a tied embedding belongs to the first stack that has it
    return {name: heights.get(parameter, 0) for name, parameter in model.named_parameters()}


def facts(model: nn.Module, factors: dict[str, float], training: TrainingConfig) -> tuple[tuple[str, str], ...]:
    """What a report says of how the loaded weights learn; nothing where they learn like all others."""
    if training.freeze_init:
        n_frozen = sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)
        return (("frozen", f"{n_frozen:,} parameters"),)
    lowest, highest = min(factors.values(), default=1.0), max(factors.values(), default=1.0)
    if lowest == highest == 1:
        return ()
    scale = f"{highest:.4g}" if lowest == highest else f"{highest:.4g} (top layer) to {lowest:.4g} (bottom layer)"
    return (("lr scale", scale),)
