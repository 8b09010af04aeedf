"""A network of theirs that fits: checked by names and shapes, its weights read only when they are asked for."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.config import as_table
from regard.errors import DataError
from regard.exchange.architecture import Architecture, Network
from regard.exchange.sentence_transformers import MEAN, SentenceEncoder
from regard.exchange.weights import Rule
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model
from regard.runs.tensor_header import Shape

CONFIG = "config.json"
REMEDY = f"Download the model again, with the {CONFIG} of its weights."
# What older files hold beside the weights: masks, counters, and what follows from the config.
_NO_WEIGHTS = re.compile(
    r"\.attn\.(bias|masked_bias)$|(^|\.)position_ids$|rotary_emb\.inv_freq$|\.num_batches_tracked$"
    r"|\.embed_positions\.(weights|_float_tensor)$|\.EncDecAttention\.relative_attention_bias\.weight$"
)
# What stands beside the network that a prefix is of.
_HEADS = ("lm_head.", "cls.", "classifier.", "final_logits_bias")


class Tensors(Protocol):
    """Tensors in files, by name."""

    @property
    def shapes(self) -> Mapping[str, Shape]: ...

    @property
    def files(self) -> Mapping[str, Path]: ...

    def reading(self) -> AbstractContextManager[Callable[[str], Tensor]]: ...


@dataclass(frozen=True, kw_only=True)
class ImportedNetwork:
    """A network that was found in a folder and fits, of which nothing large has been read yet.

    kind, their_class:  the architecture, and the class that config.json names
    preset, config:     a preset of the same family, and the config, which says every field of it
    task, labels:       the task that it suits, and the names of its classes in their order
    special_ids:        of special tokens by their names (pad, bos, eos, decoder_start, …); of some there may be several
    notes:              what was left out
    vectors:            how a sentence encoder makes the vector of a text
    """

    folder: Path
    kind: str
    their_class: str
    preset: str
    config: ModelConfig
    task: str
    labels: tuple[str, ...]
    special_ids: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...]
    rules: tuple[Rule, ...]
    names: Mapping[str, str]  # as files have them, by the names of the rules
    tensors: Tensors
    vectors: SentenceEncoder = MEAN

    @property
    def fields(self) -> dict[str, Any]:
        """Every field of the config, as the [model] table of a run file has them."""
        return as_table(self.config)

    def weights(self) -> dict[str, Tensor]:
        """Read the weights, in single precision, by our names; tied names share one tensor."""
        weights: dict[str, Tensor] = {}
        with self.tensors.reading() as read:
            for rule in self.rules:
                weights |= rule.to_ours(self._their_tensor(rule, read))
        return weights | {name: weights[first] for name, first in tied_names(self.config).items()}

    def model(self) -> nn.Module:
        """Build the network with its weights, in evaluation."""
        model = build_model(self.config)
        model.load_state_dict(self.weights())
        return model.eval()

    def _their_tensor(self, rule: Rule, read: Any) -> Tensor:
        names = [self.names[name] for name in (rule.theirs, *rule.copies) if name in self.names]
        if not names and callable(rule.absent):
            return rule.absent()
        first, *others = names or [self.names[str(rule.absent)]]
        tensor: Tensor = read(first)
        for other in others:
            if not torch.equal(tensor, read(other)):
                raise DataError(
                    f"{self.tensors.files[other]}: {other} and {first} are one matrix by {CONFIG}, and differ.",
                    "Choose a model whose weights fit its config (tie_word_embeddings).",
                )
        if not tensor.is_floating_point():
            raise DataError(
                f"{self.tensors.files[first]}: {first} holds {str(tensor.dtype).removeprefix('torch.')}, not floats.",
                "Choose a model that is not quantised.",
            )
        return tensor.float()


def canonical_names(architecture: Architecture, tensors: Tensors) -> dict[str, str]:
    """The names of a folder's weights by the names that the rules have for them."""
    names = {name: name for name in tensors.shapes if not _NO_WEIGHTS.search(name)}
    for pattern, replacement in architecture.renamed:
        names = {name: re.sub(pattern, replacement, own) for name, own in names.items()}
    prefix = architecture.prefix
    if prefix and not any(own.startswith(prefix) for own in names.values()):
        names = {name: own if own.startswith(_HEADS) else f"{prefix}{own}" for name, own in names.items()}
    canonical: dict[str, str] = {}
    for name, own in names.items():
        if own in canonical:
            raise DataError(
                f"{tensors.files[name]}: {name} and {canonical[own]} are two names of one tensor.",
                "Download the model again.",
            )
        canonical[own] = name
    return canonical


def check_tensors(
    rules: Iterable[Rule], network: Network, names: Mapping[str, str], tensors: Tensors, *, name: str, folder: Path
) -> list[str]:
    """Refuse tensors that are missing, too many or misshapen; return what is to be told about those left out."""
    rules = list(rules)
    # Names first: a config may speak of more layers than can be built in a minute.
    _refuse_missing(rules, names, name=name, folder=folder)
    notes = _refuse_extra(rules, network, names, tensors, name=name)
    _refuse_misshapen(rules, network.config, names, tensors)
    return notes


def _refuse_missing(rules: list[Rule], names: Mapping[str, str], *, name: str, folder: Path) -> None:
    for rule in rules:
        if any(one in names for one in (rule.theirs, *rule.copies)):
            continue
        if not callable(rule.absent) and rule.absent not in names:
            raise DataError(f"{folder} lacks the tensor {rule.theirs}, which {name} has by its {CONFIG}.", REMEDY)


def _refuse_extra(
    rules: list[Rule], network: Network, names: Mapping[str, str], tensors: Tensors, *, name: str
) -> list[str]:
    known = {one for rule in rules for one in (rule.theirs, *rule.copies)}
    notes: list[str] = []
    for one, stored in names.items():
        if one in known:
            continue
        reasons = [note for pattern, note in network.dropped.items() if re.search(pattern, one)]
        if not reasons:
            raise DataError(
                f"{tensors.files[stored]} holds {stored}, for which {name} has no place by its {CONFIG}.", REMEDY
            )
        notes += [note for note in reasons if note not in notes]
    return notes


def _refuse_misshapen(rules: list[Rule], config: ModelConfig, names: Mapping[str, str], tensors: Tensors) -> None:
    ours = meta_weights(config)
    for rule in rules:
        shape = tuple(rule.to_theirs(ours).shape)
        for stored in [names[one] for one in (rule.theirs, *rule.copies) if one in names]:
            found = tuple(tensors.shapes[stored])
            if found != shape:
                raise DataError(
                    f"{tensors.files[stored]}: {stored} has the shape {list(found)}, and by {CONFIG} it must have "
                    f"{list(shape)}.",
                    REMEDY,
                )


def meta_weights(config: ModelConfig) -> dict[str, Tensor]:
    """Return our weights by name, with shapes and without content."""
    try:
        with torch.device("meta"):
            return dict(build_model(config).state_dict())
    except RuntimeError:  # more numbers than can be counted
        raise DataError(f"The network is too large for any machine, by its {CONFIG}.", REMEDY) from None


def tied_names(config: ModelConfig) -> dict[str, str]:
    """Map each of our names that shares its tensor with an earlier one to that one."""
    with torch.device("meta"):
        model = build_model(config)
    first: dict[nn.Parameter, str] = {}
    tied: dict[str, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if first.setdefault(parameter, name) != name:
            tied[name] = first[parameter]
    return tied
