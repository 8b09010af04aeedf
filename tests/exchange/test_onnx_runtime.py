"""The program of an exported folder: the ids, the texts and the predictions of regard, without torch and without regard."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.exchange import tokenizer_folders as folders

import regard
from regard.api.export import exportable
from regard.config import DecodingConfig
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import KINDS, learn
from regard.exchange import onnx_runtime
from regard.exchange.exportable import Exportable
from regard.exchange.onnx_config import tokenizer_settings
from regard.exchange.onnx_export import write_onnx
from regard.exchange.onnx_runtime import Model, Text
from regard.exchange.tokenizers import read_tokenizers
from regard.models.bert import BertConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.presets import build_model
from regard.models.t5 import T5Config
from regard.models.transformer import TransformerConfig
from regard.tasks.denoising.fill_mask import find_blanks
from regard.tasks.embedding import Embedder
from regard.tasks.labelling.similarity import text_vectors
from regard.tasks.language_model.continuation import Continuer
from regard.tasks.options import GenerationOptions
from regard.tasks.translation.translator import LineTranslator, TranslationOptions

CLOSE = 1e-5
SAID = ["the quick brown fox jumps over the lazy dog", "a dog barks, a cat sleeps", "zwölf Boxkämpfer jagen Viktor"]
FOLDERS = ["bert", "gpt2", "llama2", "llama3", "m2m100", "marian", "nllb", "qwen2", "t5", "xlm_roberta"]
LINES = [*folders.lines(30), folders.NAMES]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(SAID, kind="characters", vocab_size=60, specials=("<mask>",))


def opened(folder: Path, given: Exportable) -> Model:
    write_onnx(folder, given)
    return onnx_runtime.load(folder, threads=1)


def exported(folder: Path, config: Any, task: str, *, noise: float = 0.1, **others: Any) -> tuple[Any, Model]:
    """A network of random weights, so wide apart that it says various things, and what was exported of it."""
    model, generator = build_model(config), torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn(parameter.shape, generator=generator))
    given = Exportable(task=task, config=config, weights=model.state_dict(), **others)
    return model.eval(), opened(folder, given)


def of_run(folder: Path, path: Path) -> tuple[Any, Model]:
    run: Any = regard.load(path, device="cpu", threads=1)
    return run, opened(folder, exportable(run))


# -- ids -----------------------------------------------------------------------------------------------------------------


def text_of(tokenizer: Tokenizer, folder: Path) -> Text:
    settings, files = tokenizer_settings(tokenizer, "tokenizer.json")
    for name, content in files.items():
        (folder / name).write_text(content)
    return Text(folder, settings)


def imported(name: str, folder: Path) -> Tokenizer:
    getattr(folders, name)(folder)
    return read_tokenizers(folder).source


def check_ids(tokenizer: Tokenizer, text: Text, lines: Sequence[str]) -> None:
    assert [text.encode(line) for line in lines] == tokenizer.encode_batch(lines)
    for line in lines:
        ids = tokenizer.encode(line)
        assert text.decode(ids) == tokenizer.decode(ids)
    spaced = [" ".join(line.split()) for line in lines if line.split() and line != folders.NAMES]
    expected = [[(piece.id, piece.start, piece.end) for piece in tokenizer.pieces(line)] for line in spaced]
    assert [text.pieces(line) for line in spaced] == expected


def check_blanks(tokenizer: Tokenizer, text: Text) -> None:
    for line in ("a [MASK] barks", "[MASK] dog", "the dog [MASK].", "qu<mask>ck [MASK] fox", "ends with [MASK]"):
        expected = find_blanks(line, tokenizer)
        assert text.blanks(line) == (list(expected.parts), list(expected.ids))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("running", [True, False])
def test_texts_are_read_as_by_our_tokenizers(kind: str, running: bool, tmp_path: Path) -> None:
    tokenizer = learn(SAID * 3, kind=kind, vocab_size=330, running=running)
    text = text_of(tokenizer, tmp_path)
    check_ids(tokenizer, text, [*SAID, *LINES])
    check_blanks(tokenizer, text)


@pytest.mark.parametrize("name", FOLDERS)
def test_texts_are_read_as_by_imported_tokenizers(name: str, tmp_path: Path) -> None:
    tokenizer = imported(name, tmp_path)
    text = text_of(tokenizer, tmp_path)
    check_ids(tokenizer, text, LINES)
    check_blanks(tokenizer, text)


def test_a_text_without_a_blank(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^There is no \[MASK\] in 'a dog'\.$"):
        text_of(tokenizer, tmp_path).blanks("a dog")


# -- greedy search, token for token --------------------------------------------------------------------------------------

GREEDY = DecodingConfig(beam=1)


def test_a_trained_translator(trained: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    run, model = of_run(tmp_path, trained)
    texts = [*Path(corpus[0]).read_text().splitlines(), "", "  a dog ", "the " * 40]
    assert model.translate(texts) == [one.text for one in run.translate(texts, beam=1)]
    assert model.translate(texts, max_length=3) == [one.text for one in run.translate(texts, beam=1, max_length=3)]
    assert model.translate([]) == []


TRANSLATOR = {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24}


@pytest.mark.parametrize("max_length", [0, 5])
@pytest.mark.parametrize("kind", [TransformerConfig, T5Config])
def test_translators_of_random_weights(kind: Any, max_length: int, tokenizer: Tokenizer, tmp_path: Path) -> None:
    n_tokens = tokenizer.vocab_size
    fields = {"d_head": 8} if kind is T5Config else {"tied": "none", "positions": "learned", "max_positions": 24}
    config = kind(source_vocab=n_tokens, target_vocab=n_tokens, **TRANSLATOR, **fields)
    network, model = exported(tmp_path, config, "translate", source=tokenizer, target=tokenizer)
    check_translations(network, model, Vocabulary(tokenizer, tokenizer), max_length)


def check_translations(network: Any, model: Model, vocabulary: Vocabulary, max_length: int) -> None:
    texts = [f"{word} {word[::-1]}"[:20] for text in SAID for word in text.split()]
    decoding = DecodingConfig(beam=1, max_length=max_length)
    ours = LineTranslator(vocabulary, [network], decoding, TranslationOptions(), max_length=99).translate(texts)
    assert max_length == 5 or len({one.text for one in ours}) >= 6  # else a mistake might not show
    assert model.translate(texts, max_length=max_length) == [one.text for one in ours]


def test_a_vocabulary_for_each_side(tokenizer: Tokenizer, tmp_path: Path) -> None:
    target = learn(SAID * 3, kind="bpe", vocab_size=300)
    sizes = {"source_vocab": tokenizer.vocab_size, "target_vocab": target.vocab_size}
    config = TransformerConfig(**sizes, tied="none", **TRANSLATOR)
    network, model = exported(tmp_path, config, "translate", source=tokenizer, target=target)
    assert (tmp_path / "source_tokenizer.json").is_file() and (tmp_path / "target_tokenizer.json").is_file()
    check_translations(network, model, Vocabulary(tokenizer, target), 0)


def test_tokens_in_front_of_every_text(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    folders.m2m100(tmp_path / "theirs")
    both = read_tokenizers(tmp_path / "theirs")
    assert both.source.prefix and both.target.prefix
    sizes = {"source_vocab": both.source.vocab_size, "target_vocab": both.target.vocab_size}
    (folder := tmp_path / "out").mkdir()
    config = TransformerConfig(**sizes, **TRANSLATOR)
    network, model = exported(folder, config, "translate", source=both.source, target=both.target)
    check_translations(network, model, Vocabulary(both.source, both.target), 8)


GPT = GPTConfig(vocab=60, n_layers=2, n_heads=2, d_model=16, context=24)
LLAMA = LlamaConfig(vocab=60, n_layers=2, n_heads=4, n_key_heads=2, d_model=16, d_ff=24, context=24, tied="none")


@pytest.mark.parametrize("max_length", [6, 70])
@pytest.mark.parametrize(
    "config", [GPT, LLAMA, LlamaConfig(**{**vars(LLAMA), "window": 5})], ids=["gpt", "llama", "window"]
)
def test_language_models(config: Any, max_length: int, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Prompts of any length together, an empty one among them, and beyond the context, of which half is forgotten."""
    config = type(config)(**{**vars(config), "vocab": tokenizer.vocab_size})
    network, model = exported(tmp_path, config, "language", noise=0.3, source=tokenizer, target=tokenizer)
    prompts = ["", "the", "a quick fox", "jumps over the lazy dog", "z"]
    decoding = DecodingConfig(beam=1, max_length=max_length)
    ours = Continuer(tokenizer, network, decoding, GenerationOptions()).generate(prompts)
    assert len({one.text for one in ours}) >= 4 and any(len(one.outputs[0].ids) == max_length for one in ours)
    assert model.generate(prompts, max_length=max_length) == [one.text for one in ours]


