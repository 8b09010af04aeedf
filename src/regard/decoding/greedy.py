"""Greedy search: the likeliest token, again and again."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.autoregressive import run_to_end, walk
from regard.decoding.penalties import DEFAULT_PENALTY, LengthPenalty
from regard.decoding.prompt import Prompt
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.result import Decoded
from regard.decoding.rules import Rule


@torch.inference_mode()
def greedy(
    decoder: Decoder[StateType],
    state: StateType,
    *,
    prompt: int | Prompt,
    end_id: int,
    limits: Tensor,
    rules: Sequence[Rule] = (),
    penalty: LengthPenalty = DEFAULT_PENALTY,
) -> list[Decoded]:
    """Decode the N sentences of `state`; one hypothesis each.

    prompt:    what is read first: one id for all, or a prompt a sentence
    limits:    (N,), the most tokens a sentence may write, the end token counted; on the decoder's device
    penalty:   only for the score; plain length by default
    """
    steps = walk(decoder, state, likeliest, prompt=prompt, end_id=end_id, limits=limits, rules=rules, penalty=penalty)
    return run_to_end(steps)


def likeliest(log_probs: Tensor, position: int, rows: Tensor) -> Tensor:
    """Choose for `walk`."""
    return log_probs.argmax(dim=-1)
