"""What every model keeps that reads a source and writes a target, whatever it is made of: one suite for all of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.models import test_recurrent, test_t5, test_transformer
from torch import Tensor

SOURCE = torch.tensor([[5, 6, 7, 8, 9, 2], [4, 3, 2, 0, 0, 0], [11, 12, 13, 14, 2, 0]])
LENGTHS = torch.tensor([6, 3, 5])
TARGET = torch.tensor([[1, 4, 5, 6, 7], [1, 9, 9, 3, 8], [1, 16, 15, 14, 13]])

Make = Callable[..., Any]
MODELS: dict[str, Make] = {
    **{
        f"transformer, {name}": partial(test_transformer.make, **one) for name, one in test_transformer.VARIANTS.items()
    },
    **{f"recurrent, {name}": partial(test_recurrent.make, **one) for name, one in test_recurrent.VARIANTS.items()},
    **{f"t5, {name}": partial(test_t5.make_shaken, **one) for name, one in test_t5.VARIANTS.items()},
}
pytestmark = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def assert_close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first, second, atol=1e-5, rtol=0)


def test_no_position_sees_the_future(make: Make) -> None:
    model = make()
    logits = model(SOURCE, LENGTHS, TARGET)
    for position in range(1, 5):
        changed = TARGET.clone()
        changed[:, position:] = 2
        other = model(SOURCE, LENGTHS, changed)
        assert torch.equal(other[:, :position], logits[:, :position])
        assert not torch.equal(other[:, position], logits[:, position])


def test_padding_changes_nothing(make: Make) -> None:
    model = make()
    longer_source = F.pad(SOURCE, (0, 3), value=7)
    longer_source[1, 3:] = 7
    longer_target = F.pad(TARGET, (0, 2), value=7)
    assert_close(model(longer_source, LENGTHS, longer_target)[:, :5], model(SOURCE, LENGTHS, TARGET))


def test_batched_equals_alone(make: Make) -> None:
    model = make()
    logits = model(SOURCE, LENGTHS, TARGET)
    assert float(logits.detach().std()) > 0.01
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(SOURCE[row : row + 1, :length], LENGTHS[row : row + 1], TARGET[row : row + 1])
        assert_close(alone[0], logits[row])


@torch.no_grad()
def test_step_by_step_equals_the_whole_forward_pass(make: Make) -> None:
    model = make()
    expected = model(SOURCE, LENGTHS, TARGET)
    state = model.start((SOURCE, LENGTHS))
    for position in range(5):
        logits, state = model.step(state, TARGET[:, position : position + 1])
        assert_close(logits, expected[:, position])


@torch.no_grad()
def test_a_prompt_is_read_at_once(make: Make) -> None:
    model = make()
    expected = model(SOURCE, LENGTHS, TARGET)
    logits, state = model.step(model.start((SOURCE, LENGTHS)), TARGET[:, :3])
    assert_close(logits, expected[:, 2])
    logits, state = model.step(state, TARGET[:, 3:5])
    assert_close(logits, expected[:, 4])


@torch.no_grad()
def test_prompts_of_different_lengths(make: Make) -> None:
    model = make()
    expected = model(SOURCE, LENGTHS, TARGET)
    rows, counts = torch.arange(3), torch.tensor([3, 1, 2])
    prompts = torch.where(torch.arange(3) < counts[:, None], TARGET[:, :3], 7)
    logits, state = model.step(model.start((SOURCE, LENGTHS)), prompts, counts)
    assert_close(logits, expected[rows, counts - 1])
    for _ in range(2):
        logits, state = model.step(state, TARGET[rows, counts][:, None])
        counts = counts + 1
        assert_close(logits, expected[rows, counts - 1])


@torch.no_grad()
def test_beams_that_part_leave_and_join(make: Make) -> None:
    """Two sentences with two hypotheses each; one leaves, another joins; every row equals its own forward pass."""
    model = make()

    def alone(sentence: int, ids: list[int]) -> Tensor:
        logits: Tensor = model(SOURCE[sentence : sentence + 1], LENGTHS[sentence : sentence + 1], torch.tensor([ids]))
        return logits[0, -1]

    def check(state: Any, ids: list[int], hypotheses: list[tuple[int, list[int]]]) -> Any:
        logits, after = model.step(state, torch.tensor(ids)[:, None])
        assert_close(logits, torch.stack([alone(*hypothesis) for hypothesis in hypotheses]))
        assert after.memory is state.memory, "kept once a sentence, and untouched"
        return after

    state = check(model.start((SOURCE[:2], LENGTHS[:2])), [1, 1], [(0, [1]), (1, [1])])
    state = state.reorder(torch.tensor([0, 0, 1, 1]))
    state = check(state, [3, 4, 5, 6], [(0, [1, 3]), (0, [1, 4]), (1, [1, 5]), (1, [1, 6])])
    state = state.reorder(torch.tensor([1, 1, 3, 2]))
    state = check(state, [7, 8, 9, 10], [(0, [1, 4, 7]), (0, [1, 4, 8]), (1, [1, 6, 9]), (1, [1, 5, 10])])
    newcomer = check(model.start((SOURCE[2:, :5], LENGTHS[2:])), [1], [(2, [1])])
    state = state.keep(torch.tensor([1])).join(newcomer.reorder(torch.tensor([0, 0])))
    state = check(state, [11, 12, 13, 14], [(1, [1, 6, 9, 11]), (1, [1, 5, 10, 12]), (2, [1, 13]), (2, [1, 14])])
    state = state.reorder(torch.tensor([1, 0, 3, 3]))
    last = [(1, [1, 5, 10, 12, 15]), (1, [1, 6, 9, 11, 16]), (2, [1, 14, 3]), (2, [1, 14, 4])]
    check(state, [15, 16, 3, 4], last)


def test_the_loss_through_states_is_that_of_the_logits(make: Make) -> None:
    model = make()
    states = model.states(SOURCE, LENGTHS, TARGET)
    assert states.shape[:2] == (3, 5)
    assert_close(model.output(states), model(SOURCE, LENGTHS, TARGET))


def test_gradients_are_finite_and_reach_every_parameter(make: Make) -> None:
    model = make()
    lengths = torch.tensor([6, 1, 5])  # behind one token, a window of two reaches nothing
    F.cross_entropy(model(SOURCE, lengths, TARGET).flatten(0, 1), TARGET.roll(-1, 1).flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        if not name.endswith("key.bias"):  # the same for every key of a query: softmax does not feel it
            assert bool(parameter.grad.any()), name


def test_saved_and_loaded_it_is_the_same(make: Make) -> None:
    model, other = make(1), make(2)
    expected = model(SOURCE, LENGTHS, TARGET)
    assert not torch.allclose(other(SOURCE, LENGTHS, TARGET), expected, atol=1e-3)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(SOURCE, LENGTHS, TARGET), expected)
