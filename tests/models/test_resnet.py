"""ResNet: equal to the reference implementation, the papers' sizes, and its blocks with and without skips."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import ResNetConfig as ReferenceConfig
from transformers import ResNetForImageClassification

from regard.errors import ConfigError, DataError, UsageError
from regard.models.resnet import ResNet, ResNetConfig
from regard.parts.convolution import BatchNorm, ImageConvolution
from regard.parts.taps import listening, recording

SMALL = {"n_channels": 3, "n_outputs": 5, "n_blocks": (2, 3), "width": 4}
CIFAR = {"n_channels": 3, "n_outputs": 10}
FIFTY = {"n_blocks": (3, 4, 6, 3), "width": 64, "block": "bottleneck", "stem": "large"}


def make_model(**changes: Any) -> ResNet:
    """Norms drawn anew: they begin as ones and zeros, which would hide a mistake."""
    model = ResNet(ResNetConfig(**{**SMALL, **changes}), seed=1)
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, BatchNorm):
                for tensor in (*module.parameters(), *module.buffers()):
                    tensor.add_(0.3 * torch.rand(tensor.shape, generator=generator))
    return model.eval()


def some_images(n_images: int = 2, n_channels: int = 3, size: int = 12) -> Tensor:
    return torch.randn(n_images, n_channels, size, size, generator=torch.Generator().manual_seed(5))


def count(config: ResNetConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in ResNet(config).parameters())


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


# -- parity with the reference implementation ---------------------------------------------------------------------------


def copy_layer(ours: ImageConvolution, theirs: Any) -> None:
    theirs.convolution.load_state_dict(ours.convolution.state_dict())
    norm: Any = ours.norm
    names = {"running_variance": "running_var"}
    weights = {names.get(name, name): value for name, value in norm.state_dict().items()}
    theirs.normalization.load_state_dict({**weights, "num_batches_tracked": torch.tensor(0)})


def reference(model: ResNet) -> ResNetForImageClassification:
    config = model.config
    widest = 4 if config.block == "bottleneck" else 1
    theirs = ResNetForImageClassification(
        ReferenceConfig(
            num_channels=config.n_channels,
            embedding_size=config.width,
            hidden_sizes=[config.width * 2**number * widest for number in range(len(config.n_blocks))],
            depths=list(config.n_blocks),
            layer_type=config.block,
            num_labels=config.n_outputs,
        )
    ).eval()
    mine: Any = model
    copy_layer(mine.stem.layer, theirs.resnet.embedder.embedder)
    for stage, their_stage in zip(mine.stage, theirs.resnet.encoder.stages, strict=True):
        for block, their_block in zip(stage.block, their_stage.layers, strict=True):
            for layer, their_layer in zip(block.layers, their_block.layer, strict=True):
                copy_layer(layer, their_layer)
            assert isinstance(block.shortcut, nn.Identity) == isinstance(their_block.shortcut, nn.Identity)
            if isinstance(block.shortcut, ImageConvolution):
                copy_layer(block.shortcut, their_block.shortcut)
    theirs.classifier[1].load_state_dict(mine.head.output.state_dict())
    return theirs


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_all_stages_and_logits_equal_the_references(block: str, training: bool) -> None:
    model = make_model(block=block, stem="large").train(training)
    theirs = reference(model).train(training)
    images = some_images(size=40)
    with torch.no_grad(), recording(model) as record:
        expected = theirs(images, output_hidden_states=True)
        logits = model(images)
    names = ["stem.output", "stage.0.block.1.output", "stage.1.block.2.output"]
    assert len(expected.hidden_states) == len(names)
    for name, state in zip(names, expected.hidden_states, strict=True):
        torch.testing.assert_close(record[name], state, rtol=0, atol=1e-4)  # of numbers up to 111
    torch.testing.assert_close(logits, expected.logits, rtol=0, atol=1e-4)
    features = model.eval().features(images)
    assert features.shape == (2, 25, 32 if block == "bottleneck" else 8)
    with torch.no_grad():
        last = theirs.eval().resnet(images).last_hidden_state
    torch.testing.assert_close(features, last.flatten(2).transpose(1, 2), rtol=0, atol=1e-4)


# -- the papers' sizes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "skip", "n_parameters"),
    # He et al. 2016, table 6, has 0.27 and 0.85 million. Projections take 16·32 + 64 and 32·64 + 128 of them.
    [(3, "add", 272_474), (9, "add", 855_770), (3, "none", 269_722), (9, "none", 853_018)],
    ids=["resnet-20", "resnet-56", "plain-20", "plain-56"],
)
def test_the_papers_networks_for_small_images(n: int, skip: str, n_parameters: int) -> None:
    config = ResNetConfig(**CIFAR, n_blocks=(n, n, n), skip=skip)
    assert count(config) == n_parameters
    with torch.device("meta"):
        names = [name for name, module in ResNet(config).named_modules() if isinstance(module, ImageConvolution)]
    n_convolutions = sum("shortcut" not in name for name in names)
    assert n_convolutions + 1 == 6 * n + 2
    assert len(names) - n_convolutions == (2 if skip == "add" else 0)


def test_the_papers_fifty_layers() -> None:
    # The published resnet-50.
    assert count(ResNetConfig(n_channels=3, n_outputs=1000, **FIFTY)) == 25_557_032
    with torch.device("meta"):
        model: Any = ResNet(ResNetConfig(n_channels=3, n_outputs=1000, **FIFTY))
        features = model.features(torch.empty(2, 3, 224, 224))
    assert features.shape == (2, 49, 2048)
    assert [stage.block[0].layers[-1].convolution.out_channels for stage in model.stage] == [256, 512, 1024, 2048]
    strides = [layer.convolution.stride[0] for layer in model.stage[1].block[0].layers]
    assert strides == [1, 2, 1]


@pytest.mark.parametrize(("size", "n_places"), [(32, 64), (28, 49), (5, 4), (1, 1)])
def test_images_may_be_of_any_size(size: int, n_places: int) -> None:
    model = ResNet(ResNetConfig(**CIFAR)).eval()
    with torch.inference_mode():
        assert model.features(some_images(size=size)).shape == (2, n_places, 64)
        assert model(some_images(size=size)).shape == (2, 10)


# -- skips --------------------------------------------------------------------------------------------------------------

WAYS = [{"skip": skip, "join": join} for skip in ("add", "concatenate") for join in ("before", "after")]


def block_of(model: ResNet, stage: int, block: int) -> Any:
    return model.get_submodule(f"stage.{stage}.block.{block}")


@pytest.mark.parametrize("changes", WAYS, ids=lambda changes: " ".join(changes.values()))
@pytest.mark.parametrize("place", [(0, 1), (1, 0)], ids=["identity", "projected"])
def test_how_a_block_joins_what_it_read(changes: dict[str, str], place: tuple[int, int]) -> None:
    block = block_of(make_model(**changes), *place)
    x = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(3))
    first, second = block.layers
    found = second.norm(second.convolution(first(x)))
    skipped = x if place == (0, 1) else block.shortcut.norm(block.shortcut.convolution(x))

    def join(residual: Tensor) -> Tensor:
        if changes["skip"] == "add":
            return residual + skipped
        return block.join.mix.norm(block.join.mix.convolution(torch.cat([residual, skipped], dim=1)))

    expected = join(found).relu() if changes["join"] == "before" else join(found.relu())
    assert_close(block(x), expected)


def test_a_plain_network_has_no_skips() -> None:
    model, images = make_model(skip="none"), some_images()
    assert not [name for name, _ in model.named_modules() if "shortcut" in name or "join" in name]

    def cut(name: str, residual: Tensor) -> Tensor:
        return torch.zeros_like(residual)

    with torch.inference_mode(), listening(model, "stage.0.block.0.residual", cut):
        assert_close(model(images[:1]), model(images[1:]))  # whatever it reads is lost
    residual = make_model()
    with torch.inference_mode(), listening(residual, "stage.0.block.0.residual", cut):
        assert not torch.allclose(residual(images[:1]), residual(images[1:]), atol=1e-3)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("norm", ["batch", "none"])
def test_every_weight_learns_whatever_the_choices(norm: str, activation: str) -> None:
    for skip, join in itertools.product(("add", "concatenate", "none"), ("before", "after")):
        model = make_model(skip=skip, join=join, norm=norm, activation=activation).train()
        assert any(isinstance(module, BatchNorm) for module in model.modules()) == (norm == "batch")
        model(some_images(4)).square().sum().backward()
        assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_skips_carry_the_gradient_to_the_first_layer() -> None:
    # The lectures' reason for them: without, gradients vanish as a product over the layers.
    def share(skip: str) -> float:
        """The gradient's norm in the first layer, as a share of that in the last."""
        config = ResNetConfig(**CIFAR, n_blocks=(9, 9, 9), skip=skip, norm="none", activation="sigmoid", join="after")
        model = ResNet(config)
        model(some_images(4, size=8)).square().sum().backward()
        names = ("stem.layer", "stage.2.block.8.layers.1")
        first, last = (model.get_parameter(f"{name}.convolution.weight").grad for name in names)
        assert first is not None
        assert last is not None
        return float(first.norm() / last.norm())

    assert share("none") < 1e-6
    assert share("add") > 1e-2


