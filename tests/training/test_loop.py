"""The loop, on a task small enough to work out what every update must be."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.errors import TrainingError
from regard.parts.dropout import Dropout
from regard.runtime import Machine
from regard.tasks.task import Indices
from regard.training import loop
from regard.training.ema import WeightEMA
from regard.training.loop import Trainer, Update, gradients, updates
from regard.training.optimizer import Optimizer
from regard.training.state import Cursor

CPU = Machine(device=torch.device("cpu"), precision="fp32", threads=1)
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
Y = torch.randn(12, 1, generator=torch.Generator().manual_seed(2))


@dataclass
class Rows:
    """Twelve rows of numbers, in batches of given sizes, the same in each epoch."""

    sizes: tuple[int, ...] = (2, 2, 2, 2, 2, 2)

    def order(self, epoch: int) -> list[Indices]:
        order = np.random.default_rng(epoch).permutation(12)
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def batch(self, indices: Indices, device: torch.device) -> tuple[Tensor, Tensor]:
        return X[indices].to(device), Y[indices].to(device)

    def size(self, indices: Indices) -> int:
        return len(indices)

    def places(self, indices: Indices) -> list[str]:
        return [f"rows.txt:{index + 1}" for index in indices]


@dataclass
class Squares:
    """The sum of squared errors over so many rows; no number in the updates that `broken` is true of."""

    broken: Callable[[int], bool] = lambda call: False
    calls: int = 0

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor], *, smoothing: float) -> tuple[Tensor, float]:
        self.calls += 1
        loss = (model(batch[0]) - batch[1]).pow(2).sum()
        return loss * math.nan if self.broken(self.calls) else loss, len(batch[0])


def make_trainer(
    *,
    model: nn.Module | None = None,
    task: Any = None,
    rows: Rows | None = None,
    ema: float = 0.0,
    workers: int = 0,
    **settings: Any,
) -> Trainer:
    torch.manual_seed(4)
    model = model or nn.Linear(4, 1)
    config = replace(TrainingConfig(warmup=1, schedule="constant", learning_rate=0.1, clip=0.0), **settings)
    return Trainer(
        model=model,
        task=task or Squares(),
        examples=rows or Rows(),  # type: ignore[arg-type]
        optimizer=Optimizer(model, config),
        ema=WeightEMA(model, ema) if ema else None,
        config=config,
        machine=CPU,
        seed=1,
        total=0,
        workers=workers,
    )


def weights(trainer: Trainer) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def make(trainer: Trainer, n: int, cursor: Cursor | None = None) -> list[Update]:
    return list(islice(updates(trainer, cursor or Cursor()), n))


def test_the_loss_is_the_sum_over_the_count() -> None:
    trainer = make_trainer(accumulate=2, rows=Rows((3, 1, 4, 4)))
    first, second = (indices.tolist() for indices in Rows((3, 1, 4, 4)).order(0)[:2])
    with torch.no_grad():
        sums = [float((trainer.model(X[rows]) - Y[rows]).pow(2).sum()) for rows in (first, second)]
    (update,) = make(trainer, 1)
    assert update.weight == 4
    assert update.loss == sum(sums) / 4


def test_two_accumulated_batches_are_one_batch_of_both() -> None:
    # Unequal batches: a mean of their means would be another update.
    apart = make_trainer(accumulate=2, rows=Rows((5, 1, 6)))
    together = make_trainer(rows=Rows((6, 6)))
    for two, one in zip(make(apart, 2), make(together, 2), strict=True):
        assert two.weight == one.weight == 6
        assert two.loss == pytest.approx(one.loss, abs=1e-6)
        assert two.gradient_norm == pytest.approx(one.gradient_norm, abs=1e-6)
    for mine, theirs in zip(weights(apart), weights(together), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)


def test_gradients_are_those_of_the_mean() -> None:
    trainer = make_trainer(rows=Rows((5, 7)))
    rows = Rows((5, 7)).order(0)[0].tolist()
    expected = torch.autograd.grad((trainer.model(X[rows]) - Y[rows]).pow(2).mean(), list(trainer.model.parameters()))
    (update,) = make(trainer, 1)
    for found, wanted in zip(trainer.optimizer.gradients(), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    norm = math.sqrt(sum(float(gradient.pow(2).sum()) for gradient in expected))
    assert update.gradient_norm == pytest.approx(norm, rel=1e-5)


def test_long_gradients_are_shortened_to_the_clip_and_short_ones_left() -> None:
    free, clipped, loose = make_trainer(), make_trainer(clip=0.01), make_trainer(clip=1e6)
    (long,), (short,), (same,) = make(free, 1), make(clipped, 1), make(loose, 1)
    assert long.gradient_norm == short.gradient_norm == same.gradient_norm > 0.01, "the norm before clipping is told"
    after = torch.cat([gradient.flatten() for gradient in clipped.optimizer.gradients()])
    before = torch.cat([gradient.flatten() for gradient in free.optimizer.gradients()])
    assert float(after.norm()) == pytest.approx(0.01, rel=1e-5)
    torch.testing.assert_close(after / after.norm(), before / before.norm())
    for mine, theirs in zip(loose.optimizer.gradients(), free.optimizer.gradients(), strict=True):
        assert torch.equal(mine, theirs)


def test_the_norms_of_layers_are_those_of_the_mean_before_clipping() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    trainer = make_trainer(model=model, record_gradients=3, clip=0.01, accumulate=2)
    first, second = (indices.tolist() for indices in Rows().order(0)[:2])
    rows = first + second
    matrices = [model[0].weight, model[2].weight]
    expected = torch.autograd.grad((model(X[rows]) - Y[rows]).pow(2).mean(), matrices)
    seen = make(trainer, 5)
    assert [list(update.layer_norms) for update in seen] == [["0", "2"], [], [], ["0", "2"], []]
    assert list(seen[0].layer_norms.values()) == pytest.approx([float(one.norm()) for one in expected], rel=1e-5)
    assert not any(update.layer_norms for update in make(make_trainer(), 3))


def test_steps_count_from_one_and_have_their_own_learning_rate() -> None:
    seen = make(make_trainer(warmup=4), 5)
    assert [update.step for update in seen] == [1, 2, 3, 4, 5]
    assert [update.learning_rate for update in seen] == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1])


def test_a_run_by_the_clock_decays_with_the_time_that_is_left() -> None:
    """Updates of two seconds each, for half a minute: fifteen of them."""
    trainer = make_trainer(schedule="linear", warmup=0.2, minutes=0.5)
    cursor = Cursor()
    trainer = replace(trainer, elapsed=lambda: 2.0 * (cursor.step - 1))
    rates = [update.learning_rate for update in make(trainer, 15, cursor)]
    expected = [0, 2 / 3, *(1 - (step - 3) / 13 for step in range(3, 16))]
    assert rates == pytest.approx([0.1 * share for share in expected])


def test_an_epoch_ends_with_what_is_left_of_it() -> None:
    cursor = Cursor()
    seen = make(make_trainer(accumulate=4), 3, cursor)
    assert [update.epoch for update in seen] == [0, 0, 1]
    assert [update.weight for update in seen] == [8, 4, 8]
    assert [update.epoch_ended for update in seen] == [False, True, False]
    assert cursor == Cursor(step=3, epoch=1, batches=4)


def test_each_example_is_seen_once_an_epoch() -> None:
    trainer = make_trainer()
    seen: list[int] = []
    original = trainer.examples.batch

    def batch(indices: Indices, device: torch.device) -> Any:
        seen.extend(indices.tolist())
        return original(indices, device)

    trainer.examples.batch = batch  # type: ignore[method-assign]
    make(trainer, 12)
    assert sorted(seen[:12]) == sorted(seen[12:]) == list(range(12))
    assert seen[:12] != seen[12:]


def test_the_loop_goes_on_from_any_place() -> None:
    whole = make_trainer(accumulate=2)
    rest = make_trainer(accumulate=2)
    cursor = Cursor()
    all_of_them = make(whole, 8)
    begun = make(rest, 5, cursor)
    rest_of_them = make(rest, 3, replace(cursor))
    assert [one.loss for one in all_of_them] == [one.loss for one in begun + rest_of_them]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(whole), weights(rest), strict=True))


# -- prefetching -------------------------------------------------------------------------------------------------------


def facts(made: list[Update]) -> list[Update]:
    return [replace(update, seconds=0.0) for update in made]


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


@pytest.mark.parametrize("accumulate", [1, 4])
def test_reading_ahead_changes_no_update(accumulate: int) -> None:
    def noisy(**settings: Any) -> Trainer:
        torch.manual_seed(3)
        return make_trainer(model=Noisy(), accumulate=accumulate, **settings)

    plain = noisy()
    expected = facts(make(plain, 15))
    assert {update.epoch for update in expected} > {0, 1}
    for workers in (1, 3):
        trainer = noisy(workers=workers)
        assert facts(make(trainer, 15)) == expected
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(trainer), weights(plain), strict=True))


@pytest.mark.parametrize("n_made", [1, 5, 6, 7])
def test_what_was_read_ahead_is_read_again_by_who_goes_on(n_made: int) -> None:
    whole, rest = make_trainer(workers=2), make_trainer(workers=2)
    expected = make(whole, 14)
    cursor = Cursor()
    begun = make(rest, n_made, cursor)
    assert (cursor.step, cursor.epoch * 6 + cursor.batches) == (n_made, n_made), "the cursor counts what was learned"
    assert facts(begun + make(rest, 14 - n_made, replace(cursor))) == facts(expected)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(whole), weights(rest), strict=True))


def test_the_threads_end_with_the_updates() -> None:
    trainer = make_trainer(workers=2)
    stream = updates(trainer, Cursor())
    assert readers() == []
    next(stream)
    assert 0 < len(readers()) <= 2
    stream.close()
    assert readers() == []


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_batch_ends_the_updates_as_if_read_in_line(workers: int) -> None:
    trainer = make_trainer(workers=workers)
    original, error = trainer.examples.batch, OSError("the file is gone")
    (fifth,) = trainer.examples.order(0)[4:5]

    def batch(indices: Indices, device: torch.device) -> Any:
        if indices.tolist() == fifth.tolist():
            raise error
        return original(indices, device)

    trainer.examples.batch = batch  # type: ignore[method-assign]
    stream = updates(trainer, Cursor())
    assert [next(stream).step for _ in range(4)] == [1, 2, 3, 4]
    with pytest.raises(OSError) as caught:
        next(stream)
    assert caught.value is error
    assert readers() == []


def test_three_bad_updates_leave_no_thread() -> None:
    trainer = make_trainer(task=Squares(broken=lambda call: True), workers=2)
    with pytest.raises(TrainingError):
        make(trainer, 3)
    assert readers() == []


def test_an_update_takes_as_long_as_its_batch_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: clock))
    allowed, read = threading.Semaphore(0), threading.Semaphore(0)

    def slow(indices: Indices, device: torch.device) -> Any:
        nonlocal clock
        allowed.acquire()
        clock += 10.0
        read.release()
        return X[indices], Y[indices]

    in_line, ahead = make_trainer(), make_trainer(workers=1)
    for trainer in (in_line, ahead):
        trainer.examples.batch = slow  # type: ignore[method-assign]
    allowed.release(3)
    assert [update.seconds for update in make(in_line, 3)] == [10.0, 10.0, 10.0]

    allowed.release(3)
    stream = updates(ahead, Cursor())
    assert next(stream).seconds >= 10.0
    for _ in range(6):
        read.acquire()
    assert next(stream).seconds == 0.0, "it was read while nobody waited"
    allowed.release(9)
    stream.close()


class Noisy(nn.Module):
    """A network with our dropout and with torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.ours, self.theirs = nn.Linear(4, 64), Dropout(0.5), nn.Dropout(0.5)
        self.top = nn.Linear(64, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.top(self.theirs(self.ours(self.linear(x))))


def test_what_is_random_depends_on_the_step_and_the_micro_step_alone() -> None:
    trainer = make_trainer(model=Noisy())
    batch = trainer.collate(Rows().order(0)[0])
    torch.manual_seed(1)
    once = gradients(trainer, [batch], step=3)
    torch.manual_seed(2)
    assert gradients(trainer, [batch], step=3) == once
    assert gradients(trainer, [batch], step=4) != once
    twice, weight = gradients(trainer, [batch, batch], step=3)
    assert weight == 2 * once[1]
    assert twice != pytest.approx(2 * once[0], rel=1e-3), "the second batch drew other masks"


def test_the_callers_random_numbers_are_left_alone() -> None:
    trainer = make_trainer(model=Noisy())
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    gradients(trainer, map(trainer.collate, Rows().order(0)[:1]), step=1)
    assert torch.equal(torch.rand(3), expected)


def test_an_update_without_a_number_is_skipped_and_counted() -> None:
    trainer = make_trainer(task=Squares(broken=lambda call: call == 3), ema=0.9)
    cursor = Cursor()
    make(trainer, 2, cursor)
    before, state = weights(trainer), {k: v.clone() for k, v in trainer.optimizer.state().items()}
    average = {k: v.clone() for k, v in trainer.ema.average.items()}  # type: ignore[union-attr]
    (bad,) = make(trainer, 1, cursor)
    assert bad.skipped
    assert bad.step == 3
    assert math.isnan(bad.loss)
    assert cursor.skipped == cursor.skipped_in_a_row == 1
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(trainer), before, strict=True))
    assert all(torch.equal(tensor, state[name]) for name, tensor in trainer.optimizer.state().items())
    assert all(torch.equal(tensor, average[name]) for name, tensor in trainer.ema.average.items())  # type: ignore[union-attr]
    (good,) = make(trainer, 1, cursor)
    assert not good.skipped
    assert cursor.skipped == 1
    assert cursor.skipped_in_a_row == 0


