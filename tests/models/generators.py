"""Every kind of model that writes, in small sizes and many variants, and what each reads: for one suite over all of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.captioner import (
    DECODERS,
    ENCODERS,
    Captioner,
    CaptionerConfig,
    RecurrentTextConfig,
    TransformerTextConfig,
)
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, Llama3Scaling, LlamaConfig
from regard.models.recurrent import Recurrent, RecurrentConfig
from regard.models.resnet import ResNetBackboneConfig
from regard.models.t5 import T5, T5Config
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vit import ViTBackboneConfig
from regard.parts.positions import POSITIONS

V, START, END = 17, 1, 2
SOURCE = torch.tensor([[5, 6, 7, 8, 9, 2], [4, 3, 2, 0, 0, 0], [11, 12, 13, 14, 2, 0]])
LENGTHS = torch.tensor([6, 3, 5])
TARGET = torch.tensor([[1, 4, 5, 6, 7], [1, 9, 9, 3, 8], [1, 16, 15, 14, 13]])
IMAGES = torch.randn(3, 3, 12, 12, generator=torch.Generator().manual_seed(5))

Choices = dict[str, Any]


def shaken(model: Any) -> Any:
    """Biases and norms begin as zeros and ones, which would hide a mistake."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


# -- what is read -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """What three sentences are written from.

    n_prompt: how many tokens tell the sentences apart, the start token among them
    """

    given: tuple[Tensor, ...]
    n_prompt: int = 1

    def of(self, rows: list[int]) -> "Inputs":
        """Those of some of the sentences."""
        return replace(self, given=tuple(tensor[rows] for tensor in self.given))

    def whole(self, model: nn.Module, target: Tensor) -> Tensor:
        """The logits (B, T, V) of a forward pass."""
        logits: Tensor = model(*self.given, target)
        return logits

    def start(self, model: Any) -> Any:
        """The state before the first step."""
        return model.start(self.given if len(self.given) > 1 else self.given[0])


class NoInputs(Inputs):
    """A decoder-only model reads nothing but what it goes on from; the first tensor only counts the sentences."""

    def whole(self, model: nn.Module, target: Tensor) -> Tensor:
        logits: Tensor = model(target)
        return logits

    def start(self, model: Any) -> Any:
        return model.start(len(self.given[0]))


PAIRS, PICTURES, NOTHING = Inputs((SOURCE, LENGTHS)), Inputs((IMAGES,)), NoInputs((LENGTHS,), n_prompt=2)


# -- the models ---------------------------------------------------------------------------------------------------------


def make_transformer(seed: int = 1, **choices: Any) -> Transformer:
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24, "dropout": 0.0}
    return Transformer(TransformerConfig(source_vocab=V, target_vocab=V, **{**sizes, **choices}), seed=seed)


TRANSFORMERS: dict[str, Choices] = {
    **{f"{positions} positions": {"positions": positions} for positions in POSITIONS},
    "pre-norm": {"norm_order": "pre"},
    "no norm": {"norm_order": "none"},
    "rms": {"norm": "rms", "norm_order": "pre"},
    "gated": {"feed_forward": "gated", "activation": "silu"},
    "gelu": {"activation": "gelu"},
    "window": {"window": 2},
    "window, rotary": {"window": 2, "positions": "rotary", "norm_order": "pre"},
    "concatenated": {"join_positions": "concatenate", "tied": "target"},
    "concatenated, learned": {"join_positions": "concatenate", "positions": "learned", "tied": "none"},
    "tokens as they are, output bias": {"scale_embedding": False, "output_bias": True},
}


def make_recurrent(seed: int = 1, **choices: Any) -> Recurrent:
    sizes = {"n_layers": 2, "d_model": 12, "d_state": 10, "dropout": 0.0}
    return Recurrent(RecurrentConfig(source_vocab=V, target_vocab=V, **{**sizes, **choices}), seed=seed)


ONE_WAY: Choices = {"bidirectional": False}
FUNCTIONS = {
    kind: dict.fromkeys(("query_function", "key_function", "value_function"), kind) for kind in ("linear", "sigmoid")
}
RECURRENTS: dict[str, Choices] = {
    "bottleneck": {"attention": "none", **ONE_WAY},
    "bottleneck, both directions": {"attention": "none", "cell": "lstm"},
    "bottleneck, one layer": {"attention": "none", "n_layers": 1, "cell": "elman", **ONE_WAY},
    "dot": {"attention": "dot", **ONE_WAY},
    "dot, linear keys": {"attention": "dot", "key_function": "linear"},
    "dot, all linear": {"attention": "dot", **FUNCTIONS["linear"]},
    "bilinear, lstm": {"attention": "bilinear", "cell": "lstm"},
    "bilinear, elman": {"attention": "bilinear", "cell": "elman", "tied": "none"},
    "bilinear, elman with relu": {"attention": "bilinear", "cell": "elman-relu"},
    "bilinear, elman with sigmoid": {"attention": "bilinear", "cell": "elman-sigmoid"},
    "bilinear, linear queries, narrow values": {"query_function": "linear", "value_function": "sigmoid"},
    "additive": {"attention": "additive", "tied": "target"},
    "additive, sigmoid": {"attention": "additive", **FUNCTIONS["sigmoid"], "cell": "lstm", **ONE_WAY},
    "one layer": {"n_layers": 1},
    "three layers": {"n_layers": 3, "cell": "lstm"},
}


T5_SIZES: Choices = {
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "d_model": 16,
    "n_heads": 3,
    "d_head": 5,
    "d_ff": 24,
    "n_buckets": 8,
    "max_distance": 9,
    "dropout": 0.0,
}


def make_t5(seed: int = 1, **choices: Any) -> T5:
    sizes = {"source_vocab": V, "target_vocab": V, **T5_SIZES}
    return T5(T5Config(**{**sizes, **choices}), seed=seed)


def shaken_t5(model: T5) -> T5:
    """Norms begin as ones, and biases of scores small, which would hide a mistake."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            far = 1.0 if name.endswith("relative_bias.weight") else 0.2
            parameter.add_(far * torch.randn(parameter.shape, generator=generator))
    return model


