"""What every model's config is: a frozen dataclass beside the model, saved with the weights and enough to rebuild it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The base of all: what others ask of a model before it is built."""

    @property
    def max_length(self) -> int | None:
        """The longest sequence of tokens that the positions reach, special ones counted; None for any."""
        return None
