from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from regard import runtime
from regard.config import ModelTable, default_config
from regard.data.images.decoding import ImageShape
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model, model_config
from regard.parts import attention_kernels
from regard.parts.dropout import seeded
from regard.parts.taps import listening
from regard.tasks.images.caption_examples import CaptionBatch
from regard.tasks.images.captioning import CaptioningTask
from regard.tasks.images.preprocessing import ImageTable
from regard.tasks.translation.examples import PairBatch
from regard.tasks.translation.task import TranslationTask
from regard.training.batch_shape import AnyBatchShape, BatchShape, ImageBatchShape
from regard.training.cost import count_activations, meta_model, training_flops
from regard.training.paper import RUNS, TOKENS, VOCAB_SIZE
from regard.training.saved_activations import SavedActivations
from regard.training.synthetic_batch import synthetic_loss

CPU = torch.device("cpu")


def config_of(preset: str, vocab_size: int = 50, **fields: Any) -> ModelConfig:
    pairs = preset.startswith(("transformer", "rnn", "birnn-", "t5"))
    names = ("source_vocab", "target_vocab") if pairs else ("vocab",)
    return model_config(ModelTable(preset=preset, fields=fields), origin="test", **dict.fromkeys(names, vocab_size))


def image_config(preset: str, **sizes: Any) -> ModelConfig:
    """Of ten classes, or a vocabulary of fifty, and colour images."""
    outputs = {"vocab": 50} if preset.startswith("captioner") else {"n_outputs": 10}
    chosen = {"n_channels": 3, **outputs, **sizes}
    return model_config(ModelTable(preset=preset, fields=chosen), origin="test")


def transformer_flops(config: Any, n: float, s: int, t: int) -> float:
    """A training step of n pairs of s and t tokens, written out: every product of the paper's network, three times."""
    d, f = config.d_model, config.d_ff
    encoder = config.n_encoder_layers * (s * (4 * d * d + 2 * d * f) + 2 * s * s * d)
    cross = 2 * t * d * d + 2 * s * d * d + 2 * t * s * d  # queries and output, keys and values, attention
    decoder = config.n_decoder_layers * (t * (4 * d * d + 2 * d * f) + 2 * t * t * d + cross)
    return 3 * 2 * n * (encoder + decoder + t * d * config.target_vocab)


# -- arithmetic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), [(30, 30), (7, 150)])
def test_a_transformer_costs_what_its_formula_says(source: int, target: int) -> None:
    config = config_of("transformer-base", 1000)
    batch = BatchShape(n_sequences=2.5, length=source, target_length=target)
    assert training_flops(meta_model(config), batch) == transformer_flops(config, 2.5, source, target)


def test_other_lengths_would_hardly_change_what_the_papers_runs_cost() -> None:
    for length in range(11, 38):
        base, big = (
            RUNS[name].steps * transformer_flops(config_of(name, VOCAB_SIZE), TOKENS[0] / length, length, length)
            for name in ("transformer-base", "transformer-big")
        )
        assert (f"{base:.1e}", f"{big:.1e}") == ("9.5e+17", "9.7e+18")


def test_a_gpt_costs_what_its_formula_says() -> None:
    config: Any = config_of("gpt-mini", 1000)
    d, t = config.d_model, 200
    forward = config.n_layers * (t * 12 * d * d + 2 * t * t * d) + t * d * 1000
    assert training_flops(meta_model(config), BatchShape(n_sequences=3, length=t)) == 3 * 2 * 3 * forward


def test_an_lstm_costs_what_its_formula_says() -> None:
    config: Any = config_of("lstm", head="tokens", n_outputs=3)
    d, state, t = config.d_model, config.d_state, 40
    forward = t * (4 * state * (d + state) + 4 * state * (state + state) + 3 * state)
    assert training_flops(meta_model(config), BatchShape(n_sequences=8, length=t)) == 3 * 2 * 8 * forward


def test_a_window_spares_arithmetic() -> None:
    batch = BatchShape(n_sequences=1, length=256)
    far, near = (training_flops(meta_model(config_of("gpt-mini", window=window)), batch) for window in (0, 8))
    assert near < far


