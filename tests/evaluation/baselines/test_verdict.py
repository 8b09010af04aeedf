"""A model beside its baselines, and what is told of that."""

from regard.evaluation.baselines.verdict import ScoredBaseline, baseline_fact, judge

MAJORITY = ScoredBaseline(name="majority class", scores={"loss": 0.7, "accuracy": 50.3})
BAYES = ScoredBaseline(name="naive Bayes", scores={"loss": 0.5, "accuracy": 78.4})


def test_the_strongest_baseline_counts() -> None:
    found = judge({"step": 4, "loss": 0.4, "accuracy": 80.1}, (MAJORITY, BAYES), best_by="accuracy")
    assert found is not None
    assert (found.baseline, found.metric.name, found.model, found.beaten) == (BAYES, "accuracy", 80.1, True)
    assert found.claim == "naive Bayes has accuracy 78.4 %"
    assert found.lines(init="a pre-trained encoder") == ()


def test_a_model_that_does_not_beat_it_is_told_so_in_two_lines() -> None:
    found = judge({"accuracy": 76.0}, (MAJORITY, BAYES), best_by="accuracy")
    assert found is not None
    assert found.lines(init="a pre-trained encoder") == (
        "The model does not beat a simple baseline: it has accuracy 76.0 %, and naive Bayes has accuracy 78.4 %.",
        "What may help: more data, more steps, a smaller model or --init from a pre-trained encoder.",
    )
    assert found.lines(init="")[1] == "What may help: more data, more steps or a smaller model."


def test_as_good_as_a_baseline_is_not_better() -> None:
    found = judge({"accuracy": 78.4}, (BAYES,), best_by="accuracy")
    assert found is not None
    assert not found.beaten


def test_of_a_loss_less_is_better() -> None:
    found = judge({"loss": 0.45, "accuracy": 10.0}, (MAJORITY, BAYES), best_by="loss")
    assert found is not None
    assert (found.beaten, found.claim) == (True, "naive Bayes has loss 0.500")


def test_another_metric_counts_where_baselines_lack_the_first() -> None:
    dictionary = ScoredBaseline(name="word-for-word dictionary", scores={"bleu": 13.2, "chrf": 49.0})
    found = judge({"loss": 2.0, "bleu": 30.0, "chrf": 20.0}, (dictionary,), best_by="loss")
    assert found is not None
    assert (found.metric.name, found.beaten) == ("bleu", True)
    found = judge({"loss": 2.0, "chrf": 20.0}, (dictionary,), best_by="loss")
    assert found is not None
    assert (found.metric.name, found.beaten) == ("chrf", False)


def test_without_a_common_score_there_is_no_verdict() -> None:
    assert judge({}, (BAYES,), best_by="accuracy") is None
    assert judge({"loss": 1.0}, (), best_by="loss") is None
    assert judge({"loss": None, "perplexity": 3.0}, (BAYES,), best_by="loss") is None


def test_what_a_report_says_of_baselines() -> None:
    fact = "naive Bayes: accuracy 78.4 % (majority class: 50.3 %)"
    assert baseline_fact((MAJORITY, BAYES), best_by="accuracy") == fact
    mean = ScoredBaseline(name="mean", scores={"mae": 0.9})
    ridge = ScoredBaseline(name="ridge regression", scores={"mae": 0.6, "spearman": 0.8})
    assert baseline_fact((mean, ridge), best_by="spearman") == "ridge regression: Spearman 0.800"
    assert baseline_fact((), best_by="loss") == ""
