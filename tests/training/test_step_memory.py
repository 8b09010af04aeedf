"""A step that would not fit into memory is refused before it is made; one that may fit is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard import runtime
from regard.config import RunConfig
from regard.errors import ConfigError
from regard.training import step_memory
from regard.training.loop import Trainer, batch_loss
from regard.training.run import train
from regard.training.saved_activations import SavedActivations

Make = Callable[..., RunConfig]


@pytest.fixture
def trainer_of(make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Trainer]:
    """Return the trainer of a run, as it is before the first step."""

    def make(settings: dict[str, Any]) -> Trainer:
        found: list[Trainer] = []
        with monkeypatch.context() as patch:
            patch.setattr(step_memory, "refuse_too_large", found.append)
            list(train(make_config(settings), tmp_path / "run", dry_run=True))
        return found[0]

    return make


def test_the_estimate_is_what_the_whole_batch_keeps(trainer_of: Callable[..., Trainer]) -> None:
    trainer = trainer_of({"training.batch_tokens": 500})
    found = step_memory.estimate_step(trainer)
    assert found is not None
    batch = max(trainer.examples.order(0), key=trainer.examples.size)
    assert (found.n_examples, found.size) == (len(batch), trainer.examples.size(batch))
    assert 250 < found.size <= 500
    saved = SavedActivations(trainer.model)
    with saved.hooks():
        batch_loss(trainer, trainer.collate(batch), seed=1)
    moments = 8 * sum(parameter.numel() for parameter in trainer.model.parameters())
    assert found.needed - moments == pytest.approx(saved.n_bytes, rel=0.1)


def test_a_batch_that_cannot_fit_is_refused_with_one_that_does(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_memory.runtime, "available_memory", lambda device: 1_000_000)
    with pytest.raises(ConfigError) as caught:
        list(train(make_config({"training.batch_tokens": 2000, "training.accumulate": 2}), tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    first, second = str(caught.value).splitlines()
    assert first == "A batch of 1,539 tokens needs more than 0.0 GB of memory, and 0.0 GB are free."
    assert second == "Lower it: --batch-tokens 110; with --set training.accumulate=28 an update reads as much."


def test_a_model_that_leaves_no_room(make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "available_memory", lambda device: 60_000)
    with pytest.raises(ConfigError, match="Choose a smaller model, or shorter examples"):
        list(train(make_config({"training.batch_tokens": 2000}), tmp_path / "run"))


def test_what_fits_or_may_fit_is_trained(trainer_of: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of({"training.batch_tokens": 500})
    found = step_memory.estimate_step(trainer)
    assert found is not None
    for free in (round(found.needed) + 1, None):
        monkeypatch.setattr(runtime, "available_memory", lambda device, free=free: free)
        step_memory.refuse_too_large(trainer)
    few = trainer_of({"training.batch_tokens": 30})
    monkeypatch.setattr(runtime, "available_memory", lambda device: 1)
    assert step_memory.estimate_step(few) is None, "a part of a few examples does not stand for the whole"
    step_memory.refuse_too_large(few)


def test_the_estimate_leaves_no_trace(trainer_of: Callable[..., Trainer]) -> None:
    trainer = trainer_of({"training.batch_tokens": 500})
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    random = torch.random.get_rng_state()
    step_memory.estimate_step(trainer)
    assert torch.equal(random, torch.random.get_rng_state())
    assert all(torch.equal(tensor, before[name]) for name, tensor in trainer.model.state_dict().items())
    assert all(parameter.grad is None for parameter in trainer.model.parameters())