# -- blocks left out ----------------------------------------------------------------------------------------------------


def test_a_block_that_is_left_out_hands_on_what_it_read() -> None:
    model = make_model()
    with torch.inference_mode():
        whole = model(some_images())
        with model.without_blocks(["stage.0.block.0", "stage.0.block.1", "stage.1.block.2"]):
            found = model(some_images())
        assert torch.equal(model(some_images()), whole)
        mine: Any = model
        x = mine.stage[1].block[1](mine.stage[1].block[0](mine.stem(some_images())))
        assert_close(found, mine.head(x.mean((2, 3))))
    assert not torch.allclose(found, whole, atol=1e-3)


@pytest.mark.parametrize("skip", ["concatenate", "none"])
def test_blocks_of_any_kind_can_be_left_out(skip: str) -> None:
    model: Any = make_model(skip=skip, stem="large")
    with torch.inference_mode():
        x = model.stem(some_images(size=24))
        for stage, block in ((0, 1), (1, 0), (1, 2)):
            x = model.stage[stage].block[block](x)
        with model.without_blocks({"stage.1.block.1", "stage.0.block.0"}):
            assert_close(model(some_images(size=24)), model.head(x.mean((2, 3))))
        with model.without_blocks(()):
            assert torch.equal(model(some_images(size=24)), model(some_images(size=24)))


