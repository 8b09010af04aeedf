"""ONNX graphs give the numbers of the networks, for every choice of a config, at any batch and length; what is refused."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError, MissingExtraError
from regard.exchange import onnx_runtime
from regard.exchange.exportable import Exportable
from regard.exchange.image_preprocessing import ImagePreprocessing
from regard.exchange.onnx_export import write_onnx
from regard.models.bert import BertConfig
from regard.models.captioner import CaptionerConfig
from regard.models.convnet import ConvNetConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LinearScaling, Llama3Scaling, LlamaConfig
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model
from regard.models.recurrent import RecurrentConfig
from regard.models.recurrent_encoder import RecurrentEncoderConfig
from regard.models.resnet import ResNetConfig
from regard.models.t5 import T5Config
from regard.models.transformer import TransformerConfig
from regard.models.vit import ViTConfig

CLOSE = 1e-5
Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(["the quick brown fox jumps over the lazy dog"], kind="characters", vocab_size=40)


def shaken(config: ModelConfig) -> nn.Module:
    """A network whose biases and norms are not the zeros and ones that would hide a mistake."""
    model, generator = build_model(config), torch.Generator().manual_seed(3)
    statistics = [tensor for name, tensor in model.named_buffers() if "running" in name]
    with torch.no_grad():
        for tensor in (*model.parameters(), *statistics):
            tensor.add_(0.4 * torch.rand(tensor.shape, generator=generator) - 0.2)
    return model.eval()


def exported(folder: Path, model: Any, task: str, **others: Any) -> None:
    write_onnx(folder, Exportable(task=task, config=model.config, weights=model.state_dict(), **others))


def opened(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options)


def run(session: onnxruntime.InferenceSession, **inputs: Any) -> Arrays:
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: np.asarray(one) for name, one in inputs.items()}), strict=True))


def ids_of(tokenizer: Tokenizer, lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Ids of some lengths, padded; in the first row a second text follows upon the first."""
    generator = torch.Generator().manual_seed(max(lengths))
    ids = torch.randint(4, tokenizer.vocab_size, (len(lengths), max(lengths)), generator=generator)
    ids[:, 0] = tokenizer.start_id
    for row, length in enumerate(lengths):
        ids[row, length - 1] = tokenizer.end_id
        ids[row, length:] = tokenizer.pad_id
    ids[0, lengths[0] // 2] = tokenizer.end_id
    return ids, torch.tensor(lengths)


def real(lengths: Tensor) -> Any:
    return (torch.arange(int(lengths.max())) < lengths[:, None]).numpy()


# -- one graph -----------------------------------------------------------------------------------------------------------

BERT = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_ff": 12, "max_positions": 20}
ENCODERS = [
    *((BertConfig, {**BERT, "head": "sequence", "n_outputs": 3, "pooling": one}) for one in ("class", "mean", "last")),
    (BertConfig, {**BERT, "head": "tokens", "n_outputs": 3}),
    (BertConfig, {**BERT, "head": "words"}),
    (BertConfig, {**BERT, "head": "none", "n_segments": 1}),
    *(
        (RecurrentEncoderConfig, {"head": "sequence", "n_outputs": 3, "n_layers": 2, "d_model": 6, "d_state": 5, **one})
        for one in (
            {"cell": "gru"},
            {"cell": "lstm", "pooling": "mean"},
            {"cell": "elman", "bidirectional": False},
            {"cell": "elman-relu", "pooling": "class"},
            {"cell": "elman-sigmoid", "bidirectional": False, "pooling": "mean"},
        )
    ),
]


@pytest.mark.parametrize(("kind", "fields"), ENCODERS)
def test_encoders(kind: Any, fields: dict[str, Any], tokenizer: Tokenizer, tmp_path: Path) -> None:
    model: Any = shaken(kind(vocab=tokenizer.vocab_size, **fields))
    exported(tmp_path, model, "classify", source=tokenizer, target=tokenizer)
    session = opened(tmp_path / "model.onnx")
    for sizes in ([9, 4, 6], [5], [12, 1]):
        ids, lengths = ids_of(tokenizer, sizes)
        places = torch.arange(ids.shape[1])
        segments = (places > lengths[:1] // 2).long() * (torch.arange(len(ids)) == 0)[:, None]
        if fields.get("n_segments") == 1:
            segments = segments * 0
        with torch.inference_mode():
            states, expected = model.encode(ids, lengths, segments).numpy(), model(ids, lengths, segments).numpy()
        found = run(session, ids=ids, lengths=lengths)
        assert np.abs(found["states"] - states)[real(lengths)].max() < CLOSE
        assert ("logits" in found) == (fields["head"] != "none")
        if "logits" in found:
            differences = np.abs(found["logits"] - expected)
            assert (differences[real(lengths)] if expected.ndim == 3 else differences).max() < CLOSE


def test_sequences_of_vectors(tmp_path: Path) -> None:
    model = shaken(BertConfig(vocab=0, n_features=4, head="tokens", n_outputs=2, **BERT))
    exported(tmp_path, model, "tag", labels=("a", "b"))
    vectors, lengths = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([7, 2, 5])
    with torch.inference_mode():
        expected = model(vectors, lengths).numpy()
    found = run(opened(tmp_path / "model.onnx"), vectors=vectors, lengths=lengths)["logits"]
    assert np.abs(found - expected)[real(lengths)].max() < CLOSE


RESNET = {"n_blocks": (1, 2), "width": 4}
IMAGES = [
    (ViTConfig, {"image_size": 8, "patch_size": 4, "n_layers": 2, "n_heads": 2, "d_model": 8, "d_ff": 12}, [8]),
    (ResNetConfig, RESNET, [8, 13]),
    (ResNetConfig, {**RESNET, "stem": "large", "block": "bottleneck"}, [33, 16]),
    (ResNetConfig, {**RESNET, "skip": "none"}, [8]),
    (ResNetConfig, {**RESNET, "skip": "concatenate", "activation": "tanh"}, [8]),
    (ResNetConfig, {**RESNET, "join": "after", "norm": "none", "activation": "sigmoid"}, [8]),
    (ConvNetConfig, {"widths": (4, 5, 6)}, [8, 13, 5]),
]


@pytest.mark.parametrize(("kind", "fields", "sizes"), IMAGES)
def test_images(kind: Any, fields: dict[str, Any], sizes: list[int], tmp_path: Path) -> None:
    model = shaken(kind(n_channels=3, n_outputs=4, **fields))
    exported(tmp_path, model, "image", labels=("a", "b", "c", "d"))
    session = opened(tmp_path / "model.onnx")
    for number, size in enumerate(sizes, start=1):
        pixels = torch.randn(number, 3, size, size, generator=torch.Generator().manual_seed(size))
        with torch.inference_mode():
            expected = model(pixels).numpy()
        assert np.abs(run(session, pixels=pixels)["logits"] - expected).max() < CLOSE


# -- cached decoding -----------------------------------------------------------------------------------------------------

SIZES = {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 8, "n_heads": 2, "d_ff": 12}
SINCE = {"norm": "rms", "norm_order": "pre", "feed_forward": "gated", "activation": "silu"}
TRANSLATORS = [
    *(
        (TransformerConfig, {**SIZES, **one})
        for one in (
            {},
            {"positions": "learned", "norm_order": "pre", "max_positions": 20},
            {"positions": "rotary", **SINCE},
            {"positions": "index", "join_positions": "concatenate"},
            {"positions": "fraction", "activation": "gelu", "join_positions": "concatenate"},
            {"positions": "none", "norm_order": "none", "activation": "gelu-tanh"},
            {"window": 2},
            {"tied": "target", "output_bias": True, "scale_embedding": False},
            {"d_model": 9, "n_heads": 3, "tied": "none"},
        )
    ),
    *(
        (T5Config, {**SIZES, "d_head": 3, **one})
        for one in (
            {},
            {"feed_forward": "gated", "activation": "gelu-tanh", "tied": "inputs"},
            {"n_buckets": 4, "max_distance": 3},
        )
    ),
]
LLAMA = {"n_layers": 2, "n_heads": 4, "n_key_heads": 2, "d_model": 16, "d_ff": 12, "context": 20}
LANGUAGE_MODELS = [
    (GPTConfig, {"n_layers": 2, "n_heads": 2, "d_model": 8, "context": 20}),
    (GPTConfig, {"n_layers": 1, "n_heads": 2, "d_model": 8, "context": 20, "window": 2}),
    *(
        (LlamaConfig, {**LLAMA, **one})
        for one in (
            {},
            {"window": 2},
            {"biases": "all", "tied": "none", "d_head": 6},
            {"n_key_heads": 1, "rotary_scaling": LinearScaling(factor=3)},
            {"n_key_heads": 4, "rotary_scaling": Llama3Scaling(first_context=8)},
        )
    ),
]


def check_steps(model: Any, folder: Path, state: Any, memory: Arrays, n_tokens: int) -> None:
    """Rows of different lengths, then one token after another, by the graphs and by the network."""
    first, after = opened(folder / "first.onnx"), opened(folder / "next.onnx")
    generator = torch.Generator().manual_seed(2)
    ids, lengths = torch.randint(4, n_tokens, (3, 5), generator=generator), torch.tensor([5, 2, 4])
    with torch.inference_mode():
        found = run(first, ids=ids, lengths=lengths, **memory)
        expected, state = model.step(state, ids, lengths)
        assert np.abs(found["logits"] - expected.numpy()).max() < CLOSE
        if not memory:
            states = model.states(ids).numpy()
            assert np.abs(found["states"] - states)[real(lengths)].max() < CLOSE
        held = np.where(real(lengths), np.arange(5), -1)
        for _ in range(6):
            one = torch.randint(4, n_tokens, (3, 1), generator=generator)
            cache = {f"cached_{name}": value for name, value in found.items() if name.startswith(("key", "value"))}
            found = run(after, ids=one, lengths=lengths, held=held, **cache, **memory)
            expected, state = model.step(state, one)
            assert np.abs(found["logits"] - expected.numpy()).max() < CLOSE
            held, lengths = np.concatenate([held, lengths[:, None]], axis=1), lengths + 1


@pytest.mark.parametrize(("kind", "fields"), TRANSLATORS)
def test_encoder_and_decoder(kind: Any, fields: dict[str, Any], tokenizer: Tokenizer, tmp_path: Path) -> None:
    n_tokens = tokenizer.vocab_size
    model: Any = shaken(kind(source_vocab=n_tokens, target_vocab=n_tokens, **fields))
    exported(tmp_path, model, "translate", source=tokenizer, target=tokenizer)
    source, lengths = ids_of(tokenizer, [7, 3, 5])
    with torch.inference_mode():
        states, state = model.encode(source, lengths).numpy(), model.start((source, lengths))
    memory = run(opened(tmp_path / "encoder.onnx"), ids=source, lengths=lengths)
    assert np.abs(memory.pop("states") - states)[real(lengths)].max() < CLOSE
    check_steps(model, tmp_path, state, {**memory, "source_lengths": lengths}, n_tokens)


@pytest.mark.parametrize(("kind", "fields"), LANGUAGE_MODELS)
def test_decoder_only(kind: Any, fields: dict[str, Any], tokenizer: Tokenizer, tmp_path: Path) -> None:
    model: Any = shaken(kind(vocab=tokenizer.vocab_size, **fields))
    exported(tmp_path, model, "language", source=tokenizer, target=tokenizer)
    check_steps(model, tmp_path, model.start(3), {}, tokenizer.vocab_size)


def test_positions_are_exact_far_from_the_beginning(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Beyond the sinusoids that our network has ready, and where angles are large."""
    fields = {**SIZES, "n_encoder_layers": 1, "n_decoder_layers": 1}
    for number, positions in enumerate(("sinusoidal", "rotary")):
        config = TransformerConfig(source_vocab=40, target_vocab=40, positions=positions, **fields)
        (folder := tmp_path / str(number)).mkdir()
        model: Any = shaken(config)
        exported(folder, model, "translate", source=tokenizer, target=tokenizer)
        source, lengths = ids_of(tokenizer, [700])
        with torch.inference_mode():
            expected = model.encode(source, lengths).numpy()
        found = run(opened(folder / "encoder.onnx"), ids=source, lengths=lengths)["states"]
        assert np.abs(found - expected).max() < CLOSE


# -- folders -------------------------------------------------------------------------------------------------------------


def test_sizes_that_may_be_any_have_names(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = shaken(LlamaConfig(vocab=tokenizer.vocab_size, **LLAMA))
    exported(tmp_path, model, "language", source=tokenizer, target=tokenizer)
    session = opened(tmp_path / "next.onnx")
    shapes = {one.name: one.shape for one in (*session.get_inputs(), *session.get_outputs())}
    assert shapes["ids"] == ["batch", 1]
    assert shapes["lengths"] == ["batch"]
    assert shapes["held"] == ["batch", "cached"]
    assert shapes["cached_key_1"] == shapes["cached_value_1"] == ["batch", 2, "cached", 4]
    assert shapes["key_1"] == ["batch", 2, "grown", 4]
    assert shapes["logits"] == ["batch", tokenizer.vocab_size]


def test_what_a_folder_holds(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = shaken(BertConfig(vocab=tokenizer.vocab_size, head="sequence", n_outputs=2, **BERT))
    texts: dict[str, Any] = {"source": tokenizer, "target": tokenizer}
    exported(tmp_path, model, "classify", labels=("no", "yes"), card="# A card\n", **texts)
    assert {one.name for one in tmp_path.iterdir()} == {
        "model.onnx",
        "config.json",
        "tokenizer.json",
        "README.md",
        "run.py",
    }
    assert (tmp_path / "tokenizer.json").read_text() == tokenizer.to_json()
    assert (tmp_path / "run.py").read_text() == Path(onnx_runtime.__file__).read_text()
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("# A card\n\n## Use it with ONNX Runtime\n")
    assert 'print(model.predict(["A dog runs."]))' in card


def test_the_card_says_what_an_image_is(tmp_path: Path) -> None:
    image = ImagePreprocessing(size=8, mean=(0.5,), deviation=(0.2,))
    exported(tmp_path, shaken(ConvNetConfig(n_channels=1, n_outputs=2, widths=(4,))), "image", image=image)
    card = (tmp_path / "README.md").read_text()
    assert "print(model.predict([image]))" in card
    assert "An image is an array of bytes of the shape (8, 8, 1): the square in its middle, scaled." in card


@pytest.mark.parametrize(
    ("task", "note"),
    [
        ("translate", "run.py reads each text as one sentence, and does not split long ones."),
        ("denoise", "run.py embeds texts with this network, and does not fill their blanks."),
    ],
)
def test_what_the_program_does_not_do_is_noted(task: str, note: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = T5Config(source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size, d_head=4, **SIZES)
    weights = shaken(config).state_dict()
    given = Exportable(task=task, config=config, weights=weights, source=tokenizer, target=tokenizer)
    assert write_onnx(tmp_path, given) == [note]


# -- what is refused -----------------------------------------------------------------------------------------------------

REMEDY = "Export its weights alone (--to safetensors), or train another model."


@pytest.mark.parametrize(
    ("task", "config", "kind"),
    [
        ("caption", CaptionerConfig(vocab=9, n_channels=1, image_size=8), "captioner"),
        ("translate", RecurrentConfig(source_vocab=9, target_vocab=9, d_model=4, d_state=4), "recurrent translator"),
    ],
)
def test_networks_without_a_graph(task: str, config: ModelConfig, kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        write_onnx(tmp_path, Exportable(task=task, config=config, weights=build_model(config).state_dict()))
    assert str(error.value) == f"A {kind} cannot be exported to ONNX: there is no graph for its decoder.\n{REMEDY}"
    assert not list(tmp_path.iterdir())


def test_onnx_is_an_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    config = ConvNetConfig(n_channels=1, n_outputs=2, widths=(4,))
    with pytest.raises(MissingExtraError) as error:
        write_onnx(tmp_path, Exportable(task="image", config=config, weights=build_model(config).state_dict()))
    assert str(error.value) == (
        "Exporting to ONNX needs the package 'onnx', which is not installed.\n"
        "Install it with: pip install 'regard[export]'"
    )
