"""What an exported ONNX folder says of itself, for run.py: its task, its special tokens, and how its texts become ids."""

import json
from typing import Any

from torch import nn

from regard.data.text.roles import MASK
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import (
    IMPORTED,
    as_text_only,
    hidden_tokens,
    imported_parts,
    own_parts,
    unknown_token,
    vocabulary_of,
)
from regard.data.text.tokenizer_training import SPACED
from regard.exchange.exportable import Exportable
from regard.models.bert import Bert
from regard.models.decoder_only import DecoderOnly
from regard.models.recurrent_encoder import RecurrentEncoderModel

# Kinds in which a space belongs to the token behind it, or to none: it is hidden with a word that a blank stands for.
_SPACE_IN_TOKEN = (*SPACED, "tiktoken", "words", IMPORTED)


def describe(model: nn.Module, given: Exportable) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the content of config.json, and the files of the tokenizers by their names.

    max_length:  the most tokens that are read at once, special ones counted; None for any
    longest:     the most of an example, special ones not counted, as far as the task cuts it; None for any
    pooling, normalised: of the vectors of texts, as an `Exportable` has them
    """
    most = given.config.max_length or getattr(given.config, "context", None)
    config: dict[str, Any] = {
        "task": given.task,
        "labels": given.labels,
        "max_length": most,
        "longest": given.longest or most,
        "unit": given.unit,
        "pooling": given.pooling,
        "normalised": given.normalised,
        "around": ([], []),
    }
    if given.image is not None:
        config["image"] = vars(given.image)
    if given.source is None or given.target is None:
        return config, {}
    config |= _special_tokens(model, given.task, given.source, given.target)
    if given.longest is None and most is not None:
        config["longest"] = most - sum(map(len, config["around"]))
    names, files = [*given.tokenizer_files], dict[str, str]()
    sides = {"source": (given.source, names[0]), "target": (given.target, names[-1])}
    for side, (tokenizer, name) in sides.items():
        config[side], own = tokenizer_settings(tokenizer, name)
        files |= own
    return config, files


def _special_tokens(model: nn.Module, task: str, source: Tokenizer, target: Tokenizer) -> dict[str, Any]:
    """Which tokens stand around what is read, begin and end what is written, stand for a blank, and are never written."""
    start, end = [source.start_id], [source.end_id]
    around = (start, end) if isinstance(model, Bert | RecurrentEncoderModel) else (list(source.prefix), end)
    if isinstance(model, DecoderOnly):
        around = (list(source.opening), [])
    never = target.specials.values() if task == "mask" else target.unwritten(unknown=task == "language")
    # The positions of a Llama have no end, but its context has.
    context = getattr(model, "context", None) or model.max_length if isinstance(model, DecoderOnly) else None
    return {
        "around": around,
        "prefix": list(source.prefix),
        "begin": [target.start_id, *target.prefix],
        "end": target.end_id,
        "mask": source.id_of(MASK) if task == "mask" else None,
        "context": context,
        "never": sorted({*never, *range(target.n_tokens, target.vocab_size)}),
    }


def tokenizer_settings(tokenizer: Tokenizer, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return how run.py reads a text as `Tokenizer` does, and the files for it by their names, that of `name` the first.

    files:          which decodes, which encodes, and which encodes text that goes on, without a space in front
    rows, unknown:  ids from `rows` on have no vector, and are read as unknown
    hidden:         tokens that the library does not know by the names that they have in a text
    forbidden:      ids that no text has, though the library may give them
    front:          the token of a space that each text is given in front
    hides_space:    whether a space in front of a blank is hidden with it
    marked:         whether text that goes on is encoded behind a mark instead
    """
    file, imported = json.loads(tokenizer.to_json()), tokenizer.kind == IMPORTED
    files = {name: tokenizer.to_json(), **(_text_files(tokenizer, name.removesuffix(".json")) if imported else {})}
    may_be_unknown = {tokenizer.unknown_id} if unknown_token(file) is not None else set()
    settings = {
        "files": list(files) if imported else [name] * 3,
        "unknown": tokenizer.unknown_id,
        "rows": tokenizer.vocab_size,
        "hidden": hidden_tokens(file) if imported else {},
        "forbidden": sorted({*tokenizer.specials.values()} - may_be_unknown) if imported else [],
        "front": (imported_parts(file) if imported else own_parts(file)).front,
        "hides_space": tokenizer.kind in _SPACE_IN_TOKEN,
        "marked": tokenizer.spaced and not imported,
    }
    return settings, files


def _text_files(tokenizer: Tokenizer, name: str) -> dict[str, str]:
    """The files that encode with an imported tokenizer, to which the names of special tokens are text like any other."""
    found = {}
    for purpose, one in (("reading", tokenizer), ("continuing", tokenizer.continuing)):
        file = json.loads(one.to_json())
        text_only = as_text_only(file, {*tokenizer.specials} & vocabulary_of(file))
        found[f"{name}.{purpose}.json"] = json.dumps(text_only, ensure_ascii=False)
    return found
