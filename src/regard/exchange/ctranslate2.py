"""A network of ours as a model of CTranslate2, the inference engine: a folder that its Translator or Generator opens.

    config, weights ── spec of the library ── quantised ── model.bin
    tokenizers ── names of tokens, by id ── vocabulary files, config.json

The library never sees a text: it maps names of tokens to the ids of our tokenizers and back. How a network becomes a spec
is in `ctranslate2_networks.py`; running a model, and choosing how, is not this file's.
"""

import os
from collections.abc import Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.data.text.roles import NO_TOKEN
from regard.data.text.tokenizer import Tokenizer
from regard.errors import ConfigError, UsageError, did_you_mean
from regard.models.bert import BertConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.model_config import ModelConfig
from regard.models.t5 import T5Config
from regard.models.transformer import TransformerConfig
from regard.runs.disk import delete_tree, sync, temporary_name

TYPES = ("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16")
"""How the library may keep weights, by its own names: quantised, or of which type of numbers."""

N_POSITIONS = 4096
"""How many positions a model has there whose encoding has no end with us: the library wants a table."""

# The networks that the library has, with the values that it has for some settings.
_NETWORKS: Mapping[type[ModelConfig], Mapping[str, tuple[Any, ...]]] = {
    TransformerConfig: {
        "window": (0,),
        "norm_order": ("pre", "post"),
        "positions": ("sinusoidal", "learned", "rotary", "index", "none"),
        "join_positions": ("add",),
    },
    T5Config: {},
    GPTConfig: {"window": (0,)},
    # Its sliding window is another one: a prompt that is longer than the window sees further than with us.
    LlamaConfig: {"window": (0,)},
    BertConfig: {"n_features": (0,)},
}


def supports(config: ModelConfig) -> str:
    """Return "" where the library can represent a network, else the setting that it has no counterpart for, or the model."""
    if type(config) not in _NETWORKS:
        return _kind(type(config))
    for name, allowed in _NETWORKS[type(config)].items():
        if getattr(config, name) not in allowed:
            return f"model.{name} = {getattr(config, name)}"
    return ""


def position_limit(config: ModelConfig) -> int | None:
    """Return the longest sequence that a converted model reads or writes; None for any."""
    if isinstance(config, TransformerConfig) and config.positions not in ("learned", "rotary"):
        return N_POSITIONS
    return config.max_length


def token_names(tokenizer: Tokenizer) -> list[str]:
    """Return the name of each token by its id, no two the same; rows of the embedding that no token has are named too."""
    vocabulary = tokenizer.vocabulary  # whose ids count up from 0
    free = (name for number in count() if (name := f"<unused_{number}>") not in vocabulary)
    return [*vocabulary, *islice(free, tokenizer.vocab_size - len(vocabulary))]


def convert(
    folder: Path,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    *,
    source: Tokenizer,
    target: Tokenizer,
    compute_type: str = "float32",
    vocabulary_map: bytes = b"",
) -> None:
    """Write a CTranslate2 model folder, whole or not at all; ConfigError where the library has no counterpart.

    Of BERT it holds the encoder, and the pooler if there is one: the states, and not what a head makes of them.

    folder:          does not exist yet
    weights:         as `state_dict` has them
    source, target:  the tokenizers of what is read and written; twice the same for a network with one vocabulary
    compute_type:    one of `TYPES`
    vocabulary_map:  which target tokens a source token may become, in the library's own format; empty for any
    """
    from regard.exchange.ctranslate2_networks import build_spec  # with the library, which is large

    if os.path.lexists(folder):
        raise UsageError(f"{folder} is there already.", "Give a new folder.")
    if compute_type not in TYPES:
        raise UsageError(f"There is no compute type '{compute_type}'.", did_you_mean(compute_type, TYPES))
    _check_network(config, source, target)
    translates = hasattr(config, "target_vocab")
    if vocabulary_map and not translates:
        raise UsageError(
            "A vocabulary map says what source tokens become, and this model has no source.",
            "Leave it out, or convert an encoder-decoder.",
        )
    spec = build_spec(config, weights, n_positions=N_POSITIONS)
    if translates:
        _add_vocabularies(spec, source, target)
    else:
        _add_vocabulary(spec, source)
    spec.validate()
    spec.optimize(quantization=compute_type)
    _write(folder, spec, vocabulary_map)


def _check_network(config: ModelConfig, source: Tokenizer, target: Tokenizer) -> None:
    """Refuse what the library cannot represent, and tokenizers of another network."""
    if reason := supports(config):
        known = ", ".join(sorted(_kind(kind) for kind in _NETWORKS))
        raise ConfigError(
            f"{reason} has no counterpart in CTranslate2.",
            "Export it in another format, or train a model without that setting."
            if type(config) in _NETWORKS
            else f"Models that have one: {known}.",
        )
    for name, tokenizer in (("source_vocab", source), ("target_vocab", target), ("vocab", source)):
        rows = getattr(config, name, tokenizer.vocab_size)
        if rows != tokenizer.vocab_size:
            raise ConfigError(
                f"model.{name} is {rows:,}, and the tokenizer has {tokenizer.vocab_size:,} tokens.",
                "Give the tokenizers that the model was trained with.",
            )


def _kind(config: type[ModelConfig]) -> str:
    return config.__name__.removesuffix("Config")


def _add_vocabularies(spec: Any, source: Tokenizer, target: Tokenizer) -> None:
    """Name the tokens of both sides; who reads a source has put its end token there already."""
    names = token_names(target)
    spec.register_source_vocabulary(token_names(source))
    spec.register_target_vocabulary(names)
    spec.config.unk_token = _unknown(target, names)
    spec.config.bos_token = spec.config.decoder_start_token = names[target.start_id]
    spec.config.eos_token = names[target.end_id]
    spec.config.add_source_bos = spec.config.add_source_eos = False


def _add_vocabulary(spec: Any, tokenizer: Tokenizer) -> None:
    """Name the tokens of a language model or an encoder."""
    names = token_names(tokenizer)
    spec.register_vocabulary(names)
    spec.config.unk_token = _unknown(tokenizer, names)
    spec.config.bos_token = names[tokenizer.opening[0]]
    spec.config.eos_token = names[tokenizer.end_id]


def _unknown(tokenizer: Tokenizer, names: list[str]) -> str:
    """The name of the unknown token, which the library wants; every name of ours is known to it, so that none becomes it."""
    if tokenizer.unknown_id != NO_TOKEN:
        return names[tokenizer.unknown_id]
    return names[-1] if tokenizer.n_tokens < len(names) else names[tokenizer.pad_id]


def _write(folder: Path, spec: Any, vocabulary_map: bytes) -> None:
    """Write the files under another name first, so that a folder of this name is always whole."""
    temporary = temporary_name(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        delete_tree(temporary)  # what a killed process of the same number left
        temporary.mkdir()
        spec.save(str(temporary))
        if vocabulary_map:
            (temporary / "vmap.txt").write_bytes(vocabulary_map)
        for file in temporary.iterdir():
            sync(file)
        temporary.rename(folder)
        sync(folder.parent)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}.", "Give another folder, or free some space."
        ) from None
    finally:
        delete_tree(temporary)
