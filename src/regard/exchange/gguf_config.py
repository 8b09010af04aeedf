"""The metadata of a GGUF file as config.json would say it, and the names of its tensors: Llama and its kin in llama.cpp.

    llama.block_count            num_hidden_layers
    llama.rope.freq_base         rope_theta
    rope_freqs.weight            rope_scaling of the kind llama3
    blk.3.attn_q.weight          model.layers.3.self_attn.q_proj.weight

Mistral's files say llama. A key of the architecture that is not known here is refused by its name: it may change what the
network computes.
"""

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from regard.errors import LONGEST_SHOWN, DataError
from regard.exchange.their_config import TheirConfig
from regard.exchange.weights import Rule
from regard.models.llama import Llama3Scaling

ARCHITECTURE, TOKENS = "general.architecture", "tokenizer.ggml.tokens"
ROTARY_FACTORS, OUTPUT = "rope_freqs.weight", "output.weight"
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
SPECIAL_KEYS = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "unk": "tokenizer.ggml.unknown_token_id",
    "pad": "tokenizer.ggml.padding_token_id",
}
# Keys behind "llama." or "qwen2.", and what config.json calls them.
_COUNTS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "context_length": "max_position_embeddings",
}
_READ = {
    *_COUNTS,
    "vocab_size",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
}
# What changes nothing in a Llama, or is known to change nothing at one value.
_IDLE = {"attention.layer_norm_epsilon", "rope.scaling.original_context_length", "rope.scaling.finetuned"}
_NEUTRAL: Mapping[str, Any] = {
    "attention.causal": True,
    "attention.scale": 0.0,  # as llama.cpp says that it follows from the width of a head
    "attention.sliding_window": 0,
    "expert_count": 0,
    "expert_used_count": 0,
    "pooling_type": 0,
    "rope.scaling.attn_factor": 1.0,
    "tensor_data_layout": "Meta AI original pth",
    "use_parallel_residual": False,
}
_MODULES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")
_MOST_CONTEXT = 1 << 32
_LOW, _HIGH, _FIRST_CONTEXT = 1.0, 4.0, 8192  # of every published model of Llama 3.1 and later


def find_gguf_architecture(metadata: TheirConfig) -> str:
    """Return what the file calls the architecture, of those that have a counterpart; files of other kinds are refused."""
    metadata.must_be("model", "general.type")
    if metadata.count("split.count", 1) > 1:
        raise DataError(
            f"{metadata.origin} is one of {metadata.count('split.count')} parts of a file.",
            "Join them first, with llama.cpp's gguf-split --merge.",
        )
    name = metadata.text(ARCHITECTURE)
    if name not in CLASSES:
        raise DataError(
            f"{metadata.origin} names the architecture {name[:LONGEST_SHOWN]}, which has no counterpart in regard.",
            f"Choose a model of one of: {', '.join(CLASSES)}; Mistral's files say llama.",
        )
    return name


