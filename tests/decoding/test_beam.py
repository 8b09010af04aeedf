import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import DecodingConfig
from regard.decoding.beam import Beam, beam_search, watch_beam_search
from regard.decoding.beam_events import BeamFinished, BeamKept, BeamPruned
from regard.decoding.penalties import GNMT, LengthPower
from regard.decoding.request import Request
from regard.decoding.rules import Banned, ForcedPrefix, MinLength, NoRepeatedNgram, RepetitionPenalty
from regard.decoding.search import decode
from regard.errors import UsageError

START, END = 0, 1
PENALTIES = [LengthPower(alpha) for alpha in (-0.5, 0.0, 0.6, 1.0, 1.4)] + [GNMT(0.6)]


def request(seeds, limits=None, rules=()):
    return Request(prompt=START, end_id=END, limits=torch.tensor(limits or [8] * len(seeds)), rules=rules)


def run(model, seeds, *, limits=None, rules=(), **options):
    return beam_search(model, model.start(seeds), request(seeds, limits, rules), Beam(**options))


def run_watched(model, seeds, *, limits=None, **options):
    """Return the events of each step and the results."""
    stream = watch_beam_search(model, model.start(seeds), request(seeds, limits), Beam(**options))
    steps = []
    while True:
        try:
            steps.append(next(stream))
        except StopIteration as stop:
            return steps, stop.value
        assert not torch.is_inference_mode_enabled()


def exhaustive(model, seed, limit, penalty):
    """Score every possible output; return (score, tokens), best first."""
    outputs = []
    others = [token for token in range(model.vocab_size) if token != END]
    for length in range(1, limit + 1):
        for body in itertools.product(others, repeat=length - 1):
            for last in [END] if length < limit else range(model.vocab_size):
                tokens = (*body, last)
                total = sum(model.log_probs(seed, tokens[:place])[token] for place, token in enumerate(tokens))
                outputs.append((penalty.score(total, length=length), tokens))
    return sorted(outputs, reverse=True)


def patient(model, seed, limit, width, penalty):
    """Beam search of one sentence that never stops before the limit; return (score, tokens), best first."""
    live, finished = [(0.0, ())], []
    for length in range(1, limit + 1):
        candidates = sorted(
            (
                (total + log_prob, (*tokens, token))
                for total, tokens in live
                for token, log_prob in enumerate(model.log_probs(seed, tokens))
            ),
            reverse=True,
        )[: 2 * width]
        ends = [tokens[-1] == END or length == limit for _, tokens in candidates]
        for (total, tokens), end in list(zip(candidates, ends, strict=True))[:width]:
            if end:
                finished.append((penalty.score(total, length=length), tokens))
        live = [candidate for candidate, end in zip(candidates, ends, strict=True) if not end][:width]
    return sorted(finished, reverse=True)[:width]


def outputs(decoded):
    return [(one.score, (*one.ids, END) if one.finished else one.ids) for one in decoded.hypotheses]


def assert_same(found, expected):
    assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
    assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_beam_that_holds_everything_finds_the_best_of_all(prefix_model, penalty):
    model = prefix_model(4)
    for seed, decoded in enumerate(run(model, [0, 1, 2], limits=[4, 4, 4], width=120, n_best=10, penalty=penalty)):
        assert_same(outputs(decoded), exhaustive(model, seed, 4, penalty)[:10])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from(PENALTIES),
    width=st.integers(2, 5),
    end_bias=st.sampled_from([-1.0, 0.5, 2.5]),
    vocab_size=st.sampled_from([2, 3, 9]),
    data=st.data(),
)
def test_stopping_early_returns_the_same(prefix_model, seed, penalty, width, end_bias, vocab_size, data):
    n_best = data.draw(st.integers(1, width))
    model = prefix_model(vocab_size, end_bias=end_bias)
    [decoded] = run(model, [seed], limits=[9], width=width, n_best=n_best, penalty=penalty)
    assert_same(outputs(decoded), patient(model, seed, 9, width, penalty)[:n_best])


