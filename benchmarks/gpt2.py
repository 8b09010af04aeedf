"""GPT-2 of the transformers package, of the sizes and with the weights of one of our models."""

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from regard.models.gpt import GPT, GPTConfig


def gpt2_network(config: GPTConfig, *, pad_id: int, end_id: int) -> GPT2LMHeadModel:
    """The same network, new; its attention drops no weights, as ours does not."""
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab,
            n_positions=config.context,
            n_embd=config.d_model,
            n_layer=config.n_layers,
            n_head=config.n_heads,
            embd_pdrop=config.dropout,
            resid_pdrop=config.dropout,
            attn_pdrop=0.0,
            bos_token_id=end_id,
            eos_token_id=end_id,
            pad_token_id=pad_id,
        )
    )


def to_gpt2(model: GPT, *, pad_id: int, end_id: int) -> GPT2LMHeadModel:
    """The same network with our weights: its matrices are transposed, and queries, keys and values joined in one."""
    network = gpt2_network(model.config, pad_id=pad_id, end_id=end_id)
    body = network.transformer
    pairs: list[tuple[Tensor, Tensor]] = [
        (body.wte.weight, model.embedding.tokens.weight),
        (body.wpe.weight, model.embedding.positions.weight),
        (body.ln_f.weight, model.decoder_norm.weight),
        (body.ln_f.bias, model.decoder_norm.bias),
    ]
    for theirs, ours in zip(body.h, model.decoder, strict=True):
        attention = ours.self_attention
        projections = (attention.query, attention.key, attention.value)
        pairs += [
            (theirs.attn.c_attn.weight, torch.cat([one.weight for one in projections]).t()),
            (theirs.attn.c_attn.bias, torch.cat([one.bias for one in projections])),
            (theirs.attn.c_proj.weight, attention.output.weight.t()),
            (theirs.attn.c_proj.bias, attention.output.bias),
            (theirs.mlp.c_fc.weight, ours.feed_forward.up.weight.t()),
            (theirs.mlp.c_fc.bias, ours.feed_forward.up.bias),
            (theirs.mlp.c_proj.weight, ours.feed_forward.down.weight.t()),
            (theirs.mlp.c_proj.bias, ours.feed_forward.down.bias),
            (theirs.ln_1.weight, ours.self_attention_residual.norm.weight),
            (theirs.ln_1.bias, ours.self_attention_residual.norm.bias),
            (theirs.ln_2.weight, ours.feed_forward_residual.norm.weight),
            (theirs.ln_2.bias, ours.feed_forward_residual.norm.bias),
        ]
    with torch.no_grad():
        for parameter, value in pairs:
            parameter.copy_(value)
    return network
