"""What a search is asked for: the prompt, where to stop, the rules. How it searches is the method's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decoding.prompt import Prompt
from regard.decoding.rules import Rule
from regard.errors import UsageError


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """One request for N sentences, the same for every method.

    prompt:       what is read first: one start token for all, or a prompt per sentence
    end_id:       the token that ends an output
    limits:       (N,), the most tokens a sentence may write, the end token counted; on the decoder's device
    rules:        what may not be written, applied in order
    seed:         of sampling
    keys:         a number per sentence that its draws depend on, such as its line in the input; by default its place here
    usual_share:  how much of its limit an output takes as a rule, for the estimate of memory
    """

    prompt: int | Prompt
    end_id: int
    limits: Tensor
    rules: Sequence[Rule] = ()
    seed: int = 1
    keys: Sequence[int] | None = None
    usual_share: float = 1.0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"The seed of sampling must not be below 0, but it is {self.seed}.", "Give 0 or more.")
        for sentence, limit in enumerate(self.limits.tolist()):
            if limit < 1:
                raise UsageError(
                    f"Every sentence needs a limit of at least 1 token, but sentence {sentence} has {limit}.",
                    "Give a larger maximum length.",
                )

    def first(self) -> Prompt:
        """What each of the N sentences reads first."""
        if isinstance(self.prompt, Prompt):
            return self.prompt
        ids = torch.full((len(self.limits), 1), self.prompt, dtype=torch.long, device=self.limits.device)
        return Prompt(ids, start_id=self.prompt)
