"""What sentences read before they write: a start token, or the text that they go on from."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prompt:
    """ids (N, P), padded behind, of which sentence n has `counts[n]` real ones (all, without `counts`); at least one.

    is_text: whether rules on what was written before (no repetition) count it; a mere start token is none.
    """

    ids: Tensor
    counts: Tensor | None = None
    is_text: bool = True

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> "Prompt":
        """Put the ids of several sentences together."""
        longest = max(map(len, rows), default=1)
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.long, device=device)
        if all(len(row) == longest for row in rows):
            return cls(ids.view(len(rows), longest))
        return cls(ids, torch.tensor([len(row) for row in rows], device=device))

    def behind(self) -> Tensor:
        """The text (N, P) with the padding in front, as -1: what comes next follows upon the last real one."""
        if not self.is_text:
            return self.ids[:, :0]
        if self.counts is None:
            return self.ids
        places = torch.arange(self.ids.shape[1], device=self.ids.device) - (self.ids.shape[1] - self.counts[:, None])
        return self.ids.gather(1, places.clamp(min=0)).masked_fill(places < 0, -1)


def as_prompt(first: int | Prompt, limits: Tensor) -> Prompt:
    """One id for all of the N sentences of `limits`, or what is a prompt already."""
    if isinstance(first, Prompt):
        return first
    return Prompt(torch.full((len(limits), 1), first, dtype=torch.long, device=limits.device), is_text=False)
