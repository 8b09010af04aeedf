"""Counting by sacreBLEU, scoring by our own formulas: both must give sacreBLEU's numbers."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import DataError, UsageError
from regard.evaluation import generated_text
from regard.evaluation.generated_text import TEXT_METRICS, score_translations, text_statistics

# The example of sacreBLEU's README ("Using SacreBLEU from Python"), with its two sets of references.
HYPOTHESES = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
REFERENCES = [
    ["The dog bit the man.", "It was not unexpected.", "The man bit him first."],
    ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."],
]


def test_the_example_of_sacrebleu_has_the_published_scores():
    bleu, chrf, ter = score_translations(HYPOTHESES, REFERENCES)
    assert bleu.value == pytest.approx(48.530827009929865)  # sacreBLEU's README
    assert chrf.value == pytest.approx(59.73, abs=0.005)  # sacreBLEU's README
    assert ter.value == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, REFERENCES).score)
    assert [score.label for score in (bleu, chrf, ter)] == ["BLEU", "chrF", "TER"]


def test_scores_carry_the_signature_of_sacrebleu():
    bleu, chrf, ter = score_translations(HYPOTHESES, REFERENCES)
    version = sacrebleu.__version__
    assert bleu.signature == f"nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert chrf.signature == f"nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    assert ter.signature == f"nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}"


@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "char", "zh"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_settings_reach_sacrebleu(tokenize, lowercase):
    (bleu,) = score_translations(HYPOTHESES, REFERENCES[0], metrics=["bleu"], tokenize=tokenize, lowercase=lowercase)
    expected = sacrebleu.corpus_bleu(HYPOTHESES, REFERENCES[:1], tokenize=tokenize, lowercase=lowercase)
    assert bleu.value == pytest.approx(expected.score)
    assert f"|tok:{tokenize}|" in bleu.signature
    assert f"case:{'lc' if lowercase else 'mixed'}|" in bleu.signature


def test_metrics_come_in_the_order_asked_for():
    scores = score_translations(HYPOTHESES, REFERENCES, metrics=["ter", "bleu"])
    assert [score.name for score in scores] == ["ter", "bleu"]


def test_a_perfect_translation_scores_full_marks():
    bleu, chrf, ter = score_translations(REFERENCES[0], REFERENCES[0])
    assert (bleu.value, chrf.value, ter.value) == (pytest.approx(100), pytest.approx(100), 0)


def test_text_that_looks_tokenised_raises_no_warning_in_the_log(caplog):
    score_translations(["a dog runs ."] * 120, ["a dog runs ."] * 120, tokenize="none")
    assert caplog.text == ""


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
    np.testing.assert_allclose(generated_text._FORMULAS[name](sums), expected, rtol=1e-12, atol=1e-12)


def test_sentence_scores_are_those_of_each_sentence_alone():
    hypotheses = ["A dog runs over the grass.", "Nothing at all", ""]
    references = ["A dog runs across the grass.", "Two men play chess.", "Empty"]
    (chrf,) = text_statistics(hypotheses, references, metrics=["chrf"])
    expected = [CHRF().sentence_score(*pair).score for pair in zip(hypotheses, ([r] for r in references), strict=True)]
    np.testing.assert_allclose(chrf.example_values, expected)


def test_an_unknown_metric_is_answered_with_the_near_name():
    with pytest.raises(UsageError) as caught:
        text_statistics(["a"], ["a"], metrics=["blue"])
    assert str(caught.value) == "There is no metric 'blue'.\nDid you mean bleu?"


def test_an_unknown_tokenizer_is_answered_with_the_near_name():
    with pytest.raises(UsageError) as caught:
        text_statistics(["a"], ["a"], tokenize="non")
    assert str(caught.value) == "BLEU has no tokenizer 'non'.\nDid you mean none?"


def test_a_tokenizer_without_its_package_says_how_to_install_it(monkeypatch):
    def without_package(**options):
        raise RuntimeError("Japanese tokenization requires extra dependencies")

    monkeypatch.setattr(generated_text, "BLEU", without_package)
    with pytest.raises(UsageError) as caught:
        text_statistics(["a"], ["a"], tokenize="ja-mecab")
    assert str(caught.value) == (
        "BLEU's tokenizer 'ja-mecab' needs a package that is not installed.\n"
        "Install it with: pip install 'sacrebleu[ja]'"
    )


def test_a_missing_reference_is_an_error_with_both_counts():
    with pytest.raises(DataError) as caught:
        text_statistics(["a", "b"], ["a"])
    assert str(caught.value) == (
        "Each hypothesis needs its reference: there are 2 hypotheses and 1 references.\n"
        "Score the output of exactly the sentences that the references translate."
    )


def test_a_short_set_of_references_is_named():
    with pytest.raises(DataError, match="2 hypotheses and 3 references in set 2"):
        text_statistics(["a", "b"], [["a", "b"], ["a", "b", "c"]])


@pytest.mark.parametrize("references", [[], [[]]])
def test_nothing_to_score_is_an_error(references):
    with pytest.raises(DataError) as caught:
        text_statistics([], references)
    expected = "There are no sentences to score.\nGive at least one hypothesis and its reference."
    assert str(caught.value) == expected


# -- exact match and error rates ----------------------------------------------------------------------------------------


def edit_scores(hypotheses, references, **settings):
    found = score_translations(hypotheses, references, metrics=("exact_match", "wer", "cer"), **settings)
    return [score.value for score in found]


def test_error_rates_are_edits_over_the_length_of_all_references():
    hypotheses = ["the cat sat", "a dog", ""]
    references = ["the cat sat", "a big dog", "x"]
    # Words: 0, 1 and 1 edits over 3 + 3 + 1; characters: 0, 4 and 1 over 11 + 9 + 1.
    exact, wer, cer = edit_scores(hypotheses, references)
    assert exact == pytest.approx(100 / 3)
    assert wer == pytest.approx(100 * 2 / 7)
    assert cer == pytest.approx(100 * 5 / 21)


def test_white_space_is_one_space():
    assert edit_scores(["  a \t b\n"], ["a b"]) == [100, 0, 0]


def test_case_counts_unless_it_is_ignored():
    assert edit_scores(["Ab c"], ["ab C"]) == [0, 100, 50]
    assert edit_scores(["Ab c"], ["ab C"], lowercase=True) == [100, 0, 0]


def test_of_several_references_the_nearest_counts_against_their_mean_length():
    # 1 edit to the second; the references have 4 and 2 words.
    assert edit_scores(["x b"], [["a b c d"], ["a b"]])[1] == pytest.approx(100 / 3)
    assert edit_scores(["a b"], [["a b c d"], ["a b"]])[0] == 100


def test_something_against_an_empty_reference_is_all_wrong():
    assert edit_scores(["a"], [""]) == [0, 100, 100]
    assert edit_scores([""], [""]) == [100, 0, 0]


def test_error_rates_can_be_above_a_hundred():
    assert edit_scores(["a b c"], ["x"])[1] == 300


def test_their_signatures_say_what_was_counted():
    found = score_translations(["a"], [["a"], ["b"]], metrics=("exact_match", "wer", "cer"), lowercase=True)
    assert [score.signature for score in found] == [
        "nrefs:2|case:lc|unit:text|space:merged",
        "nrefs:2|case:lc|unit:word|space:merged",
        "nrefs:2|case:lc|unit:code point|space:merged",
    ]


def test_every_metric_has_a_value_of_each_sentence():
    for found in text_statistics(["a b c d", "e"], ["a b c d", "f"], metrics=TEXT_METRICS):
        assert found.example_values.shape == (2,)
        assert found.value == pytest.approx(found.subset([0, 1]).value)
