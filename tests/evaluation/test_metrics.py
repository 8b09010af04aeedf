"""The table of metrics."""

import math

import pytest

from regard.evaluation.generated_text import TEXT_METRICS
from regard.evaluation.metrics import METRICS, Metric, find_metric, headline_metric


def test_every_metric_has_a_direction() -> None:
    lower = {name for name, metric in METRICS.items() if not metric.higher_is_better}
    assert lower == {"loss", "perplexity", "bits_per_byte", "ter", "wer", "cer", "mae", "rmse"}


def test_scores_of_generated_text_need_decoding() -> None:
    assert {name for name, metric in METRICS.items() if metric.decoded} == set(TEXT_METRICS)


def test_names_and_labels_are_unique() -> None:
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)
    assert all(name == metric.name for name, metric in METRICS.items())


def test_a_metric_that_the_table_lacks_goes_by_its_name() -> None:
    assert find_metric("my_own") == Metric(name="my_own", label="my_own", digits=1, higher_is_better=True)


@pytest.mark.parametrize(
    ("name", "value", "short", "precise"),
    [
        ("loss", 0.123456, "0.123", "0.1235"),
        ("perplexity", 10.456, "10.46", "10.456"),
        ("accuracy", 91.256, "91.3", "91.26"),
        ("spearman", None, "—", "—"),
        ("mae", math.nan, "—", "—"),
        ("perplexity", math.inf, "inf", "inf"),
    ],
)
def test_a_report_has_one_digit_more_than_a_list(name: str, value: float | None, short: str, precise: str) -> None:
    assert METRICS[name].format(value) == short
    assert METRICS[name].format(value, precise=True) == precise


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("loss", "perplexity", "bleu", "chrf"), "bleu"),
        (("loss", "accuracy", "entity_f1"), "entity_f1"),
        (("loss", "perplexity", "bits_per_byte"), "bits_per_byte"),
        (("loss", "perplexity", "masked_accuracy"), "masked_accuracy"),
    ],
)
def test_the_metric_that_says_most_of_a_run(names: tuple[str, ...], expected: str) -> None:
    assert headline_metric(names) == METRICS[expected]


def test_of_a_loss_alone_nothing_says_more() -> None:
    assert headline_metric(("step", "loss")) is None
