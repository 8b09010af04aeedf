"""TMX, the exchange format of translation memories: a row a unit (`tu`), its fields named by language.

A unit need not hold every language of the file. Inline codes are dropped, highlighted text (`hi`) is kept.
"""

from collections.abc import Iterator, Sequence

from regard.data.formats.markup import XML_LANG, Units, read_units
from regard.data.formats.rows import Bad, Row


def read_tmx(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each unit's segments by language; of two segments in one language the first counts."""
    return read_units(_Memory(file))


class _Memory(Units):
    root = "tmx"
    format = "TMX"

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._line = 0
        self._language = ""
        self._fields: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name == "tu":
            self._line, self._fields = line, {}
        elif name == "tuv":
            # Before TMX 1.4 the attribute was plain `lang`.
            self._language = attributes.get(XML_LANG) or attributes.get("lang", "")
        elif name == "seg":
            self.begin_text()

    def end(self, name: str) -> None:
        if name == "seg":
            text = self.end_text()
            if self._language:
                self._fields.setdefault(self._language, text)
        elif name == "tu":
            self.rows.append(Row(self.file, self._line, self._fields))
