"""The baselines of every task: learned, scored as its model, kept in the run's folder and read from there safely."""

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.api.new_run import assemble
from regard.config import RunConfig, TrainingConfig
from regard.evaluation.baselines.verdict import ScoredBaseline, judge
from regard.runs.arrays import load_arrays, save_arrays
from regard.tasks import find_task
from regard.tasks.baselines import MOST_FILE, RunBaselines, advice
from regard.tasks.options import no_progress
from regard.tasks.task import Prepared

FILE = "baseline.safetensors"
NAMES = {
    "trained": ["copied source", "word-for-word dictionary"],
    "mask_run": ["left and right neighbour"],
    "denoise_run": ["n-gram model"],
    "classify_run": ["majority class", "naive Bayes"],
    "pairs_run": ["majority class", "naive Bayes"],
    "tag_run": ["most frequent tag", "most frequent tag per word"],
    "regress_run": ["mean", "ridge regression"],
    "vectors_run": ["majority class", "nearest class mean"],
    "image_run": ["majority class", "nearest class mean"],
    "caption_run": ["most typical caption", "caption of the nearest image"],
}


def run_of(request: pytest.FixtureRequest, name: str) -> Any:
    return regard.load(request.getfixturevalue(name), threads=1)


@pytest.mark.parametrize("name", NAMES)
def test_every_run_has_its_baselines(request: pytest.FixtureRequest, name: str) -> None:
    run = run_of(request, name)
    found = RunBaselines.load(run.reference.path / FILE, run.task)
    assert [one.name for one in found.scored] == NAMES[name] == [one.name for one in found.fitted]
    metrics = {"loss", *run.spec.metrics}
    for one in found.scored:
        assert one.scores
        # What the model is scored by, and of entities also precision and recall.
        assert {metric for metric in one.scores if not metric.startswith("entity_")} <= metrics


def prepared(tmp_path: Path, task: str, name: str, content: str, **settings: Any) -> Prepared:
    """The data of a run that is not trained."""
    (tmp_path / name).write_text(content)
    given = {"data.train": [str(tmp_path / name)], "data.valid": [str(tmp_path / name)], **settings}
    config = assemble(task, given, origin="test").config
    return find_task(task).prepare(config, vocabulary=None, progress=no_progress)


def scores_of(data: Prepared, *, n_samples: int = -1) -> dict[str, dict[str, float]]:
    found = RunBaselines.fit(data.task, data.train, data.valid, n_samples=n_samples)
    return {one.name: dict(one.scores) for one in found.scored}


def test_language_models_beside_ngrams_of_the_same_unit(tmp_path: Path) -> None:
    text = "the dog sees the cat, and the cat sees the dog.\n" * 40
    data = prepared(tmp_path, "language", "text.txt", text, **{"tokenizer.kind": "characters"})
    [scores] = scores_of(data).values()
    assert 0 < scores["loss"] < 0.15  # five characters tell the next nearly everywhere
    n_tokens, n_bytes = data.valid.n_tokens, data.valid.corpus.facts["n_bytes"]  # type: ignore[attr-defined]
    assert scores["bits_per_byte"] == pytest.approx(scores["loss"] * n_tokens / n_bytes / np.log(2))


def test_texts_that_share_words_are_alike(tmp_path: Path) -> None:
    texts = ("a red dog", "a blue cat", "some green tree", "an old house")
    rows = [f"{one},{other},{5.0 if one == other else 1.0}\n" for one in texts for other in texts]
    data = prepared(tmp_path, "similarity", "pairs.csv", "text,text_b,score\n" + "".join(rows * 3))
    scores = scores_of(data)
    assert scores["cosine of tf-idf"]["spearman"] > 0.7
    assert scores["cosine of tf-idf"]["loss"] < scores["mean"]["loss"] / 4
    assert "spearman" not in scores["mean"]  # of a constant there is none


def test_sequences_of_one_length_are_read_by_position(tmp_path: Path) -> None:
    words = ["".join(one) for one in itertools.product("ABC", repeat=4)]
    content = "sequence,value\n" + "".join(f"{one},{(one[1] == 'A') - (one[3] == 'A')}.5\n" for one in words)
    columns = {"data.text": "sequence", "data.label": "value"}
    data = prepared(tmp_path, "regress", "a.csv", content, **{"tokenizer.kind": "characters", **columns})
    scores = scores_of(data)
    assert list(scores) == ["mean", "ridge regression by position"]
    assert scores["ridge regression by position"]["r_squared"] > 0.95


