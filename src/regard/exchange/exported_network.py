"""A network of ours in the words of the transformers package, by the same rules as the way in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.exchange.architecture import Architecture, SpecialIds
from regard.exchange.architectures import find_counterpart
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model, shapes_of


@dataclass(frozen=True, kw_only=True)
class ExportedNetwork:
    """A network of ours in the words of the transformers package: its class, its config.json, its tensors by name."""

    kind: str
    their_class: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def export_network(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    *,
    labels: Sequence[str] = (),
    special_ids: SpecialIds | None = None,
) -> ExportedNetwork:
    """Return a network of ours as theirs; ConfigError where they have no counterpart, naming the setting.

    weights: as `state_dict` has them
    labels: the names of the classes in their order; special_ids: by the names pad, bos, eos, decoder_start, …
    """
    special_ids = special_ids or {}
    _check_ours(config, weights, labels)
    weights = {name: tensor.detach().float().cpu() for name, tensor in weights.items()}
    architecture = find_counterpart(config, weights, special_ids)
    config, weights = architecture.prepare(config, weights)
    theirs = architecture.write(config, special_ids)
    tensors = {
        _stored_name(architecture, theirs.name, rule.theirs): rule.to_theirs(weights)
        for rule in architecture.rules(config, special_ids)
        if rule.theirs
    }
    settings = {
        "architectures": [theirs.name],
        "model_type": architecture.classes[theirs.name],
        **theirs.settings,
        **{f"{name}_token_id": number for name, number in special_ids.items()},
        **_label_settings(config, labels),
    }
    return ExportedNetwork(kind=architecture.kind, their_class=theirs.name, config=settings, tensors=tensors)


def _check_ours(config: ModelConfig, weights: Mapping[str, Tensor], labels: Sequence[str]) -> None:
    """Refuse weights that are not those of the config."""
    with torch.device("meta"):
        shapes = shapes_of(build_model(config))
    for name in [*shapes, *weights]:
        found = tuple(weights[name].shape) if name in weights else None
        if found != shapes.get(name):
            wanted = list(shapes[name]) if name in shapes else "no such weight"
            raise ConfigError(
                f"The weights do not fit the model's config: {name} has {found and list(found)}, not {wanted}.",
                "Give the weights of the same model (model.state_dict()).",
            )
    n_outputs = getattr(config, "n_outputs", 0)
    if labels and len(labels) != n_outputs:
        raise ConfigError(f"There are {len(labels)} labels for {n_outputs} outputs.", "Give a label for each output.")


def _label_settings(config: ModelConfig, labels: Sequence[str]) -> dict[str, Any]:
    names = list(labels) or [f"LABEL_{number}" for number in range(getattr(config, "n_outputs", 0))]
    if not names:
        return {}
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _stored_name(architecture: Architecture, class_name: str, name: str) -> str:
    return name.removeprefix(architecture.prefix) if class_name in architecture.bare else name
