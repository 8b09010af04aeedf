"""The roles of special tokens: which token pads, starts, ends, stands for the unknown, for what is masked or left out.

A vocabulary of our own has them by name. One that came along with somebody else's weights has other names (BERT's [CLS],
Llama's <s>), several roles in one token (GPT-2's <|endoftext|>), and perhaps a token in front of every text. Which, says
a file beside it: `shared.roles.json` beside `shared.json`.

    {"end": "</s>", "pad": "<pad>", "prefix": ["eng_Latn"], "rows": 256206, "start": "</s>", "unknown": "<unk>"}
"""

import dataclasses
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError, did_you_mean

SPECIALS = ("<pad>", "<start>", "<end>", "<unk>")
"""What every vocabulary has: as tokens 0 to 3 where we learned it, behind all others where it was brought along.

No text is ever encoded as one of them, but for what is unknown.
"""
MASK = "<mask>"
GAPS = tuple(f"<gap_{number}>" for number in range(64))

NO_TOKEN = -1
"""The id of a role that no token plays."""

MOST_ROWS = 10_000_000
MOST_PREFIX = 8  # tokens
_LISTS = ("gaps", "prefix")


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which token plays which role, by the tokens' own names.

    end:            ends a text, and stands between two documents
    pad, start:     where no token does nothing else, the end token does it
    unknown, mask:  None where there is no such token
    gaps:           stand for spans that are left out of a text, in their order
    prefix:         what stands in front of every text: before a prompt, a document, a source; behind a decoder's start token
    rows:           how many rows the embedding has; 0: as many as there are tokens. Rows that no token has are never
                    written, and tokens that have no row are read as unknown
    """

    end: str
    pad: str | None = None
    start: str | None = None
    unknown: str | None = None
    mask: str | None = None
    gaps: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    rows: int = 0

    def named(self) -> dict[str, str]:
        """The tokens by the names that they have in our own vocabularies."""
        pad, start, end, unknown = SPECIALS
        found = {pad: self.pad or self.end, start: self.start or self.end, end: self.end}
        found |= {name: token for name, token in ((unknown, self.unknown), (MASK, self.mask)) if token is not None}
        return found | {f"<gap_{number}>": token for number, token in enumerate(self.gaps)}

    def to_json(self) -> str:
        """Return the file's text: what is set, in the order of the alphabet."""
        kept = {name: value for name, value in dataclasses.asdict(self).items() if value}
        return json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Roles":
        """Read what `to_json` wrote; DataError says what is wrong with it."""
        try:
            kept = json.loads(text)
        except (ValueError, RecursionError):
            raise DataError("it is not JSON.") from None
        if not isinstance(kept, dict):
            raise DataError("it is not a table of roles.")
        known = [field.name for field in dataclasses.fields(cls)]
        for name, value in kept.items():
            if name not in known:
                raise DataError(f"there is no role '{name}'.", did_you_mean(name, known))
            if not _fits(name, value):
                raise DataError(f"the value of '{name}' is not {_EXPECTED.get(name, 'the name of a token')}.")
        if "end" not in kept:
            raise DataError("no token has the role 'end'.")
        fields: dict[str, Any] = {name: tuple(value) if name in _LISTS else value for name, value in kept.items()}
        return cls(**fields)

    def check(self, specials: Mapping[str, int], *, n_tokens: int) -> None:
        """Refuse roles of tokens that are not special ones of the vocabulary, or have no row in the embedding."""
        for token in (*self.named().values(), *self.prefix):
            if token not in specials:
                raise DataError(f"its roles name '{token}', which is not one of its special tokens.")
            if self.rows and specials[token] >= self.rows:
                raise DataError(f"its token '{token}' has id {specials[token]:,}, and there are {self.rows:,} rows.")
        if self.rows and self.rows < n_tokens and self.unknown is None:
            raise DataError(f"it has {n_tokens:,} tokens for {self.rows:,} rows, and none for what is unknown.")


_EXPECTED = {
    "gaps": "a list of names of tokens",
    "prefix": f"a list of at most {MOST_PREFIX} names of tokens",
    "rows": f"a whole number up to {MOST_ROWS:,}",
}


def _fits(name: str, value: Any) -> bool:
    if name == "rows":
        return type(value) is int and 0 < value <= MOST_ROWS
    if name in _LISTS:
        names = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        return names and (name != "prefix" or len(value) <= MOST_PREFIX)
    return isinstance(value, str) and value != ""


def own_roles(specials: Collection[str]) -> Roles:
    """Return the roles in a vocabulary of our own, in which every token is named after its role."""
    for special in SPECIALS:
        if special not in specials:
            raise DataError(f"it has no special token {special}.")
    pad, start, end, unknown = SPECIALS
    mask, gaps = (MASK if MASK in specials else None), tuple(gap for gap in GAPS if gap in specials)
    return Roles(end=end, pad=pad, start=start, unknown=unknown, mask=mask, gaps=gaps)


def roles_file(path: Path) -> Path:
    """Where the roles of a tokenizer file stand: shared.roles.json beside shared.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.roles.json")