def test_a_skipped_update_leaves_no_trace_in_the_statistics_of_a_batch_norm() -> None:
    class Normalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.top = nn.BatchNorm1d(4), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.top(self.norm(x))

    class Broken(Rows):
        def batch(self, indices: Indices, device: torch.device) -> tuple[Tensor, Tensor]:
            x, y = super().batch(indices, device)
            return (x * math.inf if indices.tolist() == self.order(0)[1].tolist() else x), y

    trainer = make_trainer(model=Normalised(), rows=Broken(), ema=0.9)
    stream = updates(trainer, Cursor())
    next(stream)
    before = {name: buffer.clone() for name, buffer in trainer.model.named_buffers()}
    assert before["norm.num_batches_tracked"] == 1
    assert next(stream).skipped
    assert all(torch.equal(buffer, before[name]) for name, buffer in trainer.model.named_buffers())
    assert not next(stream).skipped
    assert trainer.model.norm.num_batches_tracked == 2


def test_a_gradient_without_a_number_is_skipped_too() -> None:
    trainer = make_trainer()
    trainer.model.weight.register_hook(lambda gradient: gradient * math.inf)
    before = weights(trainer)
    (update,) = make(trainer, 1)
    assert math.isfinite(update.loss)
    assert update.skipped
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(trainer), before, strict=True))


