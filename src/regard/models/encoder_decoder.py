"""What encoder-decoder Transformers share: how they decode, one step after another, with a KV cache.

What a model computes (`forward`, `encode`, `decode`) stands in its own file. The decoder asks only for a memory, whatever
was encoded: it is a class of its own, with which images get their captions too.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from regard.parts import masks
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.decoder_state import DecoderState, GrowingCache, last_real
from regard.parts.embedding import InputEmbedding, OutputLayer
from regard.parts.masks import EVERYTHING, Mask
from regard.parts.positions import Rotation
from regard.parts.stack import Stack
from regard.parts.taps import tap


class TransformerDecoder(nn.Module):
    """What writes a target from a memory, while decoding: `start_from`, then `read`.

    window: how far self-attention reaches; None for everywhere.
    """

    target_embedding: InputEmbedding
    decoder: nn.ModuleList
    decoder_norm: nn.Module
    output: OutputLayer
    window: int | None

    def rotation(self, positions: Tensor) -> Rotation | None:
        """How positions (T,) or (R, T) turn queries and keys, if they do."""
        return None

    def decoder_bias(self, positions: Tensor, keys: Tensor) -> Tensor | None:
        """What the distances of keys at (S,) or (R, S) from positions (T,) or (R, T) add to the scores, if anything.

        (1 or R, H, T, S).
        """
        return None

    @property
    def max_length(self) -> int | None:
        """The longest sequence the positions reach; None for any."""
        return None

    @property
    def alignment_tap(self) -> str:
        """The tap that shows best which part of the memory a target token was read from."""
        return f"decoder.{max(0, len(self.decoder) - 2)}.cross_attention.weights"

    def stacks(self) -> tuple[Stack, ...]:
        """The layers that a target token passes, for layer-wise learning rates."""
        return (Stack(self.decoder, below=(self.target_embedding,)),)

    @property
    def last_layers(self) -> tuple[nn.Module, nn.Module]:
        """The last norm (with post-norm, none) and the output layer, which `read_out` applies in turn."""
        return self.decoder_norm, self.output

    def read_out(self, x: Tensor) -> Tensor:
        """From the decoder's residual stream (…, D) to logits (…, V): the last norm and the output layer."""
        logits: Tensor = self.output(self.decoder_norm(x))
        return logits

    def start_from(self, memory: Tensor, memory_mask: Mask = EVERYTHING) -> DecoderState:
        """Project the memory (B, S, D) once for every layer, before anything is written."""
        keys_values = (layer.cross_attention.keys_values(memory) for layer in self._decoder_layers)
        return DecoderState(
            lengths=torch.zeros(len(memory), dtype=torch.long, device=memory.device),
            n_sentences=len(memory),
            # Heads are views until here: what every step reads is better copied once than at every step.
            memory=tuple((key.contiguous(), value.contiguous()) for key, value in keys_values),
            memory_mask=memory_mask,
        )

    def read(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the last states (R, D) at each row's last real one."""
        n_new = ids.shape[1]
        advanced, positions, mask = state.advance(counts, n_new, window=self.window)
        x = self.target_embedding(ids, positions)
        rotation, bias = self.rotation(positions), self.decoder_bias(positions, advanced.held(n_new))
        cache = GrowingCache(state.cache)
        for layer, memory in zip(self._decoder_layers, state.memory, strict=True):
            x = layer.step(x, cache, memory, mask, state.memory_mask, rotation=rotation, bias=bias)
        return self.decoder_norm(last_real(x, counts)), replace(advanced, cache=cache.grown()).forget(self.window)

    @property
    def _decoder_layers(self) -> Iterable[DecoderLayer]:
        """The decoder, of which nn.ModuleList says only that it holds modules."""
        return cast(Iterable[DecoderLayer], self.decoder)


class EncoderDecoder(TransformerDecoder):
    """Encoder and decoder, while decoding: `start`, then `step`, as `decoding.protocol` asks."""

    source_embedding: InputEmbedding
    encoder: nn.ModuleList

    def stacks(self) -> tuple[Stack, ...]:
        """The layers of both sides, for layer-wise learning rates."""
        return (Stack(self.encoder, below=(self.source_embedding,)), *super().stacks())

    def encode(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """source ids (B, S) of (B,) lengths to the memory (B, S, D)."""
        raise NotImplementedError

    def start(self, inputs: tuple[Tensor, Tensor]) -> DecoderState:
        """Encode (source ids, lengths) and project the memory once for every layer."""
        source, source_lengths = inputs
        memory = self.encode(source, source_lengths)
        return self.start_from(memory, masks.padding(source_lengths, source.shape[1]))

    def step(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        states, after = self.read(state, ids, counts)
        return tap(self, "logits", self.output(states)), after
