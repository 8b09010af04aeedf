"""The engine with a shortlist: what it may write, beside the engine without one; kept, damaged, refused, proven."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ENGLISH

import regard
from regard.api.engine_folder import FILE
from regard.api.engine_wish import EngineWish
from regard.api.proof import Proof, ProvenEngine, prove
from regard.cli.engine import EngineOptions
from regard.config import DecodingConfig
from regard.decoding.engine.translation_engine import VOCABULARY_MAP, SourceSentence
from regard.errors import RegardError, UsageError
from regard.evaluation.significance import Significance
from regard.tasks.translation import shortlist as module

LINES = ["a dog runs", "the big cat", "", "the old man sees a red tree", "a"]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any token is allowed for its frequency: the vocabulary is smaller than what usually is."""
    monkeypatch.setattr(module, "MOST_FREQUENT", 2)


@pytest.fixture
def own(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained translator, without an engine."""
    copied = Path(shutil.copytree(trained, tmp_path / "own"))
    shutil.rmtree(copied / "engines", ignore_errors=True)
    return copied


def loaded(run: Path, *, shortlist: bool = True, engine: str = "ctranslate2", **settings: Any) -> Any:
    return regard.load(run, threads=1, engine=engine, shortlist=shortlist, **settings)


def lists(folder: Path) -> dict[str, set[str]]:
    """The target tokens of each source token, by name."""
    lines = (folder / VOCABULARY_MAP).read_text(encoding="utf-8").splitlines()
    return {name: {*targets.split(" ")} for name, targets in (line.split("\t") for line in lines)}


def test_most_lines_become_the_same_text(own: Path) -> None:
    lines = [" ".join(words) for words in zip(ENGLISH, ENGLISH[3:], ENGLISH[5:], strict=False)]
    plain, restricted = (loaded(own, shortlist=asked).translate(lines, beam=1) for asked in (False, True))
    same = sum(one.text == other.text for one, other in zip(plain, restricted, strict=True))
    assert same > len(lines) / 2


def test_outputs_stay_within_the_list(own: Path) -> None:
    run = loaded(own)
    engine = run.engine.engine
    allowed, left_out = lists(engine.folder), 0
    for line in ("a dog runs", "the big cat", "red"):
        source = [*run.task.vocabulary.source.encode(line), run.task.vocabulary.source.end_id]
        mine = allowed[""].union(*(allowed[engine.source_names[id]] for id in source))
        [(_, found)] = engine.translate(
            [SourceSentence(source=source, prefix=(), limit=8)],
            start=(),
            config=DecodingConfig(beam=4, n_best=4),
            with_log_probs=False,
        )
        assert {engine.names[id] for one in found.hypotheses for id in one.ids} <= mine
        [(_, free)] = loaded(own, shortlist=False).engine.engine.translate(
            [SourceSentence(source=source, prefix=(), limit=8)],
            start=(),
            config=DecodingConfig(beam=4, n_best=4),
            with_log_probs=False,
        )
        left_out += not {engine.names[id] for one in free.hypotheses for id in one.ids} <= mine
    assert left_out  # or nothing is shown by it


def test_a_prefix_outside_of_the_list_is_written(own: Path) -> None:
    run = loaded(own)
    vocabulary, engine = run.task.vocabulary, run.engine.engine
    allowed = lists(engine.folder)
    mine = allowed[""].union(*(allowed[engine.source_names[id]] for id in vocabulary.source.encode("a")))
    ids = vocabulary.target.encode("Hund läuft")
    assert not {engine.names[id] for id in ids} <= mine
    [found] = run.translate(["a"], beam=2, prefixes=["Hund läuft"])
    assert found.text.startswith("Hund läuft")


def test_log_probabilities_are_those_of_the_whole_vocabulary(own: Path) -> None:
    ours, found = loaded(own, shortlist=False, engine="torch"), loaded(own)
    for one, other in zip(ours.translate(LINES, beam=1), found.translate(LINES, beam=1), strict=True):
        if one.text == other.text:
            assert one.outputs[0].log_probs == pytest.approx(other.outputs[0].log_probs, abs=1e-4)


def test_an_engine_with_a_shortlist_is_learned_once_and_has_a_folder_of_its_own(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, restricted = loaded(own, shortlist=False).engine, loaded(own).engine
    assert plain.engine.folder != restricted.engine.folder
    assert plain.engine.name + "-shortlist" == restricted.engine.name
    assert (plain.engine.has_shortlist, restricted.engine.has_shortlist) == (False, True)
    assert restricted.reason.startswith("CTranslate2, float32, shortlist, converted into ")
    kept = json.loads((restricted.engine.folder / FILE).read_text())
    assert 0 < kept["largest_error"] < 1e-4  # of the whole vocabulary, as without a shortlist
    monkeypatch.setattr("regard.api.engine_folder.learn_shortlist", None)
    again = loaded(own, engine="auto").engine
    assert again.reason == "CTranslate2, float32, shortlist"
    assert again.engine.has_shortlist


@pytest.mark.parametrize("damage", ["half", "empty", "gone"])
def test_a_damaged_map_is_learned_anew(own: Path, damage: str) -> None:
    path = loaded(own).engine.engine.folder / VOCABULARY_MAP
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(content[: len(content) // 2] if damage == "half" else b"")
    assert "converted into" in loaded(own).engine.reason
    assert path.read_bytes() == content


def test_a_score_says_that_there_was_a_shortlist(own: Path, corpus: tuple[str, str]) -> None:
    signatures = {score.name: score.signature for score in loaded(own).evaluate(corpus, beam=1).scores}
    assert signatures["bleu"].endswith("-float32-shortlist")


@pytest.mark.parametrize("engine", ["auto", "ctranslate2"])
def test_without_the_training_files_it_is_refused(own: Path, engine: str) -> None:
    config = own / "config.toml"
    config.write_text(config.read_text().replace("train.en", "gone.en"))
    with pytest.raises(UsageError, match=r"^A shortlist is learned from the training pairs \(.*gone\.en") as caught:
        loaded(own, engine=engine).translate("a dog")
    assert caught.value.remedy == "Put the files back, or leave --shortlist out."
    assert not list((own / "engines").iterdir())
    assert loaded(own, engine=engine, shortlist=False).translate("a dog").text


def test_our_own_search_has_none() -> None:
    with pytest.raises(UsageError) as caught:
        EngineWish(name="torch", shortlist=True)
    assert caught.value.problem == "A shortlist is for ctranslate2, and the engine is to be torch."
    assert caught.value.remedy == "Leave one out."


def test_the_options_of_a_command() -> None:
    assert EngineOptions(shortlist=True).loading("torch")["engine"] == "ctranslate2"
    assert EngineOptions(shortlist=True).loading()["shortlist"]
    assert not EngineOptions().loading()["shortlist"]
    with pytest.raises(UsageError) as caught:
        EngineOptions(shortlist=True, engine="torch").loading()
    assert caught.value.problem == "--shortlist is for ctranslate2, and the engine is to be torch."
    assert caught.value.remedy == "Leave one out."


def test_a_language_model_has_none(corpus: tuple[str, str], tmp_path: Path) -> None:
    fields = {"n_layers": 1, "n_heads": 2, "d_model": 16, "context": 48}
    settings = {"tokenizer.kind": "characters", "runtime.threads": 1, "runtime.device": "cpu"}
    settings |= {f"model.{name}": value for name, value in fields.items()}
    run = tmp_path / "run"
    regard.train("language", train=[corpus[0]], model="gpt-nano", run=run, steps=2, settings=settings)
    with pytest.raises(UsageError) as caught:
        loaded(run).generate("the dog")
    assert caught.value.problem == (
        "A shortlist is of a translator's target tokens, and the run was trained for the task 'language'."
    )
    assert caught.value.remedy == "Leave --shortlist out."


# --- the proof --------------------------------------------------------------------------------------------------------


def test_a_shortlist_is_proven_against_the_engine_without(own: Path, corpus: tuple[str, str]) -> None:
    found = prove(own, corpus, shortlist=True)
    assert (found.full.name, found.quantised.name) == ("ctranslate2, float32", "ctranslate2, float32, shortlist")
    assert found.n_sentences == 90
    assert found.n_identical > 45
    assert {path.name.split("-")[3] for path in (own / "engines").iterdir() if "shortlist" in path.name} == {
        "shortlist"
    }
    assert len(list((own / "engines").iterdir())) == 2


def test_there_must_be_something_to_prove(own: Path, corpus: tuple[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        prove(own, corpus)
    assert caught.value.problem == "float32 is what a proof compares with."
    assert caught.value.remedy == "Prove another type, such as int8, or a shortlist."


def test_a_loss_is_refused() -> None:
    engines = [
        ProvenEngine(name=name, scores={"bleu": 30.0}, per_second=1.0, size=1)
        for name in ("full", "float32, shortlist")
    ]
    lost = Significance(
        metric="bleu", score=29.6, mean=29.6, low=29.0, high=30.0, delta=-0.4, delta_low=-0.7, delta_high=-0.1
    )
    proof = Proof(full=engines[0], quantised=engines[1], differences={"bleu": lost}, n_identical=1, n_sentences=2)
    proof.refuse_loss(0.8)
    with pytest.raises(RegardError) as caught:
        proof.refuse_loss(0.5)
    assert caught.value.problem == "float32, shortlist may lose up to 0.70 BLEU (95 %), and 0.5 are tolerated."
    assert caught.value.remedy == "Use float32 and no shortlist, prove it on a larger test set, or raise --tolerance."
