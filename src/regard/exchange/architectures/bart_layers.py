"""What Marian, Pegasus and M2M100 share, which are our encoder-decoder Transformer: BART's names of layers and settings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.exchange.architecture import NO_IDS, Source, TheirNetwork, Weights, require
from regard.exchange.weights import WITHOUT_FIRST_AXIS, Rule, module, numbered, same
from regard.models.transformer import TransformerConfig
from regard.parts.positions import sinusoids

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "silu": "silu", "swish": "silu"}
_THEIR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_new", "silu": "silu"}
SIDES = {"encoder": "source", "decoder": "target"}  # by theirs our name of its embedding
MOST_POSITIONS = 65_536  # of a table that a config only speaks of, and no file holds


def read_sizes(source: Source, *, norm_order: str, tied: str = "all", **fields: Any) -> TransformerConfig:
    """Read what the three say in the same words."""
    config = source.config
    for key in ("attention_heads", "ffn_dim"):
        if config.count(f"encoder_{key}") != config.count(f"decoder_{key}"):
            config.refuse(f"decoder_{key}", f"as in the encoder: {config.count(f'encoder_{key}')}")
    for key in ("normalize_embedding", "extra_pos_embeddings"):
        if config.values.get(key):
            config.refuse(key, "embeddings are a sum of tokens and positions")
    max_positions = config.count("max_position_embeddings", 1024)
    if max_positions > MOST_POSITIONS:
        config.refuse("max_position_embeddings", f"at most {MOST_POSITIONS:,}")
    vocab = config.count("vocab_size")
    return source.ours(
        TransformerConfig,
        **{"source_vocab": vocab, "target_vocab": vocab, **fields},
        n_encoder_layers=config.count("encoder_layers"),
        n_decoder_layers=config.count("decoder_layers"),
        d_model=config.count("d_model"),
        n_heads=config.count("encoder_attention_heads"),
        d_ff=config.count("encoder_ffn_dim"),
        dropout=config.number("dropout", 0.1),
        norm_order=norm_order,
        activation=config.choice("activation_function", ACTIVATIONS),
        # Their sinusoids have another layout than ours, so that they come as a table: the same numbers, up to its end.
        positions="learned",
        max_positions=max_positions,
        tied=tied,
        scale_embedding=config.flag("scale_embedding", False),
    )


def has_output_bias(source: Source) -> bool:
    """Whether there is a bias of the logits, which is not learned by all."""
    return "final_logits_bias" in source.tensors


def write_sizes(config: TransformerConfig, name: str) -> TheirNetwork:
    """Write what the three say in the same words."""
    require(config, name, norm="layer", feed_forward="plain", positions="learned", join_positions="add", window=0)
    sides = {
        f"{side}_{key}": value
        for side in SIDES
        for key, value in (("attention_heads", config.n_heads), ("ffn_dim", config.d_ff), ("layerdrop", 0.0))
    }
    return TheirNetwork(
        name=name,
        settings={
            **NO_IDS,
            "vocab_size": config.source_vocab,
            "d_model": config.d_model,
            "encoder_layers": config.n_encoder_layers,
            "decoder_layers": config.n_decoder_layers,
            **sides,
            "activation_function": _THEIR_ACTIVATIONS[config.activation],
            "dropout": config.dropout,
            "activation_dropout": config.dropout,
            "attention_dropout": 0.0,
            "scale_embedding": config.scale_embedding,
            "max_position_embeddings": config.max_positions,
            "is_encoder_decoder": True,
            "tie_word_embeddings": config.tied != "none",
        },
    )


def with_table(config: TransformerConfig, weights: Weights) -> tuple[TransformerConfig, Weights]:
    """Return the same network with its sinusoids as a table: up to its end, the same numbers."""
    if config.positions != "sinusoidal":
        return config, weights
    table = sinusoids(torch.arange(config.max_positions), config.d_model, base=config.position_base)
    # A copy for each: their file holds both.
    tables = {f"{side}_embedding.positions.weight": table.clone() for side in SIDES.values()}
    return replace(config, positions="learned"), {**weights, **tables}


def sines_then_cosines(n_positions: int, d_model: int) -> Tensor:
    """(T, D): the table of Marian and Pegasus, our sinusoids with all sines before all cosines."""
    table = sinusoids(torch.arange(n_positions), d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def layer_rules(config: TransformerConfig) -> list[Rule]:
    """The rules of all layers, and of the norms behind them if there are any."""
    rules = []
    for side, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        theirs = f"model.{side}.layers.#"
        layer = [
            *_attention(f"{theirs}.self_attn", f"{side}.#.self_attention"),
            *(_attention(f"{theirs}.encoder_attn", f"{side}.#.cross_attention") if side == "decoder" else []),
            *module(f"{theirs}.fc1", f"{side}.#.feed_forward.up"),
            *module(f"{theirs}.fc2", f"{side}.#.feed_forward.down"),
            *module(f"{theirs}.final_layer_norm", f"{side}.#.feed_forward_residual.norm"),
        ]
        rules += numbered(n_layers, layer)
        rules += module(f"model.{side}.layer_norm", f"{side}_norm") if config.norm_order == "pre" else []
    return rules


def _attention(theirs: str, ours: str) -> list[Rule]:
    parts = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    return [
        *(rule for part, own in parts.items() for rule in module(f"{theirs}.{part}", f"{ours}.{own}")),
        *module(f"{theirs}_layer_norm", f"{ours}_residual.norm"),
    ]


def shared_tokens() -> Rule:
    """One matrix for source, target and output."""
    copies = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    return same("model.shared.weight", "source_embedding.tokens.weight", copies=copies)


def position_rules(table: Callable[[], Tensor]) -> list[Rule]:
    """Tables that a file may hold, and else are computed."""
    return [
        Rule(f"model.{side}.embed_positions.weight", (f"{ours}_embedding.positions.weight",), absent=table)
        for side, ours in SIDES.items()
    ]


def output_bias(config: TransformerConfig) -> list[Rule]:
    """The bias of the logits, (1, V) in their file."""
    return [same("final_logits_bias", "output.bias", WITHOUT_FIRST_AXIS)] if config.output_bias else []
