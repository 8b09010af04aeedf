"""Metrics of generated text against references: BLEU, chrF and TER by sacreBLEU; exact match, word and character error rate.

sacreBLEU counts, once per system. The formulas from sums to scores stand here a second time, over whole arrays, because
significance tests need some ten thousand corpus scores; the tests hold them equal to sacreBLEU's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import DataError, UsageError, did_you_mean
from regard.evaluation.edit_distance import edit_distance
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, SummedCounts, share_statistics

USUAL_METRICS = ("bleu", "chrf", "ter")
TEXT_METRICS = (*USUAL_METRICS, "exact_match", "wer", "cer")
# The tokenizers of sacreBLEU that work offline; the two mecab ones need an extra package of it.
TOKENIZERS = ("13a", "char", "intl", "ja-mecab", "ko-mecab", "none", "zh")

References = Sequence[str] | Sequence[Sequence[str]]


def score_translations(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str] = USUAL_METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Score]:
    """Score a whole corpus; the settings are those of `text_statistics`."""
    found = text_statistics(hypotheses, references, metrics=metrics, tokenize=tokenize, lowercase=lowercase)
    return [statistics.score for statistics in found]


def text_statistics(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str] = USUAL_METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[SummedCounts]:
    """Count for each metric; `references` is one list of sentences, or several such lists of equal length.

    `tokenize` is for BLEU alone. `lowercase` is for all but TER, which ignores case by sacreBLEU's default. The counts:
    bleu: (N, 10) lengths of hypothesis and reference, then matches and totals of 1- to 4-grams.
    chrf: (N, 18) n-grams of hypothesis, of reference, and matches, for 1 to 6 characters.
    ter, wer, cer: (N, 2) edits and the mean length of the references, in words or characters.
    exact_match: (N, 2) 1 if the hypothesis is a reference, and 1.
    """
    check_metrics(metrics)
    check_tokenizer(tokenize)
    streams = reference_streams(references)
    _check_lengths(hypotheses, streams)
    return [
        _sacrebleu_statistics(name, hypotheses, streams, tokenize=tokenize, lowercase=lowercase)
        if name in _FORMULAS
        else _edit_statistics(name, hypotheses, streams, lowercase=lowercase)
        for name in metrics
    ]


def check_metrics(names: Sequence[str]) -> None:
    """Refuse a metric that generated text does not have; before a test set is translated, not after."""
    for name in names:
        if name not in TEXT_METRICS:
            raise UsageError(f"There is no metric '{name}'.", did_you_mean(name, TEXT_METRICS))


def check_tokenizer(name: str) -> None:
    """Refuse a tokenizer that BLEU does not have; before a test set is translated, not after."""
    if name not in TOKENIZERS:
        raise UsageError(f"BLEU has no tokenizer '{name}'.", did_you_mean(name, TOKENIZERS))


def reference_streams(references: References) -> list[list[str]]:
    """Return `references` as a list of reference files, also where there is only one."""
    single = [reference for reference in references if isinstance(reference, str)]
    if len(single) == len(references):
        return [single]
    return [list(stream) for stream in references]


def _sacrebleu_statistics(name: str, hypotheses: Any, streams: Any, *, tokenize: str, lowercase: bool) -> SummedCounts:
    metric = _sacrebleu(name, tokenize=tokenize, lowercase=lowercase)
    counts = np.array(metric._extract_corpus_statistics(hypotheses, streams), dtype=np.float64)
    return SummedCounts(metric=name, signature=str(metric.get_signature()), counts=counts, formula=_FORMULAS[name])


def _sacrebleu(name: str, *, tokenize: str, lowercase: bool) -> Metric:
    if name == "chrf":
        return CHRF(lowercase=lowercase)
    if name == "ter":
        return TER()
    try:
        # Forced, because sacreBLEU would write to the terminal about text that looks tokenised.
        return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    except RuntimeError as error:
        extra = tokenize.removesuffix("-mecab")
        raise UsageError(
            f"BLEU's tokenizer '{tokenize}' needs a package that is not installed.",
            f"Install it with: pip install 'sacrebleu[{extra}]'",
        ) from error


def _edit_statistics(
    name: str, hypotheses: Sequence[str], streams: Sequence[Sequence[str]], *, lowercase: bool
) -> SummedCounts:
    """Exact match, word or character error rate, of texts in which any white space is one space.

    Of several references the nearest counts, against the mean of their lengths, as TER has it.
    """
    own, *wanted = (_in_units(texts, words=name == "wer", lowercase=lowercase) for texts in (hypotheses, *streams))
    unit = {"exact_match": "text", "wer": "word", "cer": "code point"}[name]
    signature = f"nrefs:{len(streams)}|case:{'lc' if lowercase else 'mixed'}|unit:{unit}|space:merged"
    rows = list(zip(own, zip(*wanted, strict=True), strict=True))
    if name == "exact_match":
        matches = np.array([hypothesis in references for hypothesis, references in rows])
        return share_statistics(name, matches, unit="sentences", signature=signature)
    edits = [min(edit_distance(hypothesis, one) for one in references) for hypothesis, references in rows]
    lengths = [sum(map(len, references)) / len(references) for _, references in rows]
    counts = np.array((edits, lengths), dtype=np.float64).T
    return SummedCounts(metric=name, signature=signature, counts=counts, formula=_error_rate)


def _in_units(texts: Sequence[str], *, words: bool, lowercase: bool) -> list[list[str]] | list[str]:
    """Texts as lists of words, or as strings of characters."""
    split = [(text.lower() if lowercase else text).split() for text in texts]
    return split if words else [" ".join(one) for one in split]


def _bleu(sums: Floats) -> Floats:
    """BLEU with sacreBLEU's default smoothing: the k-th order without a match counts as 1 / 2^k matches."""
    hypothesis_length, reference_length = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2:6], sums[..., 6:10]
    n_unmatched = np.cumsum(matches == 0, axis=-1)
    precisions = np.where(matches > 0, matches, 0.5**n_unmatched) / np.maximum(totals, 1)
    geometric_mean = np.exp(np.log(precisions).mean(axis=-1))
    too_short = np.minimum(0.0, 1 - reference_length / np.maximum(hypothesis_length, 1))
    defined = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    return np.where(defined, 100 * np.exp(too_short) * geometric_mean, 0.0)


