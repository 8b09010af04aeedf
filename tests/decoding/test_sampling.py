import math

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding.request import Request
from regard.decoding.rules import Banned, ForcedPrefix
from regard.decoding.sampling import LIKELY, Sampling
from regard.decoding.search import decode
from regard.errors import UsageError

START, END = 0, 1
PROBS = [0.1, 0.2, 0.4, 0.3]


def run(model, seeds, *, limit=8, samples=1, rules=(), seed=1, keys=None, **options):
    limits = torch.full((len(seeds),), limit)
    request = Request(prompt=START, end_id=END, limits=limits, rules=rules, seed=seed, keys=keys)
    return decode(model, model.start(seeds), request, DecodingConfig(sample=True, n_best=samples, **options))


def run_greedy(model, seeds):
    request = Request(prompt=START, end_id=END, limits=torch.full((len(seeds),), 8))
    return decode(model, model.start(seeds), request, DecodingConfig(beam=1))


def frequencies(probs, **options):
    """How often each token comes in 4,000 draws."""
    uniform = torch.rand(4000, generator=torch.Generator().manual_seed(5))
    tokens = Sampling(**options).draw(torch.tensor(probs).log().expand(4000, -1), uniform)
    return (tokens.bincount(minlength=len(probs)) / 4000).tolist()


# Four standard deviations of a frequency in 4,000 draws are at most 0.032.
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_come_as_often_as_they_are_likely(temperature):
    expected = torch.tensor(PROBS).pow(1 / temperature)
    expected = (expected / expected.sum()).tolist()
    assert frequencies(PROBS, temperature=temperature) == pytest.approx(expected, abs=0.032)


def test_sampled_tokens_come_as_often_as_they_are_likely(constant):
    [decoded] = run(constant([math.log(prob) for prob in PROBS]), [0], limit=1, samples=1000)
    first = [one.ids[0] if one.ids else END for one in decoded.hypotheses]
    assert [first.count(token) / 1000 for token in range(4)] == pytest.approx(PROBS, abs=0.064)


def test_top_k_cuts_the_rest_off_and_scales_what_stays():
    assert frequencies(PROBS, top_k=2) == pytest.approx([0, 0, 4 / 7, 3 / 7], abs=0.032)


@pytest.mark.parametrize(("top_p", "stay"), [(0.39, {2}), (0.41, {2, 3}), (0.71, {1, 2, 3}), (1.0, {0, 1, 2, 3})])
def test_top_p_keeps_the_fewest_tokens_that_hold_so_much(top_p, stay):
    found = frequencies(PROBS, top_p=top_p)
    assert {token for token, share in enumerate(found) if share} == stay
    assert found == pytest.approx([PROBS[t] * (t in stay) / sum(PROBS[s] for s in stay) for t in range(4)], abs=0.032)


def test_top_p_draws_as_if_all_tokens_were_sorted():
    generator = torch.Generator().manual_seed(3)
    spread = torch.tensor([3.0, 0.1]).repeat(250).unsqueeze(1)  # few tokens hold most, or many are needed
    log_probs = (torch.randn(500, 2000, generator=generator) * spread).log_softmax(-1)
    uniform = torch.rand(500, generator=generator)
    probs, tokens = log_probs.exp().sort(dim=-1, descending=True)
    stay = probs.cumsum(-1) - probs < 0.9
    assert (stay.sum(-1) > LIKELY).tolist() == [False, True] * 250
    cumulative = (probs * stay).cumsum(-1)
    place = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(-1, keepdim=True)
    assert torch.equal(Sampling(top_p=0.9).draw(log_probs, uniform), tokens.gather(1, place)[:, 0])


def test_top_p_counts_within_top_k():
    # Among the two that stay, 0.4 of 0.7 is 0.57: the second is needed for 0.6, not for 0.5.
    assert frequencies(PROBS, top_k=2, top_p=0.5) == [0, 0, 1, 0]
    assert frequencies(PROBS, top_k=2, top_p=0.6) == pytest.approx([0, 0, 4 / 7, 3 / 7], abs=0.032)


