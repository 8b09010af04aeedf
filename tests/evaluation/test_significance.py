"""Both paired tests, against what must hold and against sacreBLEU's own."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from regard.errors import DataError
from regard.evaluation import significance
from regard.evaluation.classification import class_statistics
from regard.evaluation.generated_text import text_statistics
from regard.evaluation.regression import regression_statistics
from regard.evaluation.significance import compare_to_baseline, mcnemar_exact

WORDS = ["a", "the", "dog", "cat", "man", "woman", "runs", "sits", "over", "under", "grass", "red", "old", "house"]


def sentences(n, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(6, 14))) for _ in range(n)]


def damaged(texts, share, seed):
    """Replace that share of the words."""
    draw = random.Random(seed)
    return [" ".join("x" if draw.random() < share else word for word in text.split()) for text in texts]


REFERENCES = sentences(120)
WEAK = damaged(REFERENCES, 0.3, seed=1)
STRONG = damaged(REFERENCES, 0.15, seed=2)
LIKE_WEAK = damaged(REFERENCES, 0.3, seed=3)


def statistics_of(hypotheses):
    return text_statistics(hypotheses, REFERENCES)


def test_a_system_against_itself_differs_by_nothing_but_chance():
    same = compare_to_baseline({"a": statistics_of(WEAK), "b": statistics_of(WEAK)}, n_shuffles=200)
    for found in same["b"]:
        assert (found.delta, found.bootstrap_p, found.randomisation_p) == (0, 1, 1)
        assert (found.delta_low, found.delta_high) == (0, 0)


def test_a_single_changed_sentence_is_chance():
    changed = [REFERENCES[0], *WEAK[1:]]
    assert changed != WEAK
    found = compare_to_baseline({"a": statistics_of(WEAK), "b": statistics_of(changed)}, n_shuffles=200)["b"]
    # Whichever way the coin falls for the only difference, the systems are as far apart.
    assert [result.randomisation_p for result in found] == [1, 1, 1]
    assert found[0].delta > 0


def test_a_clearly_better_system_is_found_by_every_metric_and_both_tests():
    bleu, chrf, ter = compare_to_baseline({"weak": statistics_of(WEAK), "strong": statistics_of(STRONG)})["strong"]
    for found in (bleu, chrf, ter):
        assert found.bootstrap_p < 0.05
        assert found.randomisation_p < 0.05
        assert found.low < found.mean < found.high
        assert found.delta_low < found.delta < found.delta_high
    assert bleu.delta_low > 0 > ter.delta_high
    assert bleu.delta > 0 and chrf.delta > 0 and ter.delta < 0


def test_equally_good_systems_are_not_told_apart():
    found = compare_to_baseline({"a": statistics_of(WEAK), "b": statistics_of(LIKE_WEAK)})["b"]
    assert all(result.bootstrap_p > 0.05 and result.randomisation_p > 0.05 for result in found)


def test_the_baseline_has_an_interval_but_no_test():
    (bleu, *_) = compare_to_baseline({"weak": statistics_of(WEAK)})["weak"]
    assert bleu.low < bleu.score < bleu.high
    assert (bleu.delta, bleu.bootstrap_p, bleu.randomisation_p) == (None, None, None)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    systems = {"a": statistics_of(WEAK), "b": statistics_of(LIKE_WEAK)}
    first = compare_to_baseline(systems, n_shuffles=500)
    assert compare_to_baseline(systems, n_shuffles=500) == first
    assert compare_to_baseline(systems, n_shuffles=500, seed=7) != first


def test_large_test_sets_are_drawn_in_pieces(monkeypatch):
    systems = {"a": statistics_of(WEAK), "b": statistics_of(STRONG)}
    whole = compare_to_baseline(systems, n_resamples=100, n_shuffles=100)
    monkeypatch.setattr(significance, "_CHUNK", 120 * 32)
    assert compare_to_baseline(systems, n_resamples=100, n_shuffles=100) == whole


def test_means_intervals_and_randomisation_equal_those_of_sacrebleu(monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    metrics = {"BLEU": BLEU(), "chrF": CHRF()}
    systems = [("a", WEAK), ("b", LIKE_WEAK)]
    _, bootstrap = PairedTest(systems, metrics, [REFERENCES], test_type="bs", n_samples=400)()
    _, shuffled = PairedTest(systems, metrics, [REFERENCES], test_type="ar", n_samples=400)()
    ours = compare_to_baseline({name: statistics_of(texts) for name, texts in systems}, n_resamples=400, n_shuffles=400)
    for column, name in enumerate(["BLEU", "chrF2"]):
        for row, system in enumerate(["a", "b"]):
            found = ours[system][column]
            # sacreBLEU sums in float32.
            assert found.score == pytest.approx(bootstrap[name][row].score)
            assert found.mean == pytest.approx(bootstrap[name][row].mean, rel=1e-5)
            assert (found.high - found.low) / 2 == pytest.approx(bootstrap[name][row].ci, rel=1e-4)
        assert ours["b"][column].randomisation_p == pytest.approx(shuffled[name][1].p_value)


def test_bootstrap_is_two_sided_where_that_of_sacrebleu_is_one_sided(monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    better = damaged(REFERENCES, 0.26, seed=4)
    _, theirs = PairedTest([("a", WEAK), ("b", better)], {"BLEU": BLEU()}, [REFERENCES], test_type="bs")()
    ours = compare_to_baseline({"a": statistics_of(WEAK), "b": statistics_of(better)}, n_shuffles=1000)["b"][0]
    assert 0.002 < theirs["BLEU"][1].p_value < ours.bootstrap_p < 4 * theirs["BLEU"][1].p_value
    assert ours.bootstrap_p == pytest.approx(ours.randomisation_p, abs=0.03)


# -- other tasks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_first", "n_second", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 5, 1.0),
        (0, 6, 2 / 64),
        (6, 0, 2 / 64),
        (2, 8, 2 * (1 + 10 + 45) / 1024),
        (900, 1100, pytest.approx(8.5e-6, rel=0.02)),
    ],
)
def test_mcnemar_is_the_binomial_test_of_a_fair_coin(n_first, n_second, p):
    assert mcnemar_exact(n_first, n_second) == p


def classes(share, seed, n=400):
    """Gold classes, and predictions of which that share is right."""
    gold = np.random.default_rng(0).integers(0, 4, n)
    draw = np.random.default_rng(seed)
    return gold, np.where(draw.random(n) < share, gold, (gold + 1) % 4)


def test_classifiers_are_compared_by_all_three_tests():
    systems = {
        name: class_statistics(*classes(*own), 4) for name, own in {"weak": (0.7, 1), "strong": (0.85, 2)}.items()
    }
    accuracy, macro_f1 = compare_to_baseline(systems, n_shuffles=500)["strong"]
    assert accuracy.delta > 10
    assert max(accuracy.bootstrap_p, accuracy.randomisation_p, accuracy.mcnemar_p) < 0.01
    assert max(macro_f1.bootstrap_p, macro_f1.randomisation_p) < 0.01
    assert macro_f1.mcnemar_p is None


def test_equal_classifiers_are_not_told_apart():
    systems = {name: class_statistics(*classes(0.7, seed), 4) for name, seed in {"a": 1, "b": 2}.items()}
    for found in compare_to_baseline(systems, n_shuffles=500)["b"]:
        assert min(found.bootstrap_p, found.randomisation_p) > 0.05
    assert compare_to_baseline(systems, n_shuffles=100)["b"][0].mcnemar_p > 0.05


def test_the_same_predictions_differ_by_nothing():
    systems = {name: class_statistics(*classes(0.7, 1), 4) for name in "ab"}
    accuracy, macro_f1 = compare_to_baseline(systems, n_shuffles=100)["b"]
    assert (accuracy.delta, accuracy.bootstrap_p, accuracy.randomisation_p, accuracy.mcnemar_p) == (0, 1, 1, 1)
    assert (macro_f1.delta, macro_f1.bootstrap_p, macro_f1.randomisation_p) == (0, 1, 1)


def test_regressors_are_compared_by_every_metric():
    draw = np.random.default_rng(5)
    gold = draw.normal(size=200)
    systems = {
        name: regression_statistics(gold, gold + draw.normal(size=200) * noise)
        for name, noise in (("a", 1), ("b", 0.4))
    }
    found = compare_to_baseline(systems, n_shuffles=500)["b"]
    assert [one.metric for one in found] == ["spearman", "pearson", "r_squared", "mae", "rmse"]
    assert all(max(one.bootstrap_p, one.randomisation_p) < 0.01 for one in found)
    assert [one.delta > 0 for one in found] == [True, True, True, False, False]


def test_samples_without_a_score_are_left_out():
    # Two of three examples are equal in gold: many a resample has no correlation.
    a = regression_statistics([1.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    found = compare_to_baseline({"a": a, "b": regression_statistics([1.0, 1.0, 2.0], [3.0, 2.0, 1.0])}, n_shuffles=50)
    for one in (*found["a"], *found["b"]):
        assert np.isfinite([one.mean, one.low, one.high]).all()


def test_systems_of_other_examples_are_refused():
    with pytest.raises(DataError) as caught:
        compare_to_baseline(
            {"a": statistics_of(WEAK)[:1], "b": text_statistics(WEAK[:9], REFERENCES[:9], metrics=["ter"])}
        )
    assert str(caught.value) == (
        "Systems are compared over the same examples by the same metrics, but the first has 120 of bleu, "
        "and another 9 of ter.\nScore every system on the whole test set by the same metrics."
    )


def test_a_score_that_is_not_defined_has_no_p_value():
    same = regression_statistics([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])
    found = compare_to_baseline(
        {"a": regression_statistics([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), "b": same}, n_shuffles=50
    )
    spearman = found["b"][0]
    assert np.isnan(
        [spearman.score, spearman.low, spearman.delta, spearman.bootstrap_p, spearman.randomisation_p]
    ).all()


def test_a_test_set_without_examples_is_refused():
    with pytest.raises(DataError) as caught:
        compare_to_baseline({"a": regression_statistics([], []), "b": regression_statistics([], [])})
    assert str(caught.value) == "There are no examples to compare systems on.\nGive a test set that holds some."
