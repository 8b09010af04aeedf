"""Tiny random networks of every family with their tasks, and their traces: what the tests of the inspector share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from regard.config import DecodingConfig, from_tables
from regard.data.images.decoding import ImageShape
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.roles import GAPS, MASK
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.inspection.trace import Subject, Trace, trace_input
from regard.models.presets import build_model, model_config
from regard.tasks import find_task
from regard.tasks.images.preprocessing import ImageTable
from regard.tasks.labelling.labels import LabelTable

TEXTS = [f"the {noun} is {word} today ." for noun in ("dog", "film", "song") for word in ("good", "bad")]
WIDTHS = {"d_model": 8, "n_heads": 2, "d_ff": 16}
IMAGES = {"image", "caption"}


@dataclass(frozen=True)
class Family:
    """A network: the task it does, its preset, and the fields that make it small."""

    task: str
    preset: str
    fields: Mapping[str, Any] = field(default_factory=dict)


_TRANSFORMER = {"preset": "transformer-tiny", "n_encoder_layers": 2, "n_decoder_layers": 2, **WIDTHS}
_PAPER = {"norm": "layer", "positions": "sinusoidal", "feed_forward": "plain", "activation": "relu"}
_RECURRENT = {"n_layers": 2, "d_model": 8, "d_state": 8}
_TEXT = {"kind": "transformer", "n_layers": 2, **WIDTHS}
_RNN_TEXT = {"kind": "recurrent", "n_layers": 1, "d_model": 8, "d_state": 8}
FAMILIES = {
    "transformer": Family("translate", "transformer-tiny", {**_TRANSFORMER, "norm_order": "pre"}),
    "transformer-post": Family("translate", "transformer-tiny", {**_TRANSFORMER, **_PAPER, "norm_order": "post"}),
    "transformer-window": Family("translate", "transformer-tiny", {**_TRANSFORMER, "window": 2}),
    "t5": Family("translate", "t5-tiny", {"n_encoder_layers": 2, "n_decoder_layers": 2, **WIDTHS, "d_head": 4}),
    "t5-denoise": Family("denoise", "t5-tiny", {"n_encoder_layers": 1, "n_decoder_layers": 2, **WIDTHS, "d_head": 4}),
    "rnn-dot": Family("translate", "rnn-attention", {**_RECURRENT, "attention": "dot", "bidirectional": False}),
    "rnn-bilinear": Family("translate", "rnn-attention", {**_RECURRENT, "attention": "bilinear"}),
    "rnn-additive": Family(
        "translate", "rnn-attention", {**_RECURRENT, "attention": "additive", "bidirectional": True}
    ),
    "rnn": Family("translate", "rnn", _RECURRENT),
    "gpt": Family("language", "gpt-nano", {"n_layers": 2, "d_model": 8, "n_heads": 2, "context": 16}),
    "llama": Family("language", "llama-nano", {"n_layers": 2, **WIDTHS, "n_heads": 4, "n_key_heads": 2, "context": 16}),
    "bert-mask": Family("mask", "bert-tiny", {"n_layers": 2, **WIDTHS, "max_positions": 32}),
    "bert-classify": Family("classify", "bert-tiny", {"n_layers": 2, **WIDTHS, "max_positions": 32}),
    "bert-tag": Family("tag", "bert-tiny", {"n_layers": 2, **WIDTHS, "max_positions": 32}),
    "birnn": Family("tag", "birnn", _RECURRENT),
    "vit": Family("image", "vit-tiny", {"n_layers": 2, **WIDTHS, "patch_size": 4}),
    "resnet": Family("image", "resnet-20", {"n_blocks": [1, 1], "width": 4}),
    "convnet": Family("image", "convnet", {}),
    "captioner-vit": Family(
        "caption",
        "captioner-vit",
        {"encoder": {"kind": "vit", "patch_size": 4, "n_layers": 2, **WIDTHS}, "decoder": _TEXT},
    ),
    "captioner-rnn": Family(
        "caption",
        "captioner-rnn",
        {"encoder": {"kind": "resnet", "n_blocks": [1, 1], "width": 4, "stem": "small"}, "decoder": _RNN_TEXT},
    ),
}
# Which say one number, or a vector, and so have no likeliest output to ask about.
OF_NUMBERS = {
    "bert-regress": Family("regress", "bert-tiny", {"n_layers": 2, **WIDTHS, "max_positions": 32}),
    "bert-similarity": Family("similarity", "bert-tiny", {"n_layers": 2, **WIDTHS, "max_positions": 32}),
}
ATTENDING = [name for name in FAMILIES if name not in ("rnn", "birnn", "resnet", "convnet")]


def tokenizer_of(task: str) -> Tokenizer:
    specials = [MASK] if task == "mask" else GAPS if task == "denoise" else []
    return learn(iter(TEXTS * 5), kind="words", vocab_size=200, specials=specials)


def subject_of(name: str, *, seed: int = 2, **decoding: Any) -> Subject:
    """A family's network with random weights, all of them shaken so that no zeros hide anything, before its input."""
    family = {**FAMILIES, **OF_NUMBERS}[name]
    model_table = {"preset": family.preset, **{key: own for key, own in family.fields.items() if key != "preset"}}
    config = from_tables(
        {
            "task": family.task,
            "model": model_table,
            **({} if family.task == "image" else {"tokenizer": {"kind": "words"}}),
        },
        origin="test",
    )
    task = _task(family.task, config)
    model = build_model(model_config(config.model, origin="test", **task.model_fields()), seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    settings: dict[str, Any] = {"texts_b": (TEXTS[1],)} if family.task == "similarity" else {}
    if task.spec.generates:
        settings = {"decoding": DecodingConfig(**{"max_length": 6, "beam": 3, **decoding})}
    return Subject(task=task, model=model, input=input_of(family.task), options=task.options(**settings))


def _task(name: str, config: Any) -> Any:
    kind: Any = find_task(name)
    table = ImageTable(
        shape=ImageShape(16, 3), mean=(0.5,) * 3, deviation=(0.5,) * 3, labels=("a", "b"), counts=(1, 1), longest=6
    )
    if name == "image":
        return kind(config, table)
    tokenizer = tokenizer_of(name)
    if name == "caption":
        return kind(tokenizer, config, table)
    if name == "translate":
        return kind(Vocabulary(tokenizer, tokenizer), config)
    if name in ("language", "mask", "denoise"):
        return kind(tokenizer, config)
    numbers = LabelTable(offset=0.0, scale=1.0, n_features=0, pairs=name == "similarity")
    named = LabelTable(labels=("a", "b", "c"), counts=(1, 1, 1), offset=0.0, scale=1.0, n_features=0, pairs=False)
    return kind(tokenizer, config, numbers if name in ("regress", "similarity") else named)


def input_of(task: str) -> Any:
    if task in IMAGES:
        return np.random.default_rng(3).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    if task in ("mask", "denoise"):
        return TEXTS[0].replace("good", "[MASK]")
    return "the dog is" if task == "language" else TEXTS[0]


def traced(name: str, **decoding: Any) -> Trace:
    """The trace of a family's network."""
    return trace_input(subject_of(name, **decoding))
