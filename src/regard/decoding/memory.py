"""The memory that a search takes, estimated after the prompt is read: one that would not fit is refused, not killed.

Each of the R rows (sentences × hypotheses) has logits over the vocabulary in a few copies, the candidates of a beam, and a
cache of the keys and values of what it has read, of which a reordering makes a second.
"""

import math

from torch import Tensor

from regard.decoding.request import Request
from regard.errors import UsageError
from regard.runtime import available_memory

LOGITS = 4 * 5  # bytes per token of the vocabulary: single precision, in about five copies
CANDIDATE = 40  # bytes of a beam's candidate: tensors of numbers and places
NODE = 300  # bytes of a written token: the nodes of a beam, what rules have read
CACHES = 3  # that of the step before, that of the next, and the room behind them


def refuse_too_large(decoder: object, state: object, logits: Tensor, request: Request, *, width: int) -> None:
    """Refuse a search of `width` hypotheses per sentence for which memory does not suffice; its first logits are (N, V)."""
    n_sentences, vocab_size = logits.shape
    longest = math.ceil(request.usual_share * int(request.limits.max()))
    kept = min([longest, *(limit for name in ("window", "limit") if (limit := getattr(decoder, name, None)))])
    cache = CACHES * kept * getattr(state, "bytes_per_token", 0)
    row = LOGITS * vocab_size + CANDIDATE * min(2 * width, vocab_size) + NODE * longest + cache
    free = available_memory(logits.device)
    if free is None or n_sentences * width * row <= free:
        return
    raise UsageError(
        f"{n_sentences:,} × {width:,} hypotheses of up to {longest:,} tokens need about "
        f"{n_sentences * width * row / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free.",
        f"At most {int(free // row):,} hypotheses fit: lower beam, n_best or samples, batch_size, or max_length.",
    )
