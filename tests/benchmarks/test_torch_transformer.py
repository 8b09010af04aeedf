"""The peer of the training benchmark is the same network: our weights in torch's module give our logits."""

import torch
from benchmarks.torch_transformer import TorchTransformer

from regard.models.transformer import Transformer, TransformerConfig

PAD, VOCAB = 0, 29
SIZES = {"n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 16, "n_heads": 4, "d_ff": 24}
# Ours and theirs, inside a layer.
ENCODER = {
    "self_attention_residual.norm": "norm1",
    "feed_forward_residual.norm": "norm2",
    "feed_forward.up": "linear1",
    "feed_forward.down": "linear2",
    "self_attention.output": "self_attn.out_proj",
}
DECODER = {
    **ENCODER,
    "cross_attention_residual.norm": "norm2",
    "feed_forward_residual.norm": "norm3",
    "cross_attention.output": "multihead_attn.out_proj",
}


def translated(ours):
    """Our weights under torch's names."""
    theirs = {"embedding.weight": ours["output.weight"]}
    for stack, names in (("encoder", ENCODER), ("decoder", DECODER)):
        for kind in ("weight", "bias"):
            theirs[f"transformer.{stack}.norm.{kind}"] = ours[f"{stack}_norm.{kind}"]
            for layer in range(SIZES[f"n_{stack}_layers"]):
                here, there = f"{stack}.{layer}", f"transformer.{stack}.layers.{layer}"
                for own, other in names.items():
                    theirs[f"{there}.{other}.{kind}"] = ours[f"{here}.{own}.{kind}"]
                attentions = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
                for own, other in attentions.items():
                    if f"{here}.{own}.query.weight" in ours:
                        parts = [ours[f"{here}.{own}.{part}.{kind}"] for part in ("query", "key", "value")]
                        theirs[f"{there}.{other}.in_proj_{kind}"] = torch.cat(parts)
    return theirs


def test_mapped_weights_give_equal_logits():
    config = TransformerConfig(source_vocab=VOCAB, target_vocab=VOCAB, norm_order="pre", dropout=0.3, **SIZES)
    model = Transformer(config, seed=3).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)  # biases and norms too
    network = TorchTransformer(config, pad_id=PAD).eval()
    network.load_state_dict(translated(model.state_dict()))
    lengths = torch.tensor([9, 4, 7, 1, 9])
    source = torch.randint(3, VOCAB, (5, 9), generator=generator).masked_fill(torch.arange(9) >= lengths[:, None], PAD)
    target = torch.randint(3, VOCAB, (5, 6), generator=generator)
    # With gradients, so that torch does not take its path for inference.
    torch.testing.assert_close(network(source, target), model(source, lengths, target), rtol=1e-5, atol=1e-5)
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    assert n_parameters == sum(parameter.numel() for parameter in model.parameters())
    rates = {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.3}
