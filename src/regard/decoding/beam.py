"""Beam search: the W likeliest hypotheses of each sentence go on together (beam width W); watched or not.

At each step the 2W likeliest continuations of a sentence's hypotheses are candidates. Of these, end tokens among the
best W finish a hypothesis; the best W others go on. This is the search of transformers' `generate` with
`early_stopping="never"`, and it returns the same; but it stops as soon as the answer is certain:

A hypothesis is *hopeless* when `n_best` finished ones score at least the best that it can still reach: its sum over
the `largest_divisor` of penalties.py. Hopeless hypotheses are dropped at once, and a sentence without live ones is
done. Nothing that is returned changes by it:
1. What descends from a hopeless hypothesis is hopeless: sums only fall, so does what they can reach, and the scores of
   the `n_best` finished only rise. So no descendant is ever returned. (An equal score does not displace an older one.)
2. Nor does its absence let in anything else. It or a descendant would stand before some candidate only with a larger
   sum; then that candidate, of the same sentence and length, can reach no more and is hopeless too. So whatever is not
   hopeless has the same rank, and the same fate, as if none were dropped.

Candidates are found with a few tensor operations for all sentences at once. The decisions about 2W candidates per
sentence are plain Python: on so few numbers that is quicker than tensor operations, and one copy per step suffices.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import count
from typing import Generic

import torch
from torch import Tensor

from regard.decoding.beam_events import BeamEvent, BeamFinished, BeamKept, BeamNode, BeamPruned, PruneReason
from regard.decoding.memory import refuse_too_large
from regard.decoding.penalties import DEFAULT_PENALTY, LengthPenalty
from regard.decoding.protocol import Decoder, StateType
from regard.decoding.request import Request
from regard.decoding.result import Decoded, Hypothesis, check_possible, hypothesis, run_to_end
from regard.decoding.rules import Step, apply_rules
from regard.decoding.top_k import top_k
from regard.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Beam:
    """How wide the search is, how many hypotheses it returns, and how lengths are compared. Width 1 is greedy search."""

    width: int = 5
    n_best: int = 1
    penalty: LengthPenalty = DEFAULT_PENALTY

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UsageError(f"A beam holds at least 1 hypothesis, but its width is {self.width}.", "Give 1 or more.")
        if not 1 <= self.n_best <= self.width:
            raise UsageError(
                f"A beam of width {self.width} returns 1 to {self.width} hypotheses, but {self.n_best} were asked for.",
                "Widen the beam, or ask for fewer.",
            )


@torch.inference_mode()
def beam_search(decoder: Decoder[StateType], state: StateType, request: Request, beam: Beam) -> list[Decoded]:
    """Decode the N sentences of `state`: up to `beam.n_best` hypotheses each, best first.

    Fewer are returned where rules or a tiny vocabulary allow no more.
    """
    return run_to_end(_Search(decoder, state, request, beam).run(watched=False))


@torch.inference_mode()
def watch_beam_search(
    decoder: Decoder[StateType], state: StateType, request: Request, beam: Beam
) -> Generator[list[BeamEvent], None, list[Decoded]]:
    """Do the same as `beam_search`, but yield what happened at each step; the results are the generator's return value.

    Every candidate of the step has one event. What is below the 2W candidates of a sentence is never looked at.
    """
    return (yield from _Search(decoder, state, request, beam).run(watched=True))


# total, log-probability, row of the parent within the sentence, token. A bare tuple: there are hundreds at every step.
_Candidate = tuple[float, float, int, int]


@dataclass(slots=True)
class _Sentence:
    """The hypotheses of one sentence."""

    number: int
    limit: int
    live: list[tuple[int, BeamNode]] = field(default_factory=list)  # (row of the parent, node), best first
    finished: list[BeamFinished] = field(default_factory=list)  # at most n_best, best first


class _Search(Generic[StateType]):
    """A search under way."""

    def __init__(self, decoder: Decoder[StateType], state: StateType, request: Request, beam: Beam) -> None:
        self.decoder, self.state, self.request, self.beam = decoder, state, request, beam
        self.end_id, self.rules, limits = request.end_id, request.rules, request.limits
        self.everything = [_Sentence(number, limit) for number, limit in enumerate(limits.tolist())]
        self.sentences = self.everything  # those not done
        self.length = 0
        self.numbers = count()
        first = request.first()
        self.ids, self.counts = first.ids, first.counts  # (R, T), what is read next, and how many are real
        self.read = first.behind()  # (R, P), and
        self.written = self.read[:, :0]  # (R, T), for the rules
        self.totals = torch.zeros(len(limits), 1, device=limits.device)  # (N, rows a sentence has now)

    def run(self, *, watched: bool) -> Generator[list[BeamEvent], None, list[Decoded]]:
        """Write one token in every live hypothesis, again and again; yield the events of each step, none if not watched."""
        while self.sentences:
            events: list[BeamEvent] = []
            logits, self.state = self.decoder.step(self.state, self.ids, self.counts)
            if not self.length:
                refuse_too_large(self.decoder, self.state, logits, self.request, width=self.beam.width)
            self.counts = None  # only a prompt has any
            self.length += 1
            for sentence, candidates in zip(self.sentences, self._candidates(logits), strict=True):
                self._decide(sentence, candidates, events if watched else None)
            self._go_on()
            yield events
        return self.results()

    def results(self) -> list[Decoded]:
        return [Decoded(tuple(map(self._hypothesis, sentence.finished))) for sentence in self.everything]

    def _candidates(self, logits: Tensor) -> list[list[_Candidate]]:
        """Find the 2W best continuations of each sentence, best first, without impossible ones (-inf, NaN)."""
        n_sentences, n_candidates = len(self.sentences), 2 * self.beam.width
        log_probs = torch.log_softmax(logits, dim=-1, dtype=torch.float32)  # (R, V)
        if self.rules:
            numbers = torch.tensor([sentence.number for sentence in self.sentences], device=logits.device)
            numbers = numbers.repeat_interleave(self.totals.shape[1])
            log_probs = apply_rules(self.rules, log_probs, Step(logits, self.read, self.written, numbers))
        # The 2W best of a sentence are among the 2W best of each of its rows: far less to sort than W·V together.
        n_row = min(n_candidates, log_probs.shape[1])
        log_probs, tokens = top_k(log_probs, n_row)  # (R, 2W)
        totals = (self.totals.view(-1, 1) + log_probs).view(n_sentences, -1)  # (N, W·2W)
        totals, places = totals.topk(min(n_candidates, totals.shape[1]), dim=-1)  # (N, 2W)
        log_probs = log_probs.view(n_sentences, -1).gather(1, places)
        tokens = tokens.view(n_sentences, -1).gather(1, places)
        columns = totals.tolist(), log_probs.tolist(), (places // n_row).tolist(), tokens.tolist()
        return [
            [candidate for candidate in zip(*rows, strict=True) if candidate[0] > -math.inf]
            for rows in zip(*columns, strict=True)
        ]

    def _decide(self, sentence: _Sentence, candidates: list[_Candidate], events: list[BeamEvent] | None) -> None:
        """Let each candidate finish, go on, or be pruned; append what became of it to `events`, if given."""
        width, at_limit = self.beam.width, self.length == sentence.limit
        finishing: list[_Candidate] = []
        going: list[_Candidate] = []
        pruned: list[tuple[_Candidate, PruneReason, float, float]] = []
        for rank, candidate in enumerate(candidates):
            ends = at_limit or candidate[3] == self.end_id
            if ends and rank < width:
                finishing.append(candidate)
            # In a wider beam the second best could go on behind an end token, and win by its length. But a beam of one
            # is greedy search: the end token takes the only place.
            elif not ends and len(going) < width and not (width == 1 and finishing):
                going.append(candidate)
            else:
                last = candidates[width - 1] if ends or not going else going[-1]
                pruned.append((candidate, "beam", candidate[0], last[0]))
        finished = [self._finish(sentence, candidate) for candidate in finishing]
        if finished:
            ranking = sorted(sentence.finished + finished, key=lambda one: -one.score)
            sentence.finished = ranking[: self.beam.n_best]
        floor, divisor = self._floor(sentence)
        live = []
        for candidate in going:
            reachable = candidate[0] / divisor
            if reachable > floor:
                live.append((candidate[2], self._node(sentence, candidate)))
            else:
                pruned.append((candidate, "hopeless", reachable, floor))
        if not live and not sentence.finished:
            check_possible(-math.inf, sentence=sentence.number, position=self.length - 1)
        if events is not None:
            events.extend(finished)
            events.extend(BeamKept(node) for _, node in live)
            events.extend(
                BeamPruned(self._node(sentence, candidate), reason, value, against)
                for candidate, reason, value, against in pruned
            )
        sentence.live = live

    def _floor(self, sentence: _Sentence) -> tuple[float, float]:
        """The score that a live hypothesis must be able to exceed, and what its total is divided by at best."""
        if len(sentence.finished) < self.beam.n_best:
            return -math.inf, 1.0
        divisor = self.beam.penalty.largest_divisor(length=self.length, limit=sentence.limit)
        return sentence.finished[-1].score, divisor

    def _finish(self, sentence: _Sentence, candidate: _Candidate) -> BeamFinished:
        score = self.beam.penalty.score(candidate[0], length=self.length)
        return BeamFinished(self._node(sentence, candidate), score)

    def _node(self, sentence: _Sentence, candidate: _Candidate) -> BeamNode:
        total, log_prob, row, token = candidate
        parent = sentence.live[row][1] if sentence.live else None
        return BeamNode(next(self.numbers), sentence.number, parent, token, log_prob, total)

    def _hypothesis(self, finished: BeamFinished) -> Hypothesis:
        path = finished.node.path()
        tokens, log_probs = [node.token for node in path], [node.log_prob for node in path]
        return hypothesis(tokens, log_probs, score=finished.score, end_id=self.end_id)

    def _go_on(self) -> None:
        """Bring the state and the tensors in line with the live hypotheses; sentences that have none leave."""
        before, device = self.totals.shape[1], self.ids.device
        slots = [slot for slot, sentence in enumerate(self.sentences) if sentence.live]
        stay = [self.sentences[slot] for slot in slots]
        if stay and len(stay) < len(self.sentences):
            self.state = self.state.keep(torch.tensor(slots, device=device))
        self.sentences = stay
        if not stay:
            return
        # All sentences have equally many rows. Where one has fewer live hypotheses, its best is repeated with a total
        # of -inf, of which no candidate can come.
        width = max(len(sentence.live) for sentence in stay)
        live = [sentence.live + sentence.live[:1] * (width - len(sentence.live)) for sentence in stay]
        totals = [
            [node.total if place < len(sentence.live) else -math.inf for place, (_, node) in enumerate(rows)]
            for sentence, rows in zip(stay, live, strict=True)
        ]
        self.totals = torch.tensor(totals, device=device)
        self.ids = torch.tensor([[node.token] for rows in live for _, node in rows], device=device)
        parents = [slot * before + row for slot, rows in enumerate(live) for row, _ in rows]
        if parents != list(range(len(stay) * before)):
            self.state = self.state.reorder(torch.tensor(parents, device=device))
        if self.rules:
            origins = [slot * before + row for slot, rows in zip(slots, live, strict=True) for row, _ in rows]
            places = torch.tensor(origins, device=device)
            self.read = self.read[places]
            self.written = torch.cat((self.written[places], self.ids), dim=1)
