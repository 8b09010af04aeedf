"""The tables of docs/taps.md: what small networks of every family show at their taps in one forward pass."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import ModelTable
from regard.inspection.tap_names import tap_phrase
from regard.models.presets import build_model, model_config
from regard.parts.taps import recording

# What the letters of a shape stand for, all different, so that a dimension is told by its size.
SIZES = {"B": 2, "T": 5, "S": 7, "H": 3, "K": 4, "D": 12, "F": 19, "V": 23, "n": 11}
_BATCH, _TARGET, _SOURCE = SIZES["B"], SIZES["T"], SIZES["S"]
_WIDTHS = {"d_model": SIZES["D"], "n_heads": SIZES["H"], "d_ff": SIZES["F"]}
_PAIRS = {"source_vocab": SIZES["V"], "target_vocab": SIZES["V"], "n_encoder_layers": 2, "n_decoder_layers": 2}
_LENGTHS = torch.tensor([_SOURCE] * _BATCH)
_RECURRENT = {"d_model": 8, "d_state": SIZES["D"], "n_layers": 2}
_IMAGES = {"n_channels": 3, "n_outputs": SIZES["n"]}
_EDGE = 16
_VIT = {"patch_size": 4, "n_layers": 2, **_WIDTHS}  # 16 patches
_PATCHES = {"P": 16, "1 + P": 17}
_RESNET = {"n_blocks": [1, 1], "width": SIZES["D"] // 2}  # 64 places of 12 channels


def _ids(length: int) -> Tensor:
    return torch.zeros(_BATCH, length, dtype=torch.long)


def _pixels() -> Tensor:
    return torch.zeros(_BATCH, 3, _EDGE, _EDGE)


def _read_pair(model: nn.Module) -> None:
    model(_ids(_SOURCE), _LENGTHS, _ids(_TARGET))


def _read_tokens(model: nn.Module) -> None:
    model(_ids(_TARGET))


def _read_text(model: nn.Module) -> None:
    model(_ids(_TARGET), torch.tensor([_TARGET] * _BATCH))


def _read_image(model: nn.Module) -> None:
    model(_pixels())


def _read_captioned(model: nn.Module) -> None:
    model(_pixels(), _ids(_TARGET))


@dataclass(frozen=True)
class Network:
    """A small network: what tells it from others of its table, its preset and fields, how it is called.

    sizes: of its own, by letter
    """

    label: str
    preset: str
    fields: Mapping[str, Any]
    call: Callable[[nn.Module], None]
    sizes: Mapping[str, int] = field(default_factory=dict)


def _caption(encoder: Mapping[str, Any], decoder: Mapping[str, Any], **sizes: int) -> Network:
    fields = {"encoder": encoder, "decoder": decoder, "vocab": SIZES["V"], "n_channels": 3, "image_size": _EDGE}
    return Network("", "captioner-vit", fields, _read_captioned, sizes)


def _encoders(preset: str, fields: Mapping[str, Any], **sizes: int) -> list[Network]:
    """An encoder with each head, by a task that has it."""
    own = {"vocab": SIZES["V"], "n_outputs": SIZES["n"], **fields}
    heads = {"mask": "words", "classify": "sequence", "tag": "tokens", "no head": "none"}
    return [Network(task, preset, {**own, "head": head}, _read_text, sizes) for task, head in heads.items()]


_T5 = {**_PAIRS, **_WIDTHS, "d_head": SIZES["K"]}
_PAIRS_OF_RNN = {"source_vocab": SIZES["V"], "target_vocab": SIZES["V"], **_RECURRENT}
_GPT = {"vocab": SIZES["V"], "n_layers": 2, "n_heads": SIZES["H"], "d_model": SIZES["D"]}
_LLAMA = {**_GPT, "n_heads": 6, "n_key_heads": 3, "d_head": SIZES["K"], "d_ff": SIZES["F"]}
_BOTH_WAYS = {"E": 8, "2·D": 24}
# By the name of the block: the networks whose taps it lists.
NETWORKS: dict[str, Sequence[Network]] = {
    "transformer": [
        Network("Transformer", "transformer-base", {**_PAIRS, **_WIDTHS}, _read_pair),
        Network("T5", "t5-tiny", _T5, _read_pair),
    ],
    "recurrent": [
        Network(label, "birnn-attention", {**_PAIRS_OF_RNN, "cell": label.lower()}, _read_pair, _BOTH_WAYS)
        for label in ("GRU", "LSTM", "Elman")
    ],
    "decoder-only": [
        Network("GPT", "gpt-nano", _GPT, _read_tokens, {"F": 4 * SIZES["D"]}),
        Network("Llama", "llama-nano", _LLAMA, _read_tokens, {"H": 6, "G": 3}),
    ],
    "bert": _encoders("bert-tiny", {"n_layers": 2, **_WIDTHS}),
    "recurrent-encoder": _encoders("birnn", _RECURRENT, **_BOTH_WAYS),
    "vit": [Network("", "vit-tiny", {**_VIT, **_IMAGES, "image_size": _EDGE}, _read_image, _PATCHES)],
    "resnet": [Network("", "resnet-20", {**_RESNET, **_IMAGES}, _read_image, {"P": 64})],
    "convnet": [Network("", "convnet", {"widths": [6, SIZES["D"]], **_IMAGES}, _read_image, {"P": 16})],
    "captioner-vit": [_caption({"kind": "vit", **_VIT}, {"kind": "transformer", "n_layers": 2, **_WIDTHS}, **_PATCHES)],
    "captioner-rnn": [
        _caption({"kind": "resnet", "stem": "small", **_RESNET}, {"kind": "recurrent", **_RECURRENT}, P=64, E=8)
    ],
}


@torch.inference_mode()
def shapes(network: Network) -> dict[str, str]:
    """The shape of each tap in letters, by its name with letters for the numbers, in the order of computation."""
    config = model_config(ModelTable(preset=network.preset, fields=dict(network.fields)), origin="docs/tap_tables.py")
    model = build_model(config).eval()
    with recording(model) as taps:
        network.call(model)
    sizes = {**SIZES, **network.sizes}
    letters = {size: letter for letter, size in sizes.items()}
    assert len(letters) == len(sizes), f"two letters of {network.preset} stand for the same size"
    found = {}
    for name in taps:
        per_step = ", per step" if len(taps.calls(name)) > 1 else ""
        found[generic(name)] = f"({', '.join(dimensions(name, taps[name], letters))}){per_step}"
    return found


def dimensions(name: str, tensor: Tensor, letters: Mapping[int, str]) -> list[str]:
    """The letters of a tap's dimensions; a feature map's are those of images."""
    if tensor.dim() == 4 and re.search(r"\.(features|residual|output)$", name):
        return ["B", "C", "H", "W"]
    unknown = [size for size in tensor.shape if size != 1 and size not in letters]
    if unknown:
        sys.exit(f"{name} has the shape {tuple(tensor.shape)}: name the size {unknown[0]} in docs/tap_tables.py.")
    return [letters.get(size, "1") for size in tensor.shape]


def generic(name: str) -> str:
    """A tap's name with N, M, L in the places of its numbers."""
    letters = iter("NML")
    return ".".join(next(letters) if part.isdigit() else part for part in name.split("."))