def test_the_search_stops_as_soon_as_the_answer_is_certain(prefix_model):
    model = prefix_model(end_bias=4.0)
    run(model, [0], limits=[1000], width=3, penalty=LengthPower(0.0))
    assert len(model.rows_read) < 10


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_of_one_is_greedy_search(prefix_model, alpha):
    model, seeds = prefix_model(), list(range(20))
    expected = decode(model, model.start(seeds), request(seeds), DecodingConfig(beam=1, length_penalty=alpha))
    for found, wanted in zip(run(model, seeds, width=1, penalty=LengthPower(alpha)), expected, strict=True):
        assert_same(outputs(found), outputs(wanted))


def test_a_batch_equals_its_sentences_alone(prefix_model):
    model, seeds, limits = prefix_model(), list(range(12)), [1 + number % 9 for number in range(12)]
    together = run(model, seeds, limits=limits, width=4, n_best=3)
    alone = [
        run(model, [seed], limits=[limit], width=4, n_best=3)[0] for seed, limit in zip(seeds, limits, strict=True)
    ]
    assert together == alone


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_log_probs_are_the_models_and_add_up_to_the_score(prefix_model, penalty):
    model = prefix_model()
    for seed, decoded in enumerate(run(model, [0, 1, 2], width=4, n_best=4, penalty=penalty)):
        assert len(decoded.hypotheses) == 4
        for score, tokens in outputs(decoded):
            expected = [model.log_probs(seed, tokens[:place])[token] for place, token in enumerate(tokens)]
            [found] = [one for one in decoded.hypotheses if one.score == score]
            assert found.log_probs == pytest.approx(expected, abs=1e-6)
            assert sum(found.log_probs) == pytest.approx(score * penalty.divisor(len(tokens)), abs=1e-5)


def test_a_beam_wider_than_the_vocabulary_returns_what_there_is(constant):
    [decoded] = run(constant([0.0, 1.0]), [0], limits=[2], width=8, n_best=8)
    assert sorted(tokens for _, tokens in outputs(decoded)) == [(0, 0), (0, 1), (1,)]


def test_hopeless_rows_and_done_sentences_are_not_computed(prefix_model):
    model = prefix_model(end_bias=1.0)
    run(model, list(range(8)), limits=[30] * 8, width=4)
    assert model.rows_read[0] == 8
    assert max(model.rows_read) == 32
    assert model.rows_read[-1] < 4


