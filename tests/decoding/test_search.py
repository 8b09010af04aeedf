import torch

from regard.config import DecodingConfig
from regard.decoding.autoregressive import autoregress
from regard.decoding.beam import Beam, beam_search
from regard.decoding.greedy import likeliest
from regard.decoding.penalties import LengthPower
from regard.decoding.request import Request
from regard.decoding.result import run_to_end
from regard.decoding.rules import Banned, ForcedPrefix, MinLength, NoRepeatedNgram, RepetitionPenalty
from regard.decoding.sampling import Sampling, drawing
from regard.decoding.search import config_rules, decode


def request(**options):
    return Request(prompt=0, end_id=1, limits=torch.tensor([6, 6, 6]), **options)


def run(model, config, **options):
    return decode(model, model.start([1, 2, 3]), request(**options), config)


def test_a_beam_of_one_is_greedy_search(prefix_model):
    model = prefix_model()
    steps = autoregress(model, model.start([1, 2, 3]), request(), likeliest, penalty=LengthPower(0.3))
    assert run(model, DecodingConfig(beam=1, length_penalty=0.3)) == run_to_end(steps)


def test_a_wider_beam_is_beam_search(prefix_model):
    model = prefix_model()
    beam = Beam(width=4, n_best=2, penalty=LengthPower(0.3))
    expected = beam_search(model, model.start([1, 2, 3]), request(), beam)
    assert run(model, DecodingConfig(beam=4, n_best=2, length_penalty=0.3)) == expected


def test_sampling_takes_its_options_seed_and_keys(prefix_model):
    model = prefix_model()
    asked = request(seed=7, keys=[30, 20, 10])
    choose = drawing(Sampling(temperature=1.3, top_k=6, top_p=0.95, samples=2), asked)
    steps = autoregress(model, model.start([1, 2, 3]), asked, choose, width=2)
    config = DecodingConfig(sample=True, temperature=1.3, top_k=6, top_p=0.95, n_best=2)
    assert run(model, config, seed=7, keys=[30, 20, 10]) == run_to_end(steps)


def test_the_config_says_which_rules_hold():
    assert config_rules(DecodingConfig(), end_id=1) == []
    config = DecodingConfig(min_length=2, no_repeat_ngram=3, repetition_penalty=1.2)
    assert config_rules(config, end_id=1) == [MinLength(2, 1), NoRepeatedNgram(3), RepetitionPenalty(1.2)]


def test_rules_of_the_caller_have_the_last_word(prefix_model):
    prefix = ForcedPrefix([(5, 5, 5)] * 3)
    for beam, sampled in ((1, False), (3, False), (1, True)):
        config = DecodingConfig(beam=beam, sample=sampled, no_repeat_ngram=1, repetition_penalty=1.3, max_length=6)
        for decoded in run(prefix_model(), config, rules=[Banned((5,)), prefix]):
            assert decoded.best.ids[:3] == (5, 5, 5)
            assert 5 not in decoded.best.ids[3:]


def test_rules_of_the_caller_and_of_the_config_both_hold(prefix_model):
    for beam, sampled in ((1, False), (3, False), (1, True)):
        results = run(
            prefix_model(end_bias=3.0), DecodingConfig(beam=beam, sample=sampled, min_length=4), rules=[Banned((5, 6))]
        )
        for decoded in results:
            assert len(decoded.best.ids) >= 4
            assert not {5, 6} & set(decoded.best.ids)
