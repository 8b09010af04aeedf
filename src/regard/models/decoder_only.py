"""What language models share: a decoder alone, over whatever blocks it has.

ids ── embedding ── N × block ── norm ── output ── logits
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.parts.decoder_state import DecoderState, GrowingPast, last_real
from regard.parts.embedding import InputEmbedding, OutputLayer
from regard.parts.masks import Mask
from regard.parts.positions import Rotation, positions_inside
from regard.parts.residual import PreNorm
from regard.parts.taps import tap


class Block(nn.Module):
    """Masked self-attention, then the feed-forward network, each with its residual connection, pre-norm."""

    self_attention: Any  # multi-head, or with shared keys

    def __init__(
        self, self_attention: nn.Module, feed_forward: nn.Module, make_norm: Callable[[], nn.Module], *, dropout: float
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention_residual = PreNorm(make_norm(), dropout=dropout)
        self.feed_forward = feed_forward
        self.feed_forward_residual = PreNorm(make_norm(), dropout=dropout)

    def forward(self, x: Tensor, mask: Mask, rotation: Rotation | None, past: GrowingPast | None = None) -> Tensor:
        """(B, T, D) to the same: all positions, or some more after a past, which grows by them."""

        def attend(x: Tensor) -> Tensor:
            key, value = self.self_attention.keys_values(x, rotation)
            if past is not None:
                key, value = past.extend(key, value)
            heard: Tensor = self.self_attention.read(x, key, value, mask, rotation=rotation)
            return heard

        x = self.self_attention_residual(x, attend)
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class DecoderAlone(nn.Module):
    """A language model; `forward` while training, `start` and `step` while generating.

    window: how far back attention reaches; None for everywhere.
    """

    embedding: InputEmbedding
    decoder: nn.ModuleList
    decoder_norm: nn.Module
    output: OutputLayer
    window: int | None

    def rotation(self, positions: Tensor) -> Rotation | None:
        """How positions (T,) or (B, T) turn queries and keys, if they do."""
        return None

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """ids (B, T), padded behind, to the logits (B, T, V) of what follows each.

        documents: (B, T), which document each token belongs to, if a row holds several; none sees another.
        """
        return tap(self, "logits", self.output(self.states(ids, documents)))

    def states(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The last states (B, T, D), before the output layer."""
        positions = torch.arange(ids.shape[1], device=ids.device) if documents is None else positions_inside(documents)
        mask = Mask(causal=True, window=self.window, documents=documents)
        states: Tensor = self.decoder_norm(self.blocks(self.embedding(ids, positions), mask, self.rotation(positions)))
        return states

    def start(self, n_sentences: int) -> DecoderState:
        """The state of so many sentences that have read nothing."""
        return DecoderState.empty(n_sentences, self.output.weight.device)

    def step(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        advanced, positions, mask = state.advance(counts, ids.shape[1], window=self.window)
        past = GrowingPast(state.past)
        x = self.step_blocks(state, self.embedding(ids, positions), mask, self.rotation(positions), past)
        logits = tap(self, "logits", self.output(self.decoder_norm(last_real(x, counts))))
        return logits, replace(advanced, past=past.grown()).forget(self.window)

    def blocks(self, x: Tensor, mask: Mask, rotation: Rotation | None, past: GrowingPast | None = None) -> Tensor:
        """(B, T, D) through all blocks, to the same: all positions, or some more after a past, which grows by them."""
        for block in self.decoder:
            x = block(x, mask, rotation, past)
        return x

    def step_blocks(
        self, state: DecoderState, x: Tensor, mask: Mask, rotation: Rotation | None, past: GrowingPast
    ) -> Tensor:
        """As `blocks`, in a step from this state, for who has a quicker way."""
        return self.blocks(x, mask, rotation, past)
