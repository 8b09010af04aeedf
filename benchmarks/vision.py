"""Image networks: training vit-tiny and resnet-20, ours against the same networks in transformers and in plain torch.

regard         our loop as `regard train` runs it: bytes read, scaled, seeded dropout, gradient clipped, AdamW, the allocator
               that keeps freed memory; nothing is changed at random
ViT            the class of the transformers package, with the fused kernel (sdpa) and with the formula (eager)
torch.nn       the residual network written out, as its users do

The peers have all images scaled beforehand and take the same ones for each batch; then cross entropy, clip_grad_norm_, and
torch.optim.AdamW, fused. Each runs twice: in a plain process, and in one with our settings of the allocator and of denormal
numbers. Before anything is timed, all must have as many parameters, and, with our first weights and without dropout, the
same loss on the first batch. The images are made up: a pattern for each class, half hidden by noise.
"""

import argparse
import os
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from benchmarks.rounds import (
    BUILD,
    Answer,
    Child,
    Contender,
    options,
    ratio,
    report,
    serve,
    started,
    table,
    take_turns,
    tell,
    threads_of,
)
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard import runtime
from regard.config import RunConfig, from_tables
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model, model_config
from regard.models.resnet import ResNet
from regard.models.vit import ViT, ViTConfig
from regard.tasks.images.image_classification import ImageClassificationTask
from regard.training.loop import Trainer, updates
from regard.training.optimizer import Optimizer
from regard.training.state import Cursor

FOLDER = BUILD / "vision"
N_IMAGES, N_BATCH, N_CLASSES = 1024, 128, 10
PEERS = {"vit-tiny": ("ViT, sdpa", "ViT, eager"), "resnet-20": ("torch.nn",)}
SAME_LOSS = 1e-4


@dataclass(frozen=True)
class Case:
    """A network, and the images that it learns from."""

    model: str
    size: int
    channels: int

    @property
    def name(self) -> str:
        return f"{self.model}-{self.size}"

    @property
    def contenders(self) -> list[str]:
        """Us, and each peer in a plain process and, with a + behind its name, with our settings."""
        peers = PEERS[self.model]
        return ["regard", *peers, *(f"{peer}+" for peer in peers)]

    def __str__(self) -> str:
        return f"{self.model}, {self.size} × {self.size} {'grey' if self.channels == 1 else 'in colours'}"


@dataclass(frozen=True)
class ReadyImages:
    """What peers learn from: all images (N, C, H, W), scaled, their classes (N,), and which make up each batch (U, B)."""

    images: Tensor
    labels: Tensor
    order: Tensor


CASES = {case.name: case for model in PEERS for case in (Case(model, 28, 1), Case(model, 32, 3))}


def main() -> None:
    parser = options("Image networks against the same ones in transformers and torch.", rounds=5)
    parser.add_argument("--batches", type=int, default=8, help="updates a round")
    parser.add_argument("--case", choices=CASES, help="only one of them")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    n_batches, n_rounds = (2, 1) if arguments.quick else (arguments.batches, arguments.rounds)
    cases = [CASES[arguments.case]] if arguments.case else list(CASES.values())
    if arguments.contender == "regard":
        serve_regard(cases[0], threads=threads, n_batches=n_batches)
    elif arguments.contender:
        serve_peer(arguments.contender, cases[0], threads=threads, n_batches=n_batches)
    else:
        flags = ["--threads", str(threads), "--batches", str(n_batches), *["--quick"] * arguments.quick]
        found = {
            str(case): compare(case, flags=flags, threads=threads, n_batches=n_batches, n_rounds=n_rounds)
            for case in cases
        }
        rows = [[f"{case}: {name}", *cells(own)] for case, results in found.items() for name, own in results.items()]
        lines = [
            f"Batches of {N_BATCH} images, {threads} threads; medians of {n_rounds} rounds of {n_batches} updates.",
            "ratio: regard's speed over this one's, by the clock and by processor time; +: with our allocator.",
            "",
            table(["", "images/s", "ratio", "by processor", "peak", "last loss"], rows),
        ]
        report("vision", "\n".join(lines), {"threads": threads, "cases": found}, quick=arguments.quick)


