import math

import pytest
import torch

from regard.decoding.rules import (
    Banned,
    BannedSequences,
    ForcedPrefix,
    KnownTokens,
    MinLength,
    NoRepeatedNgram,
    RepetitionPenalty,
    Step,
    apply_rules,
)
from regard.errors import UsageError

INF = math.inf


def make_step(logits, written, sentences=None):
    sentences = torch.arange(len(written)) if sentences is None else torch.tensor(sentences)
    rows = torch.tensor(written, dtype=torch.long).view(len(written), -1)
    return Step(torch.tensor(logits), rows[:, :0], rows, sentences)


def run(rule, written, *, sentences=None, vocab_size=5):
    """Apply a rule to rows of equal log-probabilities -1, and check that what it only looks at stays as it was."""
    step = make_step([[0.5] * vocab_size] * len(written), written, sentences)
    before = step.written.clone(), step.sentences.clone()
    result = rule(torch.full((len(written), vocab_size), -1.0), step)
    assert (step.logits == 0.5).all()
    assert torch.equal(step.written, before[0])
    assert torch.equal(step.sentences, before[1])
    return result.tolist()


def test_forced_prefix_follows_the_sentence_of_a_row():
    rule = ForcedPrefix([[4, 2], [], [3]])
    own = pytest.approx(math.log(1 / 5))  # the logits are equal
    assert run(rule, [[], [], []], sentences=[2, 0, 1]) == [
        [-INF, -INF, -INF, own, -INF],
        [-INF, -INF, -INF, -INF, own],
        [-1, -1, -1, -1, -1],
    ]
    assert run(rule, [[3], [4]], sentences=[2, 0]) == [[-1, -1, -1, -1, -1], [-INF, -INF, own, -INF, -INF]]
    assert run(rule, [[3, 3], [4, 2]], sentences=[2, 0]) == [[-1] * 5] * 2


def test_a_forced_token_is_possible_whatever_other_rules_ban():
    step = make_step([[0.0, 1.0, 2.0]] * 2, [[2], [2]])
    log_probs = step.logits.log_softmax(-1)
    rules = [RepetitionPenalty(3.0), NoRepeatedNgram(1), Banned((0, 2)), ForcedPrefix([[2, 2], []])]
    forced, free = apply_rules(rules, log_probs.clone(), step).tolist()
    assert forced == [-INF, -INF, pytest.approx(log_probs[0, 2].item())], "the model's own probability"
    assert [value > -INF for value in free] == [False, True, False]


def test_min_length_bans_the_end_token_until_enough_is_written():
    rule = MinLength(2, end_id=1)
    assert run(rule, [[3]]) == [[-1, -INF, -1, -1, -1]]
    assert run(rule, [[3, 3]]) == [[-1] * 5]


def test_banned_tokens_are_impossible():
    assert run(Banned((0, 3)), [[], []]) == [[-INF, -1, -1, -INF, -1]] * 2
    assert run(Banned(()), [[]]) == [[-1] * 5]


def test_only_tokens_of_the_vocabulary_are_written():
    assert run(KnownTokens(3), [[], []]) == [[-1, -1, -1, -INF, -INF]] * 2
    assert run(KnownTokens(5), [[]]) == [[-1] * 5]


@pytest.mark.parametrize(
    ("written", "banned"),
    [
        ([], {4}),
        ([2], {3, 4}),
        ([3], {4}),
        ([2, 3], {2, 4}),
        ([2, 2], {3, 4}),
        ([3, 2, 3], {2, 4}),
        ([2, 3, 0], {4}),
    ],
)
def test_the_last_token_of_a_banned_sequence_is_impossible_behind_the_others(written, banned):
    [row] = run(BannedSequences([(4,), (2, 3), (2, 3, 2)]), [written])
    assert {token for token, value in enumerate(row) if value == -INF} == banned


def test_rows_have_banned_sequences_of_their_own():
    assert run(BannedSequences([(2, 3)]), [[2], [3], [2]]) == [[-1, -1, -1, -INF, -1], [-1] * 5, [-1, -1, -1, -INF, -1]]


def test_a_sequence_behind_some_tokens_is_another_one():
    rule = BannedSequences([(4,), (2, 3)], unless_after=torch.tensor([True, False, False, False, False]))
    assert run(rule, [[]]) == [[-1, -1, -1, -1, -INF]], "nothing stands before"
    assert run(rule, [[1], [0]]) == [[-1, -1, -1, -1, -INF], [-1] * 5]
    assert run(rule, [[1, 2], [0, 2]]) == [[-1, -1, -1, -INF, -INF], [-1, -1, -1, -1, -INF]]


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


def test_repetition_penalty_scales_each_logit_once_and_normalises():
    step = make_step([[3.0, -3.0, 1.0]] * 2, [[0, 0, 1], [2, 2, 2]])
    found = RepetitionPenalty(1.5)(step.logits.log_softmax(-1), step)
    torch.testing.assert_close(found, torch.tensor([[2.0, -4.5, 1.0], [3.0, -3.0, 1.0 / 1.5]]).log_softmax(-1))
    assert step.logits.tolist() == [[3.0, -3.0, 1.0]] * 2


def test_repetition_penalty_ends_a_loop_that_the_model_is_sure_of():
    # Token 2 has a probability of 0.999, whose logarithm is -0.001: times 1.5 it is as good as before.
    step = make_step([[0.0, 7.0, 14.0]], [[2]])
    log_probs = step.logits.log_softmax(-1)
    assert (log_probs * 1.5).argmax() == 2
    assert RepetitionPenalty(2.5)(log_probs, step).argmax() == 1


def test_before_anything_is_written_nothing_is_penalised():
    step = make_step([[0.0, 1.0, 2.0]], [[]])
    log_probs = step.logits.log_softmax(-1)
    assert torch.equal(RepetitionPenalty(1.5)(log_probs, step), log_probs)


def test_rules_are_applied_one_after_another():
    rules = [Banned((0,)), RepetitionPenalty(2.0), MinLength(3, end_id=1)]
    step = make_step([[5.0, 0.0, 4.0, 1.0]], [[0, 2]])
    found = apply_rules(rules, step.logits.log_softmax(-1), step)
    expected = torch.tensor([[2.5, 0.0, 2.0, 1.0]]).log_softmax(-1)
    torch.testing.assert_close(found[:, 2:], expected[:, 2:])
    assert found[:, :2].tolist() == [[-INF, -INF]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: NoRepeatedNgram(0),
            "An n-gram that must not repeat has at least 1 token, but n is 0.\nGive 1 or more.",
        ),
        (
            lambda: BannedSequences([(3,), ()]),
            "A banned sequence has at least 1 token, but one is empty.\nLeave it out.",
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
