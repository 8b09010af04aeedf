"""A decoder-only model with a KV cache, which reads no memory: the searches must not lose whose rows are whose."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.config import DecodingConfig
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.search import decode
from regard.parts.attention import MultiHeadAttention
from regard.parts.decoder_state import DecoderState, GrowingCache

VOCAB, END = 11, 1
STARTS = torch.tensor([3, 4, 5, 6, 7])
LIMITS = torch.tensor([3, 12, 6, 1, 12])


class LanguageModel(nn.Module):
    """One layer of self-attention over embeddings so large that outputs vary."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(6)
        self.tokens, self.positions = nn.Embedding(VOCAB, 16), nn.Embedding(16, 16)
        self.attention, self.output = MultiHeadAttention(16, 2), nn.Linear(16, VOCAB)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.6, generator=generator)

    def start(self, n_sentences):
        return DecoderState(lengths=torch.zeros(n_sentences, dtype=torch.long), n_sentences=n_sentences)

    def step(self, state, ids, counts=None):
        advanced, positions, mask = state.advance(counts, ids.shape[1], window=None)
        x, cache = self.tokens(ids) + self.positions(positions), GrowingCache(state.cache)
        x = x + self.attention.read(x, *cache.extend(*self.attention.keys_values(x)), mask)
        return self.output(x[:, -1]), replace(advanced, cache=cache.grown())


BEAM, SAMPLES = DecodingConfig(beam=3, n_best=2), DecodingConfig(sample=True, n_best=3)


def run(model, sentences, config):
    prompt = Prompt(STARTS[sentences].unsqueeze(1))
    request = Request(prompt=prompt, end_id=END, limits=LIMITS[sentences], keys=sentences)
    return decode(model, model.start(len(sentences)), request, config)


@pytest.mark.parametrize("config", [BEAM, SAMPLES], ids=["beam", "samples"])
def test_a_batch_equals_its_sentences_alone(config):
    model = LanguageModel()
    together = run(model, [0, 1, 2, 3, 4], config)
    alone = [run(model, [sentence], config)[0] for sentence in range(5)]
    for one, other in zip(together, alone, strict=True):
        assert [own.ids for own in one.hypotheses] == [own.ids for own in other.hypotheses]
        for mine, yours in zip(one.hypotheses, other.hypotheses, strict=True):
            assert mine.log_probs == pytest.approx(yours.log_probs, abs=1e-5)
    assert len({len(one.best.log_probs) for one in together}) > 2, "sentences leave at different steps"


def test_the_cache_gives_what_reading_all_again_gives():
    model = LanguageModel()
    for start, decoded in zip(STARTS.tolist(), run(model, list(range(5)), DecodingConfig(beam=1)), strict=True):
        read = [start]
        with torch.no_grad():
            for token in decoded.best.ids:
                logits, _ = model.step(model.start(1), torch.tensor([read]))
                assert logits.argmax() == token
                read.append(token)
