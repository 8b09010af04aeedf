"""What encoder-only models share: a head over their states, which says something of a sequence or of each position.

inputs ── embedding ── encoder ── states ── [pooling] ── head ── what the task asks for

Encoder and head are named apart (`embedding.…`, `encoder.…`; `head.…`), so that one encoder can go on to the next task.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, check_range, option
from regard.models.model_config import ModelConfig
from regard.parts.heads import HEADS, POOLINGS, Head, Pooling
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(ModelConfig):
    """What every encoder is told: by the data, the task, and whoever chooses the model."""

    vocab: int = option(REQUIRED, "vocabulary size, 0 for sequences of vectors; follows from the data", least=0)
    head: str = option("none", "output head; follows from the task", choices=HEADS)
    n_outputs: int = option(0, "classes or tags, 1 for a number; follows from the task", least=0)
    n_features: int = option(0, "features per vector, 0 for text; follows from the data", least=0)
    pooling: str = option(
        "class",
        "pooling of a sequence to one state: that of the class token, the mean, or the last",
        choices=POOLINGS,
    )
    dropout: float = option(0.1, "dropout rate", least=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n_features:
            check_range(self.vocab, {"least": 1}, "model.vocab")
        if self.head in ("sequence", "tokens"):
            check_range(self.n_outputs, {"least": 1}, "model.n_outputs")


class EncoderOnly(nn.Module):
    """An encoder with the head of its task; what the encoder computes (`encode`) stands in the model's own file."""

    head: Head
    pooling: Pooling

    @property
    def max_length(self) -> int | None:
        """The longest sequence the positions reach; None for any."""
        return None

    def answer(self, states: Tensor, lengths: Tensor) -> Tensor:
        """What the head says of states (B, T, D), of which (B,) are real.

        none: the pooled states (B, D); words: logits (B, T, V); sequence: (B, N); tokens: (B, T, N).
        """
        return tap(self, self.head.says, self.head(self.pooled(states, lengths) if self.head.pools else states))

    def read_out(self, x: Tensor) -> Tensor:
        """From the residual stream (B, T, D), none of it padding, to what the head says, as `answer` has it."""
        lengths = torch.full((len(x),), x.shape[1], device=x.device)
        said: Tensor = self.head(self.pooled(x, lengths) if self.head.pools else x)
        return said

    def pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D), of which (B,) are real, to one state per sequence (B, D)."""
        return self.pooling(states, lengths)