def test_listeners_hear_that_it_is_left_out() -> None:
    model = make_model()
    with torch.inference_mode(), model.without_blocks(["stage.1.block.1"]), recording(model) as record:
        model(some_images())
    assert torch.equal(record["stage.1.block.1.output"], record["stage.1.block.0.output"])


def test_which_blocks_can_be_left_out() -> None:
    assert make_model().block_names == {
        "stage.0.block.0": True,
        "stage.0.block.1": True,
        "stage.1.block.0": False,
        "stage.1.block.1": True,
        "stage.1.block.2": True,
    }
    assert not make_model(block="bottleneck").block_names["stage.0.block.0"]


def test_a_block_that_changes_the_shape_cannot_be_left_out() -> None:
    with pytest.raises(UsageError) as caught, make_model().without_blocks(["stage.1.block.0"]):
        pass
    assert str(caught.value) == (
        "stage.1.block.0 changes the shape of what it reads, and cannot be left out.\n"
        "Leave out some of: stage.0.block.0, stage.0.block.1, stage.1.block.1, stage.1.block.2."
    )
    with pytest.raises(UsageError) as caught, make_model().without_blocks(["stage.0.blok.1"]):
        pass
    assert str(caught.value) == "The network has no block 'stage.0.blok.1'.\nDid you mean stage.0.block.1?"


