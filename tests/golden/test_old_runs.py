"""Runs that an earlier version wrote still translate, generate, classify, score and go on, to the same numbers."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import DecodingConfig
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelling.classification import Classified

HERE = Path(__file__).parent
WRITTEN_IN = "/golden/"  # the folder in which the stored runs believe they were trained
TEXTS = (".toml", ".json", ".md")
STEPS = "training.steps"

Copy = Callable[[str], Path]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Copy a stored run, and what it learnt from, as if it had been trained there; return its folder."""

    def copy(name: str) -> Path:
        shutil.copytree(HERE / "data", tmp_path / "data")
        run = shutil.copytree(HERE / "runs" / name, tmp_path / "runs" / name)
        for file in (file for file in run.rglob("*") if file.suffix in TEXTS):
            file.write_text(file.read_text(encoding="utf-8").replace(WRITTEN_IN, f"{tmp_path}/"), encoding="utf-8")
        return run

    return copy


def load(run: Path) -> regard.Run:
    return regard.load(run, device="cpu", threads=1, engine="torch")


def scores(evaluation: Evaluation) -> dict[str, float]:
    return {score.name: score.value for score in evaluation.scores}


def close(expected: Any) -> Any:
    """The same but for the last bits, which differ between processors."""
    return pytest.approx(expected, rel=1e-4)


def evaluated(run: Path, names: Sequence[str]) -> Evaluation:
    return load(run).evaluate([str(HERE / "data" / name) for name in names])


def resumed(run: Path, *, steps: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let a run go on to a further end; return what is noted of its last update and of the validation after it."""
    regard.resume(run, settings={STEPS: steps})
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    update, validation = (json.loads(line) for line in lines[-2:])
    assert len(lines) == steps + 2  # each update, and two validations
    assert (update["step"], validation["step"]) == (steps, steps)
    scores = {name: value for name, value in validation.items() if name not in ("kind", "epoch", "step")}
    return update, {name: value for name, value in scores.items() if not name.endswith(("_low", "_high"))}


# -- the translator ----------------------------------------------------------------------------------------------------


def test_a_translator_translates(copy: Copy) -> None:
    run = load(copy("translator"))
    found = [one.outputs[0] for one in run.translate(["the cat runs", "a tree sees the red dog"], align=True)]
    assert [one.text for one in found] == ["läuft Katze", "Hund rot der sieht Baum ein"]
    assert [one.score for one in found] == close([-0.005197147528330485, -0.2154942580631801])
    links = [[(link.source, link.target) for link in one.alignment] for one in found]
    assert links == [[(1, 1), (2, 0)], [(0, 3), (0, 5), (1, 4), (3, 2), (4, 1), (5, 0)]]


def test_a_translator_searches_and_draws_as_it_is_told(copy: Copy) -> None:
    run = load(copy("translator"))
    [found] = run.translate(["cat sees the dog"], decoding=DecodingConfig(beam=4, n_best=3))
    expected = {
        "Hund der Hund Katze": -0.1217505931854248,
        "Hund der sieht Katze": -0.4006806373596191,
        "Hund der Hund Katze der": -0.5584042072296143,
    }
    assert {one.text: one.score for one in found.outputs} == close(expected)
    drawing = DecodingConfig(sample=True, temperature=2.0, top_k=8)
    drawn = run.translate(["cat sees the dog", "a tree sees"], decoding=drawing, seed=3)
    assert [one.text for one in drawn] == ["ein der Hund Katze", "tree Baum sieht"]


def test_a_translator_is_scored(copy: Copy) -> None:
    found = evaluated(copy("translator"), ["pairs.en", "pairs.de"])
    expected = {"bleu": 66.89055906184157, "chrf": 84.50777420640429, "ter": 20.049301561216105}
    assert scores(found) == close({**expected, "perplexity": 1.432648792072327})


def test_a_translator_goes_on(copy: Copy) -> None:
    update, validation = resumed(copy("translator"), steps=230)
    assert (update["loss"], update["gradient_norm"]) == close((0.31763170586257683, 1.6125245641489498))
    expected = {"loss": 1.2546728515625, "perplexity": 3.5066909781940763}
    assert validation == close({**expected, "bleu": 21.733627317099575, "chrf": 65.57395546611617})


# -- the language model, whose weights have a moving average -------------------------------------------------------------


def test_a_language_model_generates(copy: Copy) -> None:
    run = load(copy("language-model"))
    [greedy] = run.generate(["the dog"], decoding=DecodingConfig(beam=1, max_length=24))
    assert greedy.text == " reee ree runs thog ree "
    assert greedy.outputs[0].log_probs[:4] == close(
        (-0.15727399289608002, -1.650418758392334, -0.43746742606163025, -0.7403629422187805)
    )
    [searched] = run.generate(["the dog"], decoding=DecodingConfig(beam=3, max_length=24))
    assert searched.text == " rundog the runse the re"
    [drawn] = run.generate(["the dog"], seed=3)
    assert drawn.text == " se thog dog re house finses cand theed bn mat t fig reee the treee.\n"


def test_a_language_model_is_scored(copy: Copy) -> None:
    found = evaluated(copy("language-model"), ["text.txt"])
    expected = {"loss": 1.1369280975044656, "perplexity": 3.1171779755548124, "bits_per_byte": 1.6581797245601482}
    assert scores(found) == close(expected)


def test_a_language_model_goes_on(copy: Copy) -> None:
    update, validation = resumed(copy("language-model"), steps=110)
    assert (update["loss"], update["gradient_norm"]) == close((1.089537537528198, 0.4555033301092257))
    expected = {"loss": 1.1654647143919077, "perplexity": 3.2074130679343127, "bits_per_byte": 1.7004449958271184}
    assert validation == close(expected)


# -- the classifier ----------------------------------------------------------------------------------------------------


def test_a_classifier_predicts(copy: Copy) -> None:
    short, long = load(copy("classifier")).predict(["a dog", "the old man finds a big dog"])
    assert isinstance(short, Classified)
    assert isinstance(long, Classified)
    assert (short.label, long.label) == ("other", "long")
    expected = {"other": 0.8198841216239849, "dog": 0.1154467657930608, "long": 0.06466911258295431}
    assert dict(short.probabilities) == close(expected)
    assert long.probability == close(0.8320858166220343)


def test_a_classifier_embeds(copy: Copy) -> None:
    [found] = load(copy("classifier")).embed(["a dog"])
    assert found.vector[:4] == close([1.12995481, -0.03594601, -0.41960812, -0.6242407])


def test_a_classifier_is_scored(copy: Copy) -> None:
    found = evaluated(copy("classifier"), ["classes.csv"])
    expected = {"loss": 0.5190138753255208, "accuracy": 80.66666666666667, "macro_f1": 57.13991769547325}
    assert scores(found) == close(expected)
    assert found.confusion is not None
    assert found.confusion.labels == ("dog", "long", "other")
    assert found.confusion.counts == ((0, 7, 11), (0, 51, 5), (0, 6, 70))


def test_a_classifier_goes_on(copy: Copy) -> None:
    update, validation = resumed(copy("classifier"), steps=70)
    assert (update["loss"], update["gradient_norm"]) == close((0.6580307483673096, 1.66439950466156))
    expected = {"loss": 0.5938530604044596, "accuracy": 73.33333333333333, "macro_f1": 52.59259259259259}
    assert validation == close(expected)
