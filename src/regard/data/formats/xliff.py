"""XLIFF 1.2 and 2.0, the exchange format of localisation: a row a translated unit, its fields named by language.

Units without a translation, or with one that is marked as still to be done, are left out. Inline codes are dropped, the
text that they enclose is kept.
"""

from collections.abc import Iterator, Sequence

from regard.data.formats.columns import call_unnamed
from regard.data.formats.markup import Units, read_units
from regard.data.formats.rows import Bad, Row

# The states of 1.2 (on `target`) and 2.0 (on `segment`) that mean: not translated yet.
UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})
# `source` and `target` stand elsewhere too: in suggestions (`alt-trans`, `match`) and in text that is never translated.
UNITS = frozenset({"trans-unit", "segment"})


def read_xliff(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each translated unit's two texts by language, the source first.

    A language that the file does not name is called as `columns` have it, else "source" or "target".
    """
    return read_units(_Document(file, columns))


class _Document(Units):
    root = "xliff"
    format = "XLIFF"

    def __init__(self, file: str, wanted: Sequence[str]) -> None:
        super().__init__(file)
        self._wanted = wanted
        self._languages = {"source": "", "target": ""}  # as the file names them
        self._line = 0
        self._translated = True
        self._sides: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name in ("xliff", "file"):
            for side, old, new in (("source", "source-language", "srcLang"), ("target", "target-language", "trgLang")):
                code = attributes.get(old) or attributes.get(new) or self._languages[side]
                self._languages[side] = self.language(code)
        elif name in UNITS:
            self._line, self._sides = line, {}
            self._translated = attributes.get("state") not in UNTRANSLATED
        elif self._is_side(name):
            if attributes.get("state") in UNTRANSLATED:
                self._translated = False
            self.begin_text()

    def end(self, name: str) -> None:
        if self._is_side(name):
            self._sides[name] = self.end_text()
        elif name in UNITS and self._translated and self._sides.get("target"):
            fields = {
                self._name("source", other="target"): self._sides.get("source", ""),
                self._name("target", other="source"): self._sides["target"],
            }
            self.rows.append(Row(self.file, self._line, fields))

    def _is_side(self, name: str) -> bool:
        return name in ("source", "target") and self.open[-1] in UNITS

    def _name(self, side: str, *, other: str) -> str:
        named = self._languages[side]
        return named or call_unnamed(side, given=self._wanted, known=self._languages[other])
