"""M2M100 (NLLB): our Transformer with pre-norm, and sinusoids that none of ours are.

Its frequencies go down to 1/10000 itself, and positions are counted from behind the padding token's id on. No file holds
them: they are computed here as there, in single precision, and come as a table of learned positions.
"""

import math
from functools import partial

import torch
from torch import Tensor

from regard.exchange.architecture import Architecture, Network, Source, SpecialIds, TheirNetwork, Weights, require
from regard.exchange.architectures import bart_layers
from regard.exchange.weights import Rule
from regard.models.transformer import TransformerConfig

_NAME = "M2M100ForConditionalGeneration"
_PAD = 1  # where their config does not say


def _read(source: Source) -> Network:
    config = source.config
    config.must_be(True, "normalize_before", "add_final_layer_norm", "tie_word_embeddings")
    if config.count("d_model") < 4:
        config.refuse("d_model", "their positions need 4 features")
    ours = bart_layers.read_sizes(source, norm_order="pre")
    return Network(config=ours, preset="transformer-base", task="translate")


def _write(config: TransformerConfig, special_ids: SpecialIds) -> TheirNetwork:
    theirs = bart_layers.write_sizes(config, _NAME)
    require(config, _NAME, norm_order="pre", tied="all", output_bias=False)
    return TheirNetwork(name=theirs.name, settings={**theirs.settings, "pad_token_id": _PAD})


def _rules(config: TransformerConfig, special_ids: SpecialIds) -> list[Rule]:
    return [bart_layers.shared_tokens(), *_positions(config, special_ids), *bart_layers.layer_rules(config)]


def _positions(config: TransformerConfig, special_ids: SpecialIds) -> list[Rule]:
    table = partial(position_table, config.max_positions, config.d_model, pad_id=special_ids.get("pad", _PAD))
    return [Rule("", (f"{ours}_embedding.positions.weight",), absent=table) for ours in bart_layers.SIDES.values()]


def position_table(n_positions: int, d_model: int, *, pad_id: int) -> Tensor:
    """(T, D): the sinusoids of their positions, which begin behind the padding token's id."""
    half = d_model // 2
    frequencies = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
    angles = torch.arange(pad_id + 1, pad_id + 1 + n_positions).float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos(), torch.zeros(n_positions, d_model % 2)], dim=1)


def _fits(config: TransformerConfig, weights: Weights, special_ids: SpecialIds) -> bool:
    """Whether the positions are still those that they compute."""
    if config.norm_order != "pre" or config.positions != "learned" or config.output_bias or config.d_model < 4:
        return False
    return all(
        torch.equal(weights[rule.ours[0]], rule.absent())
        for rule in _positions(config, special_ids)
        if callable(rule.absent)
    )


M2M100 = Architecture(
    kind="m2m100",
    classes={_NAME: "m2m_100"},
    config=TransformerConfig,
    read=_read,
    write=_write,
    rules=_rules,
    fits=_fits,
)
