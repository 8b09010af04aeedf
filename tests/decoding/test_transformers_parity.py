"""The same weights and options give the same outputs as `generate` of the transformers package."""

import warnings
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.request import Request
from regard.decoding.rules import Banned, BannedSequences, MinLength, NoRepeatedNgram, RepetitionPenalty, Step
from regard.decoding.search import decode

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import (
        MarianConfig,
        MarianMTModel,
        NoBadWordsLogitsProcessor,
        NoRepeatNGramLogitsProcessor,
        RepetitionPenaltyLogitsProcessor,
    )

PAD, END, VOCAB, LIMIT = 0, 1, 23, 12


@dataclass(frozen=True)
class MarianState:
    memory: Tensor  # (N, S, D)
    mask: Tensor  # (N, S)
    prefixes: Tensor  # (R, T)

    @property
    def width(self):
        return len(self.prefixes) // len(self.memory)

    def reorder(self, parents):
        return MarianState(self.memory, self.mask, self.prefixes[parents])

    def keep(self, sentences):
        prefixes = self.prefixes.unflatten(0, (-1, self.width))[sentences].flatten(0, 1)
        return MarianState(self.memory[sentences], self.mask[sentences], prefixes)


class Marian:
    """transformers' network without a cache, as a decoder of ours."""

    def __init__(self, network):
        self.network = network

    def start(self, inputs):
        ids, mask = inputs
        memory = self.network.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        return MarianState(memory, mask, ids[:, :0])

    def step(self, state, ids, counts=None):
        state = MarianState(state.memory, state.mask, torch.cat((state.prefixes, ids), dim=1))
        logits = self.network(
            encoder_outputs=(state.memory.repeat_interleave(state.width, dim=0),),
            attention_mask=state.mask.repeat_interleave(state.width, dim=0),
            decoder_input_ids=state.prefixes,
            use_cache=False,
        ).logits[:, -1]
        return logits, state


@pytest.fixture(scope="module")
def network():
    """Random weights, large enough that the outputs vary, and a bias by which they end at different lengths."""
    torch.manual_seed(4)
    sizes = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    }
    config = MarianConfig(
        vocab_size=VOCAB,
        d_model=16,
        init_std=0.8,
        max_position_embeddings=32,
        **sizes,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
    )
    network = MarianMTModel(config).eval()
    network.final_logits_bias[0, END] = 2.0
    return network


@pytest.fixture(scope="module")
def inputs():
    generator = torch.Generator().manual_seed(4)
    ids = torch.randint(2, VOCAB, (10, 7), generator=generator)
    mask = torch.arange(7) < torch.randint(2, 8, (10, 1), generator=generator)
    return ids.masked_fill(~mask, PAD), mask.long()


def generate(network, inputs, **options):
    """Return the tokens of every hypothesis up to the end token, and their scores where there are any."""
    ids, mask = inputs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = network.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=LIMIT,
            max_length=None,
            do_sample=False,
            bad_words_ids=[[PAD]],
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
    rows = [row[1:] for row in found.sequences.tolist()]
    return [tuple(row[: row.index(END)]) if END in row else tuple(row) for row in rows], found.get("sequences_scores")


def ours(network, inputs, config, rules=()):
    """Decode by our search."""
    model, limits = Marian(network), torch.full((len(inputs[0]),), LIMIT)
    request = Request(prompt=PAD, end_id=END, limits=limits, rules=[Banned((PAD,)), *rules])
    return decode(model, model.start(inputs), request, config)


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.0, 1.4])
def test_beam_search_agrees(network, inputs, alpha):
    expected, scores = generate(
        network, inputs, num_beams=4, num_return_sequences=4, early_stopping="never", length_penalty=alpha
    )
    results = ours(network, inputs, DecodingConfig(beam=4, n_best=4, length_penalty=alpha))
    assert [one.ids for decoded in results for one in decoded.hypotheses] == expected
    assert [one.score for decoded in results for one in decoded.hypotheses] == pytest.approx(scores.tolist(), abs=1e-4)
    assert len({len(ids) for ids in expected}) > 3
    alone = ours(network, inputs, DecodingConfig(beam=4, length_penalty=alpha))
    assert [decoded.best.ids for decoded in alone] == expected[::4]


def test_rules_agree_in_beam_search(network, inputs):
    options = {"num_beams": 4, "early_stopping": "never", "length_penalty": 1.0}
    expected, _ = generate(network, inputs, **options, min_new_tokens=4, no_repeat_ngram_size=2)
    free, _ = generate(network, inputs, **options)
    results = ours(network, inputs, DecodingConfig(beam=4), [MinLength(4, END), NoRepeatedNgram(2)])
    assert [decoded.best.ids for decoded in results] == expected
    assert expected != free


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({"repetition_penalty": 1.3}, [RepetitionPenalty(1.3)]),
        ({"no_repeat_ngram_size": 2, "min_new_tokens": 4}, [MinLength(4, END), NoRepeatedNgram(2)]),
        ({"no_repeat_ngram_size": 3, "repetition_penalty": 2.0}, [NoRepeatedNgram(3), RepetitionPenalty(2.0)]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_rules_agree_in_greedy_search(network, inputs, options, rules):
    expected, _ = generate(network, inputs, num_beams=1, **options)
    free, _ = generate(network, inputs, num_beams=1)
    results = ours(network, inputs, DecodingConfig(beam=1), rules)
    assert [decoded.best.ids for decoded in results] == expected
    assert expected != free


@pytest.mark.parametrize(
    ("rule", "processor"),
    [
        (RepetitionPenalty(1.7), RepetitionPenaltyLogitsProcessor(1.7)),
        (RepetitionPenalty(0.8), RepetitionPenaltyLogitsProcessor(0.8)),
        *((NoRepeatedNgram(n), NoRepeatNGramLogitsProcessor(n)) for n in (1, 2, 3)),
        (
            BannedSequences([(3,), (1, 2), (2, 2, 4)]),
            NoBadWordsLogitsProcessor([[3], [1, 2], [2, 2, 4]], eos_token_id=0),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_rule_does_what_the_processor_does(rule, processor):
    generator = torch.Generator().manual_seed(8)
    logits = torch.randn(200, 5, generator=generator) * 4
    written = torch.randint(5, (200, 9), generator=generator)
    found = rule(logits.log_softmax(-1), Step(logits, written[:, :0], written, torch.arange(200)))
    processed = processor(written, logits.clone())
    if isinstance(rule, RepetitionPenalty):
        torch.testing.assert_close(found, processed.log_softmax(-1))
    else:
        assert torch.equal(found, logits.log_softmax(-1).masked_fill(processed == -torch.inf, -torch.inf))
        assert (processed == -torch.inf).any()


def test_greedy_search_agrees(network, inputs):
    expected, _ = generate(network, inputs, num_beams=1)
    results = ours(network, inputs, DecodingConfig(beam=1))
    assert [decoded.best.ids for decoded in results] == expected
