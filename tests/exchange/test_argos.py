"""Packages for Argos Translate, read as it reads them: metadata, pieces, translations equal to ours; and every refusal."""

import dataclasses
import json
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import sentencepiece
import torch
from tests.exchange import tokenizer_folders as folders

from regard.config import DecodingConfig, build
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.decoding.request import Request
from regard.decoding.search import decode
from regard.demo.corpus import corpus
from regard.errors import ConfigError, RegardError, UsageError
from regard.exchange.argos import NAMES, write_argos
from regard.exchange.exportable import Exportable
from regard.exchange.tokenizers import read_tokenizers
from regard.models.presets import build_model
from regard.models.transformer import TransformerConfig

LAYERS: dict[str, Any] = {
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "d_model": 32,
    "n_heads": 4,
    "d_ff": 48,
    "tied": "none",
}
CODES = {"source_language": "en", "target_language": "de"}
NAME = "translate-en_de-1_0"
# As Argos Translate calls the library, but for the beam and the length.
CALL = {
    "target_prefix": None,
    "replace_unknowns": True,
    "max_batch_size": 32,
    "batch_type": "tokens",
    "num_hypotheses": 1,
    "length_penalty": 0.2,
    "return_scores": True,
}


def said(split: str, n: int) -> list[str]:
    pairs = corpus(split, n)
    return [*(pair.source for pair in pairs), *(pair.target for pair in pairs)]


@cache
def learned(kind: str = "sentencepiece", *, lowercase: bool = False) -> Tokenizer:
    return learn(said("train", 200), kind=kind, vocab_size=500, lowercase=lowercase)


def config_of(tokenizer: Tokenizer) -> TransformerConfig:
    sizes = {"source_vocab": tokenizer.vocab_size, "target_vocab": tokenizer.vocab_size}
    return build(TransformerConfig, {**LAYERS, **sizes}, origin="test")


@cache
def network(tokenizer: Tokenizer) -> Any:
    """A random one, in which no bias is zero and no gain one."""
    model = build_model(config_of(tokenizer), seed=1)
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def run(tokenizer: Tokenizer | None = None, **changes: Any) -> Exportable:
    """What there is of a translator."""
    tokenizer = tokenizer or learned()
    model = network(tokenizer)
    given = Exportable(
        task="translate",
        config=config_of(tokenizer),
        weights=model.state_dict(),
        source=tokenizer,
        target=tokenizer,
        card="# A translator\n",
    )
    return dataclasses.replace(given, **changes)


def installed(folder: Path, given: Exportable, **settings: Any) -> Path:
    """Write a package and unpack it where Argos Translate does; return the package's folder."""
    write_argos(folder / "en_de.argosmodel", given, **{**CODES, **settings})
    assert [path.name for path in folder.iterdir()] == ["en_de.argosmodel"]
    with zipfile.ZipFile(folder / "en_de.argosmodel") as package:
        package.extractall(folder / "packages")
    [found] = (folder / "packages").iterdir()
    return found


def ours(tokenizer: Tokenizer, texts: list[str], *, n_tokens: int) -> list[list[str]]:
    """What our own greedy search writes, by name and without its end token."""
    rows = [torch.tensor([*tokenizer.encode(text), tokenizer.end_id]) for text in texts]
    lengths = torch.tensor([len(row) for row in rows])
    limits = torch.full((len(rows),), n_tokens)
    request = Request(prompt=tokenizer.start_id, end_id=tokenizer.end_id, limits=limits)
    model, names = network(tokenizer), [name.removeprefix(" ") for name in tokenizer.vocabulary]
    with torch.inference_mode():
        state = model.start((torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths))
        found = decode(model, state, request, DecodingConfig(beam=1))
    return [[names[id] for id in one.best.ids if id != tokenizer.end_id] for one in found]


# -- what stands in a package -------------------------------------------------------------------------------------------


def test_a_package_holds_what_argos_translate_looks_for(tmp_path: Path) -> None:
    folder = installed(tmp_path, run())
    assert folder.name == NAME
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert names == [
        "README.md",
        "metadata.json",
        "minisbd/rules.onnx",
        "model/config.json",
        "model/model.bin",
        "model/shared_vocabulary.json",
        "sentencepiece.model",
    ]
    assert json.loads((folder / "metadata.json").read_text()) == {
        "package_version": "1.0",
        "argos_version": "1.11",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
        "type": "translate",
    }
    assert (folder / "README.md").read_text() == "# A translator\n"


