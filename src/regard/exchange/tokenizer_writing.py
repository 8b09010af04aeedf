"""Tokenizers as files of a Hugging Face folder: tokenizer.json and the two tables that name its special tokens."""

import json
from pathlib import Path
from typing import Any

from regard.data.text.roles import Roles
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import IMPORTED
from regard.errors import UsageError
from regard.exchange.tokenizer_files import Family, languages_of
from regard.runs.disk import as_json, write_atomically


def write_tokenizer(
    folder: str | Path,
    tokenizer: Tokenizer,
    *,
    family: Family,
    target: Tokenizer | None = None,
    max_length: int | None = None,
) -> None:
    """Write the files with which `AutoTokenizer.from_pretrained(folder)` gives the same ids.

    target:      the tokenizer of the other side, which must be of the same file; only its prefix may differ, which
                 transformers wants as `forced_bos_token_id` of the model
    max_length:  how many tokens a model reads at most
    """
    if target is not None and target.to_json() != tokenizer.to_json():
        raise UsageError(
            "Source and target have a vocabulary of their own each, and a Hugging Face folder has one for both.",
            "Train with tokenizer.shared = true.",
        )
    if tokenizer.n_pieces > tokenizer.vocab_size:
        raise UsageError(
            f"{tokenizer.n_pieces - tokenizer.vocab_size:,} pieces of the vocabulary have no row in the embedding, and only"
            " the class that it came with reads them as unknown.",
            "Copy the tokenizer files of the folder that it came from.",
        )
    folder, roles = Path(folder), tokenizer.roles
    file = {**json.loads(tokenizer.to_json()), "post_processor": _template(tokenizer, family)}
    named = _named(roles, family)
    used = {*named.values()}
    further = [name for name in tokenizer.specials if name not in used]
    # Text is never read as a special token here; transformers does so with one of ours only if it is told to.
    own = {} if tokenizer.kind == IMPORTED else {"split_special_tokens": True}
    codes = {token: code for code, token in languages_of(tokenizer.specials).items()}
    sides = {"src_lang": tokenizer.roles.prefix, "tgt_lang": (target or tokenizer).roles.prefix}
    settings = {
        **named,
        **{key: codes[prefix[0]] for key, prefix in sides.items() if prefix and prefix[0] in codes},
        "additional_special_tokens": further,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length or int(1e30),
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
