"""TMX, the exchange format of translation memories: a row a unit (`tu`), its fields named by language.

A unit need not hold every language of the file. Inline codes are dropped, highlighted text (`hi`) is kept.
"""

from collections.abc import Iterator, Sequence

from regard.data.formats.columns import language_of, match
from regard.data.formats.markup import XML_LANG, Units, read_units
from regard.data.formats.rows import Bad, Row


def read_tmx(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each unit's segments by language, the one that the file was translated from first.

    Of two segments in one language the first counts.
    """
    return read_units(_Memory(file))


class _Memory(Units):
    root = "tmx"
    format = "TMX"

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._file_source = self._unit_source = ""
        self._line = 0
        self._language = ""
        self._fields: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name == "header":
            self._file_source = attributes.get("srclang", "")
        elif name == "tu":
            self._line, self._fields = line, {}
            self._unit_source = attributes.get("srclang") or self._file_source
        elif name == "tuv":
            # Before TMX 1.4 the attribute was plain `lang`.
            self._language = self.language(attributes.get(XML_LANG) or attributes.get("lang", ""))
        elif name == "seg":
            self.begin_text()

    def end(self, name: str) -> None:
        if name == "seg":
            text = self.end_text()
            if self._language:
                self._fields.setdefault(self._language, text)
        elif name == "tu":
            self.rows.append(Row(self.file, self._line, _source_first(self._fields, self._unit_source)))


def _source_first(fields: dict[str, str], source: str) -> dict[str, str]:
    """Return the fields, that of the language `source` before the others; "*all*" and unknown ones are no language."""
    # The header may say en-US where the units say en.
    found = match(source, fields) or match(language_of(source), fields)
    return {found[0]: fields[found[0]], **fields} if source and len(found) == 1 else fields
