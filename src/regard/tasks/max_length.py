"""How long a text may be: what data.max_length allows, and what a model's positions leave beside special tokens."""

from torch import nn

from regard.config import RunConfig
from regard.errors import ConfigError
from regard.models.presets import positions_of
from regard.tasks.offers import max_length


def longest_text(config: RunConfig, *, n_specials: int) -> int:
    """The most tokens, or vectors, of an example that are read; `n_specials` tokens stand around it."""
    positions = positions_of(config.model)
    if positions is None:
        return config.data.max_length
    if positions <= n_specials:
        raise ConfigError(
            f"model.max_positions is {positions}, and {n_specials} special tokens stand around a text.",
            f"Set model.max_positions to more than {n_specials}, as 512.",
        )
    return min(config.data.max_length, positions - n_specials)


def refuse_short(model: nn.Module, longest: int, *, n_specials: int) -> None:
    """Refuse a network with too few positions for the longest text.

    Those of a preset were asked for before the data was cut; those of a network of the caller's own are known only now.
    """
    limit = max_length(model)
    if limit is not None and longest + n_specials > limit:
        raise ConfigError(
            f"data.max_length is {longest:,}, but the model has positions for {limit:,} tokens, {n_specials} of them for "
            "special ones.",
            f"Set data.max_length={limit - n_specials}, or give the model more positions.",
        )
