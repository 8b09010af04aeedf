"""The peer of the benchmarks is the same network: our weights in Marian's class give our logits."""

import pytest
import torch
from benchmarks.marian import marian_logits, to_marian

from regard.models.transformer import Transformer, TransformerConfig

PAD, START, END, VOCAB = 0, 1, 2, 29


def make_model(**changes):
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 3, "d_model": 16, "n_heads": 4, "d_ff": 24}
    config = TransformerConfig(source_vocab=VOCAB, target_vocab=VOCAB, **{**sizes, **changes})
    model = Transformer(config, seed=3).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)  # biases and norms too
    return model


@torch.inference_mode()
def test_mapped_weights_give_equal_logits():
    model = make_model()
    network = to_marian(model, pad_id=PAD, start_id=START, end_id=END, n_positions=32)
    generator = torch.Generator().manual_seed(4)
    source = torch.randint(3, VOCAB, (5, 9), generator=generator)
    lengths = torch.tensor([9, 4, 7, 1, 9])
    source = source.masked_fill(torch.arange(9) >= lengths[:, None], PAD)
    target = torch.cat([torch.full((5, 1), START), torch.randint(3, VOCAB, (5, 6), generator=generator)], dim=1)
    ours = model(source, lengths, target)
    torch.testing.assert_close(marian_logits(network, source, lengths, target), ours, rtol=1e-5, atol=1e-5)
    n_parameters = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    assert n_parameters == sum(parameter.numel() for parameter in model.parameters())


def test_a_model_without_an_equal_is_refused():
    with pytest.raises(ValueError, match="only of a post-norm model"):
        to_marian(make_model(norm_order="pre"), pad_id=PAD, start_id=START, end_id=END)