RULES = {
    "min length": (MinLength(5, END), lambda tokens: len(tokens) >= 6 or tokens[-1] != END),
    "banned": (Banned((3, 4)), lambda tokens: not {3, 4} & set(tokens)),
    "bigrams": (
        NoRepeatedNgram(2),
        lambda tokens: len(set(itertools.pairwise(tokens))) == len(tokens) - 1,
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_hold_in_every_hypothesis(prefix_model, name):
    rule, holds = RULES[name]
    model = prefix_model(5)
    free, ruled = (
        run(model, list(range(8)), width=4, n_best=4),
        run(model, list(range(8)), width=4, n_best=4, rules=[rule]),
    )
    assert not all(holds(tokens) for decoded in free for _, tokens in outputs(decoded))
    assert all(holds(tokens) for decoded in ruled for _, tokens in outputs(decoded))


def test_rules_see_the_tokens_of_their_own_hypothesis(prefix_model):
    # The penalty depends on all tokens of a row, so scores add up only if rows and tokens are moved together.
    model = prefix_model(5, end_bias=-1.0)
    results = run(model, list(range(6)), limits=[3, 9, 5, 9, 4, 9], width=4, n_best=4, rules=[RepetitionPenalty(1.5)])
    for seed, decoded in enumerate(results):
        for one, (_, tokens) in zip(decoded.hypotheses, outputs(decoded), strict=True):
            expected = [penalised(model, seed, tokens[:place], 1.5)[token] for place, token in enumerate(tokens)]
            assert one.log_probs == pytest.approx(expected, abs=1e-5)


def penalised(model, seed, prefix, penalty):
    """The log-probabilities after a prefix, tokens of which are penalised."""
    logits = model.logits(seed, (START, *prefix)).clone()
    for token in set(prefix):
        logits[token] *= penalty if logits[token] < 0 else 1 / penalty
    return logits.log_softmax(-1).tolist()


def test_every_hypothesis_begins_with_its_sentences_prefix(prefix_model):
    prefixes = [(), (2, 3, 4), (6,)]
    model = prefix_model(end_bias=-1.0)
    results = run(model, [0, 1, 2], limits=[1, 6, 6], width=3, n_best=3, rules=[ForcedPrefix(prefixes)])
    for decoded, prefix in zip(results, prefixes, strict=True):
        assert len(decoded.hypotheses) == 3
        assert all(one.ids[: len(prefix)] == prefix for one in decoded.hypotheses)


def test_rules_that_allow_nothing_are_an_error(constant):
    with pytest.raises(UsageError, match="Sentence 0 has no token to write at position 0"):
        run(constant([0.0, 1.0]), [0], width=3, rules=[Banned((0, 1))])
    with pytest.raises(UsageError, match="the model's logits are not numbers"):
        run(constant([math.nan, 0.0]), [0], width=3)


def test_watching_changes_nothing(prefix_model):
    model = prefix_model()
    _, results = run_watched(model, [0, 1, 2], width=4, n_best=2)
    assert results == run(model, [0, 1, 2], width=4, n_best=2)


@pytest.mark.parametrize("width", [1, 3])
def test_the_best_leaf_is_the_result(prefix_model, width):
    steps, results = run_watched(prefix_model(), [0, 1, 2], width=width)
    finished = [event for events in steps for event in events if isinstance(event, BeamFinished)]
    for number, decoded in enumerate(results):
        best = max((event for event in finished if event.node.sentence == number), key=lambda event: event.score)
        path = best.node.path()
        assert [(best.score, tuple(node.token for node in path))] == outputs(decoded)
        assert tuple(node.log_prob for node in path) == decoded.best.log_probs
        for place, node in enumerate(path):
            assert node.total == pytest.approx(sum(earlier.log_prob for earlier in path[: place + 1]), abs=1e-5)


def test_events_grow_a_tree(prefix_model):
    steps, _ = run_watched(prefix_model(), [0, 1], width=3)
    kept, numbers = {None}, set()
    for length, events in enumerate(steps, start=1):
        for event in events:
            assert event.node.parent in kept
            assert event.node.number not in numbers
            assert len(event.node.path()) == length
            numbers.add(event.node.number)
        kept = {event.node for event in events if isinstance(event, BeamKept)}
    assert not kept


def test_every_candidate_has_one_event_and_pruned_ones_say_what_killed_them(prefix_model):
    limit, width = 7, 3
    penalty = LengthPower(1.0)
    steps, _ = run_watched(prefix_model(end_bias=0.0), list(range(8)), limits=[limit] * 8, width=width)
    reasons = set()
    for length, events in enumerate(steps, start=1):
        for number in {event.node.sentence for event in events}:
            own = [event for event in events if event.node.sentence == number]
            assert len(own) == (2 * width if length > 1 else min(2 * width, 7))
            survivors = {event.node.total for event in own if not isinstance(event, BeamPruned)}
            for event in own:
                if not isinstance(event, BeamPruned):
                    continue
                reasons.add((event.reason, event.node.token == END, length == limit))
                assert event.value <= event.against
                if event.reason == "beam":
                    assert event.value == event.node.total
                    assert sum(other.node.total >= event.against for other in own) >= width
                else:
                    assert event.value == event.node.total / penalty.largest_divisor(length=length, limit=limit)
                    assert event.node.total not in survivors
                    earlier = [one for step in steps[:length] for one in step if isinstance(one, BeamFinished)]
                    assert event.against == max(one.score for one in earlier if one.node.sentence == number)
    assert {("beam", False, False), ("beam", True, False), ("beam", False, True), ("hopeless", False, False)} <= reasons


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "A beam holds at least 1 hypothesis, but its width is 0.\nGive 1 or more."),
        (
            {"width": 2, "n_best": 3},
            "A beam of width 2 returns 1 to 2 hypotheses, but 3 were asked for.\nWiden the beam, or ask for fewer.",
        ),
        (
            {"width": 2, "n_best": 0},
            "A beam of width 2 returns 1 to 2 hypotheses, but 0 were asked for.\nWiden the beam, or ask for fewer.",
        ),
    ],
)
def test_senseless_beams_are_refused(options, message):
    with pytest.raises(UsageError) as raised:
        Beam(**options)
    assert str(raised.value) == message