def test_a_language_model_with_an_imported_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    tokenizer = imported("gpt2", tmp_path / "theirs")
    (folder := tmp_path / "out").mkdir()
    config = LlamaConfig(**{**vars(LLAMA), "vocab": tokenizer.vocab_size})
    network, model = exported(folder, config, "language", source=tokenizer, target=tokenizer)
    ours = Continuer(tokenizer, network, DecodingConfig(beam=1, max_length=9), GenerationOptions())
    prompts = ["", "the dog", "  two", "<|endoftext|> is text"]
    assert model.generate(prompts, max_length=9) == [one.text for one in ours.generate(prompts)]


# -- predictions ---------------------------------------------------------------------------------------------------------


def check_classes(found: Sequence[dict[str, float]], expected: Sequence[Any]) -> None:
    for own, ours in zip(found, expected, strict=True):
        assert list(own) == list(ours.probabilities)
        assert own == pytest.approx(ours.probabilities, abs=CLOSE)


def test_a_classifier(classify_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, classify_run)
    texts = ["a good dog", " a poor film ", "", "unheard of", "a great day " * 30]  # of which the last is cut
    check_classes(model.predict(texts), run.predict(texts))


def test_a_classifier_of_pairs(pairs_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, pairs_run)
    texts, second = (
        ["a dog", "the sun", "a cat " * 5, "the sun " * 30],
        ["a dog", "a cat", "a dog " * 30, "a dog " * 30],
    )
    check_classes(model.predict(texts, second), run.predict(texts, texts_b=second))


