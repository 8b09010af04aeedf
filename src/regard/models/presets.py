"""Presets: the sizes people know by name, and how a run file's [model] table becomes a config.

A preset is a model's config without the vocabulary; any field of it can be changed in the run file.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config import ModelTable, RunConfig, as_table, build
from regard.errors import RunError, UsageError, did_you_mean
from regard.models.bert import Bert, BertConfig
from regard.models.captioner import Captioner, CaptionerConfig
from regard.models.convnet import ConvNet, ConvNetConfig
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, LlamaConfig
from regard.models.model_config import ModelConfig
from regard.models.recurrent import Recurrent, RecurrentConfig
from regard.models.recurrent_encoder import RecurrentEncoderConfig, RecurrentEncoderModel
from regard.models.resnet import ResNet, ResNetConfig
from regard.models.t5 import T5, T5Config
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.vit import ViT, ViTConfig
from regard.tasks.spec import TASKS, find_spec

# What suits the data, where the run file does not choose (docs/LOG.md): of a BERT that learns from few texts, and of a
# translator up to so wide, which many pairs keep from learning them by heart.
FOR_FEW_TEXTS: Mapping[str, Any] = {"pooling": "mean", "dropout": 0.3}
FOR_MANY_PAIRS: Mapping[str, Any] = {"dropout": 0.1}
NARROW = 256
# What the task decides although it has a default, so that an encoder can be built without one.
_TASKS_OWN = ("head", "n_outputs", "n_features")
# What image data decides, where there are none yet: colours, ImageNet's classes, and so many patches to an edge.
_IMAGES = {"n_channels": 3, "n_outputs": 1000}
_PATCHES = 14
# Pixels to an edge that suit others: a ResNet's large and small stem (He et al. 2016, 4.1 and 4.2), and captioners.
_LARGE_IMAGE, _SMALL_IMAGE, _CAPTIONED_IMAGE = 224, 32, 96


@dataclass(frozen=True)
class Preset:
    """A named size: of which family of models, of which config, with which fields."""

    name: str
    family: str
    config: type[ModelConfig]
    fields: Mapping[str, Any]
    about: str

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the family fits, those first for which it is the default."""
        fitting = [spec for spec in TASKS.values() if self.family in spec.families]
        return tuple(spec.name for spec in sorted(fitting, key=lambda spec: spec.families.index(self.family)))


def _transformer(name: str, n_layers: int, d_model: int, d_ff: int, n_heads: int, about: str, **others: Any) -> Preset:
    sizes = {"n_encoder_layers": n_layers, "n_decoder_layers": n_layers}
    widths = {"d_model": d_model, "d_ff": d_ff, "n_heads": n_heads}
    return Preset(name, "transformer", TransformerConfig, {**sizes, **widths, **others}, about)


def _recurrent(name: str, n_layers: int, d_model: int, d_state: int, about: str, **others: Any) -> Preset:
    sizes = {"n_layers": n_layers, "d_model": d_model, "d_state": d_state}
    return Preset(name, "recurrent", RecurrentConfig, {**sizes, **others}, about)


def _gpt(name: str, n_layers: int, n_heads: int, d_model: int, context: int, about: str, **others: Any) -> Preset:
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d_model": d_model, "context": context}
    return Preset(name, "gpt", GPTConfig, {**sizes, **others}, about)


def _llama(
    name: str, n_layers: int, n_heads: int, d_model: int, d_ff: int, context: int, about: str, **others: Any
) -> Preset:
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d_model": d_model, "d_ff": d_ff, "context": context}
    return Preset(name, "llama", LlamaConfig, {**sizes, **others}, about)


def _bert(name: str, n_layers: int, n_heads: int, d_model: int, about: str, **others: Any) -> Preset:
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d_model": d_model, "d_ff": 4 * d_model, "max_positions": 512}
    return Preset(name, "bert", BertConfig, {**sizes, **others}, about)


def _recurrent_encoder(name: str, n_layers: int, d_model: int, d_state: int, about: str, **others: Any) -> Preset:
    sizes = {"n_layers": n_layers, "d_model": d_model, "d_state": d_state}
    return Preset(name, "recurrent-encoder", RecurrentEncoderConfig, {**sizes, **others}, about)


