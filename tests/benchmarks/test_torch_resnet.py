"""The peer of the image benchmark is the same network: our weights in plain torch.nn give our logits."""

import pytest
import torch
import torch.nn.functional as F
from benchmarks.torch_resnet import to_torch_resnet

from regard.models.presets import PRESETS
from regard.models.resnet import ResNet, ResNetConfig
from regard.parts.convolution import BatchNorm


def make_model(**changes):
    """Norms drawn anew: they begin as ones and zeros, which would hide a mistake."""
    model = ResNet(ResNetConfig(**{"n_channels": 3, "n_outputs": 5, "n_blocks": (2, 3), "width": 8, **changes}), seed=3)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, BatchNorm):
                for tensor in (*module.parameters(), *module.buffers()):
                    tensor += 0.3 * torch.rand(tensor.shape, generator=generator)
    return model


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("n_channels", [1, 3], ids=["grey", "colour"])
def test_mapped_weights_give_equal_logits_and_losses(n_channels, training):
    model = make_model(n_channels=n_channels).train(training)
    network = to_torch_resnet(model).train(training)
    images = torch.randn(6, n_channels, 12, 12, generator=torch.Generator().manual_seed(4))
    labels = torch.arange(6) % 5
    ours, theirs = model(images), network(images)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-4)
    losses = [F.cross_entropy(logits, labels, label_smoothing=0.1) for logits in (ours, theirs)]
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=1e-4)
    for loss in losses:
        loss.backward()
    norms = [torch.nn.utils.get_total_norm(p.grad for p in one.parameters()) for one in (model, network)]
    torch.testing.assert_close(norms[0], norms[1], rtol=1e-4, atol=0)
    torch.testing.assert_close(network.norm.running_var, model.stem.layer.norm.running_variance)


def test_resnet_20_has_as_many_parameters():
    config = ResNetConfig(n_channels=3, n_outputs=10, **PRESETS["resnet-20"].fields)
    model = ResNet(config)
    network = to_torch_resnet(model)
    assert sum(p.numel() for p in network.parameters()) == sum(p.numel() for p in model.parameters()) == 272_474


@pytest.mark.parametrize("change", [{"skip": "none"}, {"block": "bottleneck"}, {"norm": "none"}, {"join": "after"}])
def test_a_network_without_an_equal_is_refused(change):
    with pytest.raises(ValueError, match="only the network of basic blocks for small images has an equal here"):
        to_torch_resnet(make_model(**change))
