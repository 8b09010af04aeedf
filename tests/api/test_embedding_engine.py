"""Embeddings by the engine: vectors beside those of our own network, and where that one has to compute them."""

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import READER, trained_on

import regard
from regard.api import engine as module
from regard.api import engine_folder, engine_trial
from regard.api.engine import choose_engine
from regard.api.engine_folder import FILE
from regard.api.engine_wish import EngineWish
from regard.decoding.engine.encoding_engine import EncodingEngine
from regard.decoding.engine.library import EngineSettings
from regard.errors import UsageError
from regard.parts.taps import recording

TEXTS = [
    "a good dog",
    "",
    "a",
    "the dull song is great today , a poor film " * 2,
    "Anna visits Oslo",
    "a good day " * 40,
]
CLOSE = 1e-5


@pytest.fixture(scope="session")
def similarity_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [("a dog", "the dog", 4.0), ("a dog", "a house", 1.0), ("the house", "a house", 5.0)]
    content = "sentence1,sentence2,score\n" + "".join(f"{one},{other},{score}\n" for one, other, score in rows * 10)
    return trained_on(tmp_path_factory, "similarity", "train.csv", content)


@pytest.fixture(scope="session")
def recurrent_run(tmp_path_factory: pytest.TempPathFactory, classify_run: Path) -> Path:
    sizes = {"model.preset": "birnn", "model.n_layers": 1, "model.d_model": 16, "model.d_state": 16}
    others = {name: value for name, value in READER.items() if not name.startswith("model.")}
    content = (classify_run.parent / "train.csv").read_text()
    return trained_on(
        tmp_path_factory,
        "classify",
        "train.csv",
        content,
        {**others, **sizes, "training.steps": 2},
    )


@pytest.fixture
def own(classify_run: Path, tmp_path: Path) -> Path:
    """A copy of the classifier, without an engine."""
    return copied(classify_run, tmp_path)


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / "own", ignore=shutil.ignore_patterns("engines")))


def loaded(run: Path, engine: str = "auto", **settings: Any) -> Any:
    return regard.load(run, threads=1, engine=engine, **settings)


def largest_difference(found: Any, expected: Any) -> float:
    return max(float(np.abs(one.vector - other.vector).max()) for one, other in zip(found, expected, strict=True))


