"""One token at a time and no way back: the loop that greedy search and sampling share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.decoding.penalties import LengthPenalty
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.result import Decoded, Hypothesis, check_limits, check_possible, hypothesis
from regard.decoding.rules import Rule, Step, apply_rules

# (log-probabilities (R, V), position, the rows' numbers (R,) among all that started) -> token ids (R,)
Choose = Callable[[Tensor, int, Tensor], Tensor]


@dataclass(slots=True)
class _Line:
    """What one row has written."""

    sentence: int
    limit: int
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    done: bool = False

    def write(self, token: int, log_prob: float, *, end_id: int) -> None:
        if self.done:  # It only waits for the other rows of its sentence.
            return
        check_possible(log_prob, sentence=self.sentence, position=len(self.tokens))
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        self.done = token == end_id or len(self.tokens) == self.limit

    def hypothesis(self, penalty: LengthPenalty, *, end_id: int) -> Hypothesis:
        score = penalty.score(sum(self.log_probs), length=len(self.tokens))
        return hypothesis(self.tokens, self.log_probs, score=score, end_id=end_id)


def walk(
    decoder: Decoder[StateType],
    state: StateType,
    choose: Choose,
    *,
    start_id: int | Tensor,
    end_id: int,
    limits: Tensor,
    rules: Sequence[Rule],
    penalty: LengthPenalty,
    width: int = 1,
) -> list[Decoded]:
    """Write `width` outputs a sentence, each of whose tokens `choose` picks. See `greedy` for the other arguments."""
    check_limits(limits.tolist())
    sentences = [[_Line(number, limit) for _ in range(width)] for number, limit in enumerate(limits.tolist())]
    open_sentences = sentences
    rows = torch.arange(len(sentences) * width, device=limits.device)
    if width > 1:
        state = state.reorder(rows // width)
    ids = first_ids(start_id, limits).repeat_interleave(width, dim=0)  # (R, 1)
    written = ids[:, :0]  # (R, T)
    while open_sentences:
        logits, state = decoder.step(state, ids)
        log_probs = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
        log_probs = apply_rules(rules, log_probs, Step(logits, written, rows // width))
        ids = choose(log_probs, written.shape[1], rows).unsqueeze(1)
        written = torch.cat((written, ids), dim=1)

        lines = [line for sentence in open_sentences for line in sentence]
        chosen = zip(lines, ids[:, 0].tolist(), log_probs.gather(1, ids)[:, 0].tolist(), strict=True)
        for line, token, log_prob in chosen:
            line.write(token, log_prob, end_id=end_id)

        stay = [slot for slot, sentence in enumerate(open_sentences) if not all(line.done for line in sentence)]
        if stay and len(stay) < len(open_sentences):
            slots = torch.tensor(stay, device=rows.device)
            state = state.keep(slots)
            ids, written, rows = (kept.unflatten(0, (-1, width))[slots].flatten(0, 1) for kept in (ids, written, rows))
        open_sentences = [open_sentences[slot] for slot in stay]

    outputs = [[line.hypothesis(penalty, end_id=end_id) for line in sentence] for sentence in sentences]
    return [Decoded(tuple(sorted(output, key=lambda one: -one.score))) for output in outputs]


def first_ids(start_id: int | Tensor, limits: Tensor) -> Tensor:
    """What each sentence reads first, (N, 1), on the device of `limits`."""
    if isinstance(start_id, Tensor):
        return start_id.to(limits.device).unsqueeze(1)
    return torch.full((len(limits), 1), start_id, dtype=torch.long, device=limits.device)
