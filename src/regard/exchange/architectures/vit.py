"""ViT with its classifier. A convolution as wide as its stride is our linear layer over the pixels of a patch."""

from typing import Any

from regard.errors import DataError
from regard.exchange.architecture import Architecture, Network, Source, SpecialIds, TheirNetwork
from regard.exchange.their_config import TheirConfig
from regard.exchange.weights import WITHOUT_FIRST_AXIS, Rule, flattened, module, numbered, same
from regard.models.vit import EPSILON, ViTConfig


def _read(source: Source) -> Network:
    config = source.config
    config.must_be("gelu", "hidden_act")
    config.must_be(EPSILON, "layer_norm_eps")
    config.must_be(True, "qkv_bias")
    labels = config.labels
    ours = source.ours(
        ViTConfig,
        n_channels=config.count("num_channels", 3),
        image_size=_edge(config, "image_size", 224),
        n_outputs=len(labels),
        patch_size=_edge(config, "patch_size", 16),
        n_layers=config.count("num_hidden_layers", 12),
        n_heads=config.count("num_attention_heads", 12),
        d_model=config.count("hidden_size", 768),
        d_ff=config.count("intermediate_size", 3072),
        dropout=config.number("hidden_dropout_prob", 0.0),
    )
    dropped = {r"^vit\.pooler\.": "The pooler was left out: the classifier does not read it."}
    return Network(config=ours, preset="vit-base", task="image", labels=labels, dropped=dropped)


def _edge(config: TheirConfig, key: str, default: int) -> int:
    """The edge of a square, which may stand there as height and width."""
    value: Any = config.values.get(key)
    if not isinstance(value, list):
        return config.count(key, default)
    edges = config.counts(key)
    if len(edges) != 2 or edges[0] != edges[1]:
        raise DataError(
            f"{config.origin}: {key} = {list(edges)[:3]} is no square.", "Choose a model of square images and patches."
        )
    return edges[0]


def _write(config: ViTConfig, special_ids: SpecialIds) -> TheirNetwork:
    return TheirNetwork(
        name="ViTForImageClassification",
        settings={
            "hidden_size": config.d_model,
            "num_hidden_layers": config.n_layers,
            "num_attention_heads": config.n_heads,
            "intermediate_size": config.d_ff,
            "image_size": config.image_size,
            "patch_size": config.patch_size,
            "num_channels": config.n_channels,
            "hidden_act": "gelu",
            "layer_norm_eps": EPSILON,
            "qkv_bias": True,
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": 0.0,
        },
    )


def _rules(config: ViTConfig, special_ids: SpecialIds) -> list[Rule]:
    pixels = flattened(config.n_channels, config.patch_size, config.patch_size)
    attention = "vit.encoder.layer.#.attention"
    layer = [
        *module("vit.encoder.layer.#.layernorm_before", "encoder.#.self_attention_residual.norm"),
        *(
            rule
            for part in ("query", "key", "value")
            for rule in module(f"{attention}.attention.{part}", f"encoder.#.self_attention.{part}")
        ),
        *module(f"{attention}.output.dense", "encoder.#.self_attention.output"),
        *module("vit.encoder.layer.#.layernorm_after", "encoder.#.feed_forward_residual.norm"),
        *module("vit.encoder.layer.#.intermediate.dense", "encoder.#.feed_forward.up"),
        *module("vit.encoder.layer.#.output.dense", "encoder.#.feed_forward.down"),
    ]
    return [
        same("vit.embeddings.cls_token", "embedding.class_token", WITHOUT_FIRST_AXIS),
        same("vit.embeddings.position_embeddings", "embedding.positions.weight", WITHOUT_FIRST_AXIS),
        *module("vit.embeddings.patch_embeddings.projection", "embedding.patches", pixels),
        *numbered(config.n_layers, layer),
        *module("vit.layernorm", "encoder_norm"),
        *module("classifier", "head.output"),
    ]


VIT = Architecture(
    kind="vit",
    classes={"ViTForImageClassification": "vit"},
    config=ViTConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prefix="vit.",
    # As the modules are called since version 5; its files keep the older names.
    renamed=(
        (r"^vit\.layers\.", "vit.encoder.layer."),
        (r"\.attention\.q_proj\.", ".attention.attention.query."),
        (r"\.attention\.k_proj\.", ".attention.attention.key."),
        (r"\.attention\.v_proj\.", ".attention.attention.value."),
        (r"\.attention\.o_proj\.", ".attention.output.dense."),
        (r"\.mlp\.fc1\.", ".intermediate.dense."),
        (r"\.mlp\.fc2\.", ".output.dense."),
    ),
)
