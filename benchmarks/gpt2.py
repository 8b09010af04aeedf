"""GPT-2 of the transformers package, of the sizes and with the weights of one of our models."""

from transformers import GPT2Config, GPT2LMHeadModel

from regard.exchange.exported_network import export_network
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
    """The same network with our weights."""
    network = gpt2_network(model.config, pad_id=pad_id, end_id=end_id)
    weights = export_network(model.config, model.state_dict()).tensors
    network.load_state_dict({**weights, "lm_head.weight": weights["transformer.wte.weight"]})
    return network
