"""What every model keeps that writes, whatever it reads and is made of: one suite over all of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.models.generators import END, FEW, GENERATORS, LENGTHS, PAIRS, SOURCE, START, TARGET, Generator, V
from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.result import Hypothesis
from regard.decoding.search import decode
from regard.parts.dropout import seeded
from regard.parts.taps import recording
from regard.runs import tensors
from regard.tasks.token_loss import token_loss

every = pytest.mark.parametrize("one", GENERATORS.values(), ids=GENERATORS.keys())
few = pytest.mark.parametrize("one", [GENERATORS[name] for name in FEW], ids=FEW)


def assert_close(first: Tensor, second: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(first, second, atol=atol, rtol=0)


# -- the forward pass ---------------------------------------------------------------------------------------------------


@every
@torch.no_grad()
def test_no_position_sees_the_future(one: Generator) -> None:
    model = one.make()
    logits = one.inputs.whole(model, TARGET)
    assert logits.shape == (3, 5, V)
    for position in range(1, 5):
        changed = TARGET.clone()
        changed[:, position:] = 2
        other = one.inputs.whole(model, changed)
        assert torch.equal(other[:, :position], logits[:, :position])
        assert not torch.equal(other[:, position], logits[:, position])


@every
@torch.no_grad()
def test_padding_changes_nothing(one: Generator) -> None:
    model = one.make()
    inputs = one.inputs
    if inputs is PAIRS:
        longer = F.pad(SOURCE, (0, 3), value=7)
        longer[1, 3:] = 7
        inputs = replace(inputs, given=(longer, LENGTHS))
    found = inputs.whole(model, F.pad(TARGET, (0, 2), value=7))[:, :5]
    assert_close(found, one.inputs.whole(model, TARGET))


@every
@torch.no_grad()
def test_batched_equals_alone(one: Generator) -> None:
    model = one.make()
    logits = one.inputs.whole(model, TARGET)
    assert float(logits.std()) > 0.01
    for row in range(3):
        assert_close(one.inputs.of([row]).whole(model, TARGET[row : row + 1])[0], logits[row])


@every
@torch.no_grad()
def test_what_is_written_depends_on_what_is_read(one: Generator) -> None:
    model = one.make()
    same = TARGET[:1].repeat(3, 1)
    same[:, : one.inputs.n_prompt] = TARGET[:, : one.inputs.n_prompt]
    logits = one.inputs.whole(model, same)[:, one.inputs.n_prompt - 1 :]
    for first, second in ((0, 1), (1, 2), (2, 0)):
        assert not torch.allclose(logits[first], logits[second], atol=1e-3)


@every
def test_the_loss_through_states_is_that_of_the_logits(one: Generator) -> None:
    model = one.make()
    goals, real = TARGET.roll(-1, 1), torch.arange(5) < torch.tensor([5, 2, 4])[:, None]
    read = (TARGET,) if one.inputs.n_prompt > 1 else (*one.inputs.given, TARGET)
    found, weight = token_loss(model, read, goals, real, smoothing=0.1)
    logits = one.inputs.whole(model, TARGET)[real]
    assert weight == 11
    assert_close(found, F.cross_entropy(logits, goals[real], label_smoothing=0.1, reduction="sum"), atol=1e-4)


@every
def test_gradients_are_finite_and_reach_every_parameter(one: Generator) -> None:
    model = one.make().train()
    # Behind one token, a window of two reaches nothing.
    inputs = replace(PAIRS, given=(SOURCE, torch.tensor([6, 1, 5]))) if one.inputs is PAIRS else one.inputs
    F.cross_entropy(inputs.whole(model, TARGET).flatten(0, 1), TARGET.roll(-1, 1).flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        if not name.endswith("key.bias"):  # the same for every key of a query: softmax does not feel it
            assert bool(parameter.grad.any()), name


# -- step by step, with a KV cache --------------------------------------------------------------------------------------


@every
@torch.no_grad()
def test_step_by_step_equals_the_whole_forward_pass(one: Generator) -> None:
    model = one.make()
    expected = one.inputs.whole(model, TARGET)
    state = one.inputs.start(model)
    for position in range(5):
        logits, state = model.step(state, TARGET[:, position : position + 1])
        assert_close(logits, expected[:, position])


@every
@torch.no_grad()
def test_a_prompt_is_read_at_once(one: Generator) -> None:
    model = one.make()
    expected = one.inputs.whole(model, TARGET)
    logits, state = model.step(one.inputs.start(model), TARGET[:, :3])
    assert_close(logits, expected[:, 2])
    logits, state = model.step(state, TARGET[:, 3:5])
    assert_close(logits, expected[:, 4])


@every
@torch.no_grad()
def test_prompts_of_different_lengths(one: Generator) -> None:
    model = one.make()
    expected = one.inputs.whole(model, TARGET)
    rows, counts = torch.arange(3), torch.tensor([3, 1, 2])
    prompts = torch.where(torch.arange(3) < counts[:, None], TARGET[:, :3], 7)
    logits, state = model.step(one.inputs.start(model), prompts, counts)
    assert_close(logits, expected[rows, counts - 1])
    for _ in range(2):
        logits, state = model.step(state, TARGET[rows, counts][:, None])
        counts = counts + 1
        assert_close(logits, expected[rows, counts - 1])


@every
@torch.no_grad()
def test_beams_that_part_leave_and_join(one: Generator) -> None:
    """Two sentences with two hypotheses each; one leaves, another joins; every row equals its own forward pass."""
    model = one.make()

    def check(state: Any, ids: list[int], hypotheses: list[tuple[int, list[int]]]) -> Any:
        logits, after = model.step(state, torch.tensor(ids)[:, None])
        for row, (sentence, written) in zip(logits, hypotheses, strict=True):
            assert_close(row, one.inputs.of([sentence]).whole(model, torch.tensor([written]))[0, -1])
        assert after.memory is state.memory, "kept once per sentence, and untouched"
        return after

    state = check(one.inputs.of([0, 1]).start(model), [1, 1], [(0, [1]), (1, [1])])
    state = state.reorder(torch.tensor([0, 0, 1, 1]))
    state = check(state, [3, 4, 5, 6], [(0, [1, 3]), (0, [1, 4]), (1, [1, 5]), (1, [1, 6])])
    state = state.reorder(torch.tensor([1, 1, 3, 2]))
    state = check(state, [7, 8, 9, 10], [(0, [1, 4, 7]), (0, [1, 4, 8]), (1, [1, 6, 9]), (1, [1, 5, 10])])
    newcomer = check(one.inputs.of([2]).start(model), [1], [(2, [1])])
    state = state.keep(torch.tensor([1])).join(newcomer.reorder(torch.tensor([0, 0])))
    state = check(state, [11, 12, 13, 14], [(1, [1, 6, 9, 11]), (1, [1, 5, 10, 12]), (2, [1, 13]), (2, [1, 14])])
    state = state.reorder(torch.tensor([1, 0, 3, 3])).keep(torch.tensor([1, 0]))
    last = [(2, [1, 14, 3]), (2, [1, 14, 4]), (1, [1, 5, 10, 12, 15]), (1, [1, 6, 9, 11, 16])]
    check(state, [3, 4, 15, 16], last)


@few
@torch.no_grad()
def test_rows_of_unequal_length_that_leave_and_come_back(one: Generator) -> None:
    """In every step each row reads another number of ids; in between rows change places, leave and join."""
    model = one.make()
    target = torch.randint(3, V, (3, 60), generator=torch.Generator().manual_seed(4))
    expected = one.inputs.whole(model, target)
    state, read, rows = one.inputs.start(model), torch.zeros(3, dtype=torch.long), torch.arange(3)
    torch.manual_seed(5)
    for number in range(18):
        counts = torch.randint(1, 4, (3,))
        ids = target[rows[:, None], (read[:, None] + torch.arange(3)).clamp(max=59)]
        logits, state = model.step(state, ids, counts)
        read = read + counts
        assert_close(logits, expected[rows, read - 1])
        if window := getattr(model, "window", None):
            assert state.n_slots <= window, "the cache is no longer than the window"
        order = torch.randperm(3)
        state = state.keep(order[:1]).join(state.keep(order[1:])) if number % 5 == 4 else state.keep(order)
        rows, read = rows[order], read[order]


@every
def test_a_step_never_waits_for_a_device(one: Generator) -> None:
    # A tensor of the meta device has no numbers: a look at them, for which a GPU's queue must run empty, is an error.
    model = one.make()
    state = one.inputs.start(model)
    model, state = model.to("meta"), moved(state)
    for counts in (None, torch.tensor([3, 1, 2]).to("meta")):
        logits, state = model.step(state, TARGET[:, :3].to("meta"), counts)
        assert logits.shape == (3, V)


def moved(value: Any) -> Any:
    """A state whose tensors have no numbers; what was prepared for a search is left out."""
    if isinstance(value, Tensor):
        return value.to("meta")
    if isinstance(value, tuple):
        return tuple(map(moved, value))
    if hasattr(value, "__dataclass_fields__"):
        return replace(value, **{name: moved(getattr(value, name)) for name in value.__dataclass_fields__})
    return None if hasattr(value, "layers") else value


@few
@torch.no_grad()
def test_decoding_has_the_taps_of_the_whole_pass(one: Generator) -> None:
    model = one.make()
    with recording(model) as whole:
        one.inputs.whole(model, TARGET)
    with recording(model) as stepped:
        model.step(one.inputs.start(model), TARGET)
    assert set(stepped) <= set(whole)
    # What a recurrent layer hands on for whole sequences is not there while decoding.
    assert all(name.endswith(".states") and ".layers." in name for name in set(whole) - set(stepped))
    assert torch.equal(whole["logits"][:, -1].argmax(-1), stepped["logits"].argmax(-1))


# -- search -------------------------------------------------------------------------------------------------------------


def search(one: Generator, model: Any, config: DecodingConfig, *, n_prompt: int = 1, seed: int = 1) -> list[Hypothesis]:
    prompt = Prompt(TARGET[:, :n_prompt], start_id=START)
    request = Request(prompt=prompt, end_id=END, limits=torch.tensor([8] * 3), seed=seed)
    return [found.best for found in decode(model, one.inputs.start(model), request, config)]


@few
@torch.no_grad()
def test_greedy_search_writes_the_likeliest_token_again_and_again(one: Generator) -> None:
    model = one.make(3)
    for row, found in enumerate(search(one, model, DecodingConfig(beam=1))):
        written = [START]
        while len(written) < 9 and written[-1] != END:
            logits = one.inputs.of([row]).whole(model, torch.tensor([written]))
            written.append(int(logits[0, -1].argmax()))
        assert found.ids == tuple(token for token in written[1:] if token != END)


@few
@torch.no_grad()
def test_a_beam_has_the_probabilities_of_the_whole_forward_pass(one: Generator) -> None:
    model = one.make(3)
    for row, found in enumerate(search(one, model, DecodingConfig(beam=4))):
        written = [*found.ids, END] if found.finished else list(found.ids)
        logits = one.inputs.of([row]).whole(model, torch.tensor([[START, *written[:-1]]]))
        expected = logits[0].log_softmax(-1)[torch.arange(len(written)), torch.tensor(written)]
        assert_close(torch.tensor(found.log_probs), expected, atol=1e-4)
        assert found.score == pytest.approx(float(expected.mean()), abs=1e-4)


@few
@torch.no_grad()
def test_samples_are_drawn_by_a_seed(one: Generator) -> None:
    model, config = one.make(3), DecodingConfig(sample=True, temperature=1.0)

    def drawn(seed: int) -> list[tuple[int, ...]]:
        return [found.ids for found in search(one, model, config, seed=seed)]

    assert drawn(1) == drawn(1) != drawn(2)


# -- first weights, dropout, learning, saving ---------------------------------------------------------------------------


@few
def test_the_seed_alone_decides_the_first_weights(one: Generator) -> None:
    torch.manual_seed(1)
    first = one.make(5).state_dict()
    torch.manual_seed(2)
    again, other = one.make(5).state_dict(), one.make(6).state_dict()
    for name, weight in first.items():
        assert torch.equal(weight, again[name]), name
        assert torch.equal(weight, other[name]) == (weight.dim() == 1), name


@few
@torch.no_grad()
def test_dropout_is_a_function_of_the_seed_and_off_in_evaluation(one: Generator) -> None:
    model = one.make(dropout=0.3)

    def logits(seed: int) -> Tensor:
        with seeded(seed):
            return one.inputs.whole(model, TARGET)

    assert torch.equal(logits(1), logits(2))
    model.train()
    assert torch.equal(logits(1), logits(1))
    assert not torch.allclose(logits(1), logits(2), atol=1e-2)


@few
def test_one_batch_is_learned_by_heart(one: Generator) -> None:
    model, inputs = one.make(**one.learner).train(), one.inputs
    wanted = torch.cat([TARGET[:, 1:], torch.full((3, 1), END)], dim=1)
    asked = slice(inputs.n_prompt - 1, None)
    optimizer = torch.optim.Adam(model.parameters(), lr=one.rate)
    for _ in range(60):
        loss = F.cross_entropy(inputs.whole(model, TARGET)[:, asked].flatten(0, 1), wanted[:, asked].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    model.eval()
    found = search(one, model, DecodingConfig(beam=1), n_prompt=inputs.n_prompt)
    assert [list(output.ids) for output in found] == wanted[:, inputs.n_prompt - 1 : -1].tolist()


@every
@torch.no_grad()
def test_saved_and_loaded_it_is_the_same(one: Generator, tmp_path: Path) -> None:
    model, other = one.make(1), one.make(2)
    expected = one.inputs.whole(model, TARGET)
    assert not torch.allclose(one.inputs.whole(other, TARGET), expected, atol=1e-3)
    tensors.save(tmp_path / "model.safetensors", model.state_dict())
    other.load_state_dict(tensors.load(tmp_path / "model.safetensors"))
    assert torch.equal(one.inputs.whole(other, TARGET), expected)