def test_pieces_are_the_models_tokens(tmp_path: Path) -> None:
    folder = installed(tmp_path, run())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    tokens = json.loads((folder / "model" / "shared_vocabulary.json").read_text())
    assert tokens == [*learned().vocabulary] == [pieces.id_to_piece(id) for id in range(pieces.get_piece_size())]
    config = json.loads((folder / "model" / "config.json").read_text())
    assert (config["add_source_bos"], config["add_source_eos"]) == (False, True)


def test_codes_without_a_name_stand_for_themselves(tmp_path: Path) -> None:
    folder = installed(tmp_path, run(), source_language="gsw", target_language="pt-BR", version="2.13")
    assert folder.name == "translate-gsw_pt-BR-2_13"
    found = json.loads((folder / "metadata.json").read_text())
    assert (found["from_name"], found["to_name"], found["package_version"]) == ("gsw", "pt-BR", "2.13")
    assert all(len(code) == 2 and name[0].isupper() for code, name in NAMES.items())


def test_the_same_run_gives_the_same_package(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_argos(tmp_path / name, run(), **CODES)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_weights_are_int8_unless_asked(tmp_path: Path) -> None:
    sizes = {}
    for compute_type in ("int8", "float32"):
        (tmp_path / compute_type).mkdir()
        folder = installed(tmp_path / compute_type, run(), compute_type=compute_type)
        sizes[compute_type] = (folder / "model" / "model.bin").stat().st_size
    (tmp_path / "default").mkdir()
    folder = installed(tmp_path / "default", run())
    assert (folder / "model" / "model.bin").stat().st_size == sizes["int8"] < sizes["float32"]


def test_notes_say_how_to_install_it(tmp_path: Path) -> None:
    assert write_argos(tmp_path / "any", run(), **CODES) == [
        "It needs Argos Translate 1.11 or later, or a LibreTranslate that uses MiniSBD. To install it:"
        " argostranslate.package.install_from_path(FILE)"
    ]


# -- translations -------------------------------------------------------------------------------------------------------

TEXTS = [*said("test", 6), "A dog.", "  two  spaces ", "漢字 😀", "e\u0301", "<pad> <unk>", "A DOG Runs"]


@pytest.mark.parametrize("lowercase", [False, True])
def test_translations_are_ours_token_by_token(lowercase: bool, tmp_path: Path) -> None:
    tokenizer = learned(lowercase=lowercase)
    folder = installed(tmp_path, run(tokenizer), compute_type="float32")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(folder / "model"), device="cpu", inter_threads=1, intra_threads=1)
    read = [pieces.encode(text, out_type=str) for text in TEXTS]
    found = [one.hypotheses[0] for one in translator.translate_batch(read, beam_size=1, max_decoding_length=40, **CALL)]
    assert found == ours(tokenizer, TEXTS, n_tokens=40)
    assert len({*map(tuple, found)}) > len(TEXTS) / 2


def test_a_tokenizer_that_came_as_a_sentencepiece_model(tmp_path: Path) -> None:
    """Marian's: a model for each side, and one vocabulary, in which pieces of each are missing."""
    folders.marian(tmp_path / "theirs")
    found = read_tokenizers(tmp_path / "theirs")
    given = run(found.source, target=found.target)
    (tmp_path / "package").mkdir()
    folder = installed(tmp_path / "package", given, compute_type="float32")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(folder / "model"), device="cpu", intra_threads=1)
    texts = [*folders.SAID, "two  spaces", "漢字 é", "Äpfel"]
    read = [pieces.encode(text, out_type=str) for text in texts]
    written = [
        one.hypotheses[0] for one in translator.translate_batch(read, beam_size=1, max_decoding_length=40, **CALL)
    ]
    assert written == ours(found.source, texts, n_tokens=40)
    assert len({*map(tuple, written)}) > 5
    names = [*found.target.vocabulary]
    said = "棕色狐 Ein kleines Mädchen"  # pieces that mostly only the target has
    joined = pieces.decode_pieces([names[id] for id in found.target.encode(said)])
    assert joined.replace("▁", " ").removeprefix(" ") == said  # as Argos Translate does it


def test_several_hypotheses_in_int8(tmp_path: Path) -> None:
    folder = installed(tmp_path, run())
    translator = ctranslate2.Translator(str(folder / "model"), compute_type="auto", intra_threads=1)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    read = [pieces.encode(text, out_type=str) for text in TEXTS[:3]]
    found = translator.translate_batch(read, beam_size=4, **{**CALL, "num_hypotheses": 4})
    assert [len(one.hypotheses) for one in found] == [4, 4, 4]


