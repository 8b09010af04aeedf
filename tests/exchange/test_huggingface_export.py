"""Runs as folders of the transformers package: from text to text what the run says, there and back; every refusal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.api.test_import_model import published
from tests.conftest import READER, SEEING
from tests.exchange.test_ctranslate2_export import load, said
from tests.exchange.their_networks import transformers

import regard
from regard.errors import ConfigError, UsageError
from regard.tasks.language_model.continuation import prompt_ids

CLOSE = 1e-5
TEXTS = ["a dog runs", "the old man sees the red house", "big", "zwölf  Boxer <pad> </s>"]
WORDS = {"model.n_layers": 1, "model.n_heads": 2, "model.d_model": 16, "model.d_ff": 32, "runtime.threads": 1}
T5 = {"model.preset": "t5-tiny", "model.d_head": 8}
NOT_T5 = ("norm", "positions", "feed_forward", "activation")
Export = Callable[[Path], Path]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """The folder that a run was exported to, each once; not to be changed."""
    folders: dict[Path, Path] = {}

    def exported(run: Path) -> Path:
        if run not in folders:
            folders[run] = tmp_path_factory.mktemp("huggingface") / "out"
            regard.export(run, "huggingface", folders[run])
        return folders[run]

    return exported


def theirs(folder: Path, kind: str) -> tuple[Any, Any]:
    """What their package makes of a folder: tokenizer and network."""
    network = getattr(transformers, kind).from_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder), network.eval()


def returned(folder: Path, run: Path) -> Any:
    """The folder as a run of ours."""
    regard.import_model(folder, run=run)
    return load(run)


def is_near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return found.shape == expected.shape and float((found - expected).abs().max()) < CLOSE


# -- translation --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def translators(
    trained: Path, tiny: dict[str, Any], corpus: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """By their class a run that it is."""
    folder = tmp_path_factory.mktemp("translators")
    base = {**tiny, "training.steps": 40}
    others = {
        "MarianMTModel": {**base, "model.norm_order": "post", "tokenizer.kind": "unigram"},
        "T5ForConditionalGeneration": {
            **{key: value for key, value in base.items() if key.removeprefix("model.") not in NOT_T5},
            **T5,
        },
    }
    for name, settings in others.items():
        regard.train("translate", train=corpus, run=folder / name, settings=settings)
    return {"PegasusForConditionalGeneration": trained, **{name: folder / name for name in others}}


@pytest.mark.parametrize("name", ["PegasusForConditionalGeneration", "MarianMTModel", "T5ForConditionalGeneration"])
def test_a_translator_says_the_same(
    name: str, translators: dict[str, Path], export: Export, corpus: tuple[str, str], tmp_path: Path
) -> None:
    run, folder = load(translators[name]), export(translators[name])
    tokenizer, network = theirs(folder, "AutoModelForSeq2SeqLM")
    assert type(network).__name__ == name
    source, target = run.task.vocabulary.source, run.task.vocabulary.target
    texts = [*Path(corpus[0]).read_text().splitlines()[:20], *TEXTS]
    expected = run.translate(texts, beam=1, max_length=15)
    for text, one in zip(texts, expected, strict=True):
        given = tokenizer(text, return_tensors="pt")
        assert given.input_ids[0].tolist() == [*source.encode(text), source.end_id]
        with torch.inference_mode():
            [written] = network.generate(**given, max_new_tokens=15)
            ids, outputs = given.input_ids, torch.tensor([[target.start_id, *one.outputs[0].ids]])
            logits = network(**given, decoder_input_ids=outputs).logits
            ours = run.model(ids, torch.tensor([ids.shape[1]]), outputs)
        assert tuple(written[1:].tolist()) == one.outputs[0].written(target)
        assert tokenizer.decode(written, skip_special_tokens=True) == one.text
        assert is_near(logits, ours)
    assert len({one.text for one in expected}) > 2
    back = returned(folder, tmp_path / "back")
    assert [one.text for one in back.translate(texts, beam=1, max_length=15)] == [one.text for one in expected]


def test_outputs_end_by_themselves_or_at_the_length_that_is_written(
    trained: Path, export: Export, corpus: tuple[str, str]
) -> None:
    run, (tokenizer, network) = load(trained), theirs(export(trained), "AutoModelForSeq2SeqLM")
    assert network.generation_config.max_length == 512
    assert network.generation_config.suppress_tokens == [0, 1]  # padding and start
    texts = Path(corpus[0]).read_text().splitlines()
    ended = [one for one in run.translate(texts, beam=1) if one.outputs[0].finished][:10]
    given = tokenizer([one.source for one in ended], padding=True, return_tensors="pt")
    written = network.generate(**given)
    assert tokenizer.batch_decode(written, skip_special_tokens=True) == [one.text for one in ended]


def test_a_language_stands_in_front(tmp_path: Path) -> None:
    sides = {
        f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in (("layers", 1), ("ffn_dim", 8))
    }
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    ids = {"decoder_start_token_id": 2, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    (tmp_path / "a").mkdir()
    published(tmp_path / "a" / "theirs", "nllb", "M2M100ForConditionalGeneration", d_model=16, **sides, **heads, **ids)
    languages = {"source_language": "eng_Latn", "target_language": "deu_Latn"}
    regard.import_model(tmp_path / "a" / "theirs", run=tmp_path / "run", **languages)
    run = load(tmp_path / "run")
    run.export("huggingface", tmp_path / "out")
    tokenizer, network = theirs(tmp_path / "out", "AutoModelForSeq2SeqLM")
    [written] = network.generate(**tokenizer("The dog runs.", return_tensors="pt"), max_new_tokens=9)
    expected = run.translate("The dog runs.", beam=1, max_length=8)
    assert written[1].item() == run.task.vocabulary.target.prefix[0]
    assert tokenizer.decode(written, skip_special_tokens=True) == expected.text
    assert returned(tmp_path / "out", tmp_path / "back").translate("The dog runs.", beam=1, max_length=8) == expected


# -- language models ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gpt-nano", "llama-nano"])
def language_run(
    request: pytest.FixtureRequest, corpus: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("language") / "run"
    settings = {**WORDS, "model.preset": request.param, "model.context": 32, "training.steps": 20}
    if request.param == "gpt-nano":
        settings = {key: value for key, value in settings.items() if key != "model.d_ff"}
    regard.train("language", train=corpus[:1], run=path, settings={**settings, "tokenizer.kind": "bpe"})
    return path


def test_a_language_model_goes_on_the_same(language_run: Path, export: Export, tmp_path: Path) -> None:
    run, folder = load(language_run), export(language_run)
    tokenizer, network = theirs(folder, "AutoModelForCausalLM")
    texts = TEXTS[:3]
    expected = run.generate(texts, sample=False, beam=1, max_length=10)
    for text, one in zip(texts, expected, strict=True):
        given = tokenizer(text, return_tensors="pt")
        assert given.input_ids[0].tolist() == prompt_ids(run.task.tokenizer, text)
        with torch.inference_mode():
            [written] = network.generate(**given, max_new_tokens=10)
            assert is_near(network(**given).logits, run.model(given.input_ids))
        behind = tuple(written[given.input_ids.shape[1] :].tolist())
        assert behind == one.outputs[0].written(run.task.tokenizer)
        assert tokenizer.decode(written, skip_special_tokens=True) == text + one.text
    assert network.generation_config.max_length == 32
    assert network.generation_config.suppress_tokens == [0, 1, 3]  # padding, start, and what is unknown
    back = returned(folder, tmp_path / "back")
    assert [one.text for one in back.generate(texts, sample=False, beam=1, max_length=10)] == [
        one.text for one in expected
    ]


def test_a_document_begins_with_what_ends_one(language_run: Path, export: Export) -> None:
    run, (_, network) = load(language_run), theirs(export(language_run), "AutoModelForCausalLM")
    [written] = network.generate(max_new_tokens=5)
    assert tuple(written[1:].tolist()) == run.generate("", sample=False, beam=1, max_length=5).outputs[0].written(
        run.task.tokenizer
    )


# -- encoders -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def class_runs(
    classify_run: Path, pairs_run: Path, regress_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Runs that read the class token, as BERT does."""
    folder = tmp_path_factory.mktemp("class")
    given = {
        "single": ("classify", classify_run, {}),
        "pairs": ("classify", pairs_run, {"data.text_b": "second"}),
        "numbers": ("regress", regress_run, {"tokenizer.kind": "characters"}),
    }
    for name, (task, like, settings) in given.items():
        own = {**READER, **settings, "model.pooling": "class", "training.steps": 10}
        regard.train(task, train=[str(like.parent / "train.csv")], run=folder / name, settings=own)
    return {name: folder / name for name in given}