def their_settings(metadata: TheirConfig, name: str, tensors: Collection[str]) -> dict[str, Any]:
    """Return what config.json would say of an architecture, but for how rotary angles are slowed (`rotary_settings`)."""
    _refuse_unknown(metadata, name)
    sizes = {theirs: metadata.count(f"{name}.{key}") for key, theirs in _COUNTS.items()}
    heads, tokens = sizes["num_attention_heads"], metadata.texts(TOKENS)
    size_key = f"{name}.vocab_size"
    n_tokens = metadata.count(size_key) if size_key in metadata.values or not tokens else len(tokens)
    return {
        **sizes,
        "architectures": [CLASSES[name]],
        "vocab_size": n_tokens,
        "num_key_value_heads": metadata.count(f"{name}.attention.head_count_kv", heads),
        "head_dim": _head_width(metadata, name, sizes["hidden_size"] // max(heads, 1)),
        "rms_norm_eps": metadata.number(f"{name}.attention.layer_norm_rms_epsilon"),
        "rope_theta": metadata.number(f"{name}.rope.freq_base", 10000.0),
        "tie_word_embeddings": OUTPUT not in tensors,
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        **{f"{one}_token_id": metadata.count(key) for one, key in SPECIAL_KEYS.items() if key in metadata.values},
    }


def _refuse_unknown(metadata: TheirConfig, name: str) -> None:
    for key in metadata.values:
        own = key.removeprefix(f"{name}.")
        if own == key or own in _READ | _IDLE:
            continue
        if own not in _NEUTRAL:
            metadata.refuse(key, "the key is not known")
        metadata.must_be(_NEUTRAL[own], key)


def _head_width(metadata: TheirConfig, name: str, usual: int) -> int:
    """The width of a head, all of which turns, and which keys and values share."""
    width = metadata.count(f"{name}.attention.key_length", usual)
    metadata.must_be(width, f"{name}.attention.value_length", f"{name}.rope.dimension_count")
    return width


def rotary_settings(metadata: TheirConfig, name: str, *, base: float, factors: Tensor | None) -> dict[str, Any]:
    """Return what config.json would say of how rotary angles are slowed.

    factors: by what angles are divided (K/2,), where the file holds them
    """
    key, factor = f"{name}.rope.scaling.type", metadata.number(f"{name}.rope.scaling.factor", 0)
    kind = metadata.text(key, "linear" if factor else "none")  # as llama.cpp takes a factor alone
    if kind not in ("none", "linear"):
        metadata.refuse(key, "known here: none, linear, and that of Llama 3")
    linear = kind == "linear" and factor not in (0, 1)
    if factors is None or bool((factors == 1).all()):
        return {"rope_scaling": {"rope_type": "linear", "factor": factor}} if linear else {}
    scaling = None if linear else _llama3_scaling(factors, base)
    if scaling is None:
        raise DataError(
            f"{metadata.origin}: {ROTARY_FACTORS} slows rotary angles in another way than Llama 3.",
            "Choose a model without that tensor.",
        )
    return {
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low,
            "high_freq_factor": scaling.high,
            "original_max_position_embeddings": scaling.first_context,
        }
    }


def _llama3_scaling(factors: Tensor, base: float) -> Llama3Scaling | None:
    """Find the settings by which Llama 3.1 slows angles as much; None where there are none.

    A file keeps what the settings amount to. Of them only the ratio of the first context to low and high matters, so that
    low and high can be the usual ones; the first context then follows from any angle between the kept and the slowed.
    """
    factors = factors.double()
    largest = float(factors.max())
    if float(factors.min()) < 1 or base <= 0:
        return None
    wavelengths = 2 * math.pi * base ** (torch.arange(len(factors), dtype=torch.float64) / len(factors))
    kept = (1 / factors - 1 / largest) / (1 - 1 / largest)
    between = ((kept > 1e-3) & (kept < 1 - 1e-3)).nonzero().flatten()
    first_context = _FIRST_CONTEXT
    if len(between):
        one = between[len(between) // 2]
        first_context = round(float(wavelengths[one] * (_LOW + kept[one] * (_HIGH - _LOW))))
    if not 1 <= first_context <= _MOST_CONTEXT:
        return None
    # Numbers of single precision, as config.json has them: 8, and not 8.000000476837158.
    scaling = Llama3Scaling(factor=float(f"{largest:.6g}"), low=_LOW, high=_HIGH, first_context=first_context)
    return scaling if torch.allclose(1 / scaling.slowed(wavelengths), factors, rtol=1e-4) else None


def stored_rules(rules: Iterable[Rule], architecture: str) -> list[Rule]:
    """Return the rules of a Llama by the names that GGUF has for its tensors.

    The one change that those rules know is of the rows of queries and keys, for rotary angles. In a Llama, llama.cpp turns
    neighbours as we do, and its converter has changed the rows already; in a Qwen2 it turns halves, as Hugging Face does.
    """
    changed = architecture == "llama"
    return [
        dataclasses.replace(rule, theirs=stored_name(rule.theirs), copies=(), changes=() if changed else rule.changes)
        for rule in rules
    ]


def stored_name(name: str) -> str:
    """Return what GGUF calls a tensor of Hugging Face."""
    module, _, kind = name.rpartition(".")
    layer = _LAYER.fullmatch(module)
    return f"{_MODULES[module]}.{kind}" if layer is None else f"blk.{layer[1]}.{_MODULES[layer[2]]}.{kind}"
