"""Llama and its kin, which are one network with a few choices: Mistral with a window, Qwen2 with biases in attention."""

from typing import Any

from regard.exchange.architecture import (
    NO_IDS,
    Architecture,
    Network,
    Source,
    SpecialIds,
    TheirNetwork,
    no_counterpart,
)
from regard.exchange.their_config import TheirConfig
from regard.exchange.weights import Rule, module, numbered, rotary_halves, same
from regard.models.llama import LinearScaling, Llama3Scaling, LlamaConfig

_TYPES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral", "Qwen2ForCausalLM": "qwen2"}


def _read(source: Source) -> Network:
    config, name = source.config, source.name
    config.must_be("silu", "hidden_act")
    config.must_be(False, "mlp_bias")
    n_heads, d_model = config.count("num_attention_heads"), config.count("hidden_size")
    d_head = config.count("head_dim", 0)
    biases = {
        "LlamaForCausalLM": "all" if config.flag("attention_bias", False) else "none",
        "Qwen2ForCausalLM": "inputs",
    }
    ours = source.ours(
        LlamaConfig,
        vocab=config.count("vocab_size"),
        n_layers=config.count("num_hidden_layers"),
        n_heads=n_heads,
        n_key_heads=config.count("num_key_value_heads", n_heads),
        d_model=d_model,
        d_head=0 if d_head * n_heads == d_model else d_head,
        d_ff=config.count("intermediate_size"),
        context=config.count("max_position_embeddings", 2048),
        biases=biases.get(name, "none"),
        epsilon=config.number("rms_norm_eps", 1e-6),
        tied="all" if config.flag("tie_word_embeddings", False) else "none",
        dropout=0.0,
        window=_window(config, name),
        **_rotary(config),
    )
    return Network(config=ours, preset="llama-mini", task="language")


def _window(config: TheirConfig, name: str) -> int:
    """How far back a token attends; theirs counts the token itself."""
    kinds = set(config.texts("layer_types"))
    sliding = config.values.get("sliding_window") is not None
    if name == "Qwen2ForCausalLM":
        sliding = sliding and config.flag("use_sliding_window", False)
        if sliding and not kinds and config.count("max_window_layers", 28) > 0:
            config.refuse("max_window_layers", "all layers have one window")
    elif name == "LlamaForCausalLM":
        sliding = False
    if kinds - {"sliding_attention" if sliding else "full_attention"}:
        config.refuse("layer_types", "all layers have one window")
    if not sliding:
        return 0
    width = config.count("sliding_window")
    if width < 2:
        config.refuse("sliding_window", "a window holds another token at least")
    return width - 1


def _rotary(config: TheirConfig) -> dict[str, Any]:
    """The base of the angles and how they are slowed: since version 5 in one table, before in two places."""
    table = config.table("rope_parameters")
    values = {**config.table("rope_scaling").values, **table.values}
    scaling = TheirConfig(values, table.origin if table.values else f"{config.origin}: rope_scaling")
    base = scaling.number("rope_theta", config.number("rope_theta", 10000.0))
    for found in (config, scaling):
        if found.number("partial_rotary_factor", 1.0) != 1:
            found.refuse("partial_rotary_factor", "whole heads turn")
    key = "rope_type" if "rope_type" in values else "type"
    kind = scaling.text(key, "default")
    slowed: dict[str, Any] = {"kind": "none"}
    if kind == "linear":
        slowed = {"kind": kind, "factor": scaling.number("factor")}
    elif kind == "llama3":
        context = config.count("max_position_embeddings", 2048)
        slowed = {
            "kind": kind,
            "factor": scaling.number("factor"),
            "low": scaling.number("low_freq_factor"),
            "high": scaling.number("high_freq_factor"),
            "first_context": scaling.count("original_max_position_embeddings", context),
        }
    elif kind != "default":
        scaling.refuse(key, "known here: default, linear, llama3")
    return {"position_base": base, "rotary_scaling": slowed}


def _write(config: LlamaConfig, special_ids: SpecialIds) -> TheirNetwork:
    name = _class_of(config)
    settings: dict[str, Any] = {
        **NO_IDS,
        "vocab_size": config.vocab,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_key_heads,
        "head_dim": config.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.epsilon,
        "tie_word_embeddings": config.tied == "all",
        "attention_dropout": 0.0,
        **_their_rotary(config),
    }
    if name == "LlamaForCausalLM":
        settings |= {"attention_bias": config.biases == "all", "mlp_bias": False}
    elif config.window:
        settings |= {"sliding_window": config.window + 1}
    if name == "Qwen2ForCausalLM":
        settings |= {"use_sliding_window": config.window > 0, "max_window_layers": 0}
    return TheirNetwork(name=name, settings=settings)


def _class_of(config: LlamaConfig) -> str:
    if config.biases == "inputs":
        return "Qwen2ForCausalLM"
    # Theirs of Llama wants a width that heads divide, even where the heads have a width of their own.
    if not config.window and config.d_model % config.n_heads == 0:
        return "LlamaForCausalLM"
    if config.biases == "all":
        raise no_counterpart(config, "biases", "window", class_name="MistralForCausalLM")
    return "MistralForCausalLM"


def _their_rotary(config: LlamaConfig) -> dict[str, Any]:
    """As both versions of their package read it: the base beside the scaling, and in one table."""
    scaling = config.rotary_scaling
    slowed: dict[str, Any] = {"rope_type": "default"}
    if isinstance(scaling, LinearScaling):
        slowed = {"rope_type": "linear", "factor": scaling.factor}
    elif isinstance(scaling, Llama3Scaling):
        slowed = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low,
            "high_freq_factor": scaling.high,
            "original_max_position_embeddings": scaling.first_context,
        }
    older = {} if slowed["rope_type"] == "default" else {"rope_scaling": slowed}
    return {
        "rope_theta": config.position_base,
        **older,
        "rope_parameters": {**slowed, "rope_theta": config.position_base},
    }


def _rules(config: LlamaConfig, special_ids: SpecialIds) -> list[Rule]:
    ours, theirs = "decoder.#.self_attention", "model.layers.#.self_attn"
    turned = {"query": rotary_halves(config.n_heads), "key": rotary_halves(config.n_key_heads)}
    biased = config.biases != "none"
    block = [
        *module("model.layers.#.input_layernorm", f"{ours}_residual.norm", bias=False),
        *(
            same(f"{theirs}.{part[0]}_proj.{name}", f"{ours}.{part}.{name}", turned[part])
            for part in ("query", "key")
            for name in (("weight", "bias") if biased else ("weight",))
        ),
        *module(f"{theirs}.v_proj", f"{ours}.value", bias=biased),
        *module(f"{theirs}.o_proj", f"{ours}.output", bias=config.biases == "all"),
        *module("model.layers.#.post_attention_layernorm", "decoder.#.feed_forward_residual.norm", bias=False),
        *(
            rule
            for part in ("gate", "up", "down")
            for rule in module(f"model.layers.#.mlp.{part}_proj", f"decoder.#.feed_forward.{part}", bias=False)
        ),
    ]
    tied = config.tied == "all"
    tokens = same("model.embed_tokens.weight", "embedding.tokens.weight", copies=("lm_head.weight",) if tied else ())
    output = [] if tied else [same("lm_head.weight", "output.weight")]
    return [
        tokens,
        *numbered(config.n_layers, block),
        *module("model.norm", "decoder_norm", bias=False),
        *output,
    ]


LLAMA = Architecture(
    kind="llama",
    classes=_TYPES,
    config=LlamaConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prefix="model.",
)
