"""Pegasus: our Transformer with pre-norm, its positions in Marian's layout."""

from functools import partial

from regard.exchange.architecture import Architecture, Network, Source, SpecialIds, TheirNetwork, require
from regard.exchange.architectures import bart_layers
from regard.exchange.weights import Rule
from regard.models.transformer import TransformerConfig

_NAME = "PegasusForConditionalGeneration"


def _read(source: Source) -> Network:
    source.config.must_be(True, "normalize_before", "add_final_layer_norm", "tie_word_embeddings")
    biased = bart_layers.has_output_bias(source)
    ours = bart_layers.read_sizes(source, norm_order="pre", output_bias=biased)
    return Network(config=ours, preset="transformer-base", task="translate")


def _write(config: TransformerConfig, special_ids: SpecialIds) -> TheirNetwork:
    theirs = bart_layers.write_sizes(config, _NAME)
    require(config, _NAME, norm_order="pre", tied="all")
    return TheirNetwork(name=theirs.name, settings={**theirs.settings, "forced_eos_token_id": None})


def _rules(config: TransformerConfig, special_ids: SpecialIds) -> list[Rule]:
    table = partial(bart_layers.sines_then_cosines, config.max_positions, config.d_model)
    return [
        bart_layers.shared_tokens(),
        *bart_layers.position_rules(table),
        *bart_layers.layer_rules(config),
        *bart_layers.output_bias(config),
    ]


PEGASUS = Architecture(
    kind="pegasus",
    classes={_NAME: "pegasus"},
    config=TransformerConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prepare=bart_layers.with_table,
    fits=lambda config, weights, special_ids: config.norm_order == "pre",
)
