"""Fine-tuning: weights loaded from another run are frozen, or learn more slowly, with layer-wise learning-rate decay.

Layers decide because the lower ones hold what any text needs, the upper ones what the old task asked for: the rate falls
from the top downwards (Howard & Ruder 2018, 3.2; Clark et al. 2020, appendix B).
"""

from collections.abc import Collection

from torch import nn

from regard.config import TrainingConfig
from regard.errors import ConfigError

# What lies below all layers: of tokens, patches, positions, and a first convolution. By its first word, of which stack;
# else of all in the same network.
_BELOW = ("embedding", "relative_bias", "stem")
_STACKS = {"source": "encoder", "encoder": "encoder", "target": "decoder", "decoder": "decoder"}


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

    What belongs to no stack, such as the norm behind it or a head, has none above it. The blocks of a ResNet are layers.
    """
    stacks: dict[str, list[str]] = {}  # the layers of each, from the bottom to the top
    for path, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and not any(path.startswith(f"{outer}.") for outer in stacks):
            stacks[path] = [
                layer for number, member in enumerate(module) for layer in _layers(f"{path}.{number}", member)
            ]
    return {name: _layers_above(name, stacks) for name, _ in model.named_parameters()}


def _layers(path: str, member: nn.Module) -> list[str]:
    """The paths of the layers in a member of a stack: it is one, unless it is a stage, which only holds a stack itself."""
    match list(member.named_children()):
        case [(name, nn.ModuleList() as blocks)]:
            return [f"{path}.{name}.{number}" for number in range(len(blocks))]
    return [path]


def _layers_above(name: str, stacks: dict[str, list[str]]) -> int:
    for layers in stacks.values():
        for n_above, layer in enumerate(reversed(layers)):
            if name.startswith(f"{layer}."):
                return n_above
    words = name.split(".")
    for place, word in enumerate(words):
        if word.endswith(_BELOW):
            above = ".".join([*words[:place], _STACKS.get(word.split("_")[0], "")])
            return max((len(layers) for path, layers in stacks.items() if path.startswith(above)), default=0)
    return 0


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
