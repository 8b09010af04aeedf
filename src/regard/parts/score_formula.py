"""How a score of attention comes about from one query and one key, number by number: what each kind says of itself.

An attention's `formula()` holds all that is needed beside what its taps show, so that a score can be computed again far
from the network. Summands add up to the score, after a scale and a bias: Σ summands · scale + bias.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class DotProductFormula:
    """q·k · scale: scaled dot-product attention, T5's without a scale, dot and bilinear scores of recurrent decoders.

    With rotary positions, queries and keys are shown after they were turned. Where several heads share a key
    (grouped-query attention), there are fewer heads of keys than of queries.
    """

    kind: ClassVar[str] = "dot product"
    text: ClassVar[str] = "query · key"
    code: ClassVar[str] = "query * key"
    scale: float = 1.0
    n_heads: int = 1
    n_key_heads: int = 1

    def key_head(self, head: int) -> int:
        """The head of the keys and values that a head of queries reads."""
        return head * self.n_key_heads // self.n_heads

    def summands(self, query: Vector, key: Vector) -> Vector:
        """(K,) and (K,) to (K,)."""
        return query * key

    def constants(self) -> dict[str, tuple[float, ...]]:
        """What the code needs beside query and key."""
        return {}


@dataclass(frozen=True, kw_only=True)
class AdditiveFormula:
    """w₂ · tanh(W_q h + W_k s), of which query and key are shown as the two summands inside (Bahdanau et al. 2015)."""

    kind: ClassVar[str] = "additive"
    text: ClassVar[str] = "weight · tanh(query + key)"
    code: ClassVar[str] = "weight * numpy.tanh(query + key)"
    weight: tuple[float, ...]
    scale: ClassVar[float] = 1.0
    n_heads: ClassVar[int] = 1

    def key_head(self, head: int) -> int:
        """The only one."""
        return 0

    def summands(self, query: Vector, key: Vector) -> Vector:
        """(K,) and (K,) to (K,)."""
        summands: Vector = np.asarray(self.weight) * np.tanh(query + key)
        return summands

    def constants(self) -> dict[str, tuple[float, ...]]:
        """What the code needs beside query and key."""
        return {"weight": self.weight}


ScoreFormula = DotProductFormula | AdditiveFormula
_KINDS: dict[str, type[ScoreFormula]] = {kind.kind: kind for kind in (DotProductFormula, AdditiveFormula)}


def formula_to_json(formula: ScoreFormula) -> dict[str, Any]:
    """As data that `json.dumps` takes."""
    return {"kind": formula.kind, **asdict(formula)}


def formula_from_json(kept: dict[str, Any]) -> ScoreFormula:
    """From what `formula_to_json` gave; ValueError, TypeError or KeyError for anything else."""
    fields = dict(kept)
    kind = _KINDS[fields.pop("kind")]
    if "weight" in fields:
        fields["weight"] = tuple(map(float, fields["weight"]))
    return kind(**fields)
