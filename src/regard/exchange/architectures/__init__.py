"""The architectures of the transformers package that have a counterpart here, one file each."""

from collections.abc import Mapping

from torch import Tensor

from regard.errors import ConfigError, DataError
from regard.exchange.architecture import Architecture, SpecialIds
from regard.exchange.architectures.bert import BERT
from regard.exchange.architectures.gpt2 import GPT2
from regard.exchange.architectures.llama import LLAMA
from regard.exchange.architectures.m2m100 import M2M100
from regard.exchange.architectures.marian import MARIAN
from regard.exchange.architectures.pegasus import PEGASUS
from regard.exchange.architectures.resnet import RESNET
from regard.exchange.architectures.t5 import T5
from regard.exchange.architectures.vit import VIT
from regard.exchange.their_config import TheirConfig
from regard.models.model_config import ModelConfig

# M2M100 before Pegasus: of those with pre-norm, it is the one that a few are.
ARCHITECTURES: tuple[Architecture, ...] = (GPT2, LLAMA, BERT, T5, MARIAN, M2M100, PEGASUS, VIT, RESNET)


def find_architecture(config: TheirConfig) -> tuple[Architecture, str]:
    """Return the architecture of a config.json, and which of its classes."""
    by_class = {name: one for one in ARCHITECTURES for name in one.classes}
    named = config.texts("architectures")
    name = named[0] if named else _usual_class(config.text("model_type", ""))
    if name not in by_class:
        said = f"the architecture {name[:100]}" if name else "no architecture"
        raise DataError(
            f"{config.origin} names {said}, which has no counterpart in regard.",
            f"Choose a model of one of: {', '.join(by_class)}.",
        )
    return by_class[name], name


def _usual_class(model_type: str) -> str:
    """What a config without a class is read as, by its model type."""
    fitting = [name for one in ARCHITECTURES for name, kind in one.classes.items() if kind == model_type]
    return fitting[0] if fitting else model_type


def find_counterpart(config: ModelConfig, weights: Mapping[str, Tensor], special_ids: SpecialIds) -> Architecture:
    """Return the architecture of theirs that a network of ours is."""
    for one in ARCHITECTURES:
        if type(config) is one.config and one.fits(config, weights, special_ids):
            return one
    kinds = ", ".join(sorted({one.config.__name__.removesuffix("Config") for one in ARCHITECTURES}))
    raise ConfigError(
        f"{type(config).__name__.removesuffix('Config')} has no counterpart in the transformers package.",
        f"Models that have one: {kinds}.",
    )