def run_config(case: Case, *, threads: int) -> RunConfig:
    """A run on the made-up images."""
    tables = {
        "data": {"train": [str(FOLDER / f"{case.size}.npz")]},
        "model": {"preset": case.model},
        "training": {"batch_images": N_BATCH, "schedule": "constant", "warmup": 0, "learning_rate": 0.001},
        "runtime": {"device": "cpu", "threads": threads},
    }
    return from_tables({"task": "image", **tables}, origin="benchmark")


def network_config(config: RunConfig, task: Any) -> ModelConfig:
    return model_config(config.model, origin="benchmark", **task.model_fields())


def without_dropout(config: ModelConfig) -> ModelConfig:
    """The same network, in which nothing is random but its first weights."""
    return replace(config, dropout=0.0) if isinstance(config, ViTConfig) else config


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


# --- the children -----------------------------------------------------------------------------------------------------


def serve_regard(case: Case, *, threads: int, n_batches: int) -> None:
    """Train as `regard train` does."""
    runtime.keep_freed_memory()
    trainer = make_trainer(case, threads=threads)
    stream = updates(trainer, Cursor())

    def train(number: int) -> Answer:
        made = list(islice(stream, n_batches))
        return {"images": sum(update.weight for update in made), "loss": made[-1].loss}

    with runtime.denormals_as_zero():
        serve({"train": train}, parameters=count_parameters(trainer.model), first_loss=our_first_loss(trainer))


def make_trainer(case: Case, *, threads: int) -> Trainer:
    config = run_config(case, threads=threads)
    machine = runtime.prepare(config.runtime)
    prepared = ImageClassificationTask.prepare(config, vocabulary=FOLDER / case.name, progress=lambda what, done: None)
    model = build_model(network_config(config, prepared.task)).train()
    return Trainer(
        model=model,
        task=prepared.task,
        examples=prepared.train,
        optimizer=Optimizer(model, config.training),
        ema=None,
        config=config.training,
        machine=machine,
        seed=config.seed,
        total=0,
    )


@torch.no_grad()
def our_first_loss(trainer: Trainer) -> float:
    """The mean loss of the first batch with the first weights."""
    task: Any = trainer.task
    model = build_model(without_dropout(network_config(task.config, task))).train()
    batch = trainer.collate(trainer.examples.order(0)[0])
    loss, weight = task.loss(model, batch, smoothing=trainer.config.label_smoothing)
    return float(loss) / weight


def serve_peer(name: str, case: Case, *, threads: int, n_batches: int) -> None:
    """Train a peer as its users do; a + behind its name gives it our settings of the allocator and of denormals."""
    if name.endswith("+"):
        runtime.keep_freed_memory()
        torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    config = run_config(case, threads=threads)
    images = ReadyImages(**load_file(FOLDER / f"{case.name}.safetensors"))
    sizes = network_config(config, ImageClassificationTask.load(config, FOLDER / case.name))
    torch.manual_seed(1)
    model = peer_network(name.rstrip("+"), sizes).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.training.learning_rate, fused=True)
    batches = iter(images.order)

    def update(indices: Tensor) -> float:
        optimizer.zero_grad()
        loss = peer_loss(model, images, indices, smoothing=config.training.label_smoothing)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.training.clip)
        optimizer.step()
        return loss.item()

    def train(number: int) -> Answer:
        used = list(islice(batches, n_batches))
        losses = [update(indices) for indices in used]
        return {"images": sum(map(len, used)), "loss": losses[-1]}

    first_loss = peer_first_loss(name.rstrip("+"), sizes, images, smoothing=config.training.label_smoothing)
    serve({"train": train}, parameters=count_parameters(model), first_loss=first_loss)


def peer_network(name: str, config: ModelConfig) -> nn.Module:
    """A peer with the first weights of our network of this config."""
    model = build_model(config)
    if isinstance(model, ViT):
        from benchmarks.transformers_vit import to_vit

        return to_vit(model, attention=name.removeprefix("ViT, "))
    from benchmarks.torch_resnet import to_torch_resnet

    assert isinstance(model, ResNet)
    return to_torch_resnet(model)


def peer_loss(network: nn.Module, images: ReadyImages, indices: Tensor, *, smoothing: float) -> Tensor:
    """The mean loss of some images; transformers wraps its logits."""
    found: Any = network(images.images[indices])
    logits = found if isinstance(found, Tensor) else found.logits
    return F.cross_entropy(logits, images.labels[indices], label_smoothing=smoothing)