def test_vectors_have_baselines_of_their_own(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = [
        f"s{sequence},{random.normal() + 3 * tag:.3f},{random.normal():.3f},{'high' if tag else 'low'}\n"
        for sequence in range(30)
        for tag in random.integers(0, 2, 8)
    ]
    content = "sequence,x,y,label\n" + "".join(rows)
    scores = scores_of(
        prepared(tmp_path, "tag", "a.csv", content, **{"tokenizer.kind": "vectors", "data.text": "sequence"})
    )
    assert scores["nearest class mean"]["accuracy"] > 85 > scores["most frequent tag"]["accuracy"]


def test_nothing_is_translated_where_nothing_is_decoded(tmp_path: Path) -> None:
    pairs = [("the dog", "der Hund"), ("a dog", "ein Hund"), ("the tree", "der Baum"), ("a tree", "ein Baum")]
    content = "en\tde\n" + "".join(f"{source}\t{target}\n" for source, target in pairs * 10)
    settings = {"data.source": "en", "data.target": "de", "tokenizer.kind": "words"}
    data = prepared(tmp_path, "translate", "a.tsv", content, **settings)
    assert scores_of(data, n_samples=0) == {"copied source": {}, "word-for-word dictionary": {}}
    scores = scores_of(data, n_samples=2)
    assert scores["word-for-word dictionary"]["chrf"] > 90 > scores["copied source"]["chrf"]


def test_what_is_learned_is_the_same_each_time(tmp_path: Path) -> None:
    text = "the dog sees the cat\n" * 40
    data = prepared(tmp_path, "mask", "text.txt", text, **{"tokenizer.kind": "words"})
    for name in ("one", "two"):
        found = RunBaselines.fit(data.task, data.train, data.valid, n_samples=-1)
        found.save(tmp_path / name, data.task)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_they_are_kept_as_they_are(classify_run: Path, tmp_path: Path) -> None:
    task = regard.load(classify_run, threads=1).task
    found = RunBaselines.load(classify_run / FILE, task)
    found.save(tmp_path / FILE, task)
    assert (tmp_path / FILE).read_bytes() == (classify_run / FILE).read_bytes()


def changed(source: Path, target: Path, name: str, array: Any) -> None:
    arrays, facts = load_arrays(source, most=MOST_FILE)
    save_arrays(target, {**arrays, name: array}, facts=facts)


def test_files_that_are_none_of_the_run_are_refused(classify_run: Path, image_run: Path, tmp_path: Path) -> None:
    task, file = regard.load(classify_run, threads=1).task, tmp_path / FILE
    with pytest.raises(FileNotFoundError):
        RunBaselines.load(file, task)
    shutil.copy(image_run / FILE, file)
    with pytest.raises(ValueError, match="it is not of the task classify"):
        RunBaselines.load(file, task)
    changed(classify_run / FILE, file, "MajorityClass.logits", np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="majority class is of other data than the run's"):
        RunBaselines.load(file, task)
    changed(classify_run / FILE, file, "NaiveBayes.known", np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="sorted hashes were expected"):
        RunBaselines.load(file, task)
    arrays, _ = load_arrays(classify_run / FILE, most=MOST_FILE)
    for scores in ({"NearestMean": {}}, {"NaiveBayes": {"loss": "low"}}, {"NaiveBayes": 3}):
        save_arrays(file, arrays, facts={"task": "classify", "scores": scores})
        with pytest.raises(ValueError, match="is none of the task's baselines, or has no scores"):
            RunBaselines.load(file, task)
    save_arrays(file, arrays, facts={"task": "classify", "scores": [1]})
    with pytest.raises(ValueError, match="it has no scores"):
        RunBaselines.load(file, task)


def test_advice_names_what_a_task_may_begin_with() -> None:
    verdict = judge({"loss": 2.0}, [ScoredBaseline(name="n-gram model", scores={"loss": 1.5})], best_by="loss")
    [_, second] = advice(verdict, RunConfig(task="language"))
    assert second.endswith("a smaller model or --init from a run that has learned from more.")
    [_, second] = advice(verdict, RunConfig(task="tag"))
    assert second.endswith("a smaller model or --init from a pre-trained encoder.")
    [_, second] = advice(verdict, RunConfig(task="tag", training=TrainingConfig(init="runs/words")))
    assert second == "What may help: more data, more steps or a smaller model."
    assert advice(None, RunConfig(task="tag")) == ()
