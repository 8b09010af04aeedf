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
        "Name them: regard compare RUN RUN --data FILE…",
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
    assert f"{n_bytes:,} bytes; paired over {stretches}" in outcome.err.splitlines()


def test_their_scores_are_those_of_evaluate(command: Any, language_run: str, longer: str, text: str) -> None:
    found = json.loads(command("compare", language_run, longer, "--data", text, "--json").out)
    assert found["baseline"] == language_run
    assert found["notes"] == []
    for run, system in zip((language_run, longer), found["systems"], strict=True):
        alone = json.loads(command("evaluate", run, "--data", text, "--json").out)
        assert (system["system"], system["tokens"]) == (run, alone["tokens"])
        for name, score in alone["scores"].items():
            assert system["scores"][name]["score"] == pytest.approx(score["value"], rel=1e-5)
            if name != "bits_per_byte":  # what is lost of a text is the vocabulary's
                assert system["scores"][name]["signature"].startswith(f"{score['signature']}|vocabulary:")
        assert system["parameters"] > 0
        assert system["bytes_per_second"] > 0
    tested = found["systems"][1]["scores"]["loss"]
    assert tested["delta"] < 0
    assert tested["bootstrap_p"] < 0.05
    assert tested["randomisation_p"] < 0.05


def test_other_vocabularies_are_compared_by_bytes(command: Any, language_run: str, of_bytes: str, text: str) -> None:
    note = "Not compared, as the runs have different vocabularies or labels: loss, perplexity."
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
        "error: No metric means the same for all of the runs: they differ in their vocabularies or labels, and for some "
        "the text has no bits per byte.",
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
    assert found["notes"] == [f"The test set is read as {other} was trained: data.separator = 'tree'."]
    found = json.loads(command("compare", language_run, other, "--data", "test.txt", "--json").out)
    assert found["unit"] == "stretches of 1,000 characters"
    assert found["notes"] == [f"The test set is read as {language_run} was trained: data.separator = ''."]


def test_runs_of_different_tasks(command: Any, trained: Path, language_run: str, text: str) -> None:
    outcome = command("compare", trained, language_run, "--data", text)
    assert outcome.code == 2
    assert outcome.error == [
        f"error: {trained} was trained for the task 'translate', {language_run} for 'language': no score compares them.",
        "Compare runs of one task.",
    ]


def test_options_of_other_tasks(command: Any, language_run: str, longer: str, text: str) -> None:
    outcome = command("compare", language_run, longer, "--data", text, "--picture", "a.png")
    assert outcome.code == 2
    assert outcome.error == ["error: --picture does not apply to language runs.", "Leave it out."]


def test_each_stage_is_shown(command: Any, language_run: str, longer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Stages, "__call__", lambda self, what, done: told.append(what))
    Path("fresh.txt").write_text("the old man finds a tree\n" * 4)
    assert command("compare", language_run, longer, "--data", "fresh.txt").code == 0
    assert list(dict.fromkeys(told)) == [  # of one vocabulary, the text is encoded once
        *(f"encoding with {language_run}", f"reading with {language_run}", f"reading with {longer}")
    ]


# -- every other task ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "file", "content", "metric"),
    [
        ("classify", "t.csv", "text,label\na good dog,pos\na dull song,neg\na fine day,neg\n", "accuracy"),
        ("regress", "t.csv", "sequence,fitness\nAAAA,4\nDDDD,0\nAADD,2\n", "Spearman"),
        ("tag", "t.conll", "Anna B-PER\nvisits O\nOslo O\n\nBen B-PER\n", "entity F1"),
        ("mask", "t.txt", "the dog is good today .\n" * 8, "perplexity"),
        ("denoise", "t.txt", "the dog is good today .\n" * 8, "perplexity"),
    ],
)
def test_runs_of_every_task(
    command: Any, request: pytest.FixtureRequest, task: str, file: str, content: str, metric: str
) -> None:
    run = request.getfixturevalue(f"{task}_run")
    Path(file).write_text(content)
    Path("other").symlink_to(run)
    outcome = command("compare", run, "other", "--data", file)
    assert outcome.code == 0, outcome.err
    assert f"{metric} " in outcome.lines[0]
    significance = [line for line in outcome.lines if line.startswith(f"{metric}  ")]
    assert len(significance) == 2, "one line per run"


def test_runs_over_images(command: Any, image_run: Path, caption_run: Path) -> None:
    for run, data, metric in (
        (image_run, "train", "accuracy"),
        (caption_run, "images/captions.tsv", "BLEU"),
    ):
        Path(f"other-{metric}").symlink_to(run)
        outcome = command("compare", run, f"other-{metric}", "--data", run.parent / data)
        assert outcome.code == 0, outcome.err
        assert f"{metric} ↑" in outcome.lines[0]


def test_outputs_of_another_engine_are_named(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    shown = command("compare", trained, f"{trained}@40", "--data", *corpus, "--engine", "ctranslate2", "--beam", 1)
    assert f"The outputs of {trained} are those of ctranslate2-" in shown.err
    assert "The outputs of" not in command("compare", trained, f"{trained}@40", "--data", *corpus, "--beam", 1).err
