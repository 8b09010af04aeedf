"""A run in CTranslate2: the code of the card runs as it stands, and says what the run says."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from tests.exchange.test_safetensors_export import code_of

import regard
from regard.errors import UsageError

TEXT = "A dog runs."


def load(path: Path) -> Any:
    return regard.load(path, device="cpu", threads=1, engine="torch")


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the code of a card prints."""
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        exec(code_of(folder), {})
    return capsys.readouterr().out.removesuffix("\n")


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ctranslate2") / "out"
    assert regard.export(trained, "ctranslate2", folder) == (
        "Each text is read as one sentence: split longer ones first.",
    )
    return folder


def test_the_code_of_the_card_runs_as_it_stands(exported: Path, trained: Path) -> None:
    assert {one.name for one in exported.iterdir()} == {
        "README.md",
        "config.json",
        "model.bin",
        "shared_vocabulary.json",
        "tokenizer.json",
    }
    code = code_of(exported)
    ended = subprocess.run([sys.executable, "-c", code], cwd=exported, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{load(trained).translate(TEXT).text}\n"


def test_translations_are_the_runs_own(exported: Path, trained: Path, corpus: tuple[str, str]) -> None:
    run, texts = load(trained), Path(corpus[0]).read_text().splitlines()[:40]
    tokenizer = run.task.vocabulary.source
    names = [*tokenizer.vocabulary]
    sources = [[*(names[id] for id in tokenizer.encode(text)), "<end>"] for text in texts]
    model = ctranslate2.Translator(str(exported), intra_threads=1)
    found = model.translate_batch(sources, beam_size=1, max_decoding_length=20)
    expected = run.translate(texts, beam=1, max_length=20)
    written = [[names[id] for id in one.outputs[0].ids] for one in expected]
    assert [one.hypotheses[0] for one in found] == written
    assert len({tuple(one) for one in written}) > 10


@pytest.mark.parametrize("compute_type", ["int8", "int8_float32", "float16"])
def test_types(compute_type: str, exported: Path, trained: Path, tmp_path: Path) -> None:
    regard.export(trained, "ctranslate2", tmp_path / "out", compute_type=compute_type)
    sizes = [(folder / "model.bin").stat().st_size for folder in (tmp_path / "out", exported)]
    assert sizes[0] < 0.9 * sizes[1]
    translator = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    assert translator.translate_batch([["Ġa", "Ġdog", "<end>"]])[0].hypotheses[0]


def test_a_type_that_there_is_not(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^There is no compute type 'int9'\.\nDid you mean int8\?$"):
        regard.export(trained, "ctranslate2", tmp_path / "out", compute_type="int9")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("preset", ["gpt-nano", "llama-nano"])
def test_a_language_model(preset: str, corpus: tuple[str, str], tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    sizes = {"model.n_layers": 1, "model.n_heads": 2, "model.d_model": 16, "model.context": 24, "training.steps": 8}
    settings = {**sizes, "model.preset": preset, "tokenizer.kind": "words", "runtime.threads": 1}
    regard.train("language", train=corpus[:1], run=tmp_path / "run", settings=settings)
    run = load(tmp_path / "run")
    assert run.export("ctranslate2", tmp_path / "out") == ()
    n_prompt = len(run.task.tokenizer.encode("A dog"))
    expected = run.generate("A dog", sample=False, beam=1, max_length=24 - n_prompt)
    assert said(tmp_path / "out", monkeypatch, capsys).lower() == f"A dog{expected.text}".lower()


def test_blanks(denoise_run: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    assert regard.export(denoise_run, "ctranslate2", tmp_path / "out") == ()
    expected = load(denoise_run).predict(f"{TEXT} [MASK]", beam=5)
    assert said(tmp_path / "out", monkeypatch, capsys) == expected.text.removeprefix(f"{TEXT} ")


def test_an_encoder_gives_its_states(tag_run: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    run = load(tag_run)
    note = "CTranslate2 gives the encoder's states, without the head that predicts: --to onnx has both."
    assert run.export("ctranslate2", tmp_path / "out") == (note,)
    assert note in (tmp_path / "out" / "README.md").read_text()
    tokens, tokenizer = ["<start>", "Anna", "visits", "Oslo", "<end>"], run.task.tokenizer
    ids = [tokenizer.vocabulary[token] for token in tokens]
    found = ctranslate2.Encoder(str(tmp_path / "out"), intra_threads=1).forward_batch([tokens]).last_hidden_state
    with torch.inference_mode():
        expected = run.model.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
    np.testing.assert_allclose(np.array(found), expected.numpy(), atol=1e-5)
    n_tokens = len(tokenizer.encode(TEXT)) + 2
    assert said(tmp_path / "out", monkeypatch, capsys) == f"[1, {n_tokens}, 32]"


def test_each_side_has_its_tokens(
    tiny: dict[str, Any], corpus: tuple[str, str], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    settings = {**tiny, "tokenizer.shared": False, "model.tied": "target", "training.steps": 20}
    regard.train("translate", train=corpus, run=tmp_path / "run", settings=settings)
    regard.export(tmp_path / "run", "ctranslate2", tmp_path / "out")
    assert said(tmp_path / "out", monkeypatch, capsys) == load(tmp_path / "run").translate(TEXT).text


@pytest.mark.parametrize(
    ("run", "reads", "other"),
    [
        ("image_run", "images", "onnx"),
        ("caption_run", "images", "safetensors"),
        ("vectors_run", "sequences of vectors", "onnx"),
    ],
)
def test_what_is_no_text(run: str, reads: str, other: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        regard.export(request.getfixturevalue(run), "ctranslate2", tmp_path / "out")
    assert str(caught.value) == f"CTranslate2 reads text, and this run reads {reads}.\nExport it with --to {other}."
    assert not list(tmp_path.iterdir())
