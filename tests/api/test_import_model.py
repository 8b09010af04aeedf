"""Imported runs: what other people's weights say is what they say in their own package, and a run is a run."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.exchange import tokenizer_folders as theirs
from tests.exchange.gguf_files import Draft, byte_level_values, drafted, sentencepiece_values
from tests.exchange.test_ctranslate2_export import said
from tests.exchange.their_networks import transformers

import regard
from regard.errors import RegardError

SENTENCE = "The dog runs through the park."
ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Their package reports what it loads."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    yield
    transformers.utils.logging.set_verbosity_warning()


def published(folder: Path, tokenizer: str, kind: str, **settings: Any) -> Any:
    """Write a folder as somebody would publish it, with weights at random that say something; return the network."""
    folder.mkdir()
    getattr(theirs, tokenizer)(folder)
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    network_class = getattr(transformers, kind)
    torch.manual_seed(3)
    network = network_class(network_class.config_class(vocab_size=len(tokens), **settings)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    network.save_pretrained(folder)
    return network


def gpt2(folder: Path) -> Any:
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    return published(folder, "gpt2", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=64, **ids)


def their_ids(folder: Path, text: str) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")


@pytest.mark.parametrize("kind", ["gpt2", "llama3"])
def test_a_language_model_goes_on_as_theirs(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    if kind == "gpt2":
        network = gpt2(folder)
    else:
        sizes = {**ENCODER, "num_key_value_heads": 2, "max_position_embeddings": 64}
        network = published(folder, kind, "LlamaForCausalLM", bos_token_id=0, eos_token_id=1, **sizes)
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.LanguageModel)
    found = run.generate(SENTENCE, sample=False, max_length=12)
    given = their_ids(folder, SENTENCE)
    written = network.generate(**given, max_new_tokens=12, do_sample=False, pad_token_id=0)
    expected = written[0, given["input_ids"].shape[1] :].tolist()
    assert list(found.outputs[0].ids) == [id for id in expected if id != run.task.tokenizer.end_id]


def gguf(folder: Path, tokenizer: str) -> tuple[Any, Draft]:
    """Return a network of a published folder, and the GGUF file that llama.cpp's converter would make of both."""
    sizes = {**ENCODER, "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}
    network = published(folder, tokenizer, "LlamaForCausalLM", **sizes)
    values = sentencepiece_values(folder) if tokenizer == "llama2" else byte_level_values(folder, "llama-bpe")
    return network, drafted(network).having(values)


@pytest.mark.parametrize("tokenizer", ["llama2", "llama3"])
def test_a_gguf_file_goes_on_as_the_folder_that_it_was_made_of(tokenizer: str, tmp_path: Path) -> None:
    network, draft = gguf(tmp_path / "theirs", tokenizer)
    run = regard.import_model(draft.write(tmp_path / "model.gguf"), run=tmp_path / "run")
    assert isinstance(run, regard.LanguageModel)
    given = their_ids(tmp_path / "theirs", SENTENCE)
    tokens = run.task.tokenizer
    never = [id for id in tokens.specials.values() if id != tokens.end_id]  # which we do not write
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "eos_token_id": tokens.end_id}
    written = network.generate(**given, **settings, suppress_tokens=never)
    expected = written[0, given["input_ids"].shape[1] :].tolist()
    found = list(run.generate(SENTENCE, sample=False, max_length=12).outputs[0].ids)
    assert len(found) > 5
    assert found == [id for id in expected if id != tokens.end_id]
    origin = json.loads((tmp_path / "run" / "task.json").read_text())["imported"]
    assert (origin["from"], origin["class"]) == (str(tmp_path / "model.gguf"), "LlamaForCausalLM")
    assert list(origin["files"]) == ["model.gguf"]


