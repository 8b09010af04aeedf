"""Both paired tests, against what must hold and against sacreBLEU's own."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from regard.evaluation import significance
from regard.evaluation.significance import compare_to_baseline
from regard.evaluation.statistics import gather_statistics

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
    return gather_statistics(hypotheses, REFERENCES)


def test_a_system_against_itself_differs_by_nothing_but_chance():
    same = compare_to_baseline({"a": statistics_of(WEAK), "b": statistics_of(WEAK)}, n_shuffles=200)
    for found in same["b"]:
        assert (found.delta, found.bootstrap_p, found.randomisation_p) == (0, 1, 1)


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