def shares(network: Any, given: Any) -> list[dict[str, float]]:
    """The probability of each label, by its name."""
    with torch.inference_mode():
        rows = network(**given).logits.softmax(-1).tolist()
    return [{network.config.id2label[number]: share for number, share in enumerate(row)} for row in rows]


def test_classes_are_the_same(class_runs: dict[str, Path], export: Export, tmp_path: Path) -> None:
    run, folder = load(class_runs["single"]), export(class_runs["single"])
    tokenizer, network = theirs(folder, "AutoModelForSequenceClassification")
    texts = ["a good dog", "a dull song and more", "great"]
    found = shares(network, tokenizer(texts, padding=True, return_tensors="pt"))
    expected = run.predict(texts)
    assert [one.probabilities for one in expected] == [pytest.approx(one, abs=CLOSE) for one in found]
    back = returned(folder, tmp_path / "back")
    assert back.predict(texts) == expected


def test_pairs_are_told_apart(class_runs: dict[str, Path], export: Export) -> None:
    run = load(class_runs["pairs"])
    tokenizer, network = theirs(export(class_runs["pairs"]), "AutoModelForSequenceClassification")
    texts, others = ["a dog", "a cat", "the sun"], ["a dog", "the sun", "the sun"]
    found = shares(network, tokenizer(texts, others, padding=True, return_tensors="pt"))
    expected = run.predict(texts, texts_b=others)
    assert [one.probabilities for one in expected] == [pytest.approx(one, abs=CLOSE) for one in found]


