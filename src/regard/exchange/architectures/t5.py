"""T5, of the first version and of 1.1 (Flan too).

Theirs keeps vectors of tokens √D times as long as ours. Where the output layer shares them, it divides the states by √D
before (`scale_decoder_outputs`, or a config that says nothing else); an output layer of its own reads them as they are.
"""

import math

from regard.exchange.architecture import NO_IDS, Architecture, Network, Source, SpecialIds, TheirNetwork, no_counterpart
from regard.exchange.weights import Rule, divided, module, numbered
from regard.models.t5 import T5Config

# By their word for the feed-forward network ours, and its activation.
_NETWORKS = {
    "relu": ("plain", "relu"),
    "gelu": ("plain", "gelu"),
    "silu": ("plain", "silu"),
    "gated-relu": ("gated", "relu"),
    "gated-gelu": ("gated", "gelu-tanh"),  # an exception of theirs: 1.1 was trained with the tanh form
    "gated-silu": ("gated", "silu"),
}
_THEIR_NETWORKS = {network: name for name, network in _NETWORKS.items()}


def _read(source: Source) -> Network:
    config = source.config
    config.must_be(1e-6, "layer_norm_epsilon")
    network = config.text("feed_forward_proj", "relu")
    if network not in _NETWORKS:
        config.refuse("feed_forward_proj", f"known here: {', '.join(_NETWORKS)}")
    feed_forward, activation = _NETWORKS[network]
    scaled = config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", True))
    vocab, n_layers = config.count("vocab_size"), config.count("num_layers", 6)
    ours = source.ours(
        T5Config,
        source_vocab=vocab,
        target_vocab=vocab,
        n_encoder_layers=n_layers,
        n_decoder_layers=config.count("num_decoder_layers", n_layers),
        d_model=config.count("d_model", 512),
        n_heads=config.count("num_heads", 8),
        d_head=config.count("d_kv", 64),
        d_ff=config.count("d_ff", 2048),
        feed_forward=feed_forward,
        activation=activation,
        n_buckets=config.count("relative_attention_num_buckets", 32),
        max_distance=config.count("relative_attention_max_distance", 128),
        dropout=config.number("dropout_rate", 0.1),
        tied="all" if scaled else "inputs",
    )
    return Network(config=ours, preset="t5-small", task="translate")


def _write(config: T5Config, special_ids: SpecialIds) -> TheirNetwork:
    name, network = "T5ForConditionalGeneration", _THEIR_NETWORKS.get((config.feed_forward, config.activation))
    if network is None:
        raise no_counterpart(config, "feed_forward", "activation", class_name=name)
    return TheirNetwork(
        name=name,
        settings={
            **NO_IDS,
            "vocab_size": config.source_vocab,
            "d_model": config.d_model,
            "d_kv": config.d_head,
            "d_ff": config.d_ff,
            "num_layers": config.n_encoder_layers,
            "num_decoder_layers": config.n_decoder_layers,
            "num_heads": config.n_heads,
            "relative_attention_num_buckets": config.n_buckets,
            "relative_attention_max_distance": config.max_distance,
            "feed_forward_proj": network,
            "layer_norm_epsilon": 1e-6,
            "dropout_rate": config.dropout,
            "is_encoder_decoder": True,
            # Read by them as: whether the states are divided by √D.
            "tie_word_embeddings": config.tied == "all",
        },
    )


def _rules(config: T5Config, special_ids: SpecialIds) -> list[Rule]:
    tied = config.tied == "all"
    inputs = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    tokens = Rule(
        "shared.weight",
        ("source_embedding.tokens.weight",),
        (divided(math.sqrt(config.d_model)),),
        copies=(*inputs, "lm_head.weight") if tied else inputs,
    )
    # Of a file without one, the tokens' own matrix is the output layer, and the states are not divided all the same.
    output = [] if tied else [Rule("lm_head.weight", ("output.weight",), absent="shared.weight")]
    return [tokens, *_side(config, "encoder"), *_side(config, "decoder"), *output]


def _side(config: T5Config, side: str) -> list[Rule]:
    decodes = side == "decoder"
    block, last = f"{side}.block.#.layer", 2 if decodes else 1
    up = {"gate": "wi_0", "up": "wi_1"} if config.feed_forward == "gated" else {"up": "wi"}
    layer = [
        *_attention(f"{block}.0", "SelfAttention", f"{side}.#.self_attention"),
        *(_attention(f"{block}.1", "EncDecAttention", f"{side}.#.cross_attention") if decodes else []),
        *_weight(f"{block}.{last}.layer_norm", f"{side}.#.feed_forward_residual.norm"),
        *(
            rule
            for ours, theirs in {**up, "down": "wo"}.items()
            for rule in _weight(f"{block}.{last}.DenseReluDense.{theirs}", f"{side}.#.feed_forward.{ours}")
        ),
    ]
    bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias"  # which all layers share
    return [
        *_weight(bias, f"{side}_relative_bias"),
        *numbered(config.n_decoder_layers if decodes else config.n_encoder_layers, layer),
        *_weight(f"{side}.final_layer_norm", f"{side}_norm"),
    ]


def _attention(theirs: str, name: str, ours: str) -> list[Rule]:
    parts = {"q": "query", "k": "key", "v": "value", "o": "output"}
    projections = (_weight(f"{theirs}.{name}.{part}", f"{ours}.{own}") for part, own in parts.items())
    return [*_weight(f"{theirs}.layer_norm", f"{ours}_residual.norm"), *(rule for one in projections for rule in one)]


def _weight(theirs: str, ours: str) -> list[Rule]:
    return module(theirs, ours, bias=False)


T5 = Architecture(
    kind="t5",
    classes={"T5ForConditionalGeneration": "t5"},
    config=T5Config,
    read=_read,
    write=_write,
    rules=_rules,
)
