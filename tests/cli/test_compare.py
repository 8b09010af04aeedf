import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli.terminal import Stages


def test_runs_side_by_side(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, f"{trained}@40", "--data", *corpus, "--beam", 1)
    assert outcome.code == 0
    assert outcome.lines[0].split()[:3] == ["system", "parameters", "sentences/s"]
    assert outcome.lines[1].startswith(f"{trained} ")
    assert outcome.lines[4].split()[:2] == ["metric", "system"]
    assert outcome.out.count("\nsource ") == outcome.out.count("\nexpected ") == 5
    assert "where chrF differs by" in outcome.out


def test_json(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, f"{trained}@40", "--data", *corpus, "--beam", 1, "--json")
    found = json.loads(outcome.out)
    assert found["baseline"] == str(trained)
    assert [system["system"] for system in found["systems"]] == [str(trained), f"{trained}@40"]


def test_one_run_is_not_enough(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, "--data", *corpus)
    assert outcome.code == 2
    assert outcome.error == [
        "error: A comparison needs at least two runs.",
        "Name them: regard compare RUN RUN --data FILE FILE",
    ]


# -- language models ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def longer(train_language: Callable[..., str]) -> str:
    """The same vocabulary, another context, and more updates."""
    return train_language("model.context=24", "training.learning_rate=0.02", steps=60)


@pytest.fixture(scope="module")
def of_bytes(train_language: Callable[..., str]) -> str:
    """Another vocabulary."""
    return train_language("tokenizer.kind=bytes", "training.learning_rate=0.02", steps=60)


