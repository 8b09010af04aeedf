"""The state of a recurrent decoder between two steps: hidden states of its cells, the last context, the memory it reads.

Rows are sentences × hypotheses, sentence-major. The memory is kept once per sentence, whatever the number of hypotheses;
so a beam that reorders its rows leaves it untouched. A state is never changed in place: each method returns a new one.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts.decoder_state import rows_of
from regard.parts.masks import EVERYTHING, Mask
from regard.parts.recurrent import CellState


@dataclass(frozen=True, kw_only=True)
class RecurrentState:
    """The state of a recurrent decoder, for `decoding.protocol`.

    n_sentences: whose rows these are, equally many each; no tensor tells where there is no memory.
    layers: the state of each layer's cell, (R, D).
    context: (R, C), what the last step's attention read; None without attention.
    memory: the keys' share of the scores (N, S, P) and the values (N, S, C); None without attention.
    memory_mask: which keys of the memory are real.
    """

    n_sentences: int
    layers: tuple[CellState, ...]
    context: Tensor | None = None
    memory: tuple[Tensor, Tensor] | None = None
    memory_mask: Mask = EVERYTHING

    @property
    def n_rows(self) -> int:
        return len(self.layers[0][0])

    def reorder(self, parents: Tensor) -> "RecurrentState":
        """Let row r go on from row parents[r] of the same sentence; the number of rows per sentence may change."""
        return replace(
            self,
            layers=tuple(tuple(tensor.index_select(0, parents) for tensor in layer) for layer in self.layers),
            context=None if self.context is None else self.context.index_select(0, parents),
        )

    def keep(self, sentences: Tensor) -> "RecurrentState":
        """Go on with these sentences only, in this order."""
        allowed = self.memory_mask.allowed
        return replace(
            self.reorder(rows_of(sentences, self.n_rows // self.n_sentences)),
            n_sentences=len(sentences),
            memory=None if self.memory is None else (self.memory[0][sentences], self.memory[1][sentences]),
            memory_mask=self.memory_mask if allowed is None else Mask(allowed[sentences]),
        )

    def join(self, other: "RecurrentState") -> "RecurrentState":
        """Append the other's sentences, whose sources may be of other lengths."""
        joined = RecurrentState(
            n_sentences=self.n_sentences + other.n_sentences,
            layers=tuple(
                tuple(torch.cat(tensors) for tensors in zip(mine, theirs, strict=True))
                for mine, theirs in zip(self.layers, other.layers, strict=True)
            ),
        )
        if self.memory is None or other.memory is None or self.context is None or other.context is None:
            return joined
        n_keys = max(state[1].shape[1] for state in (self.memory, other.memory))
        prepared, value = (
            torch.cat([F.pad(one, (0, 0, 0, n_keys - one.shape[1])) for one in pair])
            for pair in zip(self.memory, other.memory, strict=True)
        )
        allowed = torch.cat([_pad_allowed(state, n_keys) for state in (self, other)])
        context = torch.cat([self.context, other.context])
        return replace(joined, context=context, memory=(prepared, value), memory_mask=Mask(allowed))

    def where(self, chosen: Tensor, other: "RecurrentState") -> "RecurrentState":
        """Take the rows that are `chosen` (R,) from this state, and the rest from the other, of the same sentences."""
        column = chosen[:, None]
        return replace(
            self,
            layers=tuple(
                tuple(torch.where(column, new, old) for new, old in zip(mine, theirs, strict=True))
                for mine, theirs in zip(self.layers, other.layers, strict=True)
            ),
            context=None
            if self.context is None or other.context is None
            else torch.where(column, self.context, other.context),
        )


def _pad_allowed(state: RecurrentState, n_keys: int) -> Tensor:
    assert state.memory is not None
    own_keys = state.memory[1].shape[1]
    allowed = state.memory_mask.allowed
    if allowed is None:
        shape = (state.n_sentences, 1, 1, own_keys)
        allowed = torch.ones(shape, dtype=torch.bool, device=state.memory[1].device)
    return F.pad(allowed, (0, n_keys - own_keys), value=False)
