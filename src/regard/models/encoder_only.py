"""What encoder-only models share: a head over their states, which says something of a sequence or of each position.

inputs ── embedding ── encoder ── states ── [pooling] ── head ── what the task asks for

Encoder and head are named apart (`embedding.…`, `encoder.…`; `head.…`), so that one encoder can go on to the next task.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from regard.errors import ConfigError, did_you_mean
from regard.models.model_config import ModelConfig
from regard.parts.heads import HEADS, POOLINGS, Head, Pooling
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(ModelConfig):
    """What every encoder is told: by the data, the task, and whoever chooses the model."""

    vocab: int  # 0 where it reads vectors
    head: str = "none"  # what the task asks for: none, words, sequence, tokens
    n_outputs: int = 0  # of a sequence or a token: so many classes or tags, or one number
    n_features: int = 0  # of each vector, where a sequence is made of vectors and not of tokens
    pooling: str = "class"  # how a sequence becomes one state: class, mean, last
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name, choices in (("head", HEADS), ("pooling", POOLINGS)):
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"model.{name} cannot be '{value}'.", did_you_mean(value, choices))
        self.check_least("n_features", least=0)
        self.check_least("vocab", least=0 if self.n_features else 1)
        self.check_least("n_outputs", least=1 if self.head in ("sequence", "tokens") else 0)

    def check_least(self, *names: str, least: int = 1) -> None:
        """Refuse sizes that are smaller than that."""
        for name in names:
            value = getattr(self, name)
            if value < least:
                raise ConfigError(f"model.{name} is at least {least}, not {value}.", f"Correct model.{name}.")


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

    def pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D), of which (B,) are real, to one state per sequence (B, D)."""
        return self.pooling(states, lengths)