def test_a_tagger(tag_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, tag_run)
    sentences = ["Anna Smith visits Rome", ["Ben", "often", "visits", "New York"], "", "Oslo"]
    assert model.predict(sentences) == [list(one.tags) for one in run.predict(sentences)]


def test_texts_are_cut_where_the_task_cuts_them(classify_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, classify_run)
    assert model.longest == run.task.longest
    longest = "a cat " * run.task.longest
    check_classes(model.predict([longest]), run.predict([longest]))


def test_a_regressor(regress_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, regress_run)
    texts = ["ACDE", "AAAA", "CCC", "E" * 60]
    assert model.predict(texts) == pytest.approx([one.value for one in run.predict(texts)], abs=1e-4)


def test_a_masked_language_model(mask_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, mask_run)
    texts = ["the [MASK] is good today .", "[MASK] dog is [MASK] today [MASK]", "a<mask>"]
    assert model.predict(texts) == [one.text for one in run.predict(texts)]


def test_sequences_of_vectors(vectors_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, vectors_run)
    draw = np.random.default_rng(1)
    vectors = [draw.normal(size=(length, 2)) for length in (6, 3, 9)]
    check_classes(model.predict(vectors), run.predict(vectors))


def test_images(image_run: Path, tmp_path: Path) -> None:
    run, model = of_run(tmp_path, image_run)
    images = list(np.random.default_rng(1).integers(0, 256, (70, 8, 8, 3), dtype=np.uint8))
    check_classes(model.predict(images), run.predict(images))