@pytest.mark.parametrize(
    ("preset", "within"),
    [
        ("gpt-nano", 0.0),
        # The gradients of RMS norms are summed up by products with a vector.
        ("transformer-tiny", 0.001),
        ("llama-nano", 0.001),
        # Nobody asks for the gradient of the zeros before a recurrent layer's first step.
        ("rnn", 0.02),
        ("birnn-attention", 0.02),
    ],
)
def test_a_real_step_multiplies_as_much(preset: str, within: float) -> None:
    """Forward and backward, as torch counts them on the CPU; the loss by plain logits, whose products it knows all."""
    config: Any = config_of(preset)
    model = build_model(config).train()
    ids = torch.zeros(6, 12, dtype=torch.int64)
    task = "language" if hasattr(config, "context") else "translate"
    inputs = (ids,) if task == "language" else (ids, torch.full((6,), 12), ids)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(*inputs).flatten(0, 1), ids.flatten()).backward()
    batch = BatchShape(n_sequences=6, length=12, target_length=0 if task == "language" else 12)
    assert training_flops(meta_model(config), batch) == pytest.approx(counter.get_total_flops(), rel=within, abs=0)


def test_a_mean_length_lies_between_whole_ones() -> None:
    model = meta_model(config_of("transformer-tiny"))
    short, mean, long = (
        training_flops(model, BatchShape(n_sequences=1, length=10, target_length=length)) for length in (10, 10.25, 11)
    )
    assert mean == 0.75 * short + 0.25 * long


def test_counting_leaves_a_model_as_it_was() -> None:
    model = meta_model(config_of("gpt-nano"))
    training_flops(model, BatchShape(n_sequences=1, length=4))
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.device.type == "meta" for parameter in model.parameters())


def test_masked_words_are_guessed_only_where_they_are_hidden() -> None:
    few, many = (
        training_flops(meta_model(config_of("bert-tiny", vocab, head="words")), BatchShape(n_sequences=1, length=100))
        for vocab in (1000, 2000)
    )
    assert many - few == 3 * 2 * 15 * 1000 * 128  # 15 % of a hundred


# -- arithmetic of images -----------------------------------------------------------------------------------------------


def convolution_flops(n_inputs: int, size: int, n_outputs: int, edge: int) -> int:
    """The products of a convolution over an image, forwards; `edge` is that of what it hands on."""
    return 2 * n_inputs * size**2 * n_outputs * edge**2


def test_a_convnet_costs_what_its_formula_says() -> None:
    first = convolution_flops(3, 3, 32, 28)
    others = convolution_flops(32, 3, 64, 14) + convolution_flops(64, 3, 128, 7)
    # Of the first layer no gradient of what it reads, which are pixels.
    flops = training_flops(meta_model(image_config("convnet")), ImageBatchShape(n_images=5, size=28))
    assert flops == 5 * (2 * first + 3 * (others + 2 * 128 * 10))


def test_a_vit_costs_what_its_formula_says() -> None:
    config: Any = image_config("vit-tiny", image_size=28)
    d, f, n_patches = config.d_model, config.d_ff, 49
    t = 1 + n_patches  # and the class token
    first = n_patches * 3 * 4**2 * d
    layers = (config.n_layers - 1) * (t * (4 * d * d + 2 * d * f) + 2 * t * t * d)
    last = 2 * t * d * d + 2 * d * d + 2 * d * f + 2 * t * d  # all are heard there, and only the class token is asked
    others = layers + last + d * 10
    flops = training_flops(meta_model(config), ImageBatchShape(n_images=3, size=28))
    assert flops == 3 * 2 * (2 * first + 3 * others)


def test_a_captioner_reads_an_image_once_for_all_its_captions() -> None:
    config: Any = image_config("captioner-vit", image_size=32)
    d, f, n_patches, length = config.decoder.d_model, config.decoder.d_ff, 16, 7
    t = 1 + n_patches
    first = n_patches * 3 * 8**2 * d
    encoder = config.encoder.n_layers * (t * (4 * d * d + 2 * d * f) + 2 * t * t * d)
    cross = 2 * length * d * d + 2 * n_patches * d * d + 2 * length * n_patches * d
    layer = length * (4 * d * d + 2 * d * f) + 2 * length * length * d + cross
    caption = config.decoder.n_layers * layer + length * d * 50
    batch = ImageBatchShape(n_images=2, size=32, n_captions=5, caption_length=length)
    assert training_flops(meta_model(config), batch) == 2 * 2 * (2 * first + 3 * (encoder + 5 * caption))


@pytest.mark.parametrize(
    ("preset", "sizes", "edge", "published"),
    [
        # Multiply-adds forwards, as torchvision's documentation has them; of the first network, as it is often quoted.
        ("resnet-20", {}, 32, 41e6),
        ("resnet-50", {"n_outputs": 1000}, 224, 4.09e9),
        ("vit-base", {"n_outputs": 1000, "image_size": 224}, 224, 17.56e9),
    ],
)
def test_published_figures(preset: str, sizes: dict[str, int], edge: int, published: float) -> None:
    model = meta_model(image_config(preset, **sizes))
    batch = ImageBatchShape(n_images=1, size=edge)
    with listening(model, "states", lambda name, states: None):  # as published, with what nobody reads in the end
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            synthetic_loss(model.eval(), batch)
        forward = counter.get_total_flops()
        assert forward / 2 == pytest.approx(published, rel=0.01)
        assert training_flops(model, batch) == pytest.approx(3 * forward, rel=0.01)


