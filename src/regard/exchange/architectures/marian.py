"""Marian: our Transformer with post-norm, as the paper has it, with a bias of the logits and positions of another layout."""

from functools import partial
from typing import Any

from regard.exchange.architecture import Architecture, Network, Source, SpecialIds, TheirNetwork, require
from regard.exchange.architectures import bart_layers
from regard.exchange.weights import Rule, same
from regard.models.transformer import TransformerConfig

_NAME = "MarianMTModel"


def _read(source: Source) -> Network:
    config = source.config
    config.must_be(False, "normalize_before", "add_final_layer_norm")
    shared, tied = config.flag("share_encoder_decoder_embeddings", True), config.flag("tie_word_embeddings", True)
    vocab = config.count("vocab_size")
    target_vocab = config.count("decoder_vocab_size", vocab)
    if shared and target_vocab != vocab:
        config.refuse("decoder_vocab_size", f"with one matrix for source and target: {vocab}")
    if shared and not tied:
        config.refuse("tie_word_embeddings", "with one matrix for source and target, it is the output layer's too")
    ours = bart_layers.read_sizes(
        source,
        norm_order="post",
        target_vocab=target_vocab,
        tied="all" if shared else "target" if tied else "none",
        output_bias=bart_layers.has_output_bias(source),
    )
    return Network(config=ours, preset="transformer-base", task="translate")


def _write(config: TransformerConfig, special_ids: SpecialIds) -> TheirNetwork:
    theirs = bart_layers.write_sizes(config, _NAME)
    require(config, _NAME, norm_order="post")
    sharing: dict[str, Any] = {
        "decoder_vocab_size": config.target_vocab,
        "share_encoder_decoder_embeddings": config.tied == "all",
        "forced_eos_token_id": None,
        "decoder_start_token_id": special_ids.get("bos", special_ids.get("pad", 0)),  # must be a number
    }
    return TheirNetwork(name=theirs.name, settings={**theirs.settings, **sharing})


def _rules(config: TransformerConfig, special_ids: SpecialIds) -> list[Rule]:
    table = partial(bart_layers.sines_then_cosines, config.max_positions, config.d_model)
    return [
        *_tokens(config),
        *bart_layers.position_rules(table),
        *bart_layers.layer_rules(config),
        *bart_layers.output_bias(config),
    ]


def _tokens(config: TransformerConfig) -> list[Rule]:
    if config.tied == "all":
        return [bart_layers.shared_tokens()]
    source, target, output = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
    tied = config.tied == "target"
    return [
        same(source, "source_embedding.tokens.weight"),
        same(target, "target_embedding.tokens.weight", copies=(output,) if tied else ()),
        *([] if tied else [same(output, "output.weight")]),
    ]


MARIAN = Architecture(
    kind="marian",
    classes={_NAME: "marian"},
    config=TransformerConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prepare=bart_layers.with_table,
    fits=lambda config, weights, special_ids: config.norm_order != "pre",
)
