"""Marian's class of the transformers package with our sizes and our weights: the peer of training.py and decoding.py.

Marian is post-norm with sinusoids; so only a post-norm model of ours with one matrix for all embeddings has an equal there.
"""

import re
import warnings
from typing import Any

import torch
from torch import Tensor

from regard.models.transformer import Transformer, TransformerConfig
from regard.parts.positions import sinusoids

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import MarianConfig, MarianMTModel

# From our names to Marian's, one after the other.
_RENAMED = (
    (r"^source_embedding\.tokens\.", "shared."),
    (r"^(encoder|decoder)\.(\d+)\.", r"\1.layers.\2."),
    (r"\.self_attention_residual\.norm\.", ".self_attn_layer_norm."),
    (r"\.cross_attention_residual\.norm\.", ".encoder_attn_layer_norm."),
    (r"\.feed_forward_residual\.norm\.", ".final_layer_norm."),
    (r"\.self_attention\.", ".self_attn."),
    (r"\.cross_attention\.", ".encoder_attn."),
    (r"_attn\.(q|k|v)[a-z]+\.", r"_attn.\1_proj."),
    (r"_attn\.output\.", "_attn.out_proj."),
    (r"\.feed_forward\.up\.", ".fc1."),
    (r"\.feed_forward\.down\.", ".fc2."),
)


def marian_network(
    config: TransformerConfig, *, pad_id: int, start_id: int, end_id: int, n_positions: int = 512
) -> MarianMTModel:
    """Build a Marian network of the sizes and dropout rates of `config`, with first weights of its own."""
    sides = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    sizes: dict[str, Any] = {}
    for side, n_layers in sides.items():
        sizes |= {f"{side}_layers": n_layers, f"{side}_attention_heads": config.n_heads, f"{side}_ffn_dim": config.d_ff}
    settings = MarianConfig(
        vocab_size=config.source_vocab,
        d_model=config.d_model,
        **sizes,
        activation_function=config.activation,
        dropout=config.dropout,
        activation_dropout=config.dropout,
        attention_dropout=0.0,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        max_position_embeddings=n_positions,
        pad_token_id=pad_id,
        eos_token_id=end_id,
        decoder_start_token_id=start_id,
        forced_eos_token_id=None,
    )
    return MarianMTModel(settings)


def to_marian(model: Transformer, *, pad_id: int, start_id: int, end_id: int, n_positions: int = 512) -> MarianMTModel:
    """Return a Marian network that computes the same logits as `model`, which is post-norm and wholly tied."""
    config = model.config
    if (config.norm_order, config.tied, config.positions) != ("post", "all", "sinusoidal"):
        raise ValueError(
            "Marian has an equal only of a post-norm model with sinusoids and one matrix for all embeddings"
        )
    network = marian_network(config, pad_id=pad_id, start_id=start_id, end_id=end_id, n_positions=n_positions)
    weights: dict[str, Tensor] = {_marian_name(name): parameter for name, parameter in model.named_parameters()}
    # Marian keeps sines in the first half of the features and cosines in the second; the learned weights are ours, so
    # the table has to be ours too.
    table = sinusoids(torch.arange(n_positions), config.d_model, base=config.position_base)
    weights |= {f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")}
    missing, unexpected = network.load_state_dict(weights, strict=False)
    tied = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"}
    if unexpected or set(missing) - tied - {"final_logits_bias"}:
        raise ValueError(f"the weights do not fit: missing {missing}, unexpected {unexpected}")
    network.tie_weights()
    network.train(False)
    return network


def marian_logits(network: MarianMTModel, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
    """The arguments and the result of our `Transformer.forward`: (B, S), (B,), (B, T) to (B, T, V)."""
    mask = (torch.arange(source.shape[1]) < source_lengths[:, None]).long()
    logits: Tensor = network(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits
    return logits


def _marian_name(name: str) -> str:
    for pattern, replacement in _RENAMED:
        name = re.sub(pattern, replacement, name)
    return f"model.{name}"