def _chrf(sums: Floats) -> Floats:
    """chrF2 over the orders that both sides have."""
    of_hypothesis, of_reference, matches = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
    present = (of_hypothesis > 0) & (of_reference > 0)
    n_orders = np.maximum(present.sum(axis=-1), 1)
    precision = (present * matches / np.maximum(of_hypothesis, 1)).sum(axis=-1) / n_orders
    recall = (present * matches / np.maximum(of_reference, 1)).sum(axis=-1) / n_orders
    denominator = 4 * precision + recall
    score: Floats = 100 * 5 * precision * recall / np.where(denominator > 0, denominator, 1)
    return score


def _error_rate(sums: Floats) -> Floats:
    """Edits per unit of the reference; all is wrong where something stands against an empty reference."""
    edits, reference_length = sums[..., 0], sums[..., 1]
    rate = edits / np.where(reference_length > 0, reference_length, 1)
    return 100 * np.where(reference_length > 0, rate, edits > 0)


_FORMULAS = {"bleu": _bleu, "chrf": _chrf, "ter": _error_rate}


def _check_lengths(hypotheses: Sequence[str], streams: Sequence[Sequence[str]]) -> None:
    if not hypotheses:
        raise DataError("There are no sentences to score.", "Give at least one hypothesis and its reference.")
    for number, stream in enumerate(streams, start=1):
        if len(stream) != len(hypotheses):
            which = "references" if len(streams) == 1 else f"references in set {number}"
            raise DataError(
                f"Each hypothesis needs its reference: there are {len(hypotheses):,} hypotheses "
                f"and {len(stream):,} {which}.",
                "Score the output of exactly the sentences that the references translate.",
            )