# -- what is its own ----------------------------------------------------------------------------------------------------


def test_taps_are_named_by_their_place() -> None:
    model = make_model()
    with recording(model) as record, torch.inference_mode():
        logits = model(some_images())
    blocks = ("stage.0.block.0", "stage.0.block.1", "stage.1.block.0", "stage.1.block.1", "stage.1.block.2")
    inside = ("residual", "output", "layers.0.features", "layers.1.features")
    expected = {f"{block}.{name}" for block in blocks for name in inside}
    expected |= {"stem.layer.features", "stem.output", "stage.1.block.0.shortcut.features", "states", "logits"}
    assert set(record) == expected
    assert record["stage.0.block.1.residual"].shape == record["stage.0.block.1.output"].shape == (2, 4, 12, 12)
    assert record["stage.1.block.2.output"].shape == (2, 8, 6, 6)
    read = record["stage.1.block.0.output"]
    assert_close(record["stage.1.block.1.output"], (record["stage.1.block.1.residual"] + read).relu())
    assert torch.equal(record["logits"], logits)


@pytest.mark.parametrize("n_channels", [1, 3], ids=["grey", "colour"])
def test_all_layers_see_the_channels_as_neighbours_in_memory(n_channels: int) -> None:
    model, images = make_model(n_channels=n_channels), some_images(n_channels=n_channels)
    by_pixel = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    with recording(model) as record:
        assert torch.equal(model(images), model(by_pixel))
    maps = {name: tensor for name, tensor in record.items() if tensor.dim() == 4}
    assert len(maps) > 20
    assert all(tensor.stride(1) == 1 for tensor in maps.values())


def test_no_convolution_of_one_place_has_a_stride_in_torch() -> None:
    # With the channels as neighbours, torch's way back through it writes beyond its memory.
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            if function is torch.ops.aten.convolution.default:
                seen.append((tuple(given[1].shape[2:]), tuple(given[3])))
            return function(*given, **(named or {}))

    model = make_model(block="bottleneck", stem="large").train()
    with Watch():
        model(some_images(size=40)).sum().backward()
    assert ((1, 1), (1, 1)) in seen
    assert not [stride for size, stride in seen if size == (1, 1) and stride != (1, 1)]


def test_statistics_move_while_training_only() -> None:
    model = make_model()

    def statistics() -> list[Tensor]:
        return [buffer.clone() for buffer in model.buffers()]

    before = statistics()
    assert len(before) == 2 * (1 + 2 * 5 + 1)
    first = model(some_images())
    assert torch.equal(model(some_images()), first)
    assert all(torch.equal(one, other) for one, other in zip(statistics(), before, strict=True))
    model.train()(some_images())
    assert not any(torch.equal(one, other) for one, other in zip(statistics(), before, strict=True))
    again = make_model()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(some_images()), model.eval()(some_images()))


def test_batched_equals_alone_in_evaluation() -> None:
    model = make_model()
    with torch.inference_mode():
        assert_close(model(some_images())[1:], model(some_images()[1:]))


def test_first_weights_are_a_function_of_the_seed() -> None:
    first, again, other = (ResNet(ResNetConfig(**SMALL), seed=seed).state_dict() for seed in (1, 1, 2))
    for name, weight in first.items():
        assert torch.equal(weight, again[name])
        assert torch.equal(weight, other[name]) == (weight.dim() == 1)


def test_a_batch_can_be_learned_by_heart() -> None:
    model, images, classes = ResNet(ResNetConfig(**SMALL), seed=1), some_images(8), torch.arange(8) % 5
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()
    assert torch.equal(model(images).argmax(1), classes)


def test_there_is_a_stage() -> None:
    with pytest.raises(ConfigError) as caught:
        make_model(n_blocks=())
    assert str(caught.value) == "model.n_blocks names no stage.\nGive the blocks of each stage: [3, 3, 3]."


def test_images_of_other_channels_are_refused() -> None:
    with pytest.raises(DataError, match="The model reads images of 3 channels, not of 1"):
        make_model()(some_images(n_channels=1))
