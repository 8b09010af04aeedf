import math

import pytest
import torch

from regard.decoding.rules import Banned, ForcedPrefix, MinLength, NoRepeatedNgram, RepetitionPenalty, apply_rules
from regard.errors import UsageError

INF = math.inf


def run(rule, written, *, sentences=None, vocab_size=5):
    """Apply a rule to rows of equal log-probabilities -1, and check that its input stays as it was."""
    log_probs = torch.full((len(written), vocab_size), -1.0)
    sentences = torch.arange(len(written)) if sentences is None else torch.tensor(sentences)
    result = rule(log_probs, torch.tensor(written, dtype=torch.long).view(len(written), -1), sentences)
    assert (log_probs == -1).all()
    return result.tolist()


def test_forced_prefix_follows_the_sentence_of_a_row():
    rule = ForcedPrefix([[4, 2], [], [3]])
    assert run(rule, [[], [], []], sentences=[2, 0, 1]) == [
        [-INF, -INF, -INF, -1, -INF],
        [-INF, -INF, -INF, -INF, -1],
        [-1, -1, -1, -1, -1],
    ]
    assert run(rule, [[3], [4]], sentences=[2, 0]) == [[-1, -1, -1, -1, -1], [-INF, -INF, -1, -INF, -INF]]
    assert run(rule, [[3, 3], [4, 2]], sentences=[2, 0]) == [[-1] * 5] * 2


def test_min_length_bans_the_end_token_until_enough_is_written():
    rule = MinLength(2, end_id=1)
    assert run(rule, [[3]]) == [[-1, -INF, -1, -1, -1]]
    assert run(rule, [[3, 3]]) == [[-1] * 5]


def test_banned_tokens_are_impossible():
    assert run(Banned((0, 3)), [[], []]) == [[-INF, -1, -1, -INF, -1]] * 2
    assert run(Banned(()), [[]]) == [[-1] * 5]


@pytest.mark.parametrize(
    ("n", "written", "banned"),
    [
        (1, [2, 4], {2, 4}),
        (2, [2, 3, 2], {3}),
        (2, [2, 3, 2, 4, 2], {3, 4}),
        (2, [3, 3], {3}),
        (2, [2, 3], set()),
        (3, [2, 3, 4, 2, 3], {4}),
        (3, [2, 3, 4, 3], set()),
        (3, [2, 2], set()),
    ],
)
def test_no_ngram_is_written_twice(n, written, banned):
    [row] = run(NoRepeatedNgram(n), [written])
    assert {token for token, value in enumerate(row) if value == -INF} == banned


def test_rows_do_not_share_their_ngrams():
    first, second = run(NoRepeatedNgram(2), [[2, 3, 2], [4, 3, 2]])
    assert first == [-1, -1, -1, -INF, -1]
    assert second == [-1] * 5


def test_repetition_penalty_multiplies_the_log_probability_once():
    assert run(RepetitionPenalty(1.5), [[2, 2, 4], [0, 0, 0]]) == [[-1, -1, -1.5, -1, -1.5], [-1.5, -1, -1, -1, -1]]
    assert run(RepetitionPenalty(1.5), [[]]) == [[-1] * 5]


def test_rules_are_applied_one_after_another():
    rules = [Banned((0,)), RepetitionPenalty(2.0), MinLength(3, end_id=1)]
    log_probs = apply_rules(rules, torch.full((1, 4), -1.0), torch.tensor([[0, 2]]), torch.tensor([0]))
    assert log_probs.tolist() == [[-INF, -INF, -2, -1]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: NoRepeatedNgram(0),
            "An n-gram that must not repeat has at least 1 token, but n is 0.\nGive 1 or more.",
        ),
        (
            lambda: RepetitionPenalty(0.0),
            "A repetition penalty is above 0, but it is 0.0.\nGive 1.0 for none, 1.2 for a mild one.",
        ),
    ],
)
def test_senseless_rules_are_refused(make, message):
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value) == message
