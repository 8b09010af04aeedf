"""GPT-2: fused queries, keys and values, and every matrix transposed (what they call Conv1D)."""

from regard.exchange.architecture import NO_IDS, Architecture, Network, Source, SpecialIds, TheirNetwork, require
from regard.exchange.weights import TRANSPOSED, Rule, module, numbered, same
from regard.models.gpt import GPTConfig

_ACTIVATIONS = {"gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh"}


def _read(source: Source) -> Network:
    config = source.config
    config.must_be(1e-5, "layer_norm_epsilon")
    config.must_be(True, "scale_attn_weights", "tie_word_embeddings")
    config.must_be(False, "scale_attn_by_inverse_layer_idx", "add_cross_attention")
    config.choice("activation_function", _ACTIVATIONS, "gelu_new")
    d_model = config.count("n_embd", 768)
    config.must_be(4 * d_model, "n_inner")
    ours = source.ours(
        GPTConfig,
        vocab=config.count("vocab_size"),
        n_layers=config.count("n_layer", 12),
        n_heads=config.count("n_head", 12),
        d_model=d_model,
        context=config.count("n_positions", 1024),
        dropout=config.number("resid_pdrop", 0.1),
    )
    return Network(config=ours, preset="gpt2", task="language")


def _write(config: GPTConfig, special_ids: SpecialIds) -> TheirNetwork:
    require(config, "GPT2LMHeadModel", window=0)
    return TheirNetwork(
        name="GPT2LMHeadModel",
        settings={
            **NO_IDS,
            "vocab_size": config.vocab,
            "n_positions": config.context,
            "n_embd": config.d_model,
            "n_layer": config.n_layers,
            "n_head": config.n_heads,
            "n_inner": None,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5,
            "embd_pdrop": config.dropout,
            "resid_pdrop": config.dropout,
            "attn_pdrop": 0.0,
            "tie_word_embeddings": True,
        },
    )


def _rules(config: GPTConfig, special_ids: SpecialIds) -> list[Rule]:
    attention = "decoder.#.self_attention"
    block = [
        *module("transformer.h.#.ln_1", f"{attention}_residual.norm"),
        *module(
            "transformer.h.#.attn.c_attn", (f"{attention}.query", f"{attention}.key", f"{attention}.value"), TRANSPOSED
        ),
        *module("transformer.h.#.attn.c_proj", f"{attention}.output", TRANSPOSED),
        *module("transformer.h.#.ln_2", "decoder.#.feed_forward_residual.norm"),
        *module("transformer.h.#.mlp.c_fc", "decoder.#.feed_forward.up", TRANSPOSED),
        *module("transformer.h.#.mlp.c_proj", "decoder.#.feed_forward.down", TRANSPOSED),
    ]
    return [
        same("transformer.wte.weight", "embedding.tokens.weight", copies=("lm_head.weight",)),
        same("transformer.wpe.weight", "embedding.positions.weight"),
        *numbered(config.n_layers, block),
        *module("transformer.ln_f", "decoder_norm"),
    ]


GPT2 = Architecture(
    kind="gpt2",
    classes=dict.fromkeys(("GPT2LMHeadModel", "GPT2Model"), "gpt2"),
    config=GPTConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prefix="transformer.",
    bare=("GPT2Model",),
)
