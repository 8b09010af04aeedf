"""What a sentence adds to a corpus score: counts that are summed over sentences before BLEU, chrF or TER is computed.

sacreBLEU counts, once per system. The formulas from sums to scores stand here a second time, over whole arrays,
because significance tests need some ten thousand corpus scores; the tests hold them equal to sacreBLEU's.

Running text has no sentences: a stretch of it adds what it cost a model, its tokens and its bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import DataError, UsageError, did_you_mean

METRICS = ("bleu", "chrf", "ter")
# The tokenizers of sacreBLEU that work offline; the two mecab ones need an extra package of it.
TOKENIZERS = ("13a", "char", "intl", "ja-mecab", "ko-mecab", "none", "zh")

Counts = NDArray[np.float64]
References = Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The counts of one system by one metric.

    bleu: (N, 10) lengths of hypothesis and reference, then matches and totals of 1- to 4-grams.
    chrf: (N, 18) n-grams of hypothesis, of reference, and matches, for 1 to 6 characters.
    ter:  (N, 2) edits and the mean length of the references.
    loss, perplexity: (N, 2) nats and tokens. bits_per_byte: (N, 2) nats and bytes.
    """

    metric: str
    counts: Counts
    signature: str

    @property
    def score(self) -> float:
        """The score of the whole corpus."""
        return float(score_sums(self.metric, self.counts.sum(axis=0)))

    @property
    def sentence_scores(self) -> Counts:
        """The score of each sentence alone, (N,)."""
        return score_sums(self.metric, self.counts)


def gather_statistics(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str] = METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Statistics]:
    """Count for each metric; `references` is one list of sentences, or several such lists of equal length.

    `tokenize` is for BLEU alone. `lowercase` is for BLEU and chrF: TER ignores case by sacreBLEU's default.
    """
    streams = reference_streams(references)
    _check_lengths(hypotheses, streams)
    gathered = []
    for name in metrics:
        metric = _metric(name, tokenize=tokenize, lowercase=lowercase)
        counts = np.array(metric._extract_corpus_statistics(hypotheses, streams), dtype=np.float64)
        gathered.append(Statistics(metric=name, counts=counts, signature=str(metric.get_signature())))
    return gathered


def text_statistics(nats: Counts, n_tokens: Counts, n_bytes: Counts | None) -> list[Statistics]:
    """Put together what stretches of text (N,) cost: loss, perplexity and, where their bytes are given, bits per byte."""
    by_token = np.stack((nats, n_tokens), axis=1)
    gathered = [
        Statistics(metric="loss", counts=by_token, signature="unit:nats a token"),
        Statistics(metric="perplexity", counts=by_token, signature="unit:token"),
    ]
    if n_bytes is not None:
        signature = f"tokens:{n_tokens.sum():.0f}|bytes:{n_bytes.sum():.0f}"
        by_byte = np.stack((nats, n_bytes), axis=1)
        gathered.append(Statistics(metric="bits_per_byte", counts=by_byte, signature=signature))
    return gathered


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


def score_sums(metric: str, sums: Counts) -> Counts:
    """Turn summed counts (…, K) into scores (…)."""
    formulas = {
        "bleu": _bleu,
        "chrf": _chrf,
        "ter": _ter,
        "loss": _cost,
        "perplexity": _perplexity,
        "bits_per_byte": _bits,
    }
    return formulas[metric](sums)


def _bleu(sums: Counts) -> Counts:
    """BLEU with sacreBLEU's default smoothing: the k-th order without a match counts as 1 / 2^k matches."""
    hypothesis_length, reference_length = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2:6], sums[..., 6:10]
    n_unmatched = np.cumsum(matches == 0, axis=-1)
    precisions = np.where(matches > 0, matches, 0.5**n_unmatched) / np.maximum(totals, 1)
    geometric_mean = np.exp(np.log(precisions).mean(axis=-1))
    too_short = np.minimum(0.0, 1 - reference_length / np.maximum(hypothesis_length, 1))
    defined = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    return np.where(defined, 100 * np.exp(too_short) * geometric_mean, 0.0)


def _chrf(sums: Counts) -> Counts:
    """chrF2 over the orders that both sides have."""
    of_hypothesis, of_reference, matches = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
    present = (of_hypothesis > 0) & (of_reference > 0)
    n_orders = np.maximum(present.sum(axis=-1), 1)
    precision = (present * matches / np.maximum(of_hypothesis, 1)).sum(axis=-1) / n_orders
    recall = (present * matches / np.maximum(of_reference, 1)).sum(axis=-1) / n_orders
    denominator = 4 * precision + recall
    score: Counts = 100 * 5 * precision * recall / np.where(denominator > 0, denominator, 1)
    return score


def _ter(sums: Counts) -> Counts:
    """Edits per word of the reference; all is wrong where something stands against an empty reference."""
    edits, reference_length = sums[..., 0], sums[..., 1]
    rate = edits / np.where(reference_length > 0, reference_length, 1)
    return 100 * np.where(reference_length > 0, rate, edits > 0)


def _cost(sums: Counts) -> Counts:
    """What a token, or a byte, costs."""
    cost: Counts = sums[..., 0] / sums[..., 1]
    return cost


def _perplexity(sums: Counts) -> Counts:
    with np.errstate(over="ignore"):  # infinity is the right answer then
        perplexity: Counts = np.exp(_cost(sums))
    return perplexity


def _bits(sums: Counts) -> Counts:
    bits: Counts = _cost(sums) / np.log(2)
    return bits


def _metric(name: str, *, tokenize: str, lowercase: bool) -> Metric:
    if name not in METRICS:
        raise UsageError(f"There is no metric '{name}'.", did_you_mean(name, METRICS))
    check_tokenizer(tokenize)
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
