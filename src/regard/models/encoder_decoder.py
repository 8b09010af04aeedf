"""What Transformers with an encoder and a decoder share: two stacks, over whatever attention, networks and norms they have.

    source ids ── embedding ── N × [self-attention, feed-forward] ── norm ── memory
                                                                               │ keys, values
    target ids ── embedding ── N × [masked self-attention, cross-attention, feed-forward] ── norm ── output ── logits

Where a token stands is told by the embedding, by a rotation of queries and keys, or by a bias of the scores.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from regard.parts import masks
from regard.parts.cache import DecoderState, GrowingPast, last_real
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.embedding import InputEmbedding, OutputLayer
from regard.parts.masks import Mask
from regard.parts.positions import Rotation
from regard.parts.taps import tap


class EncoderDecoder(nn.Module):
    """Encoder and decoder; `forward` while training, `start` and `step` while decoding.

    window: how far self-attention reaches; None for everywhere.
    """

    source_embedding: InputEmbedding
    encoder: nn.ModuleList
    encoder_norm: nn.Module
    target_embedding: InputEmbedding
    decoder: nn.ModuleList
    decoder_norm: nn.Module
    output: OutputLayer
    window: int | None

    def rotation(self, positions: Tensor) -> Rotation | None:
        """How positions (T,) or (R, T) turn queries and keys, if they do."""
        return None

    def encoder_bias(self, positions: Tensor) -> Tensor | None:
        """What the distances between positions (S,) add to the encoder's scores, (1, H, S, S), if anything."""
        return None

    def decoder_bias(self, positions: Tensor, keys: Tensor) -> Tensor | None:
        """The same for the decoder at positions (T,) or (R, T), with keys at (S,) or (R, S); (1 or R, H, T, S)."""
        return None

    @property
    def max_length(self) -> int | None:
        """The longest sequence the positions reach; None for any."""
        return None

    @property
    def alignment_tap(self) -> str:
        """The tap that shows best which source token a target token was read from."""
        return f"decoder.{max(0, len(self.decoder) - 2)}.cross_attention.weights"

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """source ids (B, S), padded behind, of (B,) lengths; target ids (B, T) from the start token; to logits (B, T, V)."""
        return tap(self, "logits", self.output(self.states(source, source_lengths, target)))

    def states(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """The decoder's last states (B, T, D), before the output layer."""
        memory = self.encode(source, source_lengths)
        memory_mask = masks.padding(source_lengths, source.shape[1])
        positions = torch.arange(target.shape[1], device=target.device)
        x = self.target_embedding(target, positions)
        # Padding stands behind the real positions, where the causal mask hides it from them.
        mask = Mask(causal=True, window=self.window)
        rotation, bias = self.rotation(positions), self.decoder_bias(positions, positions)
        for layer in self.decoder:
            x = layer(x, memory, mask, memory_mask, rotation=rotation, bias=bias)
        states: Tensor = self.decoder_norm(x)
        return states

    def encode(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """source ids (B, S) of (B,) lengths to the memory (B, S, D)."""
        positions = torch.arange(source.shape[1], device=source.device)
        x = self.source_embedding(source, positions, source_lengths)
        mask = replace(masks.padding(source_lengths, source.shape[1]), window=self.window)
        rotation, bias = self.rotation(positions), self.encoder_bias(positions)
        for layer in self.encoder:
            x = layer(x, mask, rotation=rotation, bias=bias)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def start(self, inputs: tuple[Tensor, Tensor]) -> DecoderState:
        """Encode (source ids, lengths) and project the memory once for every layer."""
        source, source_lengths = inputs
        memory = self.encode(source, source_lengths)
        keys_values = (layer.cross_attention.keys_values(memory) for layer in self._decoder_layers)
        return DecoderState(
            lengths=torch.zeros_like(source_lengths),
            n_sentences=len(source),
            # Heads are views until here: what every step reads is better copied once than at every step.
            memory=tuple((key.contiguous(), value.contiguous()) for key, value in keys_values),
            memory_mask=masks.padding(source_lengths, source.shape[1]),
        )

    def step(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        n_new = ids.shape[1]
        advanced, positions, mask = state.advance(counts, n_new, window=self.window)
        x = self.target_embedding(ids, positions)
        rotation, bias = self.rotation(positions), self.decoder_bias(positions, advanced.held(n_new))
        past = GrowingPast(state.past)
        for layer, memory in zip(self._decoder_layers, state.memory, strict=True):
            x = layer.step(x, past, memory, mask, state.memory_mask, rotation=rotation, bias=bias)
        logits = tap(self, "logits", self.output(self.decoder_norm(last_real(x, counts))))
        return logits, replace(advanced, past=past.grown()).forget(self.window)

    @property
    def _decoder_layers(self) -> Iterable[DecoderLayer]:
        """The decoder, of which nn.ModuleList says only that it holds modules."""
        return cast(Iterable[DecoderLayer], self.decoder)