def test_numbers_are_those_of_the_data(class_runs: dict[str, Path], export: Export, tmp_path: Path) -> None:
    run, folder = load(class_runs["numbers"]), export(class_runs["numbers"])
    texts = ["AAC", "DDDD", "CCCCC"]
    expected = [one.value for one in run.predict(texts)]
    pipe = transformers.pipeline("text-classification", str(folder))
    assert [one["score"] for one in pipe(texts)] == pytest.approx(expected, abs=CLOSE)
    back = returned(folder, tmp_path / "back")
    assert isinstance(back, regard.Regressor)
    assert [one.value for one in back.predict(texts)] == pytest.approx(expected, abs=CLOSE)


def test_tags_are_the_same(tag_run: Path, export: Export, tmp_path: Path) -> None:
    run, folder = load(tag_run), export(tag_run)
    tokenizer, network = theirs(folder, "AutoModelForTokenClassification")
    [row] = network(**tokenizer("Anna Smith visits Oslo", return_tensors="pt")).logits.argmax(-1).tolist()
    expected = run.predict("Anna Smith visits Oslo").tags
    assert tuple(network.config.id2label[number] for number in row[1:-1]) == expected
    assert returned(folder, tmp_path / "back").predict("Anna Smith visits Oslo").tags == expected


@pytest.mark.parametrize("kind", ["words", "bpe", "characters"])
def test_masked_words_are_guessed_the_same(kind: str, mask_run: Path, export: Export, tmp_path: Path) -> None:
    path = mask_run
    if kind != "words":
        settings = {**READER, "tokenizer.kind": kind, "tokenizer.vocab_size": 300, "training.steps": 20}
        path = tmp_path / "run"
        own = {**settings, "data.valid_size": 0, "data.max_length": 30}
        regard.train("mask", train=[str(mask_run.parent / "train.txt")], run=path, settings=own)
    run, folder = load(path), export(path)
    pipe = transformers.pipeline("fill-mask", str(folder), top_k=3)
    for text in ("the [MASK] is good today .", "[MASK] dog is good today .", "the dog is good [MASK]"):
        [expected] = run.predict(text, top=3).guesses
        found = pipe(text.replace("[MASK]", "<mask>"))
        assert [one["score"] for one in found] == pytest.approx([one.probability for one in expected], abs=CLOSE)


def test_masked_words_after_the_way_there_and_back(mask_run: Path, export: Export, tmp_path: Path) -> None:
    text = "the [MASK] is good today ."
    back = returned(export(mask_run), tmp_path / "back")
    assert back.predict(text, top=3).guesses == load(mask_run).predict(text, top=3).guesses


def test_blanks_are_filled_the_same(denoise_run: Path, export: Export) -> None:
    run, (tokenizer, network) = load(denoise_run), theirs(export(denoise_run), "AutoModelForSeq2SeqLM")
    given = tokenizer("the <gap_0> is good <gap_1> .", return_tensors="pt")
    expected = run.predict("the [MASK] is good [MASK] .", beam=1)
    [written] = network.generate(**given, max_new_tokens=len(expected.ids))
    assert tuple(written[1:].tolist()) == expected.ids


