"""Prompts of several tokens and of different lengths, before every search."""

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.rules import BannedSequences, NoRepeatedNgram, RepetitionPenalty, Step
from regard.decoding.search import can_stream, decode, stream
from regard.models.gpt import GPT, GPTConfig

END = 1
ROWS = [[5, 6, 7, 8], [9], [5, 6], [3, 3, 3, 4]]
SEARCHES = {
    "greedy": DecodingConfig(beam=1),
    "beam": DecodingConfig(beam=3, n_best=2),
    "samples": DecodingConfig(sample=True, n_best=3),
}


@pytest.fixture(scope="module")
def model() -> GPT:
    config = GPTConfig(vocab=12, n_layers=2, n_heads=2, d_model=16, context=32, dropout=0.0)
    return GPT(config, seed=1).eval()


def request(rows, keys):
    return Request(prompt=Prompt.of(rows), end_id=END, limits=torch.full((len(rows),), 9), keys=keys, seed=4)


def test_padding_stands_in_front_for_rules() -> None:
    assert Prompt.of(ROWS).behind().tolist() == [[5, 6, 7, 8], [-1, -1, -1, 9], [-1, -1, 5, 6], [3, 3, 3, 4]]
    assert Prompt.of([[4, 5], [6, 7]]).counts is None


@pytest.mark.parametrize("search", SEARCHES)
def test_prompts_of_different_lengths_equal_those_alone(model: GPT, search: str) -> None:
    together = decode(model, model.start(len(ROWS)), request(ROWS, range(len(ROWS))), SEARCHES[search])
    for number, row in enumerate(ROWS):
        [alone] = decode(model, model.start(1), request([row], [number]), SEARCHES[search])
        for one, two in zip(together[number].hypotheses, alone.hypotheses, strict=True):
            assert one.ids == two.ids
            assert one.log_probs == pytest.approx(two.log_probs, abs=1e-4)


def test_a_prompt_is_read_and_not_written(model: GPT) -> None:
    [decoded] = decode(model, model.start(1), request([[5, 6, 7]], [0]), SEARCHES["greedy"])
    written = [*decoded.best.ids, *([END] if decoded.best.finished else [])]
    ids = torch.tensor([[5, 6, 7, *written]])
    with torch.inference_mode():
        likeliest = model(ids).argmax(-1)[0, 2:-1].tolist()
    assert written == likeliest


def test_rules_on_repetition_count_the_prompt() -> None:
    logits = torch.zeros(2, 6)
    prompt = Prompt.of([[2, 3, 2], [4]]).behind()
    step = Step(logits, prompt, torch.zeros(2, 0, dtype=torch.long), torch.arange(2))
    found = NoRepeatedNgram(2)(logits.log_softmax(-1), step)
    assert (found == -torch.inf).nonzero().tolist() == [[0, 3]]  # "2 3" stands in the first prompt
    penalised = RepetitionPenalty(2.0)(torch.ones(2, 6).log_softmax(-1), Step(logits + 1, *vars_of(step)))
    assert (penalised < penalised.amax(1, keepdim=True)).nonzero().tolist() == [[0, 2], [0, 3], [1, 4]]


def test_a_start_token_is_no_text_to_rules() -> None:
    prompt = Prompt.of([[END], [4, 5]], start_id=END).behind()
    assert prompt.tolist() == [[-1, -1], [4, 5]]
    step = Step(torch.ones(2, 6), prompt, torch.zeros(2, 0, dtype=torch.long), torch.arange(2))
    assert not (NoRepeatedNgram(1)(torch.zeros(2, 6), step)[0] == -torch.inf).any()
    penalised = RepetitionPenalty(2.0)(torch.zeros(2, 6), step)
    assert len(set(penalised[0].tolist())) == 1


def test_banned_sequences_may_begin_in_the_prompt() -> None:
    prompt = Prompt.of([[2, 3], [3], [4, 3]]).behind()
    step = Step(torch.zeros(3, 6), prompt, torch.zeros(3, 0, dtype=torch.long), torch.arange(3))
    letters = torch.tensor([False, False, True, False, False, True])  # and the last token, which -1 would mean, too
    banned = BannedSequences([[3, 5]], unless_after=letters)(torch.zeros(3, 6), step)
    assert (banned == -torch.inf).nonzero().tolist() == [[1, 5], [2, 5]]


def vars_of(step: Step) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return step.read, step.written, step.sentences


@pytest.mark.parametrize("search", ["greedy", "samples"])
def test_a_stream_shows_what_will_be_returned(model: GPT, search: str) -> None:
    config = SEARCHES[search]
    steps = stream(model, model.start(len(ROWS)), request(ROWS, range(len(ROWS))), config)
    shown: dict[tuple[int, int], list[int]] = {}
    try:
        while True:
            for one in next(steps):
                shown.setdefault((one.sentence, one.output), []).append(one.token)
    except StopIteration as end:
        results = end.value
    assert results == decode(model, model.start(len(ROWS)), request(ROWS, range(len(ROWS))), config)
    for number, decoded in enumerate(results):
        found = sorted(
            tuple(token for token in tokens if token != END) for (n, _), tokens in shown.items() if n == number
        )
        assert found == sorted(one.ids for one in decoded.hypotheses)


def test_a_beam_takes_tokens_back() -> None:
    assert [can_stream(config) for config in SEARCHES.values()] == [True, False, True]
