"""PO, gettext's catalogues of messages: a row a translated message. Fuzzy, obsolete and untranslated ones are left out.

A catalogue is a program's messages, some megabytes at most, and is read whole.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.data.formats.columns import call_unnamed
from regard.data.formats.rows import Bad, Row, read_lines
from regard.errors import DataError, MissingExtraError

SOURCE = "en"  # by gettext's convention a message's id is its English text
# Arabic has six forms, of which the first is for nothing and not for one.
FORMS_FROM_ZERO = 6
_CODE = re.compile(r"[\w.@-]{1,40}")  # de, pt_BR, sr@latin


def read_po(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield {"en": id, LANGUAGE: translation}, the language as the header has it.

    One that the header does not name is called as `columns` have it, else "target".
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
    if language == SOURCE or not _CODE.fullmatch(language):
        language = call_unnamed("target", given=columns, known=SOURCE)
    for entry in catalogue:
        if entry.translated():
            for message, translation in _translations(entry):
                # polib says 0 for a first message without a header before it.
                yield Row(file, entry.linenum or 1, {SOURCE: message, language: translation})


def _translations(entry: Any) -> list[tuple[str, str]]:
    """Return the message with its translation, or the singular and the plural with those forms that translate them."""
    if not entry.msgid_plural:
        return [(entry.msgid, entry.msgstr)]
    forms: dict[int, str] = entry.msgstr_plural
    n_forms = max(forms, default=-1) + 1
    if n_forms == 2:
        wanted = [(entry.msgid, 0), (entry.msgid_plural, 1)]
    else:
        # One form serves every number, one among them. Of three and more the first is for one (and in Russian for 21),
        # but which of the others the English plural means depends on a number that is not there.
        wanted = [(entry.msgid, 0)] if n_forms < FORMS_FROM_ZERO else []
    return [(message, forms[form]) for message, form in wanted if form in forms]
