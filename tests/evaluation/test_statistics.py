"""Counting by sacreBLEU, scoring by our own formulas: both must give sacreBLEU's numbers."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import DataError, UsageError
from regard.evaluation import statistics
from regard.evaluation.statistics import gather_statistics, score_sums


@pytest.mark.parametrize(("name", "metric", "width"), [("bleu", BLEU(), 10), ("chrf", CHRF(), 18), ("ter", TER(), 2)])
def test_formulas_over_arrays_equal_those_of_sacrebleu(name, metric, width):
    generator = np.random.default_rng(1)
    # Small numbers, so that orders without a match, without an n-gram, and empty sides all occur.
    sums = generator.integers(0, 4, size=(500, width)).astype(np.float64)
    if name == "bleu":
        # As in text: words are 1-grams, longer n-grams are fewer, and matches are among them.
        sums[:, 6:10] = np.sort(sums[:, 6:10], axis=1)[:, ::-1]
        sums[:, 0] = sums[:, 6]
        sums[:, 2:6] = np.minimum(sums[:, 2:6], sums[:, 6:10])
    expected = [metric._compute_score_from_stats(list(row)).score for row in sums]
    assert len(set(expected)) > 5
    np.testing.assert_allclose(score_sums(name, sums), expected, rtol=1e-12, atol=1e-12)


def test_sentence_scores_are_those_of_each_sentence_alone():
    hypotheses = ["A dog runs over the grass.", "Nothing at all", ""]
    references = ["A dog runs across the grass.", "Two men play chess.", "Empty"]
    (chrf,) = gather_statistics(hypotheses, references, metrics=["chrf"])
    expected = [CHRF().sentence_score(*pair).score for pair in zip(hypotheses, ([r] for r in references), strict=True)]
    np.testing.assert_allclose(chrf.sentence_scores, expected)


def test_an_unknown_metric_is_answered_with_the_near_name():
    with pytest.raises(UsageError) as caught:
        gather_statistics(["a"], ["a"], metrics=["blue"])
    assert str(caught.value) == "There is no metric 'blue'.\nDid you mean bleu?"


def test_an_unknown_tokenizer_is_answered_with_the_near_name():
    with pytest.raises(UsageError) as caught:
        gather_statistics(["a"], ["a"], tokenize="non")
    assert str(caught.value) == "BLEU has no tokenizer 'non'.\nDid you mean none?"


def test_a_tokenizer_without_its_package_says_how_to_install_it(monkeypatch):
    def without_package(**options):
        raise RuntimeError("Japanese tokenization requires extra dependencies")

    monkeypatch.setattr(statistics, "BLEU", without_package)
    with pytest.raises(UsageError) as caught:
        gather_statistics(["a"], ["a"], tokenize="ja-mecab")
    assert str(caught.value) == (
        "BLEU's tokenizer 'ja-mecab' needs a package that is not installed.\n"
        "Install it with: pip install 'sacrebleu[ja]'"
    )


def test_a_missing_reference_is_an_error_with_both_counts():
    with pytest.raises(DataError) as caught:
        gather_statistics(["a", "b"], ["a"])
    assert str(caught.value) == (
        "Each hypothesis needs its reference: there are 2 hypotheses and 1 references.\n"
        "Score the output of exactly the sentences that the references translate."
    )


def test_a_short_set_of_references_is_named():
    with pytest.raises(DataError, match="2 hypotheses and 3 references in set 2"):
        gather_statistics(["a", "b"], [["a", "b"], ["a", "b", "c"]])


@pytest.mark.parametrize("references", [[], [[]]])
def test_nothing_to_score_is_an_error(references):
    with pytest.raises(DataError) as caught:
        gather_statistics([], references)
    expected = "There are no sentences to score.\nGive at least one hypothesis and its reference."
    assert str(caught.value) == expected
