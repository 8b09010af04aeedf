"""Seconds of training until the validation loss first passes a target: what people feel of speed.

translation   transformer-tiny on Multi30k. nn.Transformer and Marian's class of transformers, of the same width and depth,
              train for 20 minutes each with the recipe that their users take: AdamW, warm-up and inverse square root, at
              the best rate known for each. The target is the lowest loss that the better of the two ever has. Labels are
              not smoothed, by anybody: it is worth a lower loss. Ours computes matrix products in bf16 where the processor
              has them (runtime.precision, an option; `--precision fp32` for full precision).
language      llama-nano on the characters of tinyshakespeare. GPT-2's class of transformers, of the same width and depth, in
              a plain loop with nanoGPT's settings for a CPU, 2,000 updates. The target is 1.88.

Every contender shuffles for itself and has its own settings; vocabulary, width, depth and validation set are the same.
Ours sees each pair three or four times, the peers about seven times on one thread; dropout is 0.1, and the peers enter
without it, too. Losses are without smoothing. Only updates count as time, not validations; on one
thread it is the processor's time, so that other work on the machine tells less.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from benchmarks.corpora import MULTI30K, PEERS_NETWORK, SHAKESPEARE, find_running_text, find_text
from benchmarks.corpora import run_config as translation_config
from benchmarks.rounds import BUILD, Answer, Child, Contender, options, report, serve, started, table, tell, threads_of
from torch import Tensor, nn

from regard import runtime
from regard.config import RunConfig, from_tables
from regard.models.presets import PRESETS, build_model, model_config
from regard.tasks import find_task
from regard.tasks.batches import fixed_batches, mean_loss
from regard.tasks.task import Prepared
from regard.training.loop import Trainer, updates
from regard.training.optimizer import Optimizer
from regard.training.state import Cursor

FOLDER = BUILD / "time_to_score"
MINUTES = 20  # of the peers, in translation
TARGET = 1.88  # in language modelling, nats per character
PEERS = {"translation": ("nn.Transformer", "nn.Transformer without dropout", "Marian"), "language": ("GPT-2",)}
# Ours: how many updates, and what else a run file would say.
OURS: dict[str, dict[str, dict[str, Any]]] = {
    "translation": {
        "model": {"preset": "transformer-tiny", **PRESETS["transformer-tiny"].fields, "dropout": 0.1},
        "training": {"steps": 400, "learning_rate": 0.03, "beta1": 0.8, "beta2": 0.95, "label_smoothing": 0.0},
    },
    "language": {
        "model": {"preset": "llama-nano", "dropout": 0.0},
        "training": {"steps": 360, "batch_tokens": 768},
    },
}
# The networks of the same width and depth that the peers build.
THEIRS: dict[str, dict[str, Any]] = {
    "translation": {"preset": "transformer-tiny", "norm_order": "pre", "dropout": 0.1, **PEERS_NETWORK},
    "language": {"preset": "gpt-nano", "dropout": 0.0},
}
# The peers in translation: the steps of warm-up, and their rates (pre-norm bears a higher one than Marian's post-norm).
WARMUP, PEAK, MARIANS_PEAK = 400, 0.005, 0.002


@dataclass
class Race:
    """What a contender does: one update after another, and a validation between."""

    update: Callable[[], object]
    validate: Callable[[], float]
    share_done: Callable[[int, float], float]  # of its budget, after so many updates and seconds
    clock: Callable[[], float] = time.perf_counter
    step: int = 0
    seconds: float = 0.0

    def train(self, share: float) -> Answer:
        """Train until this share of the budget is used; return where that led."""
        while self.share_done(self.step, self.seconds) < share:
            began = self.clock()
            self.update()
            self.seconds += self.clock() - began
            self.step += 1
        return {"step": self.step, "trained": self.seconds, "loss": self.validate()}


def main() -> None:
    parser = options("Seconds to a validation loss.", rounds=40)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="folder of Multi30k")
    parser.add_argument("--text", type=Path, default=SHAKESPEARE, help="a text file")
    parser.add_argument("--only", choices=PEERS, help="one of the two")
    parser.add_argument("--peer", help="one of the peers alone, by its name")
    parser.add_argument("--precision", choices=("bf16", "fp32"), help="of ours in translation; bf16 where it is quick")
    parser.add_argument("--seeds", default="1", help="of ours, such as 1,2,3: one contender each")
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)  # given to a child of ours
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    rounds = 1 if arguments.quick else arguments.rounds
    if arguments.contender:
        race = enter(arguments)
        serve({"train": lambda number: race.train(number / rounds if not arguments.quick else 0.001)})
        return
    jobs = [arguments.only] if arguments.only else list(PEERS)
    lines, found = [], {}
    for job in jobs:
        found[job] = compare(job, arguments, rounds=rounds)
        lines += [describe(job, found[job]), ""]
    report("time_to_score", "\n".join(lines), found, quick=arguments.quick)


# --- the contenders ---------------------------------------------------------------------------------------------------


def enter(arguments: argparse.Namespace) -> Race:
    """Build the contender that a child is; of one thread, the processor's seconds count."""
    threads = threads_of(arguments)
    race = build(arguments, threads=threads)
    return replace(race, clock=time.process_time) if threads == 1 else race


