"""The engine of a run: converted on first use, checked, kept, damaged, refused; its outputs beside those of our search."""

import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.api import engine as module
from regard.api import engine_folder, engine_trial
from regard.api.engine_folder import FILE, KEPT
from regard.api.engine_wish import EngineWish
from regard.cli.engine import EngineOptions
from regard.config import DecodingConfig
from regard.decoding.engine.library import EngineSettings
from regard.decoding.engine.translation_engine import SourceSentence, TranslationEngine
from regard.errors import UsageError
from regard.parts.taps import recording
from regard.tasks.translation.alignment import cross_attention, link_words

LINES = ["a dog runs", "the big cat", "", "the old man sees a red tree", "a"]


@pytest.fixture
def own(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained translator, without an engine."""
    copied = Path(shutil.copytree(trained, tmp_path / "own"))
    shutil.rmtree(copied / "engines", ignore_errors=True)
    return copied


def folders(run: Path) -> list[Path]:
    return sorted((run / "engines").iterdir())


def loaded(run: Path, engine: str = "auto", **settings: Any) -> Any:
    return regard.load(run, threads=1, engine=engine, **settings)


def test_the_engine_writes_what_our_own_search_writes(own: Path) -> None:
    ours, engine = (loaded(own, name).translate(LINES, beam=1) for name in ("torch", "ctranslate2"))
    for one, other in zip(ours, engine, strict=True):
        assert one.text == other.text
        assert one.outputs[0].ids == other.outputs[0].ids
        assert one.outputs[0].finished == other.outputs[0].finished
        assert one.outputs[0].log_probs == pytest.approx(other.outputs[0].log_probs, abs=1e-4)
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_n_best_prefixes_and_alignments_are_the_same(own: Path) -> None:
    settings: dict[str, Any] = {"beam": 4, "n_best": 2, "prefixes": ["", "der", "", "", ""], "align": True}
    ours, engine = (loaded(own, name).translate(LINES, **settings) for name in ("torch", "ctranslate2"))
    for one, other in zip(ours, engine, strict=True):
        assert len(one.outputs) == len(other.outputs)
        assert other.outputs[0].alignment is not None
    assert engine[1].text.startswith("der")
    for one, other in zip(ours, engine, strict=True):  # its search ends by another rule, and never finds a better one
        assert other.score <= one.score + 1e-4
    scores = [output.score for output in engine[0].outputs]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("prefix", ["", "der"])
def test_alignments_are_the_engines_own_and_those_of_the_network(own: Path, beam: int, prefix: str) -> None:
    run = loaded(own, "ctranslate2")
    n_best = min(2, beam)
    given = [line for line in LINES if line] * 3  # several of a length, which share a batch where they may
    found = run.translate(given, beam=beam, n_best=n_best, prefixes=[prefix] * len(given), align=True)
    vocabulary = run.task.vocabulary
    for line, one in zip(given, found, strict=True):
        assert len(one.outputs) == n_best
        for output in one.outputs:
            source = [*vocabulary.source.encode(line), vocabulary.source.end_id]
            weights = cross_attention(run.model, vocabulary, source, output.ids)
            links = link_words(vocabulary, line, output.ids, weights)
            assert output.alignment is not None
            assert [(link.source, link.target) for link in links] == [(x.source, x.target) for x in output.alignment]
            scores = [link.score for link in links]
            assert [link.score for link in output.alignment] == pytest.approx(scores, abs=1e-5)
    assert any(output.alignment for one in found for output in one.outputs)


def test_an_alignment_by_the_engine_asks_nothing_of_the_network(own: Path) -> None:
    run = loaded(own, "ctranslate2")
    assert run.engine.engine is not None
    run.model.forward = run.model.states = None
    assert run.translate("a dog runs", beam=2, align=True).outputs[0].alignment is not None


def test_without_log_probabilities_the_text_is_the_same(own: Path) -> None:
    run = loaded(own, "ctranslate2")
    full, bare = (run.translate(LINES, beam=1, log_probs=asked) for asked in (True, False))
    assert [one.text for one in full] == [one.text for one in bare]
    assert bare[0].outputs[0].log_probs == ()
    assert bare[0].score == pytest.approx(full[0].score, abs=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"min_length": 9},
        {"no_repeat_ngram": 1},
        {"repetition_penalty": 1.7},
        {"prefixes": ["Hund Hund"] * 5},
        {"prefixes": ["Hund Hund"] * 5, "min_length": 9},
        {"prefixes": ["Hund Hund"] * 5, "no_repeat_ngram": 2},
    ],
)
def test_rules_are_those_of_our_own_search_where_it_is_greedy(own: Path, settings: dict[str, Any]) -> None:
    runs = loaded(own, "torch"), loaded(own, "ctranslate2")
    engine = runs[1].engine.engine
    plain = {name: value for name, value in settings.items() if name != "prefixes"}
    assert not engine.unsupported(DecodingConfig(beam=1, **plain))
    free, ours, found = (
        run.translate(LINES, beam=1, log_probs=False, **own_settings)
        for run, own_settings in ((runs[0], {}), (runs[0], settings), (runs[1], settings))
    )
    assert [one.outputs[0].ids for one in ours] == [one.outputs[0].ids for one in found]
    assert [one.score for one in ours] == pytest.approx([one.score for one in found], abs=1e-4)
    assert [one.text for one in ours] != [one.text for one in free]  # or nothing is shown by it


@pytest.mark.parametrize(
    ("settings", "asked", "reason"),
    [
        ({"beam": 2, "min_length": 9}, {}, "a minimum length except in greedy search"),
        ({"beam": 2, "no_repeat_ngram": 2}, {}, "no repeated n-gram except in greedy search"),
        (
            {"beam": 1, "repetition_penalty": 1.5},
            {"log_probs": True},
            "a repetition penalty with log-probabilities or a prefix",
        ),
        ({"beam": 1}, {"banned": True}, "banned words"),
        ({"beam": 2}, {"n_models": 2}, "an ensemble"),
        ({"sample": True}, {}, "sampling"),
        ({"beam": 2, "n_best": 3}, {}, "more hypotheses than the beam is wide"),
    ],
)
def test_what_it_cannot_do_has_a_name(own: Path, settings: dict[str, Any], asked: dict[str, Any], reason: str) -> None:
    assert loaded(own, "ctranslate2").engine.engine.unsupported(DecodingConfig(**settings), **asked) == reason


def test_every_worker_has_as_many_batches(own: Path) -> None:
    engine = loaded(own, "ctranslate2", engine_workers=4, engine_threads=1).engine.engine
    assert engine._batch_tokens([10] * 8) == 20
    assert engine._batch_tokens([10] * 2) == 10  # no worker has none as long as another has two
    assert engine._batch_tokens([10] * 8000) == 2000  # 40 batches instead of 39 of 2,040 and one of 440
    assert engine._batch_tokens([9, 5, 10, 9, 5, 10, 9, 5]) == 20  # 15.5 without padding


def test_long_sentences_come_first_and_each_once(own: Path) -> None:
    engine = loaded(own, "ctranslate2", engine_workers=2, engine_threads=1).engine.engine
    sentences = [SourceSentence(source=[5] * length, prefix=(), limit=8) for length in (3, 7, 1, 7)]
    for with_log_probs in (False, True):
        found = list(engine.translate(sentences, start=(), config=DecodingConfig(), with_log_probs=with_log_probs))
        assert [number for number, _ in found] == [1, 3, 0, 2]
        assert all(bool(one.best.log_probs) == with_log_probs for _, one in found)


def test_limits_are_those_of_our_own_search(own: Path) -> None:
    ours, engine = (loaded(own, name).translate(LINES, beam=1, max_length=2) for name in ("torch", "ctranslate2"))
    assert [one.outputs[0].ids for one in ours] == [one.outputs[0].ids for one in engine]
    assert [one.outputs[0].finished for one in ours] == [one.outputs[0].finished for one in engine]


def test_an_engine_is_converted_once_and_kept_with_what_was_found(own: Path) -> None:
    assert "converted into" in loaded(own).engine.reason
    [folder] = folders(own)
    kept = json.loads((folder / FILE).read_text())
    assert 0 < kept["largest_error"] < 1e-4
    before = (folder / "model.bin").stat().st_mtime_ns
    again = loaded(own)
    assert again.engine.reason == "CTranslate2, float32"
    assert isinstance(again.engine.engine, TranslationEngine)
    assert (folder / "model.bin").stat().st_mtime_ns == before
    assert not list((own / "engines").glob(".tmp*"))


@pytest.mark.parametrize("damage", ["no file", "half a model", "no settings", "wrong settings"])
def test_a_damaged_engine_is_converted_anew(own: Path, damage: str) -> None:
    loaded(own).translate("a dog")
    [folder] = folders(own)
    match damage:
        case "no file":
            (folder / "model.bin").unlink()
        case "half a model":
            content = (folder / "model.bin").read_bytes()
            (folder / "model.bin").write_bytes(content[: len(content) // 2])
        case "no settings":
            (folder / FILE).unlink()
        case _:
            (folder / FILE).write_text('{"settings": {"workers": "many"}, "machine": 3}')
    run = loaded(own)
    assert "converted into" in run.engine.reason
    assert run.translate("a dog runs", beam=1).text == loaded(own, "torch").translate("a dog runs", beam=1).text


def test_what_a_killed_conversion_left_is_removed(own: Path) -> None:
    (own / "engines" / ".tmp-new-ctranslate2-1").mkdir(parents=True)
    assert loaded(own).engine.engine is not None
    assert [path.name[:12] for path in folders(own)] == ["ctranslate2-"]


def test_another_checkpoint_has_another_engine_and_old_ones_go(own: Path) -> None:
    for number in range(KEPT):
        (own / "engines" / f"ctranslate2-old-{number}").mkdir(parents=True)
    assert loaded(own).engine.engine is not None
    assert len(folders(own)) == KEPT
    loaded(Path(f"{own}@40")).translate("a dog")
    assert len([path for path in folders(own) if "float32" in path.name]) == 2


def test_an_engine_that_computes_otherwise_is_not_trusted(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_folder, "largest_error", lambda *given: 0.5)
    run = loaded(own)
    assert run.engine.engine is None
    assert run.engine.reason == ("CTranslate2 failed: its log-probabilities differ by 0.5 from those of the network.")
    assert not folders(own)
    assert run.translate("a dog").text  # by our own search
    with pytest.raises(UsageError, match=r"CTranslate2 cannot serve this run: its log-probabilities differ by 0\.5"):
        loaded(own, "ctranslate2").translate("a dog")


def test_a_network_of_other_weights_is_told_from_its_engine(own: Path) -> None:
    run = loaded(own, "ctranslate2")
    given = run.engine.engine, run.model, run.task.vocabulary.source, run.task.vocabulary.target
    assert engine_trial.largest_error(*given) < 1e-4
    with torch.no_grad():
        run.model.output.weight[3:] *= 0.9
    assert engine_trial.largest_error(*given) > 1e-2


def test_a_network_that_the_engine_lacks_is_left_to_our_search(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "supports", lambda config: "model.window = 4")
    assert loaded(own).engine == module.Chosen(engine=None, reason="model.window = 4")
    with pytest.raises(UsageError) as caught:
        loaded(own, "ctranslate2").translate("a dog")
    assert caught.value.problem == "CTranslate2 cannot serve this run: model.window = 4."
    assert caught.value.remedy == "Use --engine torch."


def test_a_folder_that_cannot_be_written_is_left_to_our_search(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **named: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(engine_folder, "convert", refuse)
    run = loaded(own)
    assert run.translate("a dog runs").text == loaded(own, "torch").translate("a dog runs").text
    assert run.engine.reason == f"CTranslate2 failed: {own / 'engines'} cannot be written: Permission denied."
    with pytest.raises(UsageError) as caught:
        loaded(own, "ctranslate2").translate("a dog")
    assert caught.value.remedy == "Make it writable, or use --engine torch."


def test_two_at_once_convert_once(own: Path) -> None:
    runs = [loaded(own), loaded(own)]
    with ThreadPoolExecutor(2) as pool:
        reasons = list(pool.map(lambda run: run.engine.reason, runs))
    assert sorted("converted" in reason for reason in reasons) == [False, True]
    assert len(folders(own)) == 1


def test_another_version_of_the_library_converts_anew(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(own).engine.engine is not None
    monkeypatch.setattr("ctranslate2.__version__", "99.0.0")
    assert "converted into" in loaded(own).engine.reason
    assert [path.name.split("-")[1] for path in folders(own)][-1] == "99.0.0"


@pytest.mark.parametrize("writable", [True, False])
def test_on_another_machine_settings_are_measured_anew(
    own: Path, writable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise PermissionError(13, "Permission denied")

    assert loaded(own).engine.engine is not None
    monkeypatch.setattr(engine_folder, "_machine", lambda: "another")
    monkeypatch.setattr(engine_folder, "fastest", lambda make, source: EngineSettings(workers=7))
    if not writable:
        monkeypatch.setattr(engine_folder, "write_atomically", refuse)
    chosen = loaded(own).engine
    assert chosen.reason == "CTranslate2, float32"
    assert chosen.engine.settings == EngineSettings(workers=7)
    [folder] = folders(own)
    assert ("another" in json.loads((folder / FILE).read_text())["settings"]) is writable


def test_scores_are_of_our_own_search_unless_the_engine_is_named(own: Path, corpus: tuple[str, str]) -> None:
    auto = loaded(own)
    auto.evaluate(corpus, beam=1)
    assert not (own / "engines").exists()
    named = loaded(own, "ctranslate2").evaluate(corpus, beam=1)
    assert (own / "engines").exists()
    assert named.values["bleu"] == pytest.approx(loaded(own, "torch").evaluate(corpus, beam=1).values["bleu"])


def test_int8_is_an_engine_of_its_own(own: Path) -> None:
    assert loaded(own, "ctranslate2", compute_type="int8").translate(LINES)[0].text
    assert ["int8" in path.name for path in folders(own)] == [True]


def test_int8_is_a_setting_of_a_run(own: Path) -> None:
    config = own / "config.toml"
    text = config.read_text()
    assert "int8 = false" in text
    config.write_text(text.replace("int8 = false", "int8 = true"))
    assert loaded(own).engine.reason.startswith("CTranslate2, int8, ")
    assert loaded(own, compute_type="float32").engine.reason.startswith("CTranslate2, float32, ")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"workers": -2}, "--engine-workers must be from 0 (as measured) to 256, not -2."),
        ({"threads": 257}, "--engine-threads must be from 0 (as measured) to 256, not 257."),
        (
            {"workers": 20, "threads": 20},
            "--engine-workers 20 with --engine-threads 20 each are 400 threads, and at most 256 are allowed.",
        ),
    ],
)
def test_numbers_of_threads_are_bounded(settings: dict[str, int], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        EngineWish(**settings)
    assert caught.value.problem == problem
    assert caught.value.remedy == "Give as many as the machine has cores, or fewer."


def test_the_engine_of_a_score_is_named() -> None:
    assert EngineOptions(engine="auto").loading()["engine"] == "auto"
    with pytest.raises(UsageError) as caught:
        EngineOptions(engine="auto").loading("torch")
    assert caught.value.problem == "--engine auto leaves open by which engine scores are."
    assert caught.value.remedy == "Name it: --engine ctranslate2 or --engine torch."


def test_names_are_checked() -> None:
    with pytest.raises(UsageError) as caught:
        EngineWish(name="ctranslate")
    assert (caught.value.problem, caught.value.remedy) == (
        "There is no engine 'ctranslate'.",
        "Did you mean ctranslate2?",
    )
    with pytest.raises(UsageError, match=r"There is no compute type 'int9'\."):
        EngineWish(compute_type="int9")


def test_workers_and_threads_that_are_asked_for_replace_the_measured() -> None:
    measured = EngineSettings(workers=4, threads=1, threads_for_one=2)
    assert EngineWish().settings(measured) == measured
    assert EngineWish(workers=2, threads=3).settings(measured) == EngineSettings(
        workers=2, threads=3, threads_for_one=3
    )
    assert (measured.of(1), measured.of(9)) == ((1, 2), (4, 1))


def test_what_is_fastest_is_measured_on_several_cores(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {(2, 1): 3.0, (1, 2): 2.0, (1, 1): 1.0}
    monkeypatch.setattr(engine_trial.torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(engine_trial, "_seconds", lambda settings, inputs: times[settings.workers, settings.threads])
    source = loaded(own, "torch").task.vocabulary.source
    found = engine_trial.fastest(lambda settings: settings, source)
    assert found == EngineSettings(workers=1, threads=2, threads_for_one=1)


def test_a_score_of_the_engine_says_so(own: Path, corpus: tuple[str, str]) -> None:
    import ctranslate2

    found = loaded(own, "ctranslate2").evaluate(corpus, beam=1)
    signatures = {score.name: score.signature for score in found.scores}
    assert signatures["bleu"].endswith(f"|engine:ctranslate2-{ctranslate2.__version__}-float32")
    assert "engine" not in signatures["perplexity"]
    assert "engine" not in loaded(own).evaluate(corpus, beam=1).scores[0].signature
    left = loaded(own, "ctranslate2").evaluate(corpus, beam=2, min_length=1)
    assert "engine" not in left.scores[0].signature, "what the engine cannot do, our own search has done"


def test_a_network_that_was_changed_or_is_listened_to_is_searched_by_ours(own: Path) -> None:
    run = loaded(own, "ctranslate2")
    with recording(run.model, "decoder.*.cross_attention.weights") as record:
        run.translate("a dog runs", beam=1)
    assert record
    before = run.translate("a dog runs", beam=1).score
    with torch.no_grad():
        run.model.output.weight[3:] *= 0.5
    assert run.translate("a dog runs", beam=1).score != pytest.approx(before, abs=1e-3)
    for replace in ("weight", "module"):
        run = loaded(own, "ctranslate2")
        changed = deepcopy(run.model.decoder_norm)
        with torch.no_grad():
            changed.weight *= 0.5
        if replace == "weight":
            run.model.decoder_norm.weight = changed.weight
        else:
            run.model.decoder_norm = changed
        assert run.translate("a dog runs", beam=1).score != pytest.approx(before, abs=1e-3)


def test_a_network_that_the_caller_holds_is_watched_from_the_start(own: Path) -> None:
    network = loaded(own, "torch").model
    run = loaded(own, "ctranslate2", model=network)
    before = run.translate("a dog runs", beam=1).score
    assert before == pytest.approx(loaded(own, "ctranslate2").translate("a dog runs", beam=1).score)
    with torch.no_grad():
        network.output.weight[3:] *= 0.5
    assert run.translate("a dog runs", beam=1).score != pytest.approx(before, abs=1e-3)


# --- language models --------------------------------------------------------------------------------------------------

PROMPTS = ["the dog", "", "a red house sees the", "a"]
SMALL: dict[str, Any] = {"n_layers": 1, "n_heads": 2, "d_model": 16, "context": 48}


@pytest.fixture(scope="module", params=["llama-nano", "gpt-nano"])
def language(request: pytest.FixtureRequest, corpus: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny language model over characters."""
    path: Path = tmp_path_factory.mktemp("language") / "run"
    fields = {**SMALL, **({"n_key_heads": 1, "d_ff": 32} if request.param == "llama-nano" else {})}
    settings = {"tokenizer.kind": "characters", "runtime.threads": 1, "runtime.device": "cpu"}
    settings |= {f"model.{name}": value for name, value in fields.items()}
    regard.train(
        "language",
        train=[corpus[0]],
        model=request.param,
        run=path,
        steps=40,
        batch_tokens=256,
        learning_rate=0.01,
        settings=settings,
    )
    return path


@pytest.mark.parametrize("beam", [1, 3])
def test_a_language_model_goes_on_as_by_our_own_search(language: Path, beam: int) -> None:
    settings: dict[str, Any] = {"sample": False, "beam": beam, "max_length": 12}
    ours, engine = (loaded(language, name).generate(PROMPTS, **settings) for name in ("torch", "ctranslate2"))
    for one, other in zip(ours, engine, strict=True):
        if beam == 1:
            assert one.text == other.text
            assert one.outputs[0].finished == other.outputs[0].finished
            assert one.outputs[0].log_probs == pytest.approx(other.outputs[0].log_probs, abs=1e-4)
        assert other.outputs[0].score <= one.outputs[0].score + 1e-4


def test_the_same_seed_draws_the_same_text_alone_and_as_a_stream(language: Path) -> None:
    run = loaded(language, "ctranslate2")
    assert run.engine.engine is not None
    drawn = [run.generate("the dog", max_length=20, seed=seed).text for seed in (1, 2, 3, 1, 2, 3)]
    assert drawn[:3] == drawn[3:]
    assert len(set(drawn)) == 3
    assert drawn[0] != loaded(language, "torch").generate("the dog", max_length=20, seed=1).text  # other draws
    assert "".join(run.stream("the dog", max_length=20, seed=2)) == drawn[1]
    greedy = {"sample": False, "max_length": 20}
    assert "".join(run.stream("the dog", **greedy)) == run.generate("the dog", **greedy).text


def test_draws_follow_the_models_probabilities(language: Path) -> None:
    run = loaded(language, "ctranslate2")
    settings: dict[str, Any] = {"max_length": 1, "temperature": 1.5, "top_k": 4}
    expected, counts = Counter[int](), Counter[int]()
    for seed in range(200):
        [counted] = run.generate("the", seed=seed, **settings).outputs
        counts[counted.ids[0]] += 1
    for one in loaded(language, "torch").generate(["the"] * 2000, **settings):
        expected[one.outputs[0].ids[0]] += 1
    assert set(counts) <= set(expected)
    assert len(expected) == 4
    for id, n in expected.items():
        assert counts[id] / 200 == pytest.approx(n / 2000, abs=0.13)


def test_texts_that_are_drawn_together_are_our_own_searchs(language: Path) -> None:
    ours, run = loaded(language, "torch"), loaded(language, "ctranslate2")
    for settings in ({"max_length": 9}, {"max_length": 9, "n_best": 2}):
        drawn = [[one.text for one in each.generate(PROMPTS, **settings)] for each in (ours, run)]
        assert drawn[0] == drawn[1]


def test_several_samples_of_a_prompt_are_ranked(language: Path) -> None:
    found = loaded(language, "ctranslate2").generate("the", n_best=3, max_length=8, temperature=2.0)
    assert len(found.outputs) == 3
    scores = [one.score for one in found.outputs]
    assert scores == sorted(scores, reverse=True)
    assert all(one.log_probs for one in found.outputs)


def test_what_the_engine_cannot_do_our_own_search_does(language: Path) -> None:
    ours, run = loaded(language, "torch"), loaded(language, "ctranslate2")
    for settings in (
        {"max_length": 200, "seed": 5},  # beyond the context
        {"max_length": 9, "banned": ["dog"], "seed": 5},
        {"max_length": 9, "no_repeat_ngram": 2, "sample": False},
        {"max_length": 9, "temperature": 0.0},
        {"max_length": 9, "repetition_penalty": 1.5, "sample": False},
    ):
        assert run.generate("the dog", **settings).text == ours.generate("the dog", **settings).text


def test_special_tokens_are_never_drawn(language: Path) -> None:
    run = loaded(language, "ctranslate2")
    never = set(run.task.tokenizer.unwritten(unknown=True))
    drawn = [run.generate("a", max_length=20, temperature=50.0, seed=seed) for seed in range(10)]
    assert never.isdisjoint(id for one in drawn for id in one.outputs[0].ids)
