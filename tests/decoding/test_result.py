import math

import pytest

from regard.decoding.result import DeadEndError, Decoded, check_possible, hypothesis
from regard.errors import UsageError


def test_the_end_token_is_no_part_of_the_ids_but_its_log_prob_is_kept():
    ended = hypothesis([4, 5, 1], [-0.1, -0.2, -0.3], score=-0.2, end_id=1)
    assert (ended.ids, ended.log_probs, ended.finished) == ((4, 5), (-0.1, -0.2, -0.3), True)
    cut = hypothesis([4, 5], [-0.1, -0.2], score=-0.15, end_id=1)
    assert (cut.ids, cut.log_probs, cut.finished) == ((4, 5), (-0.1, -0.2), False)
    assert Decoded((ended, cut)).best is ended


@pytest.mark.parametrize("log_prob", [-math.inf, math.nan])
def test_a_sentence_that_can_write_nothing_is_reported(log_prob):
    check_possible(-50.0, sentence=0, position=0)
    with pytest.raises(UsageError) as raised:
        check_possible(log_prob, sentence=3, position=5)
    assert str(raised.value) == (
        "Sentence 3 has no token to write at position 5: the rules ban every one, or the model's logits are not numbers.\n"
        "Relax the rules (banned tokens, minimum length, repeated n-grams), or check the model."
    )


def test_a_caller_may_name_the_sentence_that_can_write_nothing():
    with pytest.raises(DeadEndError) as raised:
        check_possible(-math.inf, sentence=3, position=5)
    error = raised.value
    named = DeadEndError(sentence=error.sentence, position=error.position, name="Line 9")
    assert named.problem.startswith("Line 9 has no token to write at position 5: ")