def build(arguments: argparse.Namespace, *, threads: int) -> Race:
    """The contender as it trains."""
    config = job_config(arguments.only, arguments, threads=threads)
    if arguments.contender == "regard":
        return our_race(replace(config, seed=arguments.seed))
    torch.set_num_threads(threads)
    prepared = prepare(config)
    return (
        gpt2_race(config, prepared)
        if arguments.contender == "GPT-2"
        else seq2seq_race(config, prepared, arguments.contender)
    )


def job_config(job: str, arguments: argparse.Namespace, *, threads: int) -> RunConfig:
    """The run as regard trains it, with the network of the contender."""
    is_ours = arguments.contender in (None, "regard")
    ours = OURS[job] if is_ours else {**OURS[job], "model": THEIRS[job]}
    if job == "translation":
        precision = (arguments.precision or ("bf16" if runtime.has_bf16_products() else "fp32")) if is_ours else "fp32"
        machine = {"runtime": {"device": "cpu", "threads": threads, "precision": precision}}
        return translation_config(find_text(arguments.data), threads=threads, **ours, **machine)
    tables = {
        "data": {"train": [find_running_text(arguments.text)]},
        "tokenizer": {"kind": "characters"},
        "runtime": {"device": "cpu", "threads": threads},
        **ours,
    }
    return from_tables({"task": "language", **tables}, origin="benchmark")


def prepare(config: RunConfig) -> Prepared:
    """Read the data with the vocabulary that all share, which whoever comes first learns."""
    folder = FOLDER / config.task
    given = folder if folder.exists() else None
    prepared = find_task(config.task).prepare(config, vocabulary=given, progress=lambda what, done: None)
    if given is None:
        prepared.task.save(folder)
    return prepared


def validation(model: nn.Module, prepared: Prepared) -> float:
    """The mean loss per token of the validation set, without smoothing."""
    model.eval()
    loss = mean_loss(
        lambda batch: prepared.task.loss(model, batch, smoothing=0.0), fixed_batches(model, prepared.valid)
    )
    model.train()
    return loss


def our_race(config: RunConfig) -> Race:
    """Train as `regard train` does."""
    runtime.keep_freed_memory()
    machine = runtime.prepare(config.runtime)
    torch.set_flush_denormal(True)
    prepared = prepare(config)
    sizes = model_config(config.model, origin="benchmark", **prepared.task.model_fields())
    model = build_model(sizes, seed=config.seed).train()
    trainer = Trainer(
        model=model,
        task=prepared.task,
        examples=prepared.train,
        optimizer=Optimizer(model, config.training),
        ema=None,
        config=config.training,
        machine=machine,
        seed=config.seed,
        total=config.training.steps,
    )
    stream = updates(trainer, Cursor())
    return Race(
        update=lambda: next(stream),
        validate=lambda: validation(model, prepared),
        share_done=lambda step, seconds: step / config.training.steps,
    )


class Seq2Seq(nn.Module):
    """A peer that takes what a network of a user's own is given: source, lengths, target."""

    def __init__(self, network: nn.Module, logits: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.network = network
        self.logits = logits

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        return self.logits(source, source_lengths, target)


def seq2seq_race(config: RunConfig, prepared: Prepared, name: str) -> Race:
    """Train a translator of another library as its users do, by the clock."""
    torch.manual_seed(1)
    sizes: Any = model_config(config.model, origin="benchmark", **prepared.task.model_fields())
    if name == "Marian":
        from benchmarks.marian import marian_logits, marian_network

        marian: Any = marian_network(replace(sizes, norm_order="post"), pad_id=0, start_id=1, end_id=2)
        model = Seq2Seq(marian, lambda source, lengths, target: marian_logits(marian, source, lengths, target)).train()
    else:
        from benchmarks.torch_transformer import TorchTransformer

        network = TorchTransformer(replace(sizes, dropout=0.0) if "without" in name else sizes, pad_id=0)
        model = Seq2Seq(network, lambda source, lengths, target: network(source, target)).train()
    peak = MARIANS_PEAK if name == "Marian" else PEAK
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP, math.sqrt(WARMUP / (step + 1)))
    )
    batches = endless(prepared)

    def update() -> None:
        batch = next(batches)
        logits = model(batch.source, batch.source_lengths, batch.target[:, :-1])
        targets = batch.target[:, 1:].flatten()
        loss = F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=0)
        step_down(model, optimizer, loss)
        schedule.step()

    return Race(
        update=update,
        validate=lambda: validation(model, prepared),
        share_done=lambda step, seconds: seconds / (60 * MINUTES),
    )


