from multiprocessing import Pipe

import pytest

from regard import runtime
from regard.config import ModelTable, RuntimeConfig
from regard.errors import RegardError
from regard.models.presets import model_config
from regard.training import step_trial
from regard.training.batch_shape import BatchShape
from regard.training.step_trial import Timed, Trial, time_rounds, time_together

TINY = BatchShape(n_sequences=1, length=4)
TRIAL = Trial(
    config=model_config(ModelTable(preset="gpt-nano"), origin="test", vocab=20),
    optimizer="muon",
    batch=BatchShape(n_sequences=2, length=8),
    tiny=TINY,
)


def test_alone_nothing_is_summed() -> None:
    rounds = time_rounds(TRIAL, runtime.prepare(RuntimeConfig(device="cpu", threads=1)))
    assert len(rounds) == step_trial.ROUNDS
    for timed in rounds:
        assert min(timed[:3]) > 0
        assert timed.all_reduce_seconds == 0


def test_together_gradients_are_summed() -> None:
    timed = time_together(TRIAL, 2, precision="fp32")
    assert isinstance(timed, Timed)
    assert min(timed) > 0


def test_a_process_that_ends_is_named() -> None:
    readers, writers = zip(*(Pipe(duplex=False) for _ in range(2)), strict=True)
    writers[0].send([Timed(1, 1, 1)])
    writers[1].close()
    with pytest.raises(RegardError) as raised:
        step_trial._collect(list(readers))
    assert raised.value.problem == "Process 1 of 2 ended while steps were timed."
    assert raised.value.remedy == "Leave the measurement out, or plan for fewer processes."
