"""Export to Argos Translate and LibreTranslate: a package (`.argosmodel`) that both install.

    translate-en_de-1_0/
        metadata.json         the two languages, the version
        model/                CTranslate2: reads and writes pieces by name
        sentencepiece.model   from text to pieces and back, for both sides
        minisbd/rules.onnx    cuts a paragraph into sentences (`argos_sentences.py`), so that nothing is downloaded
        README.md             the model card

Argos Translate hands a source's pieces on as they are, and so the model itself adds the end token that ours learned with.
"""

import json
import re
import tempfile
import zipfile
from pathlib import Path

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import IMPORTED
from regard.errors import UsageError
from regard.exchange.argos_sentences import sentence_graph
from regard.exchange.ctranslate2 import convert
from regard.exchange.exportable import Exportable
from regard.exchange.sentencepiece_writing import is_sentencepiece, own_sentencepiece_bytes, sentencepiece_bytes
from regard.runs.disk import TEMPORARY, as_json, sync

ARGOS_VERSION = "1.11"
"""The first version of Argos Translate that finds sentences with what a package brings in `minisbd`."""

NAMES = {
    "ar": "Arabic",
    "az": "Azerbaijani",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "ms": "Malay",
    "nb": "Norwegian",
    "nl": "Dutch",
    "pb": "Portuguese (Brazil)",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
    "zt": "Chinese (traditional)",
}
"""What people call the languages, by the codes of Argos Translate: ISO 639-1, with its own pb and zt."""

_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_VERSION = re.compile(r"\d+(\.\d+)*")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in the archive, so that the same run gives the same bytes


def write_argos(
    path: Path,
    given: Exportable,
    *,
    source_language: str = "",
    target_language: str = "",
    compute_type: str = "int8",
    version: str = "1.0",
) -> list[str]:
    """Write a translator as a package, whole or not at all; return what there is to note.

    source_language, target_language:  codes such as en and de
    compute_type:                      how CTranslate2 keeps the weights
    version:                           of the package, as Argos Translate compares them: 1.0, 1.1
    """
    _check_names(source_language, target_language, version)
    source, target = _check_run(given)
    pieces = _sentencepiece(source, target)
    rules = sentence_graph()
    name = f"translate-{source_language}_{target_language}-{version.replace('.', '_')}"
    metadata = {
        "package_version": version,
        "argos_version": ARGOS_VERSION,
        "from_code": source_language,
        "from_name": NAMES.get(source_language, source_language),
        "to_code": target_language,
        "to_name": NAMES.get(target_language, target_language),
        "type": "translate",
    }
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f"{TEMPORARY}argos-") as work:
        model = Path(work, "model")
        convert(model, given.config, given.weights, source=source, target=target, compute_type=compute_type)
        _read_plain_pieces(model)
        files = {
            "metadata.json": as_json(metadata, indent=2) + b"\n",
            "README.md": given.card.encode(),
            "sentencepiece.model": pieces,
            "minisbd/rules.onnx": rules,
            **{f"model/{file.name}": file.read_bytes() for file in sorted(model.iterdir())},
        }
        archive = Path(work, "package")
        with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as package:
            for file, content in files.items():
                package.writestr(_entry(f"{name}/{file}"), content)
        sync(archive)
        archive.replace(path)
    return [
        f"It needs Argos Translate {ARGOS_VERSION} or later, or a LibreTranslate that uses MiniSBD. To install it:"
        " argostranslate.package.install_from_path(FILE)"
    ]


def _check_names(source: str, target: str, version: str) -> None:
    """Refuse codes that are no language's, or both the same, and a version that cannot be compared."""
    for side, code in (("source", source), ("target", target)):
        if not code:
            raise UsageError(
                f"A package for Argos Translate names its languages, and the {side} language is not given.",
                f"Give its code with --{side}-language, such as {'en' if side == 'source' else 'de'}.",
            )
        if not _CODE.fullmatch(code):
            raise UsageError(
                f"--{side}-language must be a code of ISO 639 such as en, de or pt-BR, not '{code}'.",
                _near(code),
            )
    if source == target:
        raise UsageError(
            f"--source-language and --target-language are both {source}.", "Give the codes of two languages."
        )
    if not _VERSION.fullmatch(version):
        raise UsageError(f"The version of a package must be like 1.0, not '{version}'.", "Give numbers with dots.")


def _near(code: str) -> str:
    """What may have been meant: the code of a language that was given by its name."""
    known = next((one for one, name in NAMES.items() if name.lower() == code.strip().lower()), code.strip().lower())
    return f"Did you mean {known}?" if known in NAMES else "Give the code of the language."


def _check_run(given: Exportable) -> tuple[Tokenizer, Tokenizer]:
    """Refuse what does not translate texts."""
    if given.task != "translate" or given.source is None or given.target is None:
        raise UsageError(
            f"Argos Translate translates, and this run's task is {given.task}.", "Export a run of the task translate."
        )
    return given.source, given.target


def _sentencepiece(source: Tokenizer, target: Tokenizer) -> bytes:
    """Return the SentencePiece model of both sides; UsageError where there is none that gives the same pieces."""
    if source.kind == IMPORTED and not source.prefix and not target.prefix and source.roles.unknown is not None:
        file, other = (json.loads(one.to_json()) for one in (source, target))
        if is_sentencepiece(file) and is_sentencepiece(other):
            # That of the source: pieces that are only the target's it joins by their names, which is all it needs to.
            return sentencepiece_bytes(file, source.roles.unknown)
    if source.to_json() != target.to_json():
        raise UsageError(
            "Source and target have a vocabulary of their own each, and a package for Argos Translate has one for both.",
            "Train with tokenizer.shared = true and --tokenizer sentencepiece.",
        )
    if source.kind != "sentencepiece":
        raise UsageError(
            f"A package for Argos Translate holds a SentencePiece model, and none gives the tokens of a vocabulary of kind"
            f" {source.kind}.",
            "Train with --tokenizer sentencepiece.",
        )
    return own_sentencepiece_bytes(source)


def _read_plain_pieces(model: Path) -> None:
    """Let a CTranslate2 model add the end token to a source, and know pieces by the names that SentencePiece gives them.

    A space in front of a name hides it from text that is read with an imported tokenizer of the other side.
    """
    config = json.loads((model / "config.json").read_bytes())
    (model / "config.json").write_bytes(as_json({**config, "add_source_eos": True}, indent=2) + b"\n")
    for file in model.glob("*vocabulary.json"):
        names = [name.removeprefix(" ") for name in json.loads(file.read_bytes())]
        file.write_bytes(json.dumps(names, ensure_ascii=False, indent=0).encode())


def _entry(name: str) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name, _EPOCH)
    found.compress_type = zipfile.ZIP_DEFLATED
    found.external_attr = 0o644 << 16
    return found
