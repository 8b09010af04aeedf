"""Weights that were taken from another run learn apart from new ones: not at all, more slowly, or by their layer.

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


def check_trunk(training: TrainingConfig) -> None:
    """Refuse settings about taken weights where none are taken, and such as contradict each other."""
    rates = {"init_lr_scale": training.init_lr_scale, "layer_decay": training.layer_decay}
    slowed = [name for name, rate in rates.items() if rate != 1]
    given = ["freeze_init", *slowed] if training.freeze_init else slowed
    if given and not training.init:
        raise ConfigError(
            f"training.{given[0]} is about weights of another run, and nothing was taken from any.",
            f"Name the run to begin with: --init RUN. Or leave training.{given[0]} out.",
        )
    if training.freeze_init and slowed:
        raise ConfigError(
            f"training.freeze_init keeps the taken weights as they are, and training.{slowed[0]} lets them learn.",
            "Give one of the two.",
        )
    if training.layer_decay > 1:
        raise ConfigError(
            f"training.layer_decay is at most 1, not {training.layer_decay:g}: lower layers learn no faster than upper "
            "ones.",
            "Usual are 0.7 to 0.95.",
        )


def treat_apart(model: nn.Module, taken: Collection[str], training: TrainingConfig) -> dict[str, float]:
    """Freeze the taken parameters, if so wished; return the factor on the learning rate of each. Any other has none."""
    heights = layers_above(model)
    named = dict(model.named_parameters())
    factors = {name: training.init_lr_scale * training.layer_decay ** heights[name] for name in named if name in taken}
    if training.freeze_init:
        for name in factors:
            named[name].requires_grad_(False)
    if factors and not any(parameter.requires_grad and factors.get(name, 1.0) for name, parameter in named.items()):
        raise ConfigError(
            "Every weight of the model was taken from the other run and is kept as it is: nothing is left to learn.",
            "Leave training.freeze_init out, or give training.init_lr_scale a number above 0.",
        )
    return factors


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
    """What a report says of how the taken weights learn; nothing where they learn like all others."""
    if training.freeze_init:
        n_frozen = sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)
        return (("trunk", f"frozen: {n_frozen:,} parameters stay as they are"),)
    lowest, highest = min(factors.values(), default=1.0), max(factors.values(), default=1.0)
    if lowest == highest == 1:
        return ()
    spread = f"{highest:.4g}" if lowest == highest else f"{highest:.4g} at the top to {lowest:.4g} at the bottom"
    return (("trunk", f"learning rate × {spread}"),)