@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.0}, {"temperature": 1e-46}, {"temperature": 1e-29}, {"top_k": 1}, {"top_p": 1e-6}],
    ids=lambda one: str(one),
)
def test_without_any_freedom_sampling_is_greedy_search(prefix_model, options):
    model = prefix_model()
    assert run(model, list(range(6)), **options) == run_greedy(model, list(range(6)))


def test_log_probs_are_the_models_whatever_the_temperature(prefix_model):
    model = prefix_model()
    [decoded] = run(model, [5], temperature=3.0, top_k=4)
    tokens = [*decoded.best.ids, END]
    expected = [
        model.log_probs(5, tuple(tokens[:place]))[tokens[place]] for place in range(len(decoded.best.log_probs))
    ]
    assert decoded.best.log_probs == pytest.approx(expected)
    assert decoded.best.score == pytest.approx(sum(expected) / len(expected))


def test_a_batch_equals_its_sentences_alone(prefix_model):
    model = prefix_model()
    together = run(model, [3, 1, 4], samples=3)
    assert together == [run(model, [seed], keys=[key], samples=3)[0] for key, seed in enumerate((3, 1, 4))]


def test_draws_differ_by_seed_key_and_sample(prefix_model):
    model = prefix_model(vocab_size=50, end_bias=-5.0)
    [first, second] = run(model, [3, 3], samples=2)
    [again, other_seed] = run(model, [3], samples=2), run(model, [3], samples=2, seed=2)
    outputs = {one.ids for decoded in (first, second, *again, *other_seed) for one in decoded.hypotheses}
    assert len(outputs) == 6
    assert again == [first]


def test_samples_come_best_first(prefix_model):
    [decoded] = run(prefix_model(), [2], samples=20)
    scores = [one.score for one in decoded.hypotheses]
    assert len(scores) == 20
    assert scores == sorted(scores, reverse=True)


def test_a_sample_ends_where_its_end_token_is(prefix_model):
    results = run(prefix_model(), [0, 1, 2], samples=8)
    assert len({len(one.ids) for decoded in results for one in decoded.hypotheses}) > 3
    for decoded in results:
        for one in decoded.hypotheses:
            assert END not in one.ids
            assert len(one.log_probs) == len(one.ids) + one.finished <= 8


def test_rules_know_the_sentence_of_every_sample(prefix_model):
    prefixes = [(), (2, 3), (4, 5, 6, 2)]
    results = run(prefix_model(), [0, 1, 2], samples=4, rules=[ForcedPrefix(prefixes)])
    for decoded, prefix in zip(results, prefixes, strict=True):
        assert all(one.ids[: len(prefix)] == prefix for one in decoded.hypotheses)


def test_the_smallest_and_the_largest_draw_choose_possible_tokens():
    log_probs = torch.tensor([[0.0, 0.4, 0.6, 0.0]]).log().expand(2, -1)
    largest = 1 - 2**-24
    assert Sampling().draw(log_probs, torch.tensor([0.0, largest])).tolist() == [1, 2]
    uniform = torch.full((2,), largest)
    many = torch.cat((torch.rand(2, 5000, generator=torch.Generator().manual_seed(1)), torch.zeros(2, 1)), dim=1)
    assert (Sampling().draw(many.log(), uniform) < 5000).all()


def test_a_banned_token_is_never_drawn(constant):
    [decoded] = run(constant([3.0, 0.0, 1.0]), [0], samples=200, rules=[Banned((0,))])
    assert not any(0 in one.ids for one in decoded.hypotheses)


def test_a_model_that_yields_no_numbers_is_an_error(constant):
    with pytest.raises(UsageError, match="the model's logits are not numbers"):
        run(constant([math.nan, 0.0]), [0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "The temperature must not be below 0, but it is -1.0.\nGive 0 for greedy search."),
        ({"top_k": -1}, "top_k must not be below 0, but it is -1.\nGive 0 for the whole vocabulary."),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, but it is 0.0.\nGive 1.0 for the whole vocabulary."),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, but it is 1.5.\nGive 1.0 for the whole vocabulary."),
        ({"samples": 0}, "At least 1 sample must be drawn per sentence, but 0 were asked for.\nGive 1 or more."),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(UsageError) as raised:
        Sampling(**options)
    assert str(raised.value) == message
