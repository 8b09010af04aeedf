"""Prompts: what sentences read before they write, a start token or the text that they go on from."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prompt:
    """ids (N, P), padded behind, of which sentence n has `counts[n]` real ones (all, without `counts`); at least one.

    start_id: a token that only starts, and is no text to rules on what was written before (no repetition).
    """

    ids: Tensor
    counts: Tensor | None = None
    start_id: int | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Sequence[int]], device: torch.device | str = "cpu", *, start_id: int | None = None
    ) -> "Prompt":
        """Put the ids of several sentences together."""
        longest = max(map(len, rows), default=1)
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.long, device=device)
        if all(len(row) == longest for row in rows):
            return cls(ids.view(len(rows), longest), start_id=start_id)
        return cls(ids, torch.tensor([len(row) for row in rows], device=device), start_id)

    def behind(self) -> Tensor:
        """The text (N, P) behind its padding, which is -1: what comes next follows upon the last real token."""
        ids = self.ids
        if self.counts is not None:
            places = torch.arange(ids.shape[1], device=ids.device) - (ids.shape[1] - self.counts[:, None])
            ids = ids.gather(1, places.clamp(min=0)).masked_fill(places < 0, -1)
        return ids if self.start_id is None else ids.masked_fill(ids == self.start_id, -1)
