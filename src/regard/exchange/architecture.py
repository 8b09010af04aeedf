"""What an architecture of another package declares: how its config and its tensors are ours, and ours its.

One file in `architectures/` each, with one table of rules for both directions. Pure: no file is read or written here.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor

from regard.config import build
from regard.errors import ConfigError
from regard.exchange.their_config import TheirConfig
from regard.exchange.weights import Rule
from regard.models.model_config import ModelConfig

Config = TypeVar("Config", bound=ModelConfig)
Weights = Mapping[str, Tensor]
SpecialIds = Mapping[str, int]  # by the names that `their_config.SPECIAL_IDS` has
# What a config says of special tokens that we know nothing of; else theirs would take those of its own vocabulary.
NO_IDS: Mapping[str, None] = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network of theirs in our words.

    config, preset:  our config, and a preset of the same family, of which it says every field
    task, labels:    the task that it was trained for, and the names of its classes
    dropped:         patterns of their tensors that have no place here, with what to tell about it
    notes:           what else differs from theirs
    """

    config: ModelConfig
    preset: str
    task: str
    labels: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TheirNetwork:
    """A network of ours in their words: the class of theirs, and what its config says."""

    name: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a folder of theirs says of its network.

    name:     the class, as config.json names it
    tensors:  the names of the tensors, without those that are no weights
    """

    name: str
    config: TheirConfig
    tensors: Collection[str] = ()

    def ours(self, kind: type[Config], **fields: Any) -> Config:
        """Build our config; what is out of its range is refused with the name of their file."""
        return build(kind, fields, origin=self.config.origin, path="model")


def _as_it_is(config: Any, weights: Weights) -> tuple[Any, Weights]:
    return config, weights


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One architecture of theirs.

    kind:     what we call it
    classes:  their classes with their model types, as config.json names both; the first of a type is the usual one
    config:   our config of such a network
    read:     their config as ours
    write:    our config as theirs; ConfigError where they have no counterpart
    rules:    between their tensors and ours, of our config and the ids of special tokens
    prepare:  what is the same network, in a form that they have
    fits:     of several architectures that share our config, whether this one is the counterpart
    prefix:   what their names begin with, unless the network stands alone
    bare:     the classes whose files leave the prefix out
    renamed:  other names that files have for the same tensors: pattern and replacement
    """

    kind: str
    classes: Mapping[str, str]
    config: type[ModelConfig]
    read: Callable[[Source], Network]
    write: Callable[[Any, SpecialIds], TheirNetwork]
    rules: Callable[[Any, SpecialIds], list[Rule]]
    prepare: Callable[[Any, Weights], tuple[Any, Weights]] = _as_it_is
    fits: Callable[[Any, Weights, SpecialIds], bool] = lambda config, weights, special_ids: True
    prefix: str = ""
    bare: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def no_counterpart(config: Any, *names: str, class_name: str) -> ConfigError:
    """Say which settings of ours no class of theirs has."""
    chosen = " with ".join(f"model.{name} = {_shown(getattr(config, name))}" for name in names)
    return ConfigError(
        f"{chosen} has no counterpart in the transformers package's {class_name}.",
        "Export it in another format, or train a model without that setting.",
    )


def require(config: Any, class_name: str, **expected: Any) -> None:
    """Refuse a config of ours in which a field differs from what their class can be."""
    for name, value in expected.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if getattr(config, name) not in allowed:
            raise no_counterpart(config, name, class_name=class_name)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