def test_the_similarity_of_texts(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = BertConfig(vocab=tokenizer.vocab_size, n_layers=1, n_heads=2, d_model=8, d_ff=12, max_positions=30)
    network, model = exported(
        tmp_path, config, "similarity", source=tokenizer, target=tokenizer, longest=20, unit=(1.0, 4.0)
    )
    pairs = [("a dog", "a cat"), ("the lazy fox, which jumps", "the lazy fox")]
    read = [pairs[0], ("the lazy f", "the lazy f")]  # of two that are too long together, as much as there is room for
    rows = [[[tokenizer.start_id, *tokenizer.encode(one), tokenizer.end_id] for one in pair] for pair in read]
    expected = []
    with torch.inference_mode():
        for pair in rows:
            first, second = (text_vectors(network, torch.tensor([row]), torch.tensor([len(row)])) for row in pair)
            expected.append(1 + 4 * float(F.cosine_similarity(first, second)))
    assert model.predict(*zip(*pairs, strict=True)) == pytest.approx(expected, abs=4 * CLOSE)
    assert expected[0] < expected[1] == pytest.approx(5)


# -- vectors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "config"),
    [
        ("classify", BertConfig(vocab=60, head="sequence", n_outputs=2, n_layers=1, n_heads=2, d_model=8, d_ff=12)),
        ("language", GPT),
        ("language", LLAMA),
        ("denoise", T5Config(source_vocab=60, target_vocab=60, d_head=8, **TRANSLATOR)),
    ],
)
def test_vectors_are_those_of_embed(task: str, config: Any, tokenizer: Tokenizer, tmp_path: Path) -> None:
    names = ("vocab",) if hasattr(config, "vocab") else ("source_vocab", "target_vocab")
    config = type(config)(**{**vars(config), **dict.fromkeys(names, tokenizer.vocab_size)})
    network, model = exported(tmp_path, config, task, source=tokenizer, target=tokenizer)
    texts = [*SAID, "", "a", "a lazy dog " * 60]
    expected = [one.vector for one in Embedder(tokenizer, network).embed(texts)]
    assert np.abs(np.stack(model.embed(texts)) - np.stack(expected)).max() < CLOSE


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_methods_of_other_tasks(image_run: Path, tmp_path: Path) -> None:
    _, model = of_run(tmp_path, image_run)
    with pytest.raises(ValueError, match=r"^This network was trained for image, and not for translate\.$"):
        model.translate(["a dog"])
    with pytest.raises(ValueError, match=r"^This network was trained for image, and not for language\.$"):
        model.generate(["a dog"])
    with pytest.raises(ValueError, match=r"^This network reads no texts\.$"):
        model.embed(["a dog"])
    shapes = r"^An image has the shape \(8, 8, 3\), of uint8, not \(8, 8\)\.$"
    with pytest.raises(ValueError, match=shapes):
        model.predict([np.zeros((8, 8), np.uint8)])


def test_texts_that_are_too_long(tag_run: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    for folder in (tmp_path / "tag", tmp_path / "language"):
        folder.mkdir()
    _, tagger = of_run(tmp_path / "tag", tag_run)
    with pytest.raises(ValueError, match=r"^A text has 42 tokens, and the network reads at most 40: shorten it\.$"):
        tagger.predict(["Anna " * 40])
    config = GPTConfig(**{**vars(GPT), "vocab": tokenizer.vocab_size})
    _, language = exported(tmp_path / "language", config, "language", source=tokenizer, target=tokenizer)
    with pytest.raises(ValueError, match=r"^A text has 30 tokens, and the network reads at most 24: shorten it\.$"):
        language.generate(["a" * 30])


# -- as a program --------------------------------------------------------------------------------------------------------

ALONE = """
import runpy, sys
sys.modules.update(dict.fromkeys(("torch", "regard", "onnx", "transformers")))  # which makes an import of them an error
sys.argv = ["run.py", *{arguments}]
runpy.run_path("run.py", run_name="__main__")
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., list[str]]:
    def call(*arguments: str) -> list[str]:
        code = ALONE.format(arguments=arguments)
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return call


def test_the_program_needs_neither_torch_nor_regard(
    trained: Path, tmp_path: Path, program: Callable[..., list[str]]
) -> None:
    run, _ = of_run(tmp_path, trained)
    assert program("a dog", "the man sees") == [one.text for one in run.translate(["a dog", "the man sees"], beam=1)]


def test_the_program_takes_pairs(pairs_run: Path, tmp_path: Path, program: Callable[..., list[str]]) -> None:
    run, _ = of_run(tmp_path, pairs_run)
    [line] = program("a dog\ta cat")
    [expected] = run.predict(["a dog"], texts_b=["a cat"])
    assert line.startswith(f'{{"{expected.label}": ')


def test_the_program_takes_arrays(image_run: Path, tmp_path: Path, program: Callable[..., list[str]]) -> None:
    run, _ = of_run(tmp_path, image_run)
    image = np.random.default_rng(1).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    np.save(tmp_path / "image.npy", image)
    [line] = program("image.npy")
    assert line.startswith(f'{{"{run.predict([image])[0].label}": ')


def test_the_program_writes_on(tokenizer: Tokenizer, tmp_path: Path, program: Callable[..., list[str]]) -> None:
    config = GPTConfig(**{**vars(GPT), "vocab": tokenizer.vocab_size})
    _, model = exported(tmp_path, config, "language", source=tokenizer, target=tokenizer)
    assert "\n".join(program("the quick")) == model.generate(["the quick"])[0]