class Logits(nn.Module):
    """GPT-2's class, as a network of a user's own: ids to logits."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        logits: Tensor = self.network(ids).logits
        return logits


def gpt2_race(config: RunConfig, prepared: Prepared) -> Race:
    """Train GPT-2's class with nanoGPT's settings for a CPU: 2,000 updates of 12 windows of 64 characters."""
    from benchmarks.gpt2 import gpt2_network

    n_updates, warmup, peak, least = 2000, 100, 1e-3, 1e-4
    torch.manual_seed(1)
    sizes: Any = model_config(config.model, origin="benchmark", **prepared.task.model_fields())
    model = Logits(gpt2_network(sizes, pad_id=0, end_id=2)).train()
    decayed = [one for one in model.parameters() if one.dim() >= 2]
    others = [one for one in model.parameters() if one.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=peak, betas=(0.9, 0.99)
    )

    def rate(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        cosine = 0.5 * (1 + math.cos(math.pi * (step - warmup) / (n_updates - warmup)))
        return (least + cosine * (peak - least)) / peak

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    batches = endless(prepared)

    def update() -> None:
        batch = next(batches)
        loss = F.cross_entropy(model(batch.ids).flatten(0, 1), batch.targets.flatten())
        step_down(model, optimizer, loss)
        schedule.step()

    return Race(
        update=update,
        validate=lambda: validation(model, prepared),
        share_done=lambda step, seconds: step / n_updates,
    )


def step_down(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """The rest of an update, as everybody writes it."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def endless(prepared: Prepared) -> Iterator[Any]:
    """Batches of shuffled examples, epoch after epoch."""
    for epoch in count(1000):  # another order than ours
        for indices in prepared.train.order(epoch):
            yield prepared.train.batch(indices, torch.device("cpu"))


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(job: str, arguments: argparse.Namespace, *, rounds: int) -> dict[str, Any]:
    """Let all train in turns, each by a part of its budget at a time; return their curves and times."""
    threads = threads_of(arguments)
    prepare(job_config(job, arguments, threads=threads))
    flags = ["--only", job, "--threads", str(threads), "--rounds", str(rounds), "--data", str(arguments.data)]
    flags += ["--text", str(arguments.text), *["--quick"] * arguments.quick]
    flags += ["--precision", arguments.precision] if arguments.precision else []
    environment = {"OMP_NUM_THREADS": str(threads)}
    entrants = {f"regard, seed {seed}": ["regard", "--seed", seed] for seed in arguments.seeds.split(",")}
    entrants |= {name: [name] for name in PEERS[job] if arguments.peer in (None, name)}
    contenders = [
        Contender(name, "benchmarks.time_to_score", ["--contender", *own, *flags], environment)
        for name, own in entrants.items()
    ]
    with started(contenders) as children:
        curves: dict[str, list[Answer]] = {child.name: [] for child in children}
        for number in range(1, rounds + 1):
            for child in children:
                curves[child.name].append(turn(child, number, rounds))
    peers = [name for name in curves if name in PEERS[job]]
    lowest = min(point["loss"] for name in peers for point in curves[name])
    target = TARGET if job == "language" else lowest
    times = {name: seconds_to(target, curve) for name, curve in curves.items()}
    return {"target": target, "seconds": times, "threads": threads, "curves": curves}


def turn(child: Child, number: int, rounds: int) -> Answer:
    """Let a contender train to its next share."""
    answer = child.run("train", number)
    tell(f"{number}/{rounds} {child.name}: {answer['trained']:.0f} s, step {answer['step']}, loss {answer['loss']:.3f}")
    return answer


def seconds_to(target: float, curve: list[Answer]) -> float | None:
    """The seconds of training after which a validation first reached the target."""
    return next((point["trained"] for point in curve if point["loss"] <= target), None)


def describe(job: str, found: dict[str, Any]) -> str:
    """The table of a job: seconds, and the last loss; ratios to the median of our seeds, if all of them arrived."""
    arrivals = [own for name, own in found["seconds"].items() if name not in PEERS[job]]
    ours = median(arrivals) if all(arrivals) else None
    rows = []
    for name, curve in found["curves"].items():
        own = found["seconds"][name]
        faster = f"{own / ours:.2f}" if own and ours else "-"
        rows.append(
            [name, f"{own:.0f}" if own else "-", faster, f"{curve[-1]['trained']:.0f}", f"{curve[-1]['loss']:.3f}"]
        )
    header = ["", "seconds to the target", "ratio", "seconds in all", "last loss"]
    title = f"{job}: validation loss {found['target']:.3f}, {found['threads']} threads; ratio of seconds to regard's"
    return f"{title}\n\n{table(header, rows)}"


if __name__ == "__main__":
    main()