@pytest.mark.parametrize(
    ("preset", "sizes", "edge"),
    [
        ("convnet", {}, 15),
        ("vit-tiny", {"image_size": 16}, 16),
        ("plain-20", {}, 9),
        ("resnet-20", {"skip": "concatenate"}, 9),
        ("resnet-50", {}, 33),
    ],
)
def test_a_real_step_on_images_multiplies_as_much(
    monkeypatch: pytest.MonkeyPatch, preset: str, sizes: dict[str, Any], edge: int
) -> None:
    monkeypatch.setattr(attention_kernels, "FEW_SINGLE", 0)  # torch does not count what its fused kernel does on a CPU
    config, batch = image_config(preset, **sizes), ImageBatchShape(n_images=2, size=edge)
    with FlopCounterMode(display=False) as counter:
        synthetic_loss(build_model(config).train(), batch, device=CPU).backward()
    assert training_flops(meta_model(config), batch) == counter.get_total_flops()


@pytest.mark.parametrize(
    ("preset", "within"),
    [
        ("captioner-vit", 0.0),
        ("captioner-resnet", 0.0),
        # Nobody asks for the gradient of the zeros before a recurrent layer's first step.
        ("captioner-rnn", 0.02),
    ],
)
def test_a_real_step_on_captions_multiplies_as_much(preset: str, within: float) -> None:
    """The loss by plain logits, whose products torch knows all."""
    config = image_config(preset, image_size=32)
    images, target, image_of = torch.rand(2, 3, 32, 32), torch.zeros(6, 12, dtype=torch.int64), torch.arange(6) // 3
    with FlopCounterMode(display=False) as counter:
        logits = build_model(config).train()(images, target, image_of)
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    batch = ImageBatchShape(n_images=2, size=32, n_captions=3, caption_length=12)
    counted = training_flops(meta_model(config), batch)
    assert counted == pytest.approx(counter.get_total_flops(), rel=within, abs=0)


# -- memory -------------------------------------------------------------------------------------------------------------


def really_kept(config: ModelConfig, batch: AnyBatchShape, *, precision: str = "fp32") -> int:
    """What a real step on the CPU keeps."""
    model = build_model(config).train()
    kept = SavedActivations(model)
    machine = runtime.Machine(device=CPU, precision=precision, threads=1)
    with kept.hooks(), seeded(0), machine.autocast():
        synthetic_loss(model, batch, device=CPU)
    return kept.n_bytes


def counted(config: ModelConfig, batch: AnyBatchShape, *, precision: str = "fp32") -> float:
    return count_activations(meta_model(config), batch, on_cpu=True, precision=precision).of(batch.n_examples)


@pytest.mark.parametrize(
    ("preset", "batch", "fields"),
    [
        ("transformer-tiny", BatchShape(n_sequences=8, length=20, target_length=25), {}),
        ("gpt-nano", BatchShape(n_sequences=8, length=64), {}),
        ("llama-nano", BatchShape(n_sequences=5, length=40), {}),
        ("bert-tiny", BatchShape(n_sequences=8, length=40), {"head": "words"}),
        ("bert-tiny", BatchShape(n_sequences=8, length=40), {"head": "sequence", "n_outputs": 3}),
    ],
)
def test_a_real_step_keeps_as_much(preset: str, batch: BatchShape, fields: dict[str, Any]) -> None:
    config = config_of(preset, **fields)
    assert counted(config, batch) == really_kept(config, batch)


@pytest.mark.parametrize(
    ("preset", "batch", "within"),
    [
        # The fused kernel, for long sequences: only what masks take differs.
        ("transformer-tiny", BatchShape(n_sequences=3, length=150, target_length=160), 0.001),
        ("t5-tiny", BatchShape(n_sequences=8, length=20, target_length=25), 0.001),
        # Torch's kernels for whole sequences keep somewhat more than the steps that are counted.
        ("birnn-attention", BatchShape(n_sequences=6, length=20, target_length=20), 0.1),
    ],
)
def test_a_real_step_keeps_about_as_much(preset: str, batch: BatchShape, within: float) -> None:
    config = config_of(preset)
    assert counted(config, batch) == pytest.approx(really_kept(config, batch), rel=within)


