"""GGUF files of small networks and tokenizers, written with the `gguf` package as llama.cpp's converter writes them."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import sentencepiece
import torch
from torch import Tensor

Type = gguf.GGMLQuantizationType
FACTORS = "rope_freqs.weight"


@dataclass
class Draft:
    """A file that is yet to be written, and may be changed: metadata by key, tensors by name with their types."""

    values: dict[str, Any]
    tensors: dict[str, tuple[np.ndarray[Any, Any], gguf.GGMLQuantizationType]] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        writer = gguf.GGUFWriter(path, self.values["general.architecture"])
        for key, value in self.values.items():
            if key == "general.alignment":
                writer.add_custom_alignment(value)
            elif key != "general.architecture":
                _add(writer, key, value)
        for name, (numbers, kind) in self.tensors.items():
            writer.add_tensor(name, np.ascontiguousarray(numbers), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def without(self, *keys: str) -> "Draft":
        """The same without some keys or tensors."""
        values = {key: value for key, value in self.values.items() if key not in keys}
        return Draft(values, {name: one for name, one in self.tensors.items() if name not in keys})

    def having(self, values: Mapping[str, Any]) -> "Draft":
        """The same with other values."""
        return Draft({**self.values, **values}, self.tensors)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
        return
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    kinds[type(value)](key, value)


# -- networks -----------------------------------------------------------------------------------------------------------


def permuted(rows: Tensor, n_heads: int) -> Tensor:
    """Queries or keys as the converter arranges them: feature i of a head beside i + K/2, with which it turns."""
    return rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def drafted(network: Any, architecture: str = "llama", kind: gguf.GGMLQuantizationType = Type.F32) -> Draft:
    """A network of the transformers package; matrices by a type, norms and biases in single precision."""
    config = network.config
    rotary = config.rope_parameters
    sizes = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.freq_base": float(rotary["rope_theta"]),
        "vocab_size": config.vocab_size,
    }
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if architecture == "llama":
        sizes |= dict.fromkeys(("rope.dimension_count", "attention.key_length", "attention.value_length"), width)
    if rotary["rope_type"] == "linear":
        sizes |= {"rope.scaling.type": "linear", "rope.scaling.factor": float(rotary["factor"])}
    draft = Draft({"general.architecture": architecture, "general.file_type": 0})
    draft.values |= {f"{architecture}.{key}": value for key, value in sizes.items()}
    _add_tensors(draft, network, architecture, kind)
    if rotary["rope_type"] == "llama3":
        draft.tensors[FACTORS] = rotary_factors(rotary, width), Type.F32
    return draft


def _add_tensors(draft: Draft, network: Any, architecture: str, kind: gguf.GGMLQuantizationType) -> None:
    config = network.config
    arch = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2}[architecture]
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    for name, tensor in network.state_dict().items():
        if name in tied:
            continue
        for part, n_heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if architecture == "llama" and part in name:
                tensor = permuted(tensor, n_heads)
        numbers, own = tensor.numpy(), kind if tensor.ndim > 1 else Type.F32
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert stored is not None
        draft.tensors[stored] = (gguf.quantize(numbers, own), own)


def rotary_factors(rotary: Mapping[str, Any], width: int) -> np.ndarray[Any, Any]:
    """By what Llama 3.1 divides each angle."""
    factors = []
    for feature in range(0, width, 2):
        turns = rotary["original_max_position_embeddings"] / (2 * math.pi * rotary["rope_theta"] ** (feature / width))
        low, high, factor = rotary["low_freq_factor"], rotary["high_freq_factor"], rotary["factor"]
        smooth = (turns - low) / (high - low)
        factors.append(1.0 if turns > high else factor if turns < low else 1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, np.float32)


def logits(network: Any, ids: Tensor) -> Tensor:
    with torch.inference_mode():
        found: Tensor = network(input_ids=ids).logits
    return found


# -- tokenizers ---------------------------------------------------------------------------------------------------------


def sentencepiece_values(folder: Path) -> dict[str, Any]:
    """The metadata of the tokenizer.model of a folder, with unused tokens up to the rows of its embedding."""
    found = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    tokens, scores, types = [], [], []
    for id in range(found.get_piece_size()):
        tokens.append(found.id_to_piece(id))
        scores.append(found.get_score(id))
        special = gguf.TokenType.UNKNOWN if found.is_unknown(id) else gguf.TokenType.CONTROL
        plain = gguf.TokenType.BYTE if found.is_byte(id) else gguf.TokenType.NORMAL
        types.append(int(special if found.is_unknown(id) or found.is_control(id) else plain))
    n_rows = json.loads((folder / "config.json").read_text())["vocab_size"]
    beyond = range(len(tokens), n_rows)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [*tokens, *(f"[PAD{id}]" for id in beyond)],
        "tokenizer.ggml.scores": [*scores, *(-1000.0 for _ in beyond)],
        "tokenizer.ggml.token_type": [*types, *(int(gguf.TokenType.UNUSED) for _ in beyond)],
        "tokenizer.ggml.bos_token_id": found.bos_id(),
        "tokenizer.ggml.eos_token_id": found.eos_id(),
        "tokenizer.ggml.unknown_token_id": found.unk_id(),
        "tokenizer.ggml.add_bos_token": True,
    }


def byte_level_values(folder: Path, pre: str, *, rows: int = 0) -> dict[str, Any]:
    """The metadata of the tokenizer.json of a folder, with unused tokens up to the rows of its embedding."""
    file = json.loads((folder / "tokenizer.json").read_text())
    added = {token["id"]: token for token in file["added_tokens"]}
    names = {id: token for token, id in file["model"]["vocab"].items()} | {
        id: one["content"] for id, one in added.items()
    }
    kinds = {id: gguf.TokenType.CONTROL if one["special"] else gguf.TokenType.USER_DEFINED for id, one in added.items()}
    values = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [names.get(id, f"[PAD{id}]") for id in range(max(rows, len(names)))],
        "tokenizer.ggml.token_type": [
            int(kinds.get(id, gguf.TokenType.NORMAL if id in names else gguf.TokenType.UNUSED))
            for id in range(max(rows, len(names)))
        ],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in file["model"]["merges"]],
    }
    named, ids = json.loads((folder / "tokenizer_config.json").read_text()), {name: id for id, name in names.items()}
    for role, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if named.get(f"{role}_token") is not None:
            values[f"tokenizer.ggml.{key}_token_id"] = ids[named[f"{role}_token"]]
    return values
