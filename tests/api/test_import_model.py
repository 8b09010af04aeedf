"""Imported runs: what other people's weights say is what they say in their own package, and a run is a run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.exchange import tokenizer_folders as theirs
from tests.exchange.gguf_files import Draft, byte_level_values, drafted, sentencepiece_values
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
    with pytest.raises(RegardError):
        regard.import_model(tmp_path / "theirs", run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