@pytest.fixture(scope="module")
def text(corpus: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("text") / "test.txt"
    file.write_text(Path(corpus[0]).read_text() * 12)
    return str(file)


def test_language_models_side_by_side(command: Any, language_run: str, longer: str, text: str) -> None:
    outcome = command("compare", language_run, longer, "--data", text)
    assert outcome.code == 0
    assert outcome.lines[0].split("  ")[0] == "system"
    for heading in ("parameters", "bytes/s", "loss ↓", "perplexity ↓", "bits per byte ↓"):
        assert heading in outcome.lines[0]
    assert outcome.lines[4].startswith("metric")
    assert [line.split("  ")[0] for line in outcome.lines[5:]] == [
        *("loss", "loss", "perplexity", "perplexity", "bits per byte", "bits per byte")
    ]
    n_bytes = Path(text).stat().st_size
    stretches = f"{-(-n_bytes // 1000)} stretches of 1,000 characters"
    assert f"{n_bytes:,} bytes; paired are {stretches}" in outcome.err.splitlines()


def test_their_scores_are_those_of_evaluate(command: Any, language_run: str, longer: str, text: str) -> None:
    found = json.loads(command("compare", language_run, longer, "--data", text, "--json").out)
    assert found["baseline"] == language_run
    assert found["notes"] == []
    for run, system in zip((language_run, longer), found["systems"], strict=True):
        alone = json.loads(command("evaluate", run, "--data", text, "--json").out)
        assert (system["system"], system["tokens"]) == (run, alone["tokens"])
        for name, score in alone["scores"].items():
            assert system["scores"][name]["score"] == pytest.approx(score["value"], rel=1e-5)
            assert system["scores"][name]["signature"] == score["signature"]
        assert system["parameters"] > 0
        assert system["bytes_per_second"] > 0
    tested = found["systems"][1]["scores"]["loss"]
    assert tested["delta"] < 0
    assert tested["bootstrap_p"] < 0.05
    assert tested["randomisation_p"] < 0.05


def test_other_vocabularies_are_compared_by_bytes(command: Any, language_run: str, of_bytes: str, text: str) -> None:
    note = "The runs have different vocabularies: bits per byte compare them, a loss or perplexity a token would not."
    outcome = command("compare", language_run, of_bytes, "--data", text)
    assert f"note: {note}" in outcome.err.splitlines()
    assert "loss" not in outcome.out
    found = json.loads(command("compare", language_run, of_bytes, "--data", text, "--json").out)
    assert found["notes"] == [note]
    for run, system in zip((language_run, of_bytes), found["systems"], strict=True):
        alone = json.loads(command("evaluate", run, "--data", text, "--json").out)
        assert set(system["scores"]) == {"bits_per_byte"}
        value = system["scores"]["bits_per_byte"]["score"]
        assert value == pytest.approx(alone["scores"]["bits_per_byte"]["value"], rel=1e-5)


def test_what_a_vocabulary_loses(command: Any, language_run: str, longer: str, of_bytes: str) -> None:
    Path("new.txt").write_text("the dog — ß\n" * 300)
    outcome = command("compare", language_run, longer, "--data", "new.txt")
    assert outcome.code == 0
    assert "bits per byte" not in outcome.out
    assert "note: 600 of 3,601 tokens are unknown to the vocabulary: there are no bits per byte." in outcome.err
    nothing = command("compare", of_bytes, language_run, "--data", "new.txt")
    assert nothing.code == 1
    assert nothing.error == [
        f"error: {language_run} loses some of the text, so that it has no bits per byte, and the runs have different "
        "vocabularies: no score compares them.",
        "Compare runs of one vocabulary (regard train … --vocabulary RUN), or on text that none of them loses.",
    ]


def test_bad_lines_follow_the_policy(command: Any, language_run: str, longer: str) -> None:
    Path("test.jsonl").write_text('{"text": "the dog"}\n{"text": ""}\n' + '{"text": "a cat sees"}\n' * 3)
    assert command("compare", language_run, longer, "--data", "test.jsonl").code == 1
    outcome = command("compare", language_run, longer, "--data", "test.jsonl", "--on-bad", "keep-going")
    assert outcome.code == 0
    assert outcome.err.count("note: Left out: 1 bad line, no text: test.jsonl:2.") == 1
    few = "note: Fewer than 10 stretches of 1,000 characters: the tests can hardly tell a difference from chance."
    assert few in outcome.err.splitlines()


def test_documents_are_told_apart_as_for_the_first(
    command: Any, language_run: str, train_language: Callable[..., str]
) -> None:
    other = train_language("data.separator=tree")
    Path("test.txt").write_text("the dog sees\ntree\nthe cat\n" * 400)
    outcome = command("compare", other, language_run, "--data", "test.txt", "--json")
    found = json.loads(outcome.out)
    assert (found["unit"], found["units"]) == ("documents", 401)
    assert found["notes"] == [f"Documents are told apart as {other} was trained: by the separator 'tree'."]
    found = json.loads(command("compare", language_run, other, "--data", "test.txt", "--json").out)
    assert found["unit"] == "stretches of 1,000 characters"
    assert found["notes"] == [f"Documents are told apart as {language_run} was trained: without a separator."]


def test_runs_of_different_tasks(command: Any, trained: Path, language_run: str, text: str) -> None:
    outcome = command("compare", trained, language_run, "--data", text)
    assert outcome.code == 2
    assert outcome.error == [
        f"error: {trained} was trained for the task 'translate', {language_run} for 'language': no score compares them.",
        "Compare runs of one task.",
    ]


@pytest.mark.parametrize(
    "options", [("--beam", 2), ("--tokenize", "none"), ("--to", "de"), ("--by-length",), ("--picture", "a.png")]
)
def test_options_of_translation(
    command: Any, language_run: str, longer: str, text: str, options: tuple[Any, ...]
) -> None:
    outcome = command("compare", language_run, longer, "--data", text, *options)
    assert outcome.code == 2
    assert outcome.error == [
        f"error: {options[0]} is for translations, and {language_run} translates nothing.",
        f"Leave {options[0]} out.",
    ]


def test_a_policy_for_bad_lines_is_none_for_pairs(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, f"{trained}@40", "--data", *corpus, "--on-bad", "keep-going")
    assert outcome.code == 2
    assert outcome.error[0].startswith("error: --on-bad is for running text")


def test_each_stage_is_shown(command: Any, language_run: str, longer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Stages, "__call__", lambda self, what, done: told.append(what))
    Path("fresh.txt").write_text("the old man finds a tree\n" * 4)
    assert command("compare", language_run, longer, "--data", "fresh.txt").code == 0
    assert list(dict.fromkeys(told)) == ["encoding", f"reading with {language_run}", f"reading with {longer}"]