def make_shaken_t5(seed: int = 1, **choices: Any) -> T5:
    return shaken_t5(make_t5(seed, **choices))


T5S: dict[str, Choices] = {
    "first version": {},
    "version 1.1": {"feed_forward": "gated", "activation": "gelu-tanh", "tied": "inputs"},
}

GPT_SIZES: Choices = {"vocab": V, "n_layers": 2, "n_heads": 2, "d_model": 16, "context": 64, "dropout": 0.0}


def make_gpt(seed: int = 1, **choices: Any) -> GPT:
    model: GPT = shaken(GPT(GPTConfig(**{**GPT_SIZES, **choices}), seed=seed))
    return model


def make_llama(seed: int = 1, **choices: Any) -> Llama:
    sizes = {**GPT_SIZES, "n_heads": 4, "n_key_heads": 2, "d_ff": 24}
    model: Llama = shaken(Llama(LlamaConfig(**{**sizes, **choices}), seed=seed))
    return model


CAPTIONER: Choices = {
    "vocab": V,
    "n_channels": 3,
    "image_size": 12,
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 24,
    "patch_size": 4,
    "n_encoder_layers": 2,
    "n_blocks": (1, 2),
    "width": 4,
    "stem": "small",
    "n_decoder_layers": 2,
    "d_state": 10,
    "dropout": 0.0,
    "encoder": "vit",
    "decoder": "transformer",
    "cell": "gru",
    "attention": "bilinear",
    "tied": "target",
}


