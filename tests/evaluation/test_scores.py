"""Scores equal those of sacreBLEU, by its published example and by its own calls."""

import math

import pytest
import sacrebleu

from regard.evaluation.scores import Score, perplexity, score_translations, text_scores

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


def test_perplexity_is_the_exponential_of_the_loss():
    assert perplexity(math.log(37)).value == pytest.approx(37)
    assert perplexity(1000.0).value == math.inf


def test_text_is_scored_by_its_tokens_and_by_its_bytes():
    loss, per_token, bits = text_scores(2 * 30 * math.log(2), n_tokens=30, n_bytes=120)
    assert loss.value == pytest.approx(2 * math.log(2))
    assert per_token.value == pytest.approx(4)
    assert bits.value == pytest.approx(0.5)
    assert [score.signature for score in (loss, per_token, bits)] == [
        *("unit:nats a token", "unit:token", "tokens:30|bytes:120")
    ]
    assert [score.name for score in text_scores(30.0, n_tokens=30, n_bytes=None)] == ["loss", "perplexity"]
    assert text_scores(30_000.0, n_tokens=30, n_bytes=None)[1].value == math.inf


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("bleu", 23.456, "BLEU 23.46"),
        ("accuracy", 91.256, "accuracy 91.26 %"),
        ("loss", 0.123456, "loss 0.1235"),
        ("spearman", math.nan, "Spearman —"),
        ("my_own", 2.0, "my_own 2.00"),
    ],
)
def test_a_score_is_written_as_its_metric_has_it(name, value, written):
    assert str(Score(name=name, value=value, signature="")) == written