def test_three_in_a_row_end_the_run_and_name_the_lines() -> None:
    trainer = make_trainer(
        task=Squares(broken=lambda call: call in (2, 5, 6, 7)), accumulate=1, rows=Rows((1, 1, 1, 9))
    )
    cursor = Cursor()
    stream = updates(trainer, cursor)
    assert [next(stream).skipped for _ in range(6)] == [False, True, False, False, True, True]
    (line,) = Rows((1, 1, 1, 9)).order(1)[2]
    with pytest.raises(TrainingError) as caught:
        next(stream)
    assert caught.value.problem == (
        f"Loss or gradient was NaN or infinite for 3 consecutive steps, the last at step 7 (read from rows.txt:{line + 1})."
    )
    assert caught.value.remedy == (
        "Lower the learning rates, or check what is read there; the last good checkpoint is kept."
    )


def test_of_many_lines_the_first_eight_are_named() -> None:
    trainer = make_trainer(task=Squares(broken=lambda call: True), rows=Rows((12,)))
    with pytest.raises(TrainingError, match=r"at step 3 \(read from (rows\.txt:\d+, ){7}rows\.txt:\d+ and 4 more\)\."):
        make(trainer, 3)


def test_the_moving_average_follows_each_update() -> None:
    trainer = make_trainer(ema=0.5)
    assert trainer.ema is not None
    before = trainer.ema.average["weight"].clone()
    make(trainer, 1)
    decay = 2 / 11
    expected = decay * before + (1 - decay) * trainer.model.weight.detach()
    torch.testing.assert_close(trainer.ema.average["weight"], expected)