def captioner_config(**choices: Any) -> CaptionerConfig:
    """The two configs of these sizes, by the kinds of encoder and decoder."""
    chosen = {**CAPTIONER, **choices}

    def take(*names: str, **others: Any) -> Choices:
        return {**{name: chosen[name] for name in names}, **others}

    def encoder() -> ViTBackboneConfig | ResNetBackboneConfig:
        if chosen["encoder"] == "resnet":
            return ResNetBackboneConfig(**take("n_blocks", "width", "stem"))
        layers = {"n_layers": chosen["n_encoder_layers"]}
        return ViTBackboneConfig(**take("patch_size", "n_heads", "d_model", "d_ff", "dropout", **layers))

    def decoder() -> TransformerTextConfig | RecurrentTextConfig:
        layers = {"n_layers": chosen["n_decoder_layers"]}
        if chosen["decoder"] == "transformer":
            return TransformerTextConfig(**take("n_heads", "d_model", "d_ff", "dropout", "tied", **layers))
        return RecurrentTextConfig(**take("cell", "d_model", "d_state", "attention", "dropout", "tied", **layers))

    return CaptionerConfig(**take("vocab", "n_channels", "image_size", encoder=encoder(), decoder=decoder()))


def make_captioner(seed: int = 1, **choices: Any) -> Captioner:
    return Captioner(captioner_config(**choices), seed=seed)


CAPTIONER_PAIRS: dict[str, Choices] = {
    f"{encoder}, {decoder}": {"encoder": encoder, "decoder": decoder} for encoder in ENCODERS for decoder in DECODERS
}
CAPTIONERS: dict[str, Choices] = {
    **CAPTIONER_PAIRS,
    "large stem, additive, lstm": {
        "decoder": "recurrent",
        "encoder": "resnet",
        "stem": "large",
        "attention": "additive",
        "cell": "lstm",
    },
    "dot, untied": {"decoder": "recurrent", "attention": "dot", "d_state": 16, "tied": "none"},
    "bottleneck": {"decoder": "recurrent", "encoder": "resnet", "attention": "none", "n_decoder_layers": 1},
    "one layer, untied": {"n_decoder_layers": 1, "tied": "none"},
}


@dataclass(frozen=True)
class Generator:
    """A model that writes: how it is made (`make(seed, **choices)`), in evaluation, and what it reads.

    learner: sizes and a learning rate with which it learns three sentences by heart in some steps
    """

    build: Callable[..., Any]
    inputs: Inputs
    learner: Choices
    rate: float = 1e-2

    def make(self, seed: int = 1, **choices: Any) -> Any:
        return self.build(seed, **choices).eval()


def _family(
    name: str, build: Callable[..., Any], variants: dict[str, Choices], *arguments: Any
) -> dict[str, Generator]:
    return {f"{name}, {own}": Generator(partial(build, **choices), *arguments) for own, choices in variants.items()}


WIDE: Choices = {"d_model": 32, "d_ff": 64}
WINDOWS: dict[str, Choices] = {"everywhere": {}, "window": {"window": 2}}
LLAMAS: dict[str, Choices] = {
    **WINDOWS,
    "biases, untied": {"biases": "all", "tied": "none", "d_head": 6, "epsilon": 1e-5},
    "slowed": {"biases": "inputs", "rotary_scaling": Llama3Scaling(factor=4.0, first_context=16)},
}
GENERATORS: dict[str, Generator] = {
    **_family("transformer", make_transformer, TRANSFORMERS, PAIRS, {**WIDE, "d_model": 64}, 3e-3),
    **_family("recurrent", make_recurrent, RECURRENTS, PAIRS, {"d_model": 32, "d_state": 32}),
    **_family("t5", make_shaken_t5, T5S, PAIRS, WIDE),
    **_family("gpt", make_gpt, WINDOWS, NOTHING, {"d_model": 32}),
    **_family("llama", make_llama, LLAMAS, NOTHING, WIDE),
    **_family("captioner", make_captioner, CAPTIONERS, PICTURES, {**WIDE, "d_state": 32, "width": 8}),
}
# One or a few of each, for what a variant hardly changes.
FEW = [
    "transformer, pre-norm",
    "transformer, window, rotary",
    "recurrent, bottleneck, both directions",
    "recurrent, additive",
    "t5, first version",
    "gpt, everywhere",
    "gpt, window",
    "llama, everywhere",
    "llama, window",
    *(f"captioner, {name}" for name in CAPTIONER_PAIRS),
]