# -- images -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [3, 1])
def test_images_are_read_the_same(channels: int, image_run: Path, export: Export, tmp_path: Path) -> None:
    sizes = {**WORDS, "model.preset": "vit-tiny", "model.patch_size": 4, "data.channels": channels}
    own = {key: value for key, value in SEEING.items() if not key.startswith("model.")}
    settings = {**own, **sizes, "training.steps": 10}
    regard.train("image", train=str(image_run.parent / "train"), run=tmp_path / "run", settings=settings)
    run, folder = load(tmp_path / "run"), export(tmp_path / "run")
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    network = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
    shape = (20, 16, 3) if channels == 3 else (20, 16)  # scaled to 10 × 8, of which the middle is kept
    pixels = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    [found] = shares(network, processor(images=Image.fromarray(pixels), return_tensors="pt"))
    expected = run.predict(pixels).probabilities
    assert found == pytest.approx(expected, abs=CLOSE)
    back = returned(folder, tmp_path / "back")
    assert back.predict(pixels).probabilities == pytest.approx(expected, abs=CLOSE)


# -- the card -----------------------------------------------------------------------------------------------------------


def test_the_card_has_the_runs_figures(trained: Path, export: Export) -> None:
    card = (export(trained) / "README.md").read_text()
    assert card.startswith(
        "---\nlibrary_name: transformers\npipeline_tag: translation\ntags:\n- regard\n---\n\n# trained\n"
    )
    own = (trained / "README.md").read_text()
    scores = own.partition("## Scores on the validation data\n")[2].partition("\n## Use\n")[0]
    assert "bleu" in scores
    assert scores.rstrip() in card
    assert "regard translate" not in card  # the folder is no run


def test_the_code_of_the_card_runs_as_it_stands(
    trained: Path,
    class_runs: dict[str, Path],
    tag_run: Path,
    mask_run: Path,
    denoise_run: Path,
    export: Export,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(path: Path) -> str:
        return said(export(path), monkeypatch, capsys)

    assert run(trained) == load(trained).translate("A dog runs.", beam=1).text
    assert f"'label': '{load(class_runs['single']).predict('A dog runs.').label}'" in run(class_runs["single"])
    assert "'entity'" in run(tag_run)
    guess = load(mask_run).predict("A [MASK] runs.", top=1).guesses[0][0].text
    assert f"'token_str': '{guess.strip()}'" in run(mask_run)
    filled = load(denoise_run).predict("A dog runs. [MASK]", beam=1).text
    assert run(denoise_run) == filled.removeprefix("A dog runs. ")


# -- what has no counterpart --------------------------------------------------------------------------------------------

NO_COUNTERPART = "has no counterpart in the transformers package"
ONNX = "Export it with --to onnx, or train a model that has one."


@pytest.mark.parametrize(
    ("run", "problem", "remedy"),
    [
        ("classify_run", f"model.pooling = mean {NO_COUNTERPART}'s BertForSequenceClassification.", ONNX),
        ("vectors_run", f"model.n_features = 2 {NO_COUNTERPART}'s BertForSequenceClassification.", ONNX),
        ("image_run", f"model.stem = small {NO_COUNTERPART}'s ResNetForImageClassification.", ONNX),
        ("caption_run", f"Captioner {NO_COUNTERPART}.", ONNX.replace("onnx", "safetensors")),
    ],
)
def test_networks_of_another_kind(
    run: str, problem: str, remedy: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        regard.export(request.getfixturevalue(run), "huggingface", tmp_path / "out")
    assert str(caught.value) == f"{problem}\n{remedy}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model.norm": "rms"}, f"model.norm = rms {NO_COUNTERPART}'s PegasusForConditionalGeneration.\n{ONNX}"),
        (
            {"tokenizer.shared": False, "model.tied": "target", "model.norm_order": "post"},
            "Source and target have a vocabulary of their own each, and a Hugging Face folder has one for both.\n"
            "Train with tokenizer.shared = true.",
        ),
    ],
)
def test_translators_of_another_kind(
    changed: dict[str, Any], message: str, tiny: dict[str, Any], corpus: tuple[str, str], tmp_path: Path
) -> None:
    run = regard.train(
        "translate", train=corpus, run=tmp_path / "run", settings={**tiny, **changed, "training.steps": 1}
    )
    with pytest.raises(UsageError) as caught:
        run.export("huggingface", tmp_path / "out")
    assert str(caught.value) == message
    assert not (tmp_path / "out").exists()


def test_sinusoids_and_spaces_are_noted(trained: Path, tmp_path: Path) -> None:
    assert regard.export(trained, "huggingface", tmp_path / "out") == (
        "Written as PegasusForConditionalGeneration.",
        "Sinusoids are written as a table of 1,024 positions.",
    )
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["max_position_embeddings"] == 1024
