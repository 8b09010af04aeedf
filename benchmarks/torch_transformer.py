"""Our transformer-tiny in torch.nn.Transformer, as its users write it: the peer of training.py."""

import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.transformer import TransformerConfig
from regard.parts.positions import sinusoids


class TorchTransformer(nn.Module):
    """One embedding for source, target and output, sinusoids, and torch's encoder and decoder between."""

    positions: Tensor

    def __init__(self, config: TransformerConfig, *, pad_id: int, n_positions: int = 512) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embedding = nn.Embedding(config.source_vocab, config.d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.register_buffer("positions", sinusoids(torch.arange(n_positions), config.d_model), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that pre-norm rules out nested tensors, which serve inference
            self.transformer = nn.Transformer(
                config.d_model,
                config.n_heads,
                config.n_encoder_layers,
                config.n_decoder_layers,
                config.d_ff,
                config.dropout,
                config.activation,
                batch_first=True,
                norm_first=config.norm_order == "pre",
            )
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # as in ours: the fused kernel of the CPU refuses dropout on the weights

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source ids (B, S) and target ids (B, T), padded behind, to logits (B, T, V)."""
        padding = source == self.pad_id
        states = self.transformer(
            self._embed(source),
            self._embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(states, self.embedding.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        scale = math.sqrt(self.embedding.embedding_dim)
        dropped: Tensor = self.dropout(self.embedding(ids) * scale + self.positions[: ids.shape[1]])
        return dropped
