"""What every model's config is: a frozen dataclass beside the model, saved with the weights and enough to rebuild it.

Each field declares its default, help text, range and choices with `option`; they are checked here, however it is built.
"""

from dataclasses import dataclass

from regard.config import check_fields

MOST_SIZE = 2**24  # of any size that declares no other: a config may come from somebody else


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The base of all configs: what others ask of a model before it is built."""

    def __post_init__(self) -> None:
        check_fields(self, path="model", most=MOST_SIZE)

    @property
    def max_length(self) -> int | None:
        """The longest sequence of tokens that the positions reach, special ones counted; None for any."""
        return None
