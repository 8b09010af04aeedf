"""PO, gettext's catalogues of messages: a row a translated message. Fuzzy, obsolete and untranslated ones are left out.

A catalogue is a program's messages, some megabytes at most, and is read whole.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from regard.data.formats.rows import Bad, Row, read_lines
from regard.errors import DataError, MissingExtraError

SOURCE = "en"  # by gettext's convention a message's id is its English text


def read_po(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield {"en": id, LANGUAGE: translation}, the language as the header has it ("target" if it has none).

    A message with plural forms gives its singular and the first form.
    """
    try:
        import polib
    except ImportError:
        raise MissingExtraError("polib", "Reading PO files", "formats") from None
    with tempfile.TemporaryDirectory() as folder:
        # polib reads a file without a BOM and without gzip, and splits text that it is handed at U+2028.
        copy = Path(folder) / "catalogue.po"
        with copy.open("w", encoding="utf-8", newline="\n") as out:
            for number, line in enumerate(read_lines(file), start=1):
                if isinstance(line, Bad):
                    raise DataError(f"{file}:{number}: {line.reason}.", f"Convert it: msgconv --to-code=UTF-8 {file}")
                out.write(line + "\n")
        try:
            catalogue = polib.pofile(str(copy), encoding="utf-8")
        except OSError as error:
            line_number = re.search(r"line (\d+)", str(error))
            place = f"{file}:{line_number[1]}" if line_number else file
            raise DataError(f"{place}: not the syntax of PO.", f"`msgfmt --check {file}` says more.") from None
    language = catalogue.metadata.get("Language", "").strip()
    if language in ("", SOURCE):
        language = "target"
    for entry in catalogue:
        if entry.translated():
            translation = entry.msgstr_plural[0] if entry.msgid_plural else entry.msgstr
            yield Row(file, entry.linenum, {SOURCE: entry.msgid, language: translation})