def tap_table(block: str) -> str:
    """The taps of a block's networks, each in a row, in the order of computation; what only some have says which."""
    networks = NETWORKS[block]
    shown: dict[str, dict[str, list[str]]] = {}  # by name and shape, the labels of the networks
    order: list[str] = []
    for network in networks:
        place = 0
        for name, shape in shapes(network).items():
            if name not in shown:
                order.insert(place, name)
            shown.setdefault(name, {}).setdefault(shape, []).append(network.label)
            place = order.index(name) + 1
    rows = ["| name | shape | what it is |", "|---|---|---|"]
    for name in order:
        labels = [label for own in shown[name].values() for label in own]
        by_shape = [f"{', '.join(own)}: {shape}" for shape, own in shown[name].items()]
        shape = "; ".join(by_shape if len(by_shape) > 1 else shown[name])
        only = f"{', '.join(labels)}: " if len(by_shape) == 1 and len(labels) < len(networks) else ""
        rows.append(f"| `{name}` | {shape} | {only}{about(name)} |")
    return "\n".join(rows)


def about(name: str) -> str:
    """The phrase of a tap; there must be one."""
    phrase = tap_phrase(name)
    if not phrase:
        sys.exit(f"The tap {name} has no phrase: write one into src/regard/inspection/tap_names.py.")
    return phrase
