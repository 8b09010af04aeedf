"""Data-parallel training on this machine: the step that `regard plan --processes N --measure` predicts, beside a real one.

For 1, 2 and 4 processes, which share the machine's threads and one global batch. The prediction is made of what a few
seconds show: gradients of a part of a share, an update, the sum of gradients (`regard/training/step_trial.py`),
in as many processes as there are cores. The real step is `DistributedDataParallel` over gloo: forward and backward pass of
the whole share, gradients summed in buckets meanwhile, clipped by their norm, an update. Both take synthetic batches without
padding.
"""

import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import torch
from benchmarks.rounds import options, report, table, tell, threads_of
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from regard import runtime
from regard.config import RuntimeConfig, TrainingConfig
from regard.models.presets import build_model
from regard.parts.dropout import seeded
from regard.training import step_timing
from regard.training.batch_shape import AnyBatchShape
from regard.training.devices import DeviceOptions
from regard.training.optimizer import Optimizer
from regard.training.plan import Plan, plan
from regard.training.planned_batch import BatchOptions
from regard.training.synthetic_batch import synthetic_loss

MODELS = {"transformer-tiny": 4096, "gpt-mini": 4096}  # tokens per step of all processes
PROCESSES = (1, 2, 4)
STEPS, WARM = 8, 2
BAR = 0.25  # how far a prediction may be from the real step


def main() -> None:
    parser = options("Predicted and measured steps of several processes.", rounds=3)
    parser.add_argument("--model", choices=MODELS, help="only this one")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(threads_of(arguments))  # which is what `runtime.cores` goes by
    runtime.keep_freed_memory()
    models = [arguments.model] if arguments.model else list(MODELS)
    counts, tokens, steps = (PROCESSES, MODELS, STEPS)
    n_rounds = 1 if arguments.quick else arguments.rounds
    if arguments.quick:
        models, counts, tokens, steps = ["gpt-nano"], (1, 2), {"gpt-nano": 256}, 2
        step_timing.BATCH_SECONDS = 0.05
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(n_rounds):
        for model in models:
            for count in counts:
                tell(f"round {number + 1}: {model}, {count} processes")
                planned = plan(model, batch=BatchOptions(tokens=tokens[model]), devices=DeviceOptions(processes=count))
                seconds = found.setdefault(f"{model}, {count}", {"predicted": [], "measured": []})
                seconds["predicted"].append(step_timing.measure(planned).seconds_per_step(planned))
                seconds["measured"].append(real_seconds(planned, count, steps=steps))
    report("scaling", show(found), {"steps": found, "bar": BAR}, quick=arguments.quick)


def show(found: dict[str, dict[str, list[float]]]) -> str:
    """A row for each model and number of processes."""
    rows = []
    for name, seconds in found.items():
        predicted, measured = median(seconds["predicted"]), median(seconds["measured"])
        error = median(one / other - 1 for one, other in zip(seconds["predicted"], seconds["measured"], strict=True))
        verdict = "met" if abs(error) <= BAR else "missed"
        rows.append([name, f"{predicted:.3f} s", f"{measured:.3f} s", f"{error:+.0%}", f"{BAR:.0%}: {verdict}"])
    return table(["model, processes", "predicted", "measured", "error", "bar"], rows)


@dataclass(frozen=True)
class Rank:
    """One process of a group."""

    number: int
    of: int
    threads: int
    store: str


def real_seconds(planned: Plan, count: int, *, steps: int) -> float:
    """The median step of so many processes, each of which has its share of the batch: of each step the slowest's."""
    context = multiprocessing.get_context("spawn")
    processes, readers = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            reader, writer = context.Pipe(duplex=False)
            rank = Rank(number, count, max(1, runtime.cores() // count), str(Path(folder) / "store"))
            processes.append(context.Process(target=work, args=(planned, rank, steps, writer), daemon=True))
            processes[-1].start()
            writer.close()
            readers.append(reader)
        try:
            seconds = [reader.recv() for reader in readers]
        finally:
            for process in processes:
                process.join(10)
                process.kill()
    return median(max(step) for step in zip(*seconds, strict=True))


class SyntheticStep(nn.Module):
    """A network whose forward pass returns the loss of a synthetic batch, as DistributedDataParallel wants it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: AnyBatchShape) -> Tensor:
        return synthetic_loss(self.model, batch, device=torch.device("cpu"))


def work(planned: Plan, rank: Rank, steps: int, writer: Connection) -> None:
    """Train, and say how long each step took."""
    runtime.keep_freed_memory()
    runtime.prepare(RuntimeConfig(device="cpu", threads=rank.threads))
    distributed.init_process_group("gloo", init_method=f"file://{rank.store}", rank=rank.number, world_size=rank.of)
    with runtime.denormals_as_zero():
        model = build_model(planned.config).train()
        network = SyntheticStep(model)
        parallel = DistributedDataParallel(network, gradient_as_bucket_view=True) if rank.of > 1 else network
        optimizer = Optimizer(model, TrainingConfig(optimizer=planned.optimizer))
        batch = share(planned, rank)
        seconds = []
        for step in range(WARM + steps):
            distributed.barrier()
            start = time.perf_counter()
            for parameter in model.parameters():  # DistributedDataParallel keeps its views
                if parameter.grad is not None:
                    parameter.grad.zero_()
            with seeded(step, torch.device("cpu")):
                loss = parallel(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.update(0.1)
            seconds.append(time.perf_counter() - start)
    writer.send(seconds[WARM:])
    distributed.barrier()
    distributed.destroy_process_group()


def share(planned: Plan, rank: Rank) -> AnyBatchShape:
    """The part of a process: whole examples, the first ones have one more; of a target the mean length, rounded."""
    n_examples = round(planned.batch.n_examples)
    own = n_examples // rank.of + (rank.number < n_examples % rank.of)
    batch = planned.batch.with_examples(own)
    return replace(batch, target_length=round(batch.target_length)) if hasattr(batch, "target_length") else batch


if __name__ == "__main__":
    main()