def test_a_gguf_file_is_the_same_run_as_the_folder(tmp_path: Path) -> None:
    _, draft = gguf(tmp_path / "theirs", "llama3")
    ours = regard.import_model(draft.write(tmp_path / "model.gguf"), run=tmp_path / "run")
    other = regard.import_model(tmp_path / "theirs", run=tmp_path / "other")
    assert ours.model.state_dict().keys() == other.model.state_dict().keys()
    for name, weight in ours.model.state_dict().items():
        assert torch.equal(weight, other.model.state_dict()[name])
    assert (tmp_path / "run" / "config.toml").read_text() == (tmp_path / "other" / "config.toml").read_text()


def test_a_gguf_file_that_is_refused_leaves_no_run(tmp_path: Path) -> None:
    _, draft = gguf(tmp_path / "theirs", "llama2")
    damaged = {
        "a": draft.without("tokenizer.ggml.model"),
        "b": draft.having({"general.architecture": "clip"}),
        "c": draft.without("blk.0.attn_q.weight"),
    }
    for name, one in damaged.items():
        with pytest.raises(RegardError) as caught:
            regard.import_model(one.write(tmp_path / f"{name}.gguf"), run=tmp_path / "run")
        assert f"{name}.gguf" in caught.value.problem
        assert not (tmp_path / "run").exists()


def test_a_translator_writes_as_theirs(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    network = published(folder, "t5", "T5ForConditionalGeneration", decoder_start_token_id=0, **sizes)
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.Translator)
    found = run.translate(SENTENCE, beam=1, max_length=12)
    written = network.generate(**their_ids(folder, SENTENCE), max_new_tokens=12, do_sample=False)
    specials = {run.task.vocabulary.target.pad_id, run.task.vocabulary.target.end_id}
    assert list(found.outputs[0].ids) == [id for id in written[0].tolist() if id not in specials]


def test_a_masked_word_is_guessed_as_by_theirs(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    network = published(folder, "bert", "BertForMaskedLM", **ENCODER)
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.MaskedLM)
    given = their_ids(folder, "The dog [MASK] here.")
    with torch.inference_mode():
        logits = network(**given).logits[0]
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    [place] = (given["input_ids"][0] == tokens.mask_token_id).nonzero()
    ours = run.model(given["input_ids"], given["attention_mask"].sum(1))[0]
    torch.testing.assert_close(ours[place], logits[place], atol=1e-4, rtol=0)
    guess, *_ = run.predict("The dog [MASK] here.", top=1).guesses[0]
    assert guess.text == tokens.decode(logits[place].argmax(-1)).removeprefix("##")


def test_vectors_of_texts_are_those_of_a_sentence_encoder(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    network = published(folder, "bert", "BertModel", **ENCODER)
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.Similarity)
    vectors = []
    for text in (SENTENCE, "Ein kleines Mädchen klettert."):
        with torch.inference_mode():
            vectors.append(network(**their_ids(folder, text)).last_hidden_state[0].mean(0).numpy())
    found = [one.vector for one in run.embed([SENTENCE, "Ein kleines Mädchen klettert."])]
    np.testing.assert_allclose(found, vectors, atol=1e-5)
    cosine = vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
    assert run.predict(SENTENCE, texts_b="Ein kleines Mädchen klettert.").value == pytest.approx(cosine, abs=1e-5)


