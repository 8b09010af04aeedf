"""The peer of the image benchmark is the same network: our weights in ViT's class of transformers give our logits."""

import pytest
import torch
import torch.nn.functional as F
from benchmarks.transformers_vit import ATTENTIONS, to_vit, vit_network

from regard.models.vit import ViT, ViTConfig

SIZES = {"patch_size": 4, "n_layers": 3, "n_heads": 4, "d_model": 16, "d_ff": 24, "n_outputs": 5}


def make_model(**changes):
    config = ViTConfig(**{"n_channels": 3, "image_size": 12, "dropout": 0.0, **SIZES, **changes})
    model = ViT(config, seed=3)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)  # biases and norms too
    return model


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("sizes", [{}, {"n_channels": 1, "image_size": 28}], ids=["colour", "grey"])
def test_mapped_weights_give_equal_logits_and_losses(attention, sizes):
    model = make_model(**sizes).train()
    network = to_vit(model, attention=attention).train()
    size = (6, model.config.n_channels, model.config.image_size, model.config.image_size)
    images, labels = torch.randn(size, generator=torch.Generator().manual_seed(4)), torch.arange(6) % 5
    ours, theirs = model(images), network(images).logits
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-4)
    losses = [F.cross_entropy(logits, labels, label_smoothing=0.1) for logits in (ours, theirs)]
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=1e-4)
    for loss in losses:
        loss.backward()
    norms = [torch.nn.utils.get_total_norm(p.grad for p in one.parameters()) for one in (model, network)]
    torch.testing.assert_close(norms[0], norms[1], rtol=1e-4, atol=0)


def test_it_has_as_many_parameters_drops_as_much_and_attends_as_asked():
    model = make_model(dropout=0.3)
    for attention in ATTENTIONS:
        network = vit_network(model.config, attention=attention)
        assert sum(p.numel() for p in network.parameters()) == sum(p.numel() for p in model.parameters())
        assert {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
        assert network.config.attention_probs_dropout_prob == 0
        assert network.config._attn_implementation == attention
