"""Greedy search: the likeliest token, again and again."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.penalties import DEFAULT_PENALTY, LengthPenalty
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.result import Decoded
from regard.decoding.rules import Rule
from regard.decoding.walk import walk


@torch.inference_mode()
def greedy(
    decoder: Decoder[StateType],
    state: StateType,
    *,
    start_id: int | Tensor,
    end_id: int,
    limits: Tensor,
    rules: Sequence[Rule] = (),
    penalty: LengthPenalty = DEFAULT_PENALTY,
) -> list[Decoded]:
    """Decode the N sentences of `state`; one hypothesis each.

    start_id:  what is read first: one id for all, or one a sentence (N,), as the last token of a prompt
    limits:    (N,), the most tokens a sentence may write, the end token counted; on the decoder's device
    penalty:   only for the score; plain length by default
    """
    return walk(
        decoder,
        state,
        lambda log_probs, position, rows: log_probs.argmax(dim=-1),
        start_id=start_id,
        end_id=end_id,
        limits=limits,
        rules=rules,
        penalty=penalty,
    )
