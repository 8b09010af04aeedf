"""What decoder-only language models share: how they generate, one step after another, with a KV cache.

What a model computes (`forward`, `blocks`) stands in its own file.
"""

from dataclasses import replace

from torch import Tensor, nn

from regard.parts.decoder_state import DecoderState, GrowingCache, last_real
from regard.parts.embedding import InputEmbedding, OutputLayer
from regard.parts.masks import Mask
from regard.parts.stack import Stack
from regard.parts.taps import tap


class DecoderOnly(nn.Module):
    """A language model while it generates: `start`, then `step`, as `decoding.protocol` asks.

    window: how far back attention reaches; None for everywhere.
    """

    embedding: InputEmbedding
    decoder: nn.ModuleList
    decoder_norm: nn.Module
    output: OutputLayer
    window: int | None

    def blocks(self, x: Tensor, positions: Tensor, mask: Mask, cache: GrowingCache | None = None) -> Tensor:
        """(B, T, D) at positions (T,) or (B, T) through all blocks, to the same; a KV cache grows by them."""
        raise NotImplementedError

    def stacks(self) -> tuple[Stack, ...]:
        """The layers that a token passes, for layer-wise learning rates."""
        return (Stack(self.decoder, below=(self.embedding,)),)

    @property
    def last_layers(self) -> tuple[nn.Module, nn.Module]:
        """The last norm and the output layer, which `read_out` applies in turn."""
        return self.decoder_norm, self.output

    def read_out(self, x: Tensor) -> Tensor:
        """From the residual stream (…, D) to logits (…, V): the last norm and the output layer."""
        logits: Tensor = self.output(self.decoder_norm(x))
        return logits

    def start(self, n_sentences: int) -> DecoderState:
        """The state of so many sentences that have read nothing."""
        return DecoderState.empty(n_sentences, self.output.weight.device)

    def step(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        advanced, positions, mask = state.advance(counts, ids.shape[1], window=self.window)
        cache = GrowingCache(state.cache)
        x = self.blocks(self.embedding(ids, positions), positions, mask, cache)
        logits = tap(self, "logits", self.read_out(last_real(x, counts)))
        return logits, replace(advanced, cache=cache.grown()).forget(self.window)
