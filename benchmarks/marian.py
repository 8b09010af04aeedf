"""Marian's class of the transformers package with our sizes and our weights: the peer of training.py and decoding.py.

Marian is post-norm with sinusoids; so only a post-norm model of ours with one matrix for all embeddings has an equal there.
"""

import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.exchange.exported_network import export_network
from regard.models.transformer import Transformer, TransformerConfig

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import MarianConfig, MarianMTModel


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
    # Sinusoids of our layout come as a table, of as many positions as the network has.
    exported = export_network(replace(config, max_positions=n_positions), model.state_dict())
    missing, unexpected = network.load_state_dict(exported.tensors, strict=False)
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
