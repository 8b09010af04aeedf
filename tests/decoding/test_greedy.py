import math

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.rules import Banned, ForcedPrefix, MinLength
from regard.decoding.search import decode
from regard.errors import UsageError

START, END = 0, 1


def run(model, seeds, *, prompt=START, limits=None, rules=(), **options):
    limits = torch.tensor(limits or [8] * len(seeds), dtype=torch.long)
    request = Request(prompt=prompt, end_id=END, limits=limits, rules=rules)
    return decode(model, model.start(seeds), request, DecodingConfig(beam=1, **options))


def by_hand(model, seed, limit):
    """The likeliest token again and again, one sentence, no state."""
    tokens, log_probs = [], []
    while len(tokens) < limit and END not in tokens:
        row = model.log_probs(seed, tuple(tokens))
        tokens.append(row.index(max(row)))
        log_probs.append(max(row))
    return tokens, log_probs


def test_the_likeliest_token_is_written_until_the_end_token_or_the_limit(prefix_model):
    model = prefix_model()
    limits = [1 + number % 6 for number in range(12)]
    results = run(model, list(range(12)), limits=limits)
    for seed, (limit, decoded) in enumerate(zip(limits, results, strict=True)):
        tokens, log_probs = by_hand(model, seed, limit)
        assert decoded.best.finished == (tokens[-1] == END)
        assert list(decoded.best.ids) == [token for token in tokens if token != END]
        assert decoded.best.log_probs == pytest.approx(log_probs)
        assert decoded.best.score == pytest.approx(sum(log_probs) / len(log_probs))
    assert {decoded.best.finished for decoded in results} == {True, False}


def test_the_score_divides_by_the_length_penalty(prefix_model):
    [decoded] = run(prefix_model(end_bias=-1), [1], length_penalty=0.5)
    length = len(decoded.best.log_probs)
    assert length > 1
    assert decoded.best.score == pytest.approx(sum(decoded.best.log_probs) / length**0.5)


def test_a_batch_equals_its_sentences_alone(prefix_model):
    model = prefix_model()
    assert run(model, [3, 1, 4, 15, 9]) == [run(model, [seed])[0] for seed in (3, 1, 4, 15, 9)]


def test_finished_sentences_leave_the_batch(prefix_model):
    model = prefix_model()
    lengths = sorted((len(decoded.best.log_probs) for decoded in run(model, list(range(6)))), reverse=True)
    assert model.rows_read == [sum(length > step for length in lengths) for step in range(lengths[0])]
    assert lengths[0] > lengths[-1]


def test_a_sentence_may_start_with_a_token_of_its_own(prefix_model):
    model = prefix_model()
    results = run(model, [7, 7], prompt=Prompt(torch.tensor([[3], [4]])), limits=[1, 1])
    assert [decoded.best.log_probs for decoded in results] == [
        (pytest.approx(model.logits(7, (start,)).log_softmax(-1).max().item()),) for start in (3, 4)
    ]


def test_rules_follow_sentences_that_outlive_others(prefix_model):
    model = prefix_model(end_bias=-9.0)
    rules = [ForcedPrefix([[], [2, 3, 4, 5], [5, 5]])]
    results = run(model, [1, 2, 3], limits=[1, 6, 6], rules=rules)
    assert results[1].best.ids[:4] == (2, 3, 4, 5)
    assert results[2].best.ids[:2] == (5, 5)
    expected = [model.log_probs(2, (2, 3, 4, 5)[:place])[token] for place, token in enumerate((2, 3, 4, 5))]
    assert results[1].best.log_probs[:4] == pytest.approx(expected)


def test_the_end_token_waits_for_the_minimum_length(constant):
    [decoded] = run(constant([0.0, 5.0, 1.0]), [0], rules=[MinLength(3, END)])
    assert decoded.best.ids == (2, 2, 2)
    assert decoded.best.finished


def test_a_vocabulary_of_banned_tokens_is_an_error(constant):
    with pytest.raises(UsageError, match="Sentence 1 has no token to write at position 2"):
        run(
            constant([0.0, -5.0, 1.0]),
            [0, 1],
            limits=[2, 4],
            rules=[lambda log_probs, step: log_probs if step.written.shape[1] < 2 else log_probs - math.inf],
        )
    with pytest.raises(UsageError, match="Sentence 0 has no token to write at position 0"):
        run(constant([0.0, 1.0]), [0], rules=[Banned((0, 1))])


def test_a_model_that_yields_no_numbers_is_an_error(constant):
    with pytest.raises(UsageError, match="the model's logits are not numbers"):
        run(constant([math.nan, 0.0]), [0])


def test_no_sentences_give_no_results(prefix_model):
    assert run(prefix_model(), []) == []
