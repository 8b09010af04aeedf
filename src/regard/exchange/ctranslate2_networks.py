"""Networks of ours as CTranslate2's: the encoder-decoder Transformer, T5, GPT, Llama, and BERT's encoder.

A config becomes a spec, which says what kind of layers there are, and is filled with the weights. Vocabularies and files are
not this file's. It needs the library: import it where a model is converted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from ctranslate2.specs import attention_spec, common_spec, transformer_spec
from torch import Tensor

from regard.exchange.ctranslate2_layers import Weights, fill_linear, fill_norm, fill_stack, numbers
from regard.models.bert import EPSILON, BertConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LinearScaling, Llama3Scaling, LlamaConfig
from regard.models.model_config import ModelConfig
from regard.models.t5 import T5Config
from regard.models.transformer import TransformerConfig
from regard.parts.norms import NORMS
from regard.parts.positions import make_positions

_ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "gelu-tanh": common_spec.Activation.GELUTanh,
    "silu": common_spec.Activation.SWISH,
}
# Whole heads turn, feature 2i with 2i + 1, as ours do.
_ROTARY: dict[str, Any] = {"rotary_dim": 0, "rotary_interleave": True}


def build_spec(config: ModelConfig, weights: Weights, *, n_positions: int) -> Any:
    """Return a network of ours as a spec of theirs, without vocabularies.

    n_positions: of the table of a positional encoding that has no end with us
    """
    return _KINDS[type(config)](config, weights, n_positions)


def _transformer(config: TransformerConfig, weights: Weights, n_positions: int) -> Any:
    rotary = {**_ROTARY, "rotary_base": config.position_base} if config.positions == "rotary" else {}
    spec = _encoder_decoder(
        config, weights, pre_norm=config.norm_order == "pre", rms_norm=config.norm == "rms", **rotary
    )
    for name, side in (("source", spec.encoder), ("target", spec.decoder)):
        side.scale_embeddings = config.scale_embedding
        if not rotary:
            side.position_encodings.encodings = numbers(_position_table(config, weights, name, n_positions))
    spec.config.layer_norm_epsilon = NORMS[config.norm](config.d_model).epsilon
    return spec


def _t5(config: T5Config, weights: Weights, n_positions: int) -> Any:
    spec = _encoder_decoder(config, weights, pre_norm=True, rms_norm=True, relative_attention_bias=True)
    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.scale_embeddings = True
        bias = numbers(weights[f"{name}_relative_bias.weight"])
        for layer in side.layer:
            layer.self_attention.queries_scale = 1.0
            layer.self_attention.relative_attention_bias = bias  # one for all layers: the file holds it once
            layer.self_attention.relative_attention_max_distance = np.int32(config.max_distance)
    for layer in spec.decoder.layer:
        layer.attention.queries_scale = 1.0
    spec.config.layer_norm_epsilon = NORMS["rms"](config.d_model).epsilon
    return spec


def _encoder_decoder(config: TransformerConfig | T5Config, weights: Weights, **choices: Any) -> Any:
    """What both encoder-decoders are, but for positions."""
    choices |= {"activation": _ACTIVATIONS[config.activation], "ffn_glu": config.feed_forward == "gated"}
    encoder = transformer_spec.TransformerEncoderSpec(config.n_encoder_layers, config.n_heads, **choices)
    decoder = transformer_spec.TransformerDecoderSpec(
        config.n_decoder_layers,
        config.n_heads,
        # Of which we show an alignment too: the mean of all heads (`TransformerDecoder.alignment_tap`).
        alignment_layer=max(0, config.n_decoder_layers - 2),
        alignment_heads=config.n_heads,
        **choices,
    )
    encoder.embeddings[0].weight = numbers(weights["source_embedding.tokens.weight"])
    decoder.embeddings.weight = numbers(weights["target_embedding.tokens.weight"])
    fill_stack(encoder, weights, "encoder")
    fill_stack(decoder, weights, "decoder")
    fill_linear(decoder.projection, weights, "output")
    return transformer_spec.TransformerSpec(encoder, decoder)


def _position_table(config: TransformerConfig, weights: Weights, name: str, n_positions: int) -> Tensor:
    """The vector of each position (P, D): without a table, the library adds sinusoids of another layout than ours."""
    if config.positions == "learned":
        return weights[f"{name}_embedding.positions.weight"]
    encode = make_positions(config.positions, config.d_model, limit=n_positions, base=config.position_base)
    table: Tensor = torch.zeros(n_positions, config.d_model) if encode is None else encode(torch.arange(n_positions))
    return table


def _gpt(config: GPTConfig, weights: Weights, n_positions: int) -> Any:
    spec = _decoder_only(config, weights, activation=common_spec.Activation.GELUTanh)
    spec.decoder.position_encodings.encodings = numbers(weights["embedding.positions.weight"])
    spec.config.layer_norm_epsilon = NORMS["layer"](config.d_model).epsilon
    return spec


def _llama(config: LlamaConfig, weights: Weights, n_positions: int) -> Any:
    scaling = config.rotary_scaling
    kinds, choices = attention_spec.RotaryScalingType, {**_ROTARY, "rotary_base": config.position_base}
    if isinstance(scaling, LinearScaling):
        choices |= {"rotary_scaling_type": kinds.Linear, "rotary_scaling_factor": scaling.factor}
    elif isinstance(scaling, Llama3Scaling):
        choices |= {"rotary_scaling_type": kinds.Llama3, "original_max_position_embeddings": scaling.first_context}
    spec = _decoder_only(
        config,
        weights,
        activation=common_spec.Activation.SWISH,
        ffn_glu=True,
        rms_norm=True,
        num_heads_kv=None if config.n_key_heads == config.n_heads else config.n_key_heads,
        head_dim=config.head_width,
        **choices,
    )
    if isinstance(scaling, Llama3Scaling):
        for layer in spec.decoder.layer:
            layer.self_attention.rotary_low_freq_factor = scaling.low
            layer.self_attention.rotary_high_freq_factor = scaling.high
            # The engine reads a factor here too, though their class has no place for it, and takes 1 where there is none.
            vars(layer.self_attention)["rotary_scaling_factor"] = scaling.factor
    spec.config.layer_norm_epsilon = config.epsilon
    return spec


def _decoder_only(config: GPTConfig | LlamaConfig, weights: Weights, **choices: Any) -> Any:
    """What both language models are, but for positions."""
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(config.n_layers, config.n_heads, **choices)
    spec.decoder.scale_embeddings = False
    spec.decoder.embeddings.weight = numbers(weights["embedding.tokens.weight"])
    fill_stack(spec.decoder, weights, "decoder")
    fill_linear(spec.decoder.projection, weights, "output")
    return spec


def _bert(config: BertConfig, weights: Weights, n_positions: int) -> Any:
    """The encoder, with the pooler if there is one; theirs has no heads."""
    encoder = transformer_spec.TransformerEncoderSpec(
        config.n_layers,
        config.n_heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,  # tokens and segments
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = numbers(weights["embedding.tokens.weight"])
    encoder.embeddings[1].weight = numbers(weights["embedding.segments.weight"])
    encoder.position_encodings.encodings = numbers(weights["embedding.positions.weight"])
    fill_norm(encoder.layernorm_embedding, weights, "embedding.norm")
    fill_stack(encoder, weights, "encoder")
    has_pooler = "pooler.dense.weight" in weights
    spec = transformer_spec.TransformerEncoderModelSpec(encoder, pooling_layer=has_pooler)
    if has_pooler:
        fill_linear(spec.pooler_dense, weights, "pooler.dense")
    spec.config.layer_norm_epsilon = EPSILON
    return spec


_KINDS: dict[type[ModelConfig], Callable[[Any, Weights, int], Any]] = {
    TransformerConfig: _transformer,
    T5Config: _t5,
    GPTConfig: _gpt,
    LlamaConfig: _llama,
    BertConfig: _bert,
}