@torch.no_grad()
def peer_first_loss(name: str, config: ModelConfig, images: ReadyImages, *, smoothing: float) -> float:
    """The mean loss of the first batch with our first weights."""
    network = peer_network(name, without_dropout(config)).train()
    return float(peer_loss(network, images, images.order[0], smoothing=smoothing))


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(case: Case, *, flags: list[str], threads: int, n_batches: int, n_rounds: int) -> dict[str, Any]:
    """Make the images, let all take turns on them, and say how each did."""
    tell(f"making images for {case}")
    prepare_images(case, n_updates=n_batches * (n_rounds + 1))
    environment = {"OMP_NUM_THREADS": str(threads)}
    contenders = [
        Contender(name, "benchmarks.vision", ["--contender", name, "--case", case.name, *flags], environment)
        for name in case.contenders
    ]
    with started(contenders) as children:
        check_equal_work(case, children)
        answers = take_turns(children, "train", rounds=n_rounds)
    results: dict[str, Any] = {}
    for name, own in answers.items():
        assert [answer["images"] for answer in own] == [answer["images"] for answer in answers["regard"]], (
            "other batches"
        )
        results[name] = {
            "images_per_second": median(answer["images"] / answer["seconds"] for answer in own),
            "regard_is_faster": faster(answers["regard"], own, "seconds"),
            "regard_is_faster_by_processor": faster(answers["regard"], own, "processor_seconds"),
            "peak_bytes": own[-1]["peak_bytes"],
            "loss": own[-1]["loss"],
            "rounds": own,
        }
    return results


def faster(ours: list[Answer], theirs: list[Answer], clock: str) -> float:
    """How many times as fast as theirs ours was, by this clock."""
    return ratio([1 / answer[clock] for answer in ours], [1 / answer[clock] for answer in theirs])


def check_equal_work(case: Case, children: list[Child]) -> None:
    """Refuse contenders of other sizes, or that do not compute what ours does."""
    ours = children[0].facts
    for child in children:
        facts = child.facts
        if facts["parameters"] != ours["parameters"]:
            raise SystemExit(
                f"{case}: {child.name} has {facts['parameters']:,} parameters, not {ours['parameters']:,}."
            )
        if abs(facts["first_loss"] - ours["first_loss"]) > SAME_LOSS:
            raise SystemExit(
                f"{case}: {child.name} begins with a loss of {facts['first_loss']}, not {ours['first_loss']}."
            )


def prepare_images(case: Case, *, n_updates: int) -> None:
    """Write the images, and keep them scaled for the peers, with the order in which our loop uses them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = {"train": N_IMAGES, "valid": N_BATCH}
    arrays: dict[str, Any] = {}
    for seed, (part, n) in enumerate(parts.items()):
        arrays[f"x_{part}"], arrays[f"y_{part}"] = made_up(n, size=case.size, channels=case.channels, seed=seed)
    np.savez(FOLDER / f"{case.size}.npz", **arrays)
    config = run_config(case, threads=0)
    prepared = ImageClassificationTask.prepare(config, vocabulary=None, progress=lambda what, done: None)
    task: Any = prepared.task
    task.save(FOLDER / case.name)
    order = islice(chain.from_iterable(prepared.train.order(epoch) for epoch in count()), n_updates)
    everything = prepared.train.batch(np.arange(N_IMAGES), torch.device("cpu"))
    tensors = {
        "images": task.table.normalise(everything.images),
        "labels": everything.labels,
        "order": torch.from_numpy(np.stack(list(order))),
    }
    save_file(tensors, FOLDER / f"{case.name}.safetensors")


def made_up(n: int, *, size: int, channels: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """n images (n, size, size, channels) of bytes and their classes (n,)."""
    patterns = np.random.default_rng(0).integers(0, 128, (N_CLASSES, size, size, channels), np.uint8)
    generator = np.random.default_rng([1, seed])
    labels = generator.integers(0, N_CLASSES, n)
    return patterns[labels] + generator.integers(0, 128, (n, size, size, channels), np.uint8), labels


def cells(result: dict[str, Any]) -> list[str]:
    return [
        f"{result['images_per_second']:,.0f}",
        f"{result['regard_is_faster']:.2f}",
        f"{result['regard_is_faster_by_processor']:.2f}",
        f"{result['peak_bytes'] / 2**20:,.0f} MB",
        f"{result['loss']:.2f}",
    ]


if __name__ == "__main__":
    main()
