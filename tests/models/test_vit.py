"""ViT: equal to the reference implementation, and what is its own among encoders."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import ViTConfig as ReferenceConfig
from transformers import ViTForImageClassification

from regard.errors import ConfigError, DataError
from regard.models.vit import ViT, ViTConfig
from regard.parts.taps import listening, recording

SIZES = {
    "n_channels": 3,
    "image_size": 12,
    "n_outputs": 5,
    "patch_size": 4,
    "n_layers": 3,
    "n_heads": 4,
    "d_model": 32,
    "d_ff": 48,
}


def make_model(**changes: Any) -> ViT:
    """Everything drawn anew: biases and norms begin as zeros and ones, which would hide a mistake."""
    model = ViT(ViTConfig(**{**SIZES, "dropout": 0.0, **changes}), seed=1).eval()
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def some_images(n_channels: int = 3, size: int = 12) -> Tensor:
    return torch.randn(2, n_channels, size, size, generator=torch.Generator().manual_seed(5))


def copy_layer(ours: nn.Module, theirs: nn.Module) -> None:
    """Linear layers and norms have the same names for what they learn."""
    theirs.load_state_dict(ours.state_dict())


def reference(model: ViT) -> ViTForImageClassification:
    config = model.config
    theirs = ViTForImageClassification(
        ReferenceConfig(
            hidden_size=config.d_model,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            intermediate_size=config.d_ff,
            image_size=config.image_size,
            patch_size=config.patch_size,
            num_channels=config.n_channels,
            num_labels=config.n_outputs,
        )
    ).eval()
    embedding = theirs.vit.embeddings
    with torch.no_grad():
        projection = embedding.patch_embeddings.projection
        projection.weight.copy_(model.embedding.patches.weight.view_as(projection.weight))
        projection.bias.copy_(model.embedding.patches.bias)
        embedding.cls_token.copy_(model.embedding.class_token[None])
        embedding.position_embeddings.copy_(model.embedding.positions.weight[None])
    for layer, other in zip(model.encoder, theirs.vit.layers, strict=True):
        mine: Any = layer
        for name, their_name in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("output", "o_proj")):
            copy_layer(getattr(mine.self_attention, name), getattr(other.attention, their_name))
        copy_layer(mine.self_attention_residual.norm, other.layernorm_before)
        copy_layer(mine.feed_forward_residual.norm, other.layernorm_after)
        copy_layer(mine.feed_forward.up, other.mlp.fc1)
        copy_layer(mine.feed_forward.down, other.mlp.fc2)
    copy_layer(model.encoder_norm, theirs.vit.layernorm)
    copy_layer(model.head.output, theirs.classifier)
    return theirs


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


# -- parity with the reference implementation ---------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"n_channels": 1, "image_size": 28, "patch_size": 7}], ids=["colour", "grey"])
def test_all_hidden_states_and_logits_equal_the_references(changes: dict[str, int]) -> None:
    model = make_model(**changes)
    images = some_images(model.config.n_channels, model.config.image_size)
    with torch.inference_mode(), recording(model) as record:
        expected = reference(model)(images, output_hidden_states=True)
        logits = model(images)
    names = ["embedding.sum", *(f"encoder.{number}.feed_forward_residual.output" for number in range(3))]
    assert len(expected.hidden_states) == len(names)
    for name, theirs in zip(names, expected.hidden_states, strict=True):
        assert_close(record[name], theirs)
    assert logits.shape == (2, 5)
    assert_close(logits, expected.logits)


def test_what_nobody_reads_is_not_computed_and_changes_nothing() -> None:
    model, images = make_model(), some_images()
    heard, unheard = [], []
    with recording(model) as record:
        heard.append(model(images))
    assert record["encoder.2.self_attention.weights"].shape == (2, 4, 10, 10)
    hook = model.encoder[-1].register_forward_hook(lambda module, given, states: unheard.append(states.shape))
    logits = model(images)
    hook.remove()
    assert unheard == [(2, 1, 32)]
    assert_close(logits, heard[0])
    assert_close(logits, reference(model)(images).logits)
    gradients = [torch.autograd.grad(one.square().sum(), list(model.parameters())) for one in (logits, heard[0])]
    for own, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(own, wanted, atol=1e-4, rtol=1e-4)


def test_the_states_of_patches_equal_the_references() -> None:
    model = make_model()
    with torch.inference_mode():
        expected = reference(model).vit(some_images()).last_hidden_state
        features = model.features(some_images())
    assert features.shape == (2, 9, 32)
    assert_close(features, expected[:, 1:])
    assert_close(model.encode(some_images()), expected)


# -- what is its own ----------------------------------------------------------------------------------------------------


def test_the_papers_base_model_has_as_many_parameters() -> None:
    with torch.device("meta"):
        model = ViT(ViTConfig(n_channels=3, image_size=224, n_outputs=1000))
    # The published vit-base-patch16-224.
    assert sum(parameter.numel() for parameter in model.parameters()) == 86_567_656


def test_taps_are_named_by_their_place() -> None:
    model = make_model()
    with recording(model) as record, torch.inference_mode():
        model(some_images())
    attention = {"query", "key", "value", "scores", "weights", "heads", "output"}
    layer = {f"self_attention.{name}" for name in attention} | {"feed_forward.hidden", "feed_forward.output"}
    layer |= {"self_attention_residual.output", "feed_forward_residual.output"}
    expected = {f"encoder.{number}.{name}" for number in range(3) for name in layer}
    expected |= {f"embedding.{name}" for name in ("patches", "positions", "sum")}
    assert set(record) == expected | {"states", "logits"}
    assert record["embedding.patches"].shape == (2, 9, 32)
    assert record["embedding.sum"].shape == record["states"].shape == (2, 10, 32)
    weights = record["encoder.2.self_attention.weights"]
    assert weights.shape == (2, 4, 10, 10)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 10))


def test_only_the_class_token_is_asked() -> None:
    model = make_model()

    def change(position: int) -> Tensor:
        def listen(name: str, states: Tensor) -> Tensor:
            changed = states.clone()
            changed[:, position] += torch.arange(32)
            return changed

        with listening(model, "states", listen), torch.inference_mode():
            return model(some_images())

    with listening(model, "states", lambda name, states: None), torch.inference_mode():
        logits = model(some_images())
    assert torch.equal(change(3), logits)
    assert not torch.allclose(change(0), logits, atol=1e-2)


def test_positions_tell_patches_apart() -> None:
    model = make_model()
    turned = some_images().roll(4, dims=3)  # by one patch: the same patches, in another order
    with torch.inference_mode():
        assert not torch.allclose(model(turned), model(some_images()), atol=1e-3)
        model.embedding.positions.weight.zero_()
        torch.testing.assert_close(model(turned), model(some_images()), atol=1e-5, rtol=0)


def test_batched_equals_alone() -> None:
    model = make_model()
    with torch.inference_mode():
        torch.testing.assert_close(model(some_images())[1:], model(some_images()[1:]), atol=1e-5, rtol=0)


def test_every_weight_learns() -> None:
    model = make_model()
    model(some_images()).square().sum().backward()
    # What a key's bias adds to the scores of a query is the same for all keys, and the softmax takes it away.
    idle = [
        name
        for name, parameter in model.named_parameters()
        if not name.endswith("key.bias") and (parameter.grad is None or not parameter.grad.any())
    ]
    assert not idle


def test_dropout_is_for_training_only() -> None:
    model = make_model(dropout=0.5)
    with torch.no_grad():
        assert torch.equal(model(some_images()), model(some_images()))
        model.train()
        assert not torch.equal(model(some_images()), model(some_images()))


def test_first_weights_are_a_function_of_the_seed() -> None:
    first, again, other = (ViT(ViTConfig(**SIZES), seed=seed).state_dict() for seed in (1, 1, 2))
    for name, weight in first.items():
        assert torch.equal(weight, again[name])
        if weight.dim() == 2:
            assert not torch.equal(weight, other[name])
            # Matrices by Xavier; the class token with the spread of embeddings, positions with that of patches.
            bounds = {"embedding.class_token": 5 / 32**0.5, "embedding.positions.weight": 5}
            bound = bounds.get(name, (6 / sum(weight.shape)) ** 0.5)
            assert 0 < float(weight.abs().max()) < bound
        else:
            assert torch.equal(weight, (torch.ones_like if "norm.weight" in name else torch.zeros_like)(weight))


@pytest.mark.parametrize("sizes", [{}, {"n_channels": 1, "image_size": 28, "d_model": 128}], ids=["colour", "grey"])
def test_positions_begin_about_as_wide_as_patches(sizes: dict[str, int]) -> None:
    model = ViT(ViTConfig(**{**SIZES, **sizes}))
    with recording(model) as record:
        model(some_images(model.config.n_channels, model.config.image_size))
    patches, positions = (record[f"embedding.{name}"].std().item() for name in ("patches", "positions"))
    assert positions == pytest.approx(1, rel=0.1)
    assert 0.4 < patches / positions < 2.5


def test_patches_fill_the_image() -> None:
    with pytest.raises(ConfigError) as caught:
        ViTConfig(**{**SIZES, "image_size": 28, "patch_size": 8})
    assert str(caught.value) == (
        "Images of 28 × 28 pixels cannot be cut into patches of 8 × 8.\n"
        "Choose model.patch_size among 1, 2, 4, 7, 14, 28, or scale the images."
    )


def test_heads_share_the_width_among_them() -> None:
    with pytest.raises(ConfigError, match="A width of 32 cannot be divided among 5 heads"):
        make_model(n_heads=5)


def test_other_images_are_refused() -> None:
    with pytest.raises(DataError, match="The model reads images of 12 × 12 pixels, not of 16 × 16"):
        make_model()(some_images(size=16))
    with pytest.raises(DataError, match="The model reads images of 3 channels, not of 1"):
        make_model()(some_images(n_channels=1))
