"""One process of several: trains tiny networks of every task and family for a few updates, and keeps what comes out.

    python -m tests.training.rank_program DATA OUT float64|float32 STEPS NAME…

What is drawn at random (dropout, augmentation, which tokens are hidden) is drawn by each process for its own share, so that
nothing is drawn here: dropout and augmentation are off, and what is hidden goes by the number of the segment.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch
from tests.golden.run import BY_NAME, settings_of
from torch import nn

from regard import runtime
from regard.api.new_run import assemble
from regard.models.presets import build_model, model_config, resolved
from regard.parts.dropout import Dropout
from regard.tasks import find_task
from regard.tasks.denoising.examples import SegmentBatch
from regard.tasks.labelling.examples import SequenceBatch, VectorSequences
from regard.tasks.spec import TASKS
from regard.tasks.task import Indices
from regard.training.distributed import World, joined
from regard.training.ema import WeightEMA
from regard.training.fine_tuning import prepare_fine_tuning
from regard.training.loop import updates
from regard.training.session import make_trainer
from regard.training.state import Cursor

SETTINGS = {"training.accumulate": 2, "training.ema": 0.9, "training.label_smoothing": 0.1, "training.warmup": 5}
UNDRAWN = {"augmentation.crop": 0, "augmentation.mirror": False, "augmentation.cutout": 0, "augmentation.mixup": 0.0}


def draw_nothing() -> None:
    hide = SegmentBatch.draws
    Dropout.mask = lambda self, x: None  # type: ignore[method-assign]
    SegmentBatch.draws = lambda self, anew: hide(self, anew=False)  # type: ignore[method-assign, assignment]


def compute_in_double() -> None:
    """Let the network, and what turns its inputs and logits into single precision, compute in double."""
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    batch = VectorSequences.batch

    def in_double(self: VectorSequences, indices: Indices, device: torch.device) -> SequenceBatch:
        read = batch(self, indices, device)
        return dataclasses.replace(read, inputs=read.inputs.double())

    VectorSequences.batch = in_double  # type: ignore[method-assign]


def train(name: str, data: Path, world: World, dtype: torch.dtype, steps: int) -> dict[str, np.ndarray]:
    """Train one network; return its losses, its gradient norms, all weights, and their moving averages."""
    golden = BY_NAME[name]
    settings = {**settings_of(golden, data), "data.train": [str(data / file) for file in golden.files]}
    settings |= {key: value for key, value in UNDRAWN.items() if key in settings}
    settings |= {key: value for key, value in SETTINGS.items() if TASKS[golden.task].reads_setting(*key.split("."))}
    config = assemble(golden.task, settings, model=golden.model, origin="test").config
    machine = runtime.prepare(config.runtime)
    prepared = find_task(config.task).prepare(config, vocabulary=None, progress=lambda what, done: None)
    sizes = model_config(config.model, origin="test", **prepared.task.model_fields())
    config = dataclasses.replace(config, model=resolved(config.model, sizes))
    model = build_model(sizes, seed=config.seed)
    prepared.task.initialise(model)
    model = model.to(dtype)
    factors = prepare_fine_tuning(model, (), config.training)
    trainer = make_trainer(config, prepared, model, machine, lr_factors=factors, world=world)
    trainer = dataclasses.replace(trainer, ema=WeightEMA(model, config.training.ema))
    model.train()
    losses, norms, epochs = [], [], set()
    for update in updates(trainer, Cursor()):
        losses.append(update.loss)
        norms.append(update.gradient_norm)
        epochs.add(update.epoch)
        assert not update.skipped
        if len(losses) == steps:
            break
    assert len(epochs) > 1, "an epoch's last batches must be among them"
    return {"loss": np.array(losses), "norm": np.array(norms), "weights": flat(model), "ema": flat_ema(trainer.ema)}


def flat(model: nn.Module) -> np.ndarray:
    return np.concatenate([tensor.detach().double().flatten().numpy() for tensor in model.state_dict().values()])


def flat_ema(ema: WeightEMA | None) -> np.ndarray:
    assert ema is not None
    return np.concatenate([tensor.double().flatten().numpy() for tensor in ema.average.values()])


def main() -> None:
    data, out, precision, steps, *names = sys.argv[1:]
    dtype = torch.float64 if precision == "float64" else torch.float32
    draw_nothing()
    if dtype == torch.float64:
        compute_in_double()
    with joined({}, timeout=120) as world:
        for name in names:
            found = train(name, Path(data), world, dtype, int(steps))
            np.savez(Path(out) / f"{name}-{world.ranks.size}-{world.ranks.rank}.npz", **found)


if __name__ == "__main__":
    main()
