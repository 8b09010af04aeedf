"""The kinds of export, one row each: what `regard export --to KIND` writes, and which options apply. Loads no torch."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import UsageError, did_you_mean

MODULE = "regard.exchange"


@dataclass(frozen=True, kw_only=True)
class ExportKind:
    """One kind.

    name, about:  what --to is given, and what it writes, in a phrase
    home:         MODULE:FUNCTION below `regard.exchange`, called with a path, an `Exportable` and the options
    options:      the settings that the kind takes: compute_type, shortlist, source_language, target_language
    compute_type: how weights are kept where nobody says; empty for a kind that keeps them as they are
    is_file:      whether one file is written; else a folder, which exists and is empty when the function is called
    """

    name: str
    about: str
    home: str
    options: tuple[str, ...] = ()
    compute_type: str = ""
    is_file: bool = False

    def write(self, path: Path, given: Any, settings: Mapping[str, Any]) -> Sequence[str]:
        """Write a run there; return what there is to note."""
        module, _, function = self.home.partition(":")
        written: Sequence[str] = getattr(importlib.import_module(f"{MODULE}.{module}"), function)(
            path, given, **settings
        )
        return written


KINDS: Mapping[str, ExportKind] = {
    kind.name: kind
    for kind in (
        ExportKind(
            name="huggingface",
            about="a folder that Hugging Face's transformers loads",
            home="huggingface_export:write_huggingface",
        ),
        ExportKind(
            name="ctranslate2",
            about="a CTranslate2 model, for the fastest decoding on a CPU",
            home="ctranslate2_export:write_ctranslate2",
            options=("compute_type", "shortlist"),
            compute_type="float32",
        ),
        ExportKind(
            name="onnx",
            about="ONNX graphs, with a small Python file that runs them without torch",
            home="onnx_export:write_onnx",
        ),
        ExportKind(
            name="argos",
            about="a package (.argosmodel) for Argos Translate and LibreTranslate",
            home="argos:write_argos",
            options=("compute_type", "source_language", "target_language"),
            compute_type="int8",
            is_file=True,
        ),
        ExportKind(
            name="safetensors",
            about="weights and vocabulary alone, for code of your own",
            home="safetensors_export:write_safetensors",
        ),
    )
}


def find_kind(name: str) -> ExportKind:
    """Return the kind of this name."""
    if name not in KINDS:
        raise UsageError(f"There is no export to '{name}'.", did_you_mean(name, KINDS))
    return KINDS[name]
