"""ResNet with its classifier, of stages that double their width: the sizes of the paper, and others like them."""

from functools import partial

import torch

from regard.exchange.architecture import Architecture, Network, Source, SpecialIds, TheirNetwork, require
from regard.exchange.weights import Rule, module, same
from regard.models.resnet import EXPANSIONS, ResNetConfig, block_shapes


def _read(source: Source) -> Network:
    config = source.config
    config.must_be("relu", "hidden_act")
    config.must_be(False, "downsample_in_first_stage", "downsample_in_bottleneck")
    labels = config.labels
    ours = source.ours(
        ResNetConfig,
        n_channels=config.count("num_channels", 3),
        n_outputs=len(labels),
        n_blocks=config.counts("depths", (3, 4, 6, 3)),
        width=config.count("embedding_size", 64),
        block=config.choice("layer_type", {name: name for name in EXPANSIONS}, "bottleneck"),
        stem="large",
        skip="add",
        join="before",
        norm="batch",
        activation="relu",
    )
    if config.counts("hidden_sizes", (256, 512, 1024, 2048)) != _hidden_sizes(ours):
        config.refuse("hidden_sizes", f"stages double their width: {list(_hidden_sizes(ours))}")
    return Network(config=ours, preset="resnet-50", task="image", labels=labels)


def _hidden_sizes(config: ResNetConfig) -> tuple[int, ...]:
    return tuple(stage[-1].n_outputs for stage in block_shapes(config))


def _write(config: ResNetConfig, special_ids: SpecialIds) -> TheirNetwork:
    name = "ResNetForImageClassification"
    require(config, name, stem="large", skip="add", join="before", norm="batch", activation="relu")
    return TheirNetwork(
        name=name,
        settings={
            "num_channels": config.n_channels,
            "embedding_size": config.width,
            "hidden_sizes": list(_hidden_sizes(config)),
            "depths": list(config.n_blocks),
            "layer_type": config.block,
            "hidden_act": "relu",
            "downsample_in_first_stage": False,
            "downsample_in_bottleneck": False,
        },
    )


def _rules(config: ResNetConfig, special_ids: SpecialIds) -> list[Rule]:
    rules = _layer("resnet.embedder.embedder", "stem.layer")
    n_inside = 3 if config.block == "bottleneck" else 2
    for stage, blocks in enumerate(block_shapes(config)):
        for block, shape in enumerate(blocks):
            theirs, ours = f"resnet.encoder.stages.{stage}.layers.{block}", f"stage.{stage}.block.{block}"
            for number in range(n_inside):
                rules += _layer(f"{theirs}.layer.{number}", f"{ours}.layers.{number}")
            if not shape.kept:
                rules += _layer(f"{theirs}.shortcut", f"{ours}.shortcut")
    return [*rules, *module("classifier.1", "head.output")]


def _layer(theirs: str, ours: str) -> list[Rule]:
    """A convolution and its batch norm, with what that norm has tracked."""
    return [
        same(f"{theirs}.convolution.weight", f"{ours}.convolution.weight"),
        *module(f"{theirs}.normalization", f"{ours}.norm"),
        same(f"{theirs}.normalization.running_mean", f"{ours}.norm.running_mean"),
        same(f"{theirs}.normalization.running_var", f"{ours}.norm.running_variance"),
        Rule(f"{theirs}.normalization.num_batches_tracked", (), absent=partial(torch.tensor, 0)),
    ]


RESNET = Architecture(
    kind="resnet",
    classes={"ResNetForImageClassification": "resnet"},
    config=ResNetConfig,
    read=_read,
    write=_write,
    rules=_rules,
    prefix="resnet.",
)