def test_argos_translate_itself_translates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline: sentences are found by what the package brings."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))  # it makes folders when it is imported
    package = pytest.importorskip("argostranslate.package")
    translate = pytest.importorskip("argostranslate.translate")
    given = run()
    write_argos(tmp_path / "en_de.argosmodel", given, **CODES, compute_type="float32")
    package.install_from_path(tmp_path / "en_de.argosmodel")
    [found] = package.get_installed_packages()
    assert (str(found), found.get_readme()) == ("English → German", "# A translator\n")
    monkeypatch.setattr("argostranslate.settings.beam_size", 1)
    monkeypatch.setattr("argostranslate.settings.compute_type", "float32")  # else what is quickest on this machine
    translation = translate.get_translation_from_codes("en", "de")
    text = "A dog runs.\nThe cat sleeps."
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(found.package_path / "sentencepiece.model"))
    expected = [pieces.decode_pieces(own) for own in ours(learned(), text.split("\n"), n_tokens=256)]
    assert translation.translate(text) == "\n".join(expected).replace("_", " ")  # which it does to every translation


# -- refusals -----------------------------------------------------------------------------------------------------------


def refused(folder: Path, given: Exportable, **settings: Any) -> RegardError:
    with pytest.raises(RegardError) as caught:
        write_argos(folder / "en_de.argosmodel", given, **{**CODES, **settings})
    assert not [*folder.iterdir()]
    return caught.value


@pytest.mark.parametrize(
    ("side", "code", "problem", "remedy"),
    [
        (
            "source",
            "",
            "A package for Argos Translate names its languages, and the source language is not given.",
            "Give its code with --source-language, such as en.",
        ),
        (
            "target",
            "",
            "A package for Argos Translate names its languages, and the target language is not given.",
            "Give its code with --target-language, such as de.",
        ),
        (
            "source",
            "English",
            "--source-language must be a code of ISO 639 such as en, de or pt-BR, not 'English'.",
            "Did you mean en?",
        ),
        (
            "target",
            "DE",
            "--target-language must be a code of ISO 639 such as en, de or pt-BR, not 'DE'.",
            "Did you mean de?",
        ),
        (
            "target",
            "../de",
            "--target-language must be a code of ISO 639 such as en, de or pt-BR, not '../de'.",
            "Give the code of the language.",
        ),
        ("target", "en", "--source-language and --target-language are both en.", "Give the codes of two languages."),
    ],
)
def test_languages_that_are_none(side: str, code: str, problem: str, remedy: str, tmp_path: Path) -> None:
    error = refused(tmp_path, run(), **{f"{side}_language": code})
    assert isinstance(error, UsageError)
    assert (error.problem, error.remedy) == (problem, remedy)


def test_a_version_that_cannot_be_compared(tmp_path: Path) -> None:
    error = refused(tmp_path, run(), version="new/1")
    assert str(error) == "The version of a package must be like 1.0, not 'new/1'.\nGive numbers with dots."


def test_only_translators(tmp_path: Path) -> None:
    error = refused(tmp_path, run(task="denoise"))
    assert str(error) == (
        "Argos Translate translates, and this run's task is denoise.\nExport a run of the task translate."
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words"])
def test_a_vocabulary_that_sentencepiece_does_not_have(kind: str, tmp_path: Path) -> None:
    error = refused(tmp_path, run(learned(kind)))
    assert isinstance(error, UsageError)
    assert str(error) == (
        "A package for Argos Translate holds a SentencePiece model, and none gives the tokens of a vocabulary of kind"
        f" {kind}.\nTrain with --tokenizer sentencepiece."
    )


def test_a_vocabulary_for_each_side(tmp_path: Path) -> None:
    other = learn(said("valid", 100), kind="sentencepiece", vocab_size=400)
    error = refused(tmp_path, run(target=other))
    assert isinstance(error, UsageError)
    assert str(error) == (
        "Source and target have a vocabulary of their own each, and a package for Argos Translate has one for both.\n"
        "Train with tokenizer.shared = true and --tokenizer sentencepiece."
    )


def test_a_network_that_the_engine_does_not_have(tmp_path: Path) -> None:
    tokenizer = learned()
    config = dataclasses.replace(config_of(tokenizer), window=8)
    error = refused(tmp_path, run(config=config))
    assert isinstance(error, ConfigError)
    assert "model.window = 8" in error.problem


def test_an_extra_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert refused(tmp_path, run()).remedy == "Install it with: pip install 'regard[export]'"