def test_the_batch_of_a_task_keeps_about_as_much_as_the_made_up_one() -> None:
    config = config_of("transformer-tiny")
    model = build_model(config).train()
    ids, lengths = torch.ones(8, 21, dtype=torch.int64), torch.full((8,), 20)
    kept = SavedActivations(model)
    with kept.hooks(), seeded(0):
        TranslationTask.loss(cast(Any, None), model, PairBatch(ids[:, 1:], lengths, ids, lengths), smoothing=0.1)
    batch = BatchShape(n_sequences=8, length=20, target_length=20)
    assert counted(config, batch) == pytest.approx(kept.n_bytes, rel=0.01)


@pytest.mark.parametrize(
    ("preset", "sizes", "edge"),
    [
        ("convnet", {}, 15),
        ("vit-tiny", {"image_size": 28}, 28),
        ("plain-20", {}, 16),
        ("resnet-20", {"skip": "concatenate", "join": "after", "activation": "tanh"}, 16),
        ("resnet-50", {}, 32),  # one place is left, of which batch norm learns nothing from one image
    ],
)
def test_a_real_step_on_images_keeps_as_much(preset: str, sizes: dict[str, Any], edge: int) -> None:
    config, batch = image_config(preset, **sizes), ImageBatchShape(n_images=5, size=edge)
    assert counted(config, batch) == really_kept(config, batch)


@pytest.mark.parametrize(
    # On a CPU the pixels of a batch are put side by side, which the counted network of shapes alone does not do.
    ("preset", "within"),
    [("captioner-vit", 0.0), ("captioner-resnet", 0.005), ("captioner-rnn", 0.1)],
)
def test_a_real_step_on_captions_keeps_as_much(preset: str, within: float) -> None:
    config = image_config(preset, image_size=24)
    batch = ImageBatchShape(n_images=4, size=24, n_captions=3, caption_length=12)
    assert counted(config, batch) == pytest.approx(really_kept(config, batch), rel=within, abs=0)


def test_the_images_of_a_task_keep_about_as_much_as_made_up_ones() -> None:
    config = image_config("captioner-resnet", image_size=24)
    model = build_model(config).train()
    table = ImageTable(shape=ImageShape(24, 3), mean=(0.5,) * 3, deviation=(0.5,) * 3)
    task = CaptioningTask(cast(Any, None), default_config("caption"), table)
    images = torch.zeros(4, 24, 24, 3, dtype=torch.uint8)
    target, lengths = torch.ones(12, 13, dtype=torch.int64), torch.full((12,), 12)
    kept = SavedActivations(model)
    with kept.hooks(), seeded(0):
        task.loss(model, CaptionBatch(images, target, lengths, torch.arange(12) // 3), smoothing=0.1)
    batch = ImageBatchShape(n_images=4, size=24, n_captions=3, caption_length=12)
    assert counted(config, batch) == pytest.approx(kept.n_bytes, rel=0.01)


@pytest.fixture(scope="module")
def multiplies_bf16() -> bool:
    """Whether this processor survives it."""
    return runtime._survives_bf16()


@pytest.mark.parametrize("length", [30, 150])
def test_bf16_keeps_less(length: int, multiplies_bf16: bool) -> None:
    config, batch = config_of("gpt-nano", n_layers=2, context=160), BatchShape(n_sequences=6, length=length)
    found = counted(config, batch, precision="bf16")
    assert found < 0.9 * counted(config, batch)
    if not multiplies_bf16:
        pytest.skip("this processor cannot multiply bf16 matrices")
    assert found == pytest.approx(really_kept(config, batch, precision="bf16"), rel=0.02)


@pytest.mark.parametrize(
    ("preset", "sizes", "edge"), [("resnet-20", {}, 16), ("convnet", {}, 16), ("vit-tiny", {"image_size": 28}, 28)]
)
def test_bf16_keeps_less_of_images(preset: str, sizes: dict[str, int], edge: int, multiplies_bf16: bool) -> None:
    config, batch = image_config(preset, **sizes), ImageBatchShape(n_images=16, size=edge)
    found = counted(config, batch, precision="bf16")
    assert found < 0.9 * counted(config, batch)
    if not multiplies_bf16:
        pytest.skip("this processor cannot multiply bf16 matrices")
    assert found == pytest.approx(really_kept(config, batch, precision="bf16"), rel=0.02)


def test_a_gpu_takes_the_fused_kernel_for_short_sequences_too() -> None:
    model, batch = meta_model(config_of("gpt-nano")), BatchShape(n_sequences=8, length=64)
    on_gpu, on_cpu = (
        count_activations(model, batch, on_cpu=on_cpu, precision="fp32").of(batch.n_examples)
        for on_cpu in (False, True)
    )
    weights = 4 * 4 * 4 * 8 * 64 * 64  # bytes, layers, heads, sequences, queries, keys
    assert 0.4 * weights < on_cpu - on_gpu < weights
