"""Tokenizers as files of a Hugging Face folder: tokenizer.json and the tables that name its special tokens.

Marian's and M2M100's have the files of their own classes instead: SentencePiece models, and a vocabulary.
"""

import json
from pathlib import Path
from typing import Any

from regard.data.text.roles import Roles
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import IMPORTED
from regard.errors import UsageError
from regard.exchange.sentencepiece_writing import is_sentencepiece, piece_vocabulary, sentencepiece_bytes
from regard.exchange.tokenizer_files import Family, languages_of
from regard.runs.disk import as_json, write_atomically

ENDLESS = int(1e30)  # what transformers writes for a length without limit


def write_tokenizer(
    folder: str | Path,
    tokenizer: Tokenizer,
    *,
    family: Family,
    target: Tokenizer | None = None,
    max_length: int | None = None,
) -> None:
    """Write the files with which `AutoTokenizer.from_pretrained(folder)` gives the same ids.

    target:      the tokenizer of the other side, of the same file, or of another SentencePiece model with the same
                 vocabulary (Marian). A prefix that only it has is `forced_bos_token_id` of the model to transformers
    max_length:  how many tokens a model reads at most
    """
    file, other = json.loads(tokenizer.to_json()), json.loads((target or tokenizer).to_json())
    if file != other or tokenizer.n_pieces > tokenizer.vocab_size:
        _write_pieces(Path(folder), (tokenizer, target or tokenizer), (file, other), max_length)
        return
    file["post_processor"] = _template(tokenizer, family)
    folder, roles = Path(folder), tokenizer.roles
    named = _named(roles, family)
    used = {*named.values()}
    further = [name for name in tokenizer.specials if name not in used]
    # Text is never read as a special token here; transformers does so with one of ours only if it is told to.
    own = {} if tokenizer.kind == IMPORTED else {"split_special_tokens": True}
    settings = {
        **named,
        **_sides(tokenizer, target or tokenizer),
        "additional_special_tokens": further,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length or ENDLESS,
        "tokenizer_class": "PreTrainedTokenizerFast",
        **own,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "tokenizer.json", json.dumps(file, ensure_ascii=False, indent=2).encode())
    for name, content in (
        ("tokenizer_config.json", settings),
        ("special_tokens_map.json", {**named, "additional_special_tokens": further}),
    ):
        write_atomically(folder / name, as_json(content, indent=2) + b"\n")


def _write_pieces(
    folder: Path, sides: tuple[Tokenizer, Tokenizer], files: tuple[Any, Any], max_length: int | None
) -> None:
    """Write the files of Marian's class, or of M2M100's: SentencePiece models, and one vocabulary for both sides.

    Those classes alone read pieces that are not in the vocabulary as unknown.
    """
    source, target = sides
    vocabulary, unknown = piece_vocabulary(source), source.roles.unknown
    if unknown is None or not all(map(is_sentencepiece, files)) or piece_vocabulary(target) != vocabulary:
        raise UsageError(
            "Source and target have a vocabulary of their own each, and a Hugging Face folder has one for both.",
            "Train with tokenizer.shared = true.",
        )
    models = [sentencepiece_bytes(file, unknown) for file in files]
    languages = [name for name in source.specials if name.startswith("__")]
    settings: dict[str, Any] = {**_named(source.roles, "encoder-decoder"), "model_max_length": max_length or ENDLESS}
    if languages:  # whose ids follow upon the vocabulary
        written = {"sentencepiece.bpe.model": models[0]}
        vocabulary = {name: id for name, id in vocabulary.items() if name not in languages}
        settings |= {"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": languages}
        settings |= {"bos_token": "<s>", **_sides(source, target)}
    else:
        written = {"source.spm": models[0], "target.spm": models[1]}
        settings |= {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": "",
            "target_lang": "",
            **_sides(source, target),
        }
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"vocab.json": vocabulary, "tokenizer_config.json": settings}
    for name, content in {**written, **{name: as_json(one, indent=2) + b"\n" for name, one in tables.items()}}.items():
        write_atomically(folder / name, content)


def _sides(source: Tokenizer, target: Tokenizer) -> dict[str, str]:
    """The languages of both sides; where only the source names one, as Marian's does, it is the target's."""
    codes = {token: code for code, token in languages_of(source.specials).items()}
    found = [codes.get(next(iter(side.roles.prefix), "")) for side in (source, target)]
    if found[0] is not None and source.roles.prefix[0].startswith(">>"):
        found = [None, found[0]]
    return {key: code for key, code in zip(("src_lang", "tgt_lang"), found, strict=True) if code is not None}


def _named(roles: Roles, family: Family) -> dict[str, str]:
    """The special tokens by what transformers calls them."""
    found = {"pad_token": roles.pad, "unk_token": roles.unknown, "mask_token": roles.mask}
    if family == "encoder-only":
        found |= {"cls_token": roles.start, "sep_token": roles.end}
    else:
        # An encoder-decoder starts with what its own config names, which is padding for T5 and the end token for M2M100.
        starts = family == "decoder-only" or roles.start not in (roles.pad, roles.end)
        found |= {"bos_token": roles.start if starts else None, "eos_token": roles.end}
    return {key: name for key, name in found.items() if name is not None}


def _template(tokenizer: Tokenizer, family: Family) -> dict[str, Any] | None:
    """The part that puts special tokens around a text."""
    roles = tokenizer.roles
    start, end = roles.start or roles.end, (roles.end,) if family != "decoder-only" else ()
    before = (start,) if family == "encoder-only" else roles.prefix
    if not before and not end:
        return None

    def special(name: str, side: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": side}}

    def text(name: str, side: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": side}}

    first = [*(special(name, 0) for name in before), text("A", 0), *(special(name, 0) for name in end)]
    names = {*before, *end}
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, text("B", 1), *(special(name, 1) for name in end)],
        "special_tokens": {
            name: {"id": name, "ids": [tokenizer.specials[name]], "tokens": [name]} for name in sorted(names)
        },
    }
