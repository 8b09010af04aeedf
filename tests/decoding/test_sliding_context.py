"""Writing on past the context."""

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.rules import Banned
from regard.decoding.search import decode
from regard.decoding.sliding_context import Sliding
from regard.models.gpt import GPT, GPTConfig

END, LIMIT = 1, 8


@pytest.fixture(scope="module")
def model() -> GPT:
    """Its weights are large, so that what it writes depends on all it remembers."""
    made = GPT(GPTConfig(vocab=60, n_layers=2, n_heads=2, d_model=16, context=LIMIT, dropout=0.0), seed=2).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.7 * torch.randn(parameter.shape, generator=generator))
    return made


def slowly(model: GPT, prompt: list[int], length: int) -> list[int]:
    """The same without a cache: a full context forgets its older half."""
    read, written = list(prompt), []
    while len(written) < length:
        with torch.no_grad():
            logits = model(torch.tensor([read]))[0, -1]
        logits[END] = -torch.inf
        written.append(int(logits.argmax()))
        read.append(written[-1])
        if len(read) > LIMIT:
            read = read[-(LIMIT // 2) :]
    return written


def request(rows, length, **options):
    limits = torch.full((len(rows),), length)
    return Request(prompt=Prompt.of(rows), end_id=END, limits=limits, rules=[Banned((END,))], **options)


@pytest.mark.parametrize("prompt", [[3], [3, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 8, 9]])
def test_a_full_context_forgets_its_older_half(model: GPT, prompt: list[int]) -> None:
    sliding = Sliding(model, LIMIT)
    [decoded] = decode(sliding, sliding.start(1), request([prompt], 30), DecodingConfig(beam=1))
    written = slowly(model, prompt, 30)
    assert list(decoded.best.ids) == written
    assert len(set(written)) > 3


@pytest.mark.parametrize(
    "config", [DecodingConfig(beam=1), DecodingConfig(beam=3), DecodingConfig(sample=True, n_best=2)], ids=str
)
def test_a_row_does_not_depend_on_the_others(model: GPT, config: DecodingConfig) -> None:
    rows = [[3], [4, 5, 6, 7, 8, 9, 2, 3], [5, 5, 5]]
    sliding = Sliding(model, LIMIT)
    together = decode(sliding, sliding.start(3), request(rows, 25, keys=range(3)), config)
    for number, row in enumerate(rows):
        [alone] = decode(sliding, sliding.start(1), request([row], 25, keys=[number]), config)
        assert [one.ids for one in together[number].hypotheses] == [one.ids for one in alone.hypotheses]


def test_sentences_of_different_ages_are_joined(model: GPT) -> None:
    sliding = Sliding(model, LIMIT)
    with torch.inference_mode():
        _, old = sliding.step(sliding.start(1), torch.tensor([[2, 3, 4, 5, 6, 7, 8]]))
        _, young = sliding.step(sliding.start(1), torch.tensor([[9, 9]]))
        both = old.join(young)
        for _ in range(6):
            ids = torch.tensor([[4], [5]])
            together, both = sliding.step(both, ids)
            first, old = sliding.step(old, ids[:1])
            second, young = sliding.step(young, ids[1:])
            assert torch.allclose(together, torch.cat([first, second]), atol=1e-5)
        kept = both.keep(torch.tensor([1]))
        assert torch.allclose(sliding.step(kept, ids[1:])[0], sliding.step(young, ids[1:])[0], atol=1e-5)


class Counted:
    """A decoder that counts the tokens it reads, and the slots it holds at most."""

    def __init__(self, model: GPT) -> None:
        self.model, self.start = model, model.start
        self.n_read, self.widest = 0, 0

    def step(self, state, ids, counts=None):
        self.n_read += int(counts.sum()) if counts is not None else ids.numel()
        logits, after = self.model.step(state, ids, counts)
        self.widest = max(self.widest, after.n_slots)
        return logits, after


@pytest.mark.parametrize("n_rows", [1, 7])
def test_two_tokens_are_read_for_one_written_however_the_rows_differ(model: GPT, n_rows: int) -> None:
    counted = Counted(model)
    sliding = Sliding(counted, LIMIT)
    rows = [[3 + place for place in range(1 + number)] for number in range(n_rows)]
    decode(sliding, sliding.start(n_rows), request(rows, 80), DecodingConfig(beam=1))
    assert counted.n_read < 2.1 * n_rows * 80
    # Who waits while others read again does not pile up empty slots.
    assert counted.widest <= 2 * LIMIT
