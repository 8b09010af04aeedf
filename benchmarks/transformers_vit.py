"""ViT's class of the transformers package, of the sizes and with the weights of one of our models."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import ViTConfig as ViTSettings
from transformers import ViTForImageClassification

from regard.models.vit import ViT, ViTConfig

ATTENTIONS = ("sdpa", "eager")  # torch's fused kernel, and the formula


def vit_network(config: ViTConfig, *, attention: str) -> ViTForImageClassification:
    """The same network, new; its attention drops no weights, as ours does not."""
    return ViTForImageClassification(
        ViTSettings(
            num_channels=config.n_channels,
            image_size=config.image_size,
            patch_size=config.patch_size,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            hidden_size=config.d_model,
            intermediate_size=config.d_ff,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=0.0,
            num_labels=config.n_outputs,
            attn_implementation=attention,
        )
    )


def to_vit(model: ViT, *, attention: str) -> ViTForImageClassification:
    """The same network with our weights: its patches go through a convolution, and everything has other names."""
    network = vit_network(model.config, attention=attention)
    body: Any = network.vit
    ours, theirs = model.embedding, body.embeddings
    pairs: list[tuple[Tensor, Tensor]] = [
        (theirs.cls_token, ours.class_token),
        (theirs.position_embeddings, ours.positions.weight),
        (theirs.patch_embeddings.projection.weight, ours.patches.weight),
        (theirs.patch_embeddings.projection.bias, ours.patches.bias),
    ]
    modules: list[tuple[nn.Module, Any]] = [
        (body.layernorm, model.encoder_norm),
        (network.classifier, model.head.output),
    ]
    layers: Any = model.encoder
    for layer, other in zip(layers, body.layers, strict=True):
        modules += [
            (other.attention.q_proj, layer.self_attention.query),
            (other.attention.k_proj, layer.self_attention.key),
            (other.attention.v_proj, layer.self_attention.value),
            (other.attention.o_proj, layer.self_attention.output),
            (other.mlp.fc1, layer.feed_forward.up),
            (other.mlp.fc2, layer.feed_forward.down),
            (other.layernorm_before, layer.self_attention_residual.norm),
            (other.layernorm_after, layer.feed_forward_residual.norm),
        ]
    for module, own in modules:
        pairs += [(module.weight, own.weight), (module.bias, own.bias)]
    with torch.no_grad():
        for parameter, value in pairs:
            parameter.copy_(value.view_as(parameter))
    return network
