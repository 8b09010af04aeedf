"""The paper's training runs, of "Attention Is All You Need" (Vaswani et al. 2017), beside which our figures are set."""

from collections.abc import Mapping
from dataclasses import dataclass

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """What the paper says of the training of one of its models."""

    steps: int  # section 5.2
    seconds: float  # section 5.2
    device_flops: float  # table 2, "training cost": time × devices × peak of a device, as section 6.1 explains it


VOCAB_SIZE = 37_000  # section 5.1, shared by source and target
TOKENS = (25_000, 25_000)  # section 5.1, of the source and of the target in a batch
DEVICES = "8xP100"  # section 5.2; footnote 5 gives their peak, as devices.py has it
PRECISION = "fp32"
# The paper does not say how long its sentences are. WMT14 English-German has 4.5 million pairs of 116 and 110 million words
# (Luong et al. 2015, 4.1), 25 words per sentence, which subwords and the end token make about 30 tokens. Attention over so
# few keys is a hundredth of the arithmetic: any length from 11 to 37 gives the same figures, rounded to two digits.
LENGTH = 30
RUNS: Mapping[str, PublishedRun] = {
    "transformer-base": PublishedRun(steps=100_000, seconds=12 * HOUR, device_flops=3.3e18),
    "transformer-big": PublishedRun(steps=300_000, seconds=3.5 * DAY, device_flops=2.3e19),
}
