"""The autoregressive loop of greedy search and sampling: one token at a time, and no way back."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.decoding.memory import refuse_too_large
from regard.decoding.penalties import DEFAULT_PENALTY, LengthPenalty
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.request import Request
from regard.decoding.result import Decoded, Hypothesis, check_possible, hypothesis
from regard.decoding.rules import Step, apply_rules

# (log-probabilities (R, V), position, the rows' numbers (R,) among all that started) -> token ids (R,)
Choose = Callable[[Tensor, int, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Written:
    """A token that an output has got: number `output` of its sentence's, counted from 0."""

    sentence: int
    output: int
    token: int
    log_prob: float


@dataclass(slots=True)
class _Output:
    """What one row has written."""

    sentence: int
    output: int
    limit: int
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    done: bool = False  # then it only waits for the other outputs of its sentence

    def write(self, token: int, log_prob: float, *, end_id: int) -> Written:
        check_possible(log_prob, sentence=self.sentence, position=len(self.tokens))
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        self.done = token == end_id or len(self.tokens) == self.limit
        return Written(self.sentence, self.output, token, log_prob)

    def hypothesis(self, penalty: LengthPenalty, *, end_id: int) -> Hypothesis:
        score = penalty.score(sum(self.log_probs), length=len(self.tokens))
        return hypothesis(self.tokens, self.log_probs, score=score, end_id=end_id)


def autoregress(
    decoder: Decoder[StateType],
    state: StateType,
    request: Request,
    choose: Choose,
    *,
    width: int = 1,
    penalty: LengthPenalty = DEFAULT_PENALTY,
) -> Generator[list[Written], None, list[Decoded]]:
    """Write `width` outputs per sentence of `state`, each of whose tokens `choose` picks; `penalty` is only for the score.

    Yields what is written at each step; the results are the generator's return value.
    """
    limits, end_id = request.limits, request.end_id
    if not len(limits):
        return []
    sentences = [
        [_Output(number, output, limit) for output in range(width)] for number, limit in enumerate(limits.tolist())
    ]
    open_sentences = sentences
    rows = torch.arange(len(sentences) * width, device=limits.device)
    first = request.first()
    logits, state = decoder.step(state, first.ids, first.counts)
    refuse_too_large(decoder, state, logits, request, width=width)
    read = first.behind()
    if width > 1:  # read once, and gone on from several times
        state, logits, read = state.reorder(rows // width), logits[rows // width], read[rows // width]
    written, owners = read[:, :0], rows // width  # (R, T), and the sentence of each row
    while True:
        log_probs = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
        log_probs = apply_rules(request.rules, log_probs, Step(logits, read, written, owners))
        ids = choose(log_probs, written.shape[1], rows).unsqueeze(1)
        written = torch.cat((written, ids), dim=1)

        lines = [line for sentence in open_sentences for line in sentence]
        chosen = zip(lines, ids[:, 0].tolist(), log_probs.gather(1, ids)[:, 0].tolist(), strict=True)
        yield [line.write(token, log_prob, end_id=end_id) for line, token, log_prob in chosen if not line.done]

        stay = [slot for slot, sentence in enumerate(open_sentences) if not all(line.done for line in sentence)]
        if not stay:
            break
        if len(stay) < len(open_sentences):
            slots = torch.tensor(stay, device=rows.device)
            state = state.keep(slots)
            ids, read, written, rows, owners = (
                kept.unflatten(0, (-1, width))[slots].flatten(0, 1) for kept in (ids, read, written, rows, owners)
            )
        open_sentences = [open_sentences[slot] for slot in stay]
        logits, state = decoder.step(state, ids)

    outputs = [[line.hypothesis(penalty, end_id=end_id) for line in sentence] for sentence in sentences]
    return [Decoded(tuple(sorted(output, key=lambda one: -one.score))) for output in outputs]