@pytest.mark.parametrize("pooling", ["cls_token", "mean_tokens"])
def test_vectors_are_pooled_normalised_and_cut_as_a_folder_says(
    pooling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As sentence-transformers has it, and the same after an export and an import, and in ONNX Runtime."""
    folder = tmp_path / "theirs"
    network = published(folder, "bert", "BertModel", **ENCODER)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    modules = [f"sentence_transformers.models.{kind}" for kind in ("Transformer", "Pooling", "Normalize")]
    (folder / "modules.json").write_text(json.dumps([{"type": one} for one in modules]))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12}))
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.Similarity)
    texts = ["the dog", "the cat", SENTENCE, "the dog " * 30]
    expected = []
    for text in texts:
        given = transformers.AutoTokenizer.from_pretrained(folder)(
            text, return_tensors="pt", truncation=True, max_length=12
        )
        with torch.inference_mode():
            states = network(**given).last_hidden_state[0]
        vector = states[0] if pooling == "cls_token" else states.mean(0)
        expected.append((vector / vector.norm()).numpy())
    np.testing.assert_allclose([one.vector for one in run.embed(texts)], expected, atol=1e-5)
    assert run.predict(texts[0], texts_b=texts[1]).value == pytest.approx(expected[0] @ expected[1], abs=1e-5)
    assert np.isfinite(run.embed("").vector).all()
    regard.export(run, "huggingface", tmp_path / "out")
    again = regard.import_model(tmp_path / "out", run=tmp_path / "again")
    assert isinstance(again, regard.Similarity)
    np.testing.assert_array_equal([one.vector for one in again.embed(texts)], [one.vector for one in run.embed(texts)])
    printed = re.findall(r"-?\d\.\d+(?:e-\d+)?", said(tmp_path / "out", monkeypatch, capsys))
    np.testing.assert_allclose([float(one) for one in printed], run.embed("A dog runs.").vector, atol=1e-4)
    pytest.importorskip("onnxruntime")
    from regard.exchange.onnx_runtime import load as load_onnx

    regard.export(run, "onnx", tmp_path / "onnx")
    onnx = load_onnx(tmp_path / "onnx", threads=1)
    np.testing.assert_allclose(onnx.embed(texts), expected, atol=1e-5)
    assert onnx.predict(texts[:1], texts[1:2]) == pytest.approx([expected[0] @ expected[1]], abs=1e-5)


def test_texts_are_read_as_far_as_the_positions_reach(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    network = published(folder, "bert", "BertForSequenceClassification", num_labels=2, **ENCODER)
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.Classifier)
    text = "the dog runs " * 120
    given = transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt", truncation=False)
    assert 300 < given["input_ids"].shape[1] <= 512
    with torch.inference_mode():
        expected = network(**given).logits[0].softmax(0).tolist()
    assert [*run.predict(text).probabilities.values()] == pytest.approx(sorted(expected, reverse=True), abs=1e-5)


def test_classes_have_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    labels = {0: "good", 1: "bad", 2: "so so"}
    network = published(folder, "bert", "BertForSequenceClassification", id2label=labels, **ENCODER)
    run = regard.import_model(folder, run=tmp_path / "run")
    assert isinstance(run, regard.Classifier)
    with torch.inference_mode():
        expected = network(**their_ids(folder, SENTENCE)).logits[0].softmax(0)
    found = run.predict(SENTENCE)
    assert found.label == labels[int(expected.argmax())]
    assert found.probabilities == pytest.approx(
        {labels[number]: float(share) for number, share in enumerate(expected)}, abs=1e-5
    )


def vit(folder: Path) -> Any:
    config = transformers.ViTConfig(
        image_size=8, patch_size=4, num_labels=3, id2label={0: "a", 1: "b", 2: "c"}, **ENCODER
    )
    torch.manual_seed(3)
    network = transformers.ViTForImageClassification(config).eval()
    network.save_pretrained(folder)
    settings = {"size": {"height": 8, "width": 8}, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return network


def test_images_are_read_as_theirs(tmp_path: Path) -> None:
    network = vit(tmp_path / "theirs")
    run = regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    assert isinstance(run, regard.ImageClassifier)
    pixels = np.random.default_rng(1).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    normalised = (pixels / 255 - np.array([0.5, 0.4, 0.3])) / np.array([0.2, 0.3, 0.4])
    with torch.inference_mode():
        given = torch.tensor(normalised, dtype=torch.float32).permute(2, 0, 1)[None]
        expected = network(pixel_values=given).logits[0].softmax(0).tolist()
    assert run.predict(pixels).probabilities == pytest.approx(dict(zip("abc", expected, strict=True)), abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"size": {"height": 8, "width": 9}, "image_size": 0}, None),
        ({"image_mean": [0.5]}, "image_mean = [0.5] has no counterpart in regard (3 numbers have)."),
        ({"image_std": [0.5, 0.5, 0.0]}, "image_std = [0.5, 0.5, 0.0] has no counterpart in regard"),
        ({"rescale_factor": 1.0}, "rescale_factor = 1.0 has no counterpart in regard (only 1/255 has)."),
        ({"do_resize": False}, "do_resize = false has no counterpart in regard (only true has)."),
    ],
)
def test_how_images_are_prepared(settings: dict[str, Any], problem: str | None, tmp_path: Path) -> None:
    vit(tmp_path / "theirs")
    (tmp_path / "theirs" / "preprocessor_config.json").write_text(json.dumps(settings))
    if problem is None:  # the network says its size itself
        assert regard.import_model(tmp_path / "theirs", run=tmp_path / "run").task.table.shape.size == 8
        return
    with pytest.raises(RegardError) as caught:
        regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    assert problem in caught.value.problem
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        ({"size": {"shortest_edge": 8}, "crop_size": {"height": 8, "width": 8}, "do_center_crop": True}, None),
        ({"size": {"shortest_edge": 8}, "resample": 3}, None),
        ({"size": {"height": 8, "width": 8}}, "squeezed into the square"),
        ({"size": 8, "resample": 2}, "squeezed into the square, and scaled with another filter"),
        ({"size": {"shortest_edge": 8}, "crop_pct": 0.8}, "scaled to 10 pixels and cut to 8"),
        ({"size": 8, "crop_pct": 0.8, "resample": 3}, "scaled to 10 pixels and cut to 8"),
    ],
)
def test_images_that_are_scaled_otherwise_are_noted(
    settings: dict[str, Any], theirs: str | None, tmp_path: Path
) -> None:
    vit(tmp_path / "theirs")
    (tmp_path / "theirs" / "preprocessor_config.json").write_text(json.dumps(settings))
    notes = regard.import_model(tmp_path / "theirs", run=tmp_path / "run").notes
    expected = (
        "An image of another size is scaled here by its shorter side to 8 pixels (bicubic), and its centre kept; by"
        f" preprocessor_config.json it would be {theirs}. Images of 8 × 8 pixels are read the same."
    )
    assert notes == (() if theirs is None else (expected,))


def test_images_without_their_preprocessing_are_refused(tmp_path: Path) -> None:
    vit(tmp_path / "theirs")
    (tmp_path / "theirs" / "preprocessor_config.json").unlink()
    with pytest.raises(RegardError, match=r"there is no preprocessor_config\.json in it"):
        regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_imported_run_is_fine_tuned_and_not_resumed(tmp_path: Path) -> None:
    published(tmp_path / "theirs", "bert", "BertForMaskedLM", **ENCODER)
    run = regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    with pytest.raises(RegardError, match="was imported: there is no training to resume"):
        regard.resume(tmp_path / "run")
    rows = "\n".join(f"{'good' if number % 2 else 'bad'}\tthe dog {number} runs {number % 2}" for number in range(60))
    (tmp_path / "train.tsv").write_text(f"label\ttext\n{rows}\n")
    settings = {"training.init": str(tmp_path / "run"), "training.steps": 2, "runtime.threads": 1}
    tuned = regard.train("classify", train=[str(tmp_path / "train.tsv")], run=tmp_path / "tuned", settings=settings)
    assert isinstance(tuned, regard.Classifier)
    assert tuned.task.tokenizer.fingerprint() == run.task.tokenizer.fingerprint()
    assert tuned.predict("the dog runs").label in ("good", "bad")


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    gpt2(tmp_path / "theirs")
    regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    with pytest.raises(RegardError, match="is already a run"):
        regard.import_model(tmp_path / "theirs", run=tmp_path / "run")


def test_a_tokenizer_that_does_not_fit_the_weights_leaves_no_run(tmp_path: Path) -> None:
    gpt2(tmp_path / "theirs")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "theirs" / name).unlink()
    with pytest.raises(RegardError, match="there is no tokenizer: neither"):
        regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    """One that is larger than the embedding, one without a mask token, and one that leaves rows over."""
    published(tmp_path / "bert", "bert", "BertForMaskedLM", **ENCODER)
    gpt2(tmp_path / "gpt2")
    files = {file: (tmp_path / file / "tokenizer.json").read_bytes() for file in ("bert", "gpt2")}
    settings = {file: (tmp_path / file / "tokenizer_config.json").read_bytes() for file in ("bert", "gpt2")}
    for folder, other in (("bert", "gpt2"), ("gpt2", "bert")):
        (tmp_path / folder / "tokenizer.json").write_bytes(files[other])
        (tmp_path / folder / "tokenizer_config.json").write_bytes(settings[other])
    problems = {
        "bert": "its tokenizer has no mask token, and does not fit the weights: a BertForMaskedLM predicts masked words.",
        "gpt2": r"it has 55\d tokens, and the embedding 501 rows.",
    }
    for folder, problem in problems.items():
        with pytest.raises(RegardError) as caught:
            regard.import_model(tmp_path / folder, run=tmp_path / "run")
        assert re.fullmatch(f"{tmp_path / folder}: {problem}", caught.value.problem)
        assert caught.value.remedy
        assert not (tmp_path / "run").exists()
    published(tmp_path / "t5", "t5", "T5ForConditionalGeneration", d_model=32, d_kv=8, num_layers=1, num_heads=4)
    config = json.loads((tmp_path / "t5" / "config.json").read_text())
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "t5")
    run = regard.import_model(tmp_path / "t5", run=tmp_path / "run")
    assert config["vocab_size"] == len(tokens)
    assert not any("rows" in note for note in run.notes)


def test_rows_that_no_token_has_are_noted(tmp_path: Path) -> None:
    network = gpt2(tmp_path / "theirs")
    network.resize_token_embeddings(512, mean_resizing=False)
    network.save_pretrained(tmp_path / "theirs")
    run = regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    assert run.notes == ("The embedding has 512 rows, and the tokenizer 501 tokens: the other rows are never used.",)


def test_languages_of_what_has_none(tmp_path: Path) -> None:
    gpt2(tmp_path / "gpt2")
    published(tmp_path / "t5", "t5", "T5ForConditionalGeneration", d_model=32, d_kv=8, num_layers=1, num_heads=4)
    problems = {
        "gpt2": f"{tmp_path / 'gpt2'} is no translator: it has no languages to choose from.",
        "t5": f"{tmp_path / 't5'}: it has no token that names a language, and de is asked for.",
    }
    for folder, problem in problems.items():
        with pytest.raises(RegardError) as caught:
            regard.import_model(tmp_path / folder, run=tmp_path / "run", target_language="de")
        assert str(caught.value) == f"{problem}\nLeave --source-language and --target-language out."
        assert not (tmp_path / "run").exists()


def test_padding_that_nobody_named_stays_unnamed(tmp_path: Path) -> None:
    sizes = {**ENCODER, "num_key_value_heads": 2, "max_position_embeddings": 64}
    published(tmp_path / "theirs", "llama3", "LlamaForCausalLM", bos_token_id=500, eos_token_id=501, **sizes)
    run = regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    regard.export(run, "huggingface", tmp_path / "out")
    again = regard.import_model(tmp_path / "out", run=tmp_path / "again")
    assert run.task.tokenizer.roles.pad is None
    assert again.task.tokenizer.fingerprint() == run.task.tokenizer.fingerprint()
    assert (tmp_path / "again" / "config.toml").read_text() == (tmp_path / "run" / "config.toml").read_text()
