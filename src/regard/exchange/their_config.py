"""The config.json of another package: its values by key, of the type that they must have, or an error that names the key.

The file may come from a stranger: nothing of it is trusted before it was asked for here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from regard.errors import LONGEST_SHOWN, DataError
from regard.runs.json_files import is_count, is_number

_REQUIRED: Final = object()
MOST_LABELS = 1_000_000
# What a config calls the ids of special tokens, without "_token_id".
SPECIAL_IDS = ("pad", "bos", "eos", "unk", "sep", "cls", "mask", "decoder_start", "forced_bos", "forced_eos")


@dataclass(frozen=True)
class TheirConfig:
    """A config by its keys; null stands for a key that is not there. `origin` names the file in messages."""

    values: Mapping[str, Any]
    origin: str

    def count(self, key: str, default: Any = _REQUIRED) -> int:
        """A whole number from 0 on."""
        value = self._value(key, default)
        return value if is_count(value) else self._wrong(key, value, "a whole number")

    def number(self, key: str, default: Any = _REQUIRED) -> float:
        """A finite number."""
        value = self._value(key, default)
        return float(value) if is_number(value) else self._wrong(key, value, "a number")

    def flag(self, key: str, default: Any = _REQUIRED) -> bool:
        """True or false."""
        value = self._value(key, default)
        return value if isinstance(value, bool) else self._wrong(key, value, "true or false")

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        """A word."""
        value = self._value(key, default)
        return value if isinstance(value, str) else self._wrong(key, value, "text")

    def counts(self, key: str, default: Any = _REQUIRED) -> tuple[int, ...]:
        """A list of whole numbers."""
        value = self._value(key, default)
        return (
            tuple(value) if _is_list(value) and all(map(is_count, value)) else self._wrong(key, value, "whole numbers")
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of words, empty where there is none."""
        value = self._value(key, [])
        return (
            tuple(value)
            if _is_list(value) and all(isinstance(one, str) for one in value)
            else self._wrong(key, value, "words")
        )

    def table(self, key: str) -> "TheirConfig":
        """A table inside, empty where there is none."""
        value = self._value(key, {})
        inner = value if isinstance(value, dict) else self._wrong(key, value, "a table")
        return TheirConfig(inner, f"{self.origin}: {key}")

    def choice(self, key: str, known: Mapping[str, str], default: Any = _REQUIRED) -> str:
        """Our word for one of theirs, by a table of those that have a counterpart."""
        value = self.text(key, default)
        if value not in known:
            self.refuse(key, f"known here: {', '.join(known)}")
        return known[value]

    def must_be(self, expected: Any, *keys: str) -> None:
        """Refuse a config in which one of the keys is there and says anything else than expected."""
        for key in keys:
            value = self.values.get(key)
            if value is not None and (value != expected or isinstance(value, bool) != isinstance(expected, bool)):
                self.refuse(key, f"only {_shown(expected)} has")

    def refuse(self, key: str, reason: str) -> None:
        """Refuse a setting that none of our networks has."""
        raise DataError(
            f"{self.origin}: {key} = {_shown(self.values.get(key))} has no counterpart in regard ({reason}).",
            "Choose a model without that setting.",
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes in their order; LABEL_0 and so on where the config has only their number."""
        named = self.table("id2label").values
        if not named:
            n_labels = self.count("num_labels", 2)
            if not 1 <= n_labels <= MOST_LABELS:
                self._wrong("num_labels", n_labels, f"from 1 to {MOST_LABELS:,}")
            return tuple(f"LABEL_{number}" for number in range(n_labels))
        numbers = [str(number) for number in range(len(named))]
        if set(named) != set(numbers) or not all(isinstance(label, str) for label in named.values()):
            raise DataError(
                f"{self.origin}: id2label must name the classes 0 to {len(named) - 1}, each by a text.",
                "Correct id2label.",
            )
        return tuple(named[number] for number in numbers)

    @property
    def special_ids(self) -> dict[str, tuple[int, ...]]:
        """The ids of special tokens by their names without "_token_id"; of some there may be several."""
        found: dict[str, tuple[int, ...]] = {}
        for name in SPECIAL_IDS:
            key = f"{name}_token_id"
            value = self.values.get(key)
            if value is not None and value != -1:  # as some say that there is none
                found[name] = self.counts(key) if isinstance(value, list) else (self.count(key),)
        return found

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise DataError(f"{self.origin} does not say {key}.", "Download config.json again, or add the key.")
        return default

    def _wrong(self, key: str, value: Any, wanted: str) -> Any:
        shown = f"'{_shown(value)}'" if isinstance(value, str) else _shown(value)
        raise DataError(f"{self.origin}: {key} must be {wanted}, not {shown}.", f"Correct {key}.")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _shown(value: Any) -> str:
    """A value as JSON has it, as far as a sentence can show it."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else str(value)
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