def _t5(
    name: str, n_layers: int, d_model: int, d_ff: int, n_heads: int, d_head: int, about: str, **others: Any
) -> Preset:
    sizes = {"n_encoder_layers": n_layers, "n_decoder_layers": n_layers}
    widths = {"d_model": d_model, "d_ff": d_ff, "n_heads": n_heads, "d_head": d_head}
    return Preset(name, "t5", T5Config, {**sizes, **widths, **others}, about)


def _convnet(name: str, about: str, **sizes: Any) -> Preset:
    return Preset(name, "convnet", ConvNetConfig, sizes, about)


def _resnet(name: str, about: str, **sizes: Any) -> Preset:
    return Preset(name, "resnet", ResNetConfig, sizes, about)


def _vit(
    name: str, n_layers: int, n_heads: int, d_model: int, d_ff: int, patch_size: int, about: str, **others: Any
) -> Preset:
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d_model": d_model, "d_ff": d_ff, "patch_size": patch_size}
    return Preset(name, "vit", ViTConfig, {**sizes, **others}, about)


def _captioner(name: str, about: str, *, encoder: Mapping[str, Any], decoder: Mapping[str, Any]) -> Preset:
    return Preset(name, "captioner", CaptionerConfig, {"encoder": encoder, "decoder": decoder}, about)


# What came after the paper and learns faster (docs/LOG.md), by Xiong et al. 2020, Zhang & Sennrich 2019, Su et al. 2021 and
# Shazeer 2020.
_SINCE: Mapping[str, Any] = {
    "norm_order": "pre",
    "norm": "rms",
    "positions": "rotary",
    "feed_forward": "gated",
    "activation": "silu",
}

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _transformer("transformer-tiny", 4, 128, 256, 4, "minutes on a laptop", **_SINCE, dropout=0.3),
        _transformer("transformer-small", 3, 256, 1024, 4, "an hour on a laptop", **_SINCE, dropout=0.2),
        _transformer("transformer-base", 6, 512, 2048, 8, "the paper's base model"),
        _transformer("transformer-big", 6, 1024, 4096, 16, "the paper's big model", dropout=0.3),
        # About as many parameters as transformer-tiny, so that what differs is the architecture.
        _recurrent("rnn", 2, 128, 248, "before attention", attention="none", bidirectional=False, dropout=0.3),
        _recurrent(
            "rnn-attention", 2, 128, 208, "attention over a recurrent encoder", bidirectional=False, dropout=0.3
        ),
        _recurrent("birnn-attention", 2, 128, 144, "the same, reading the source in both directions", dropout=0.3),
        _gpt("gpt-nano", 4, 4, 128, 64, "GPT-2's architecture: minutes on a laptop", dropout=0.0),
        _gpt("gpt-mini", 6, 6, 384, 256, "GPT-2's architecture: an hour on a laptop", dropout=0.2),
        _gpt("gpt2", 12, 12, 768, 1024, "the smallest GPT-2"),
        _llama("llama-nano", 4, 4, 128, 344, 64, "minutes on a laptop", n_key_heads=2),
        _llama(
            "llama-mini", 6, 6, 384, 1024, 256, "an hour on a laptop, or minutes on a GPU", n_key_heads=2, dropout=0.2
        ),
        # The small ones as Turc et al. 2019 have them.
        _bert("bert-tiny", 2, 2, 128, "minutes on a laptop"),
        _bert("bert-mini", 4, 4, 256, "an hour on a laptop"),
        _bert("bert-small", 4, 8, 512, "a step towards bert-base"),
        _bert("bert-base", 12, 12, 768, "the paper's base model"),
        # About as many parameters as bert-tiny.
        _recurrent_encoder("birnn", 2, 128, 128, "a recurrent encoder, in both directions", dropout=0.3),
        _recurrent_encoder(
            "lstm", 2, 128, 180, "a recurrent encoder, forwards only", cell="lstm", bidirectional=False, dropout=0.3
        ),
        _t5("t5-tiny", 4, 128, 256, 4, 32, "minutes on a laptop: text to text", dropout=0.2),
        _t5("t5-small", 6, 512, 2048, 8, 64, "the paper's small model"),
        _vit("vit-tiny", 6, 4, 128, 256, 4, "minutes on a laptop: images of 28 to 96 pixels"),
        _vit("vit-small", 8, 6, 192, 768, 4, "an hour on a laptop: images of 28 to 96 pixels"),
        _vit("vit-base", 12, 12, 768, 3072, 16, "the paper's base model, for 224 pixels"),
        _convnet("convnet", "convolutions and pooling", widths=(32, 64, 128)),
        # The paper's networks for small images, of 6 n + 2 layers, with skips and without.
        _resnet("plain-20", "20 layers without skips", n_blocks=(3, 3, 3), skip="none"),
        _resnet("plain-56", "56 layers without skips", n_blocks=(9, 9, 9), skip="none"),
        _resnet("resnet-20", "20 layers with skips", n_blocks=(3, 3, 3)),
        _resnet("resnet-56", "56 layers with skips", n_blocks=(9, 9, 9)),
        _resnet(
            "resnet-50",
            "the paper's 50 layers, of bottlenecks, for 224 pixels",
            n_blocks=(3, 4, 6, 3),
            width=64,
            block="bottleneck",
            stem="large",
        ),
        # About as many parameters each, so that what differs is the architecture.
        _captioner(
            "captioner-vit",
            "patches, and a Transformer that writes",
            encoder={"kind": "vit", "patch_size": 8, "n_layers": 4, "n_heads": 4, "d_model": 128, "d_ff": 256},
            decoder={"kind": "transformer", "n_layers": 4, "n_heads": 4, "d_model": 128, "d_ff": 256},
        ),
        _captioner(
            "captioner-resnet",
            "convolutions, and a Transformer that writes",
            encoder={"kind": "resnet", "n_blocks": (2, 2), "width": 64, "stem": "large"},
            decoder={"kind": "transformer", "n_layers": 4, "n_heads": 4, "d_model": 128, "d_ff": 256},
        ),
        _captioner(
            "captioner-rnn",
            "convolutions, and a recurrent decoder that writes",
            encoder={"kind": "resnet", "n_blocks": (2, 2), "width": 64, "stem": "large"},
            decoder={"kind": "recurrent", "n_layers": 2, "d_model": 128, "d_state": 216},
        ),
    )
}
_MODELS: dict[type[ModelConfig], type[nn.Module]] = {
    TransformerConfig: Transformer,
    RecurrentConfig: Recurrent,
    GPTConfig: GPT,
    LlamaConfig: Llama,
    BertConfig: Bert,
    RecurrentEncoderConfig: RecurrentEncoderModel,
    T5Config: T5,
    ConvNetConfig: ConvNet,
    ResNetConfig: ResNet,
    ViTConfig: ViT,
    CaptionerConfig: Captioner,
}