# --- the same vectors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classify", "regress", "tag", "mask", "similarity"])
def test_vectors_are_those_of_our_own_network(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = copied(request.getfixturevalue(f"{kind}_run"), tmp_path)
    ours, engine = loaded(run, "torch"), loaded(run)
    expected = ours.embed(TEXTS, tokens=True)
    found = engine.embed(TEXTS, tokens=True)
    assert isinstance(engine.engine.engine, EncodingEngine)
    assert largest_difference(found, expected) < CLOSE
    assert largest_difference([engine.embed(text) for text in TEXTS], expected) < CLOSE
    for one, other in zip(found, expected, strict=True):
        assert (one.words, one.n_cut) == (other.words, other.n_cut)
        np.testing.assert_allclose(one.word_vectors, other.word_vectors, atol=CLOSE)
    assert expected[-1].n_cut > 0, "a text longer than the positions is among them"


@pytest.mark.parametrize("pooling", ["mean", "class", "last"])
def test_pooling_stays_ours(own: Path, pooling: str) -> None:
    found, expected = (loaded(own, name).embed(TEXTS, pooling=pooling) for name in ("ctranslate2", "torch"))
    assert largest_difference(found, expected) < CLOSE


def test_several_batches_and_workers_give_the_same(own: Path) -> None:
    texts = [" ".join(["good"] * (number % 30)) for number in range(130)]
    expected = loaded(own, "torch").embed(texts)
    counts: list[int] = []
    found = loaded(own, "ctranslate2", engine_workers=3, engine_threads=1).embed(texts, progress=counts.append)
    assert largest_difference(found, expected) < CLOSE
    assert counts == [64, 128, 130]


def test_int8_is_near_and_an_engine_of_its_own(own: Path) -> None:
    expected = loaded(own, "torch").embed(TEXTS)
    found = loaded(own, "ctranslate2", compute_type="int8").embed(TEXTS)
    scale = float(np.stack([one.vector for one in expected]).std())
    assert 0 < largest_difference(found, expected) < 0.2 * scale
    assert ["int8" in path.name for path in (own / "engines").iterdir()] == [True]


def test_an_engine_is_converted_once_and_kept_with_what_was_found(own: Path) -> None:
    assert "converted into" in loaded(own).engine.reason
    [folder] = (own / "engines").iterdir()
    assert 0 < json.loads((folder / FILE).read_text())["largest_error"] < CLOSE
    assert loaded(own).engine.reason == "CTranslate2, float32"


def test_settings_are_measured_with_texts_that_the_positions_reach(own: Path) -> None:
    engine = loaded(own).encoder()
    assert engine.max_length == 40
    assert engine_trial._seconds(engine, [[5] * 60, [6]]) > 0


def test_what_is_fastest_is_measured_on_several_cores(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_trial.torch, "get_num_threads", lambda: 2)
    engine = loaded(own, "ctranslate2").engine.engine
    assert engine.settings.workers * engine.settings.threads == 2


# --- where our own network computes -----------------------------------------------------------------------------------


def test_a_network_that_is_listened_to_computes_itself(own: Path) -> None:
    run = loaded(own, "ctranslate2")
    assert run.encoder() is not None
    with recording(run.model, "embedding.output") as record:
        run.embed("a good dog")
    assert record


@pytest.mark.parametrize("change", ["in place", "weight", "module"])
def test_a_network_that_was_changed_computes_itself(own: Path, change: str) -> None:
    run = loaded(own, "ctranslate2")
    before = run.embed("a good dog").vector
    changed = deepcopy(run.model.embedding.norm)
    with torch.no_grad():
        (run.model.embedding.norm if change == "in place" else changed).weight[:4] *= 0.5
    if change == "weight":
        run.model.embedding.norm.weight = changed.weight
    elif change == "module":
        run.model.embedding.norm = changed
    assert np.abs(run.embed("a good dog").vector - before).max() > 1e-3


def test_a_network_of_other_weights_is_told_from_its_engine(own: Path) -> None:
    run = loaded(own, "ctranslate2")
    given = run.engine.engine, run.model, run.task.tokenizer, run.task.tokenizer
    assert engine_trial.largest_error(*given) < CLOSE
    with torch.no_grad():
        run.model.embedding.norm.weight[:4] *= 0.9
    assert engine_trial.largest_error(*given) > 1e-2


def test_an_engine_that_computes_otherwise_is_not_trusted(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_folder, "largest_error", lambda *given: 0.5)
    run = loaded(own)
    assert largest_difference(run.embed(TEXTS), loaded(own, "torch").embed(TEXTS)) == 0
    assert run.engine.reason == "CTranslate2 failed: its states differ by 0.5 from those of the network."
    with pytest.raises(UsageError, match=r"CTranslate2 cannot serve this run: its states differ by 0\.5"):
        loaded(own, "ctranslate2").embed("a dog")


def test_a_setting_that_the_engine_lacks_is_left_to_our_network(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "supports", lambda config: "model.window = 4")
    run = loaded(own)
    assert (run.encoder(), run.engine.reason) == (None, "model.window = 4")
    assert run.embed("a good dog").vector.shape == (32,)
    with pytest.raises(UsageError) as caught:
        loaded(own, "ctranslate2").embed("a good dog")
    assert caught.value.problem == "CTranslate2 cannot serve this run: model.window = 4."
    assert caught.value.remedy == "Use --engine torch."


def test_sequences_of_vectors_are_not_served(vectors_run: Path) -> None:
    assert loaded(vectors_run).engine == module.Chosen(engine=None, reason="model.n_features = 2")


def test_a_network_elsewhere_than_on_a_cpu_computes_itself(own: Path) -> None:
    run = loaded(own)
    chosen = choose_engine(own / "engines", run.task, run.model.to("meta"), run.checkpoint, EngineWish())
    assert chosen == module.Chosen(engine=None, reason="the model is not on a CPU")


def test_positions_that_do_not_suffice_are_left_to_our_network(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_trial, "LONGEST_CHECKED", 100)
    monkeypatch.setattr(engine_trial, "position_limit", lambda config: 100)
    run = loaded(own)
    assert run.engine.engine is None
    assert run.engine.reason.startswith("CTranslate2 failed: No position encodings are defined for positions >= 40")


@pytest.mark.parametrize("kind", ["translate", "denoise", "recurrent"])
def test_other_networks_embed_by_torch(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = copied(request.getfixturevalue("trained" if kind == "translate" else f"{kind}_run"), tmp_path)
    named = loaded(run, "ctranslate2")
    assert named.encoder() is None
    assert largest_difference(named.embed(TEXTS), loaded(run, "torch").embed(TEXTS)) == 0
    assert not (run / "engines").exists(), "nothing is converted that is not asked for"


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_predictions_are_not_the_engines(own: Path) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(own, "ctranslate2").predict("a good dog")
    assert caught.value.problem == (
        f"{own} was trained for the task 'classify', whose predictions CTranslate2 does not compute."
    )
    assert caught.value.remedy == "Leave --engine out."


def test_a_shortlist_is_of_translators(own: Path) -> None:
    with pytest.raises(UsageError, match=r"A shortlist is of a translator's target tokens"):
        loaded(own, "ctranslate2", shortlist=True).embed("a good dog")


def test_one_text_has_threads_of_its_own(own: Path) -> None:
    engine = loaded(own, "ctranslate2").engine.engine
    engine.settings = EngineSettings(workers=2, threads=1, threads_for_one=2)
    ids, lengths = torch.tensor([[2, 5, 3], [2, 3, 0]]), torch.tensor([3, 2])
    both, one = engine.encode(ids, lengths), engine.encode(ids[:1], lengths[:1])
    torch.testing.assert_close(both[:1], one, atol=CLOSE, rtol=0)
    assert set(engine._opened) >= {(2, 1), (1, 2)}