def find_preset(name: str) -> Preset:
    """Return the preset of this name."""
    if name not in PRESETS:
        raise UsageError(f"There is no model '{name}'.", did_you_mean(name, PRESETS))
    return PRESETS[name]


def model_config(table: ModelTable, *, origin: str, **sizes: int | str) -> ModelConfig:
    """Build the config from the preset, the run file's fields and what `decided_by_data` names."""
    preset = find_preset(table.preset)
    return build(preset.config, {**chosen_fields(table), **sizes}, origin=origin, path="model")


def left_open(table: ModelTable, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some fields that the run file does not choose."""
    return {name: value for name, value in fields.items() if name not in table.fields}


def chosen_fields(table: ModelTable) -> dict[str, Any]:
    """Return the preset's fields with the run file's in their place."""
    return merged_fields(find_preset(table.preset).fields, table.fields)


def merged_fields(usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with others in their place; of a table inside, only what is given, unless it is of another kind."""
    fields = dict(usual)
    for name, value in given.items():
        before = fields.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = {**before, **value} if value.get("kind", before["kind"]) == before["kind"] else value
        fields[name] = value
    return fields


def dotted_fields(table: ModelTable) -> dict[str, Any]:
    """Return the fields of a table by their keys, those of a table inside as `encoder.n_layers`."""
    dotted: dict[str, Any] = {}
    for name, value in table.fields.items():
        inner = value.items() if isinstance(value, Mapping) else None
        dotted |= {name: value} if inner is None else {f"{name}.{key}": one for key, one in inner}
    return dotted


def check_model(table: ModelTable, *, task: str, origin: str) -> None:
    """Refuse a wrong name or value, or a model of other tasks, before the data decides the fields without a default."""
    preset = find_preset(table.preset)
    fitting = presets_for(task)
    if preset not in fitting:
        names = ", ".join(other.name for other in fitting)
        raise UsageError(f"{preset.name} does not support the task '{task}'.", f"Choose one of: {names}.")
    model_config(table, origin=origin, **_some_sizes(table, 1000))


def default_preset(task: str) -> str:
    """Return the smallest model of the family that suits a task best."""
    return presets_for(task)[0].name


def presets_for(task: str) -> list[Preset]:
    """Return the presets whose family fits a task, those of the family that suits it best first."""
    return [preset for family in find_spec(task).families for preset in PRESETS.values() if preset.family == family]


def decided_by_data(preset: Preset) -> tuple[str, ...]:
    """Return the fields that are not the user's: sizes of the data, which have no default, and what its task asks for."""
    return tuple(one.name for one in fields(preset.config) if one.default is MISSING or one.name in _TASKS_OWN)


def usual_image_size(table: ModelTable) -> int:
    """Return how many pixels to an edge suit a model over images; for a network of the caller's own as for large ones."""
    if not table.preset:
        return _LARGE_IMAGE
    chosen = chosen_fields(table)
    if find_preset(table.preset).config is CaptionerConfig:
        return _CAPTIONED_IMAGE
    if "patch_size" in chosen:
        patch_size = chosen["patch_size"]
        return _PATCHES * max(1, patch_size) if isinstance(patch_size, int) else _PATCHES  # refused elsewhere
    return _LARGE_IMAGE if chosen.get("stem") == "large" else _SMALL_IMAGE


def _some_sizes(table: ModelTable, vocab_size: int) -> dict[str, int]:
    """The fields that have no default because the data decides them: of a vocabulary, and of images."""
    preset = find_preset(table.preset)
    images = {**_IMAGES, "image_size": usual_image_size(table)}
    encoder = chosen_fields(table).get("encoder")
    if isinstance(encoder, Mapping) and isinstance(encoder.get("patch_size"), int):
        images["image_size"] = _PATCHES * max(1, encoder["patch_size"])  # that patches divide, whatever they are
    undecided = (field.name for field in fields(preset.config) if field.default is MISSING)
    return {name: images.get(name, vocab_size) for name in undecided}


def resolved(table: ModelTable, config: ModelConfig) -> ModelTable:
    """Return the table with every field written out, as the run folder keeps it."""
    return ModelTable(preset=table.preset, fields=as_table(config))


def build_model(config: ModelConfig, *, seed: int = 0) -> nn.Module:
    """Build the network of a config with its first weights."""
    return _MODELS[type(config)](config, seed=seed)


def rebuild_model(config: RunConfig, *, origin: str) -> nn.Module:
    """Build the network of a trained run again, with its initial weights; `origin` is the file that the config stands in."""
    if not config.model.preset:
        raise RunError(
            f"{origin} names no preset: the run was trained with a custom network, which its config cannot rebuild.",
            "Pass the network from Python: regard.load(run, model=…), regard.resume(run, model=…).",
        )
    return build_model(model_config(config.model, origin=origin), seed=config.seed)


def weight_shapes(config: RunConfig, *, origin: str) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a trained run's network by its name; no memory is taken."""
    with torch.device("meta"):
        return shapes_of(rebuild_model(config, origin=origin))


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight by its name, tied ones too."""
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def refuse_other_sizes(table: ModelTable, sizes: Mapping[str, int | str], *, vocabulary: Path) -> None:
    """Refuse a run's vocabulary, labels or images of other sizes than its network was built for."""
    for name, size in sizes.items():
        built = table.fields.get(name, size)
        if built != size:
            raise RunError(
                f"{vocabulary} does not fit the model of the run's config.toml: {name} is {size} by the one and {built} "
                "by the other.",
                "Put back the vocabulary that the run was trained with.",
            )


def positions_of(table: ModelTable) -> int | None:
    """Return the most tokens a model reads at once, special ones counted; None for any, or where there is no preset."""
    if not table.preset:
        return None
    config = model_config(table, origin="model", **_some_sizes(table, 1000))
    return config.max_length


def count_parameters(preset: Preset, vocab_size: int) -> int:
    """Count what a preset learns with a vocabulary of this size; shapes are enough, no memory is taken."""
    table = ModelTable(preset=preset.name)
    return size_of(model_config(table, origin="model", **_some_sizes(table, vocab_size)))


def size_of(config: ModelConfig) -> int:
    """Count what the network of a config learns; no memory is taken."""
    with torch.device("meta"):
        model = build_model(config)
    return sum(parameter.numel() for parameter in model.parameters())
