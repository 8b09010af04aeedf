"""Training tokens/s and peak memory of transformer-tiny: ours against the same network in two other libraries.

regard           our loop as `regard train` runs it: batches made on the way, seeded dropout, the loss in chunks, gradient
                 clipped, AdamW, the allocator that keeps freed memory
nn.Transformer   torch's own module, pre-norm as ours
Marian           the class of the transformers package, which knows only post-norm

The peers get ready batches, the same ones, and do what their users do: dropout of their own at the same rates, cross
entropy of all logits at once, clip_grad_norm_, torch.optim.AdamW by its defaults. Each runs twice: in a plain process, and
in one with our settings of the allocator and of denormal numbers.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from benchmarks.corpora import MULTI30K, Text, find_text, run_config
from benchmarks.rounds import (
    BUILD,
    Answer,
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
from regard.models.presets import build_model, model_config
from regard.models.transformer import TransformerConfig
from regard.tasks.translation.task import TranslationTask
from regard.training.loop import Trainer, updates
from regard.training.optimizer import Optimizer
from regard.training.state import Cursor

FOLDER = BUILD / "training"
PEERS = ("nn.Transformer", "Marian")


@dataclass(frozen=True)
class Batch:
    """Ready tensors: source (B, S), target (B, T + 1) with start and end token, and how many target tokens count."""

    source: Tensor
    target: Tensor

    @property
    def n_tokens(self) -> int:
        return int((self.target[:, 1:] != 0).sum())


def main() -> None:
    parser = options("Training tokens/s against two peers.", rounds=7)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="folder of Multi30k")
    parser.add_argument("--batches", type=int, default=12, help="updates a round")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    n_batches, n_rounds = (2, 1) if arguments.quick else (arguments.batches, arguments.rounds)
    text = find_text(arguments.data)
    if arguments.contender:
        serve_contender(arguments.contender, text, threads=threads, n_batches=n_batches)
    else:
        compare(text, threads=threads, n_batches=n_batches, n_rounds=n_rounds, arguments=arguments)


# --- the children -----------------------------------------------------------------------------------------------------


def serve_contender(name: str, text: Text, *, threads: int, n_batches: int) -> None:
    """Be one contender: its name, with a + behind it for our allocator settings."""
    if name == "multiplication":
        serve_multiplication(threads)
    elif name == "regard":
        serve_regard(text, threads=threads, n_batches=n_batches)
    else:
        serve_peer(name.rstrip("+"), text, threads=threads, n_batches=n_batches, keep_memory=name.endswith("+"))


def serve_regard(text: Text, *, threads: int, n_batches: int) -> None:
    """Train as `regard train` does."""
    runtime.keep_freed_memory()
    config = run_config(text, threads=threads)
    machine = runtime.prepare(config.runtime)
    prepared = TranslationTask.prepare(config, vocabulary=FOLDER / "vocabulary", progress=lambda what, done: None)
    model = build_model(model_config(config.model, origin="benchmark", **prepared.task.model_fields())).train()
    trainer = Trainer(
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
    stream = updates(trainer, Cursor())

    def train(number: int) -> Answer:
        made = list(islice(stream, n_batches))
        return {"tokens": sum(update.weight for update in made), "loss": made[-1].loss}

    with runtime.denormals_as_zero():
        serve({"train": train}, parameters=count_parameters(model))


def serve_peer(name: str, text: Text, *, threads: int, n_batches: int, keep_memory: bool) -> None:
    """Train a peer as its users do."""
    if keep_memory:
        runtime.keep_freed_memory()
        torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    batches = iter(load_batches())
    config = network_config(text, threads=threads)
    torch.manual_seed(1)
    if name == "Marian":
        from benchmarks.marian import marian_logits, marian_network

        model: Any = marian_network(config, pad_id=0, start_id=1, end_id=2).train()

        def logits_of(source: Tensor, target: Tensor) -> Tensor:
            return marian_logits(model, source, (source != 0).sum(1), target)

    else:
        from benchmarks.torch_transformer import TorchTransformer

        model = logits_of = TorchTransformer(config, pad_id=0).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)

    def update(batch: Batch) -> float:
        optimizer.zero_grad()
        logits = logits_of(batch.source, batch.target[:, :-1])
        goal = batch.target[:, 1:].flatten()
        loss = F.cross_entropy(logits.flatten(0, 1), goal, ignore_index=0, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    def train(number: int) -> Answer:
        used = list(islice(batches, n_batches))
        losses = [update(batch) for batch in used]
        return {"tokens": sum(batch.n_tokens for batch in used), "loss": losses[-1]}

    serve({"train": train}, parameters=count_parameters(model))


def serve_multiplication(threads: int) -> None:
    """Multiply large matrices: what this machine can do at best."""
    torch.set_num_threads(threads)
    size, repeats = 2048, 8
    a, b = torch.randn(size, size), torch.randn(size, size)

    def multiply(number: int) -> Answer:
        for _ in range(repeats):
            a @ b
        return {"flops": repeats * 2 * size**3}

    serve({"train": multiply})


def network_config(text: Text, *, threads: int) -> TransformerConfig:
    """The sizes of our network, for the vocabulary that was learned."""
    config = run_config(text, threads=threads)
    sizes = TranslationTask.load(config, FOLDER / "vocabulary").model_fields()
    return model_config(config.model, origin="benchmark", **sizes)


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(text: Text, *, threads: int, n_batches: int, n_rounds: int, arguments: argparse.Namespace) -> None:
    """Make the batches, let all take turns, report."""
    tell(f"making batches of {text.name}")
    prepare_batches(text, threads=threads, n=n_batches * (n_rounds + 1))
    flags = ["--threads", str(threads), "--batches", str(n_batches), "--data", str(arguments.data)]
    flags += ["--quick"] if arguments.quick else []
    environment = {"OMP_NUM_THREADS": str(threads)}
    names = ["regard", *PEERS, *(f"{peer}+" for peer in PEERS), "multiplication"]
    contenders = [Contender(name, "benchmarks.training", ["--contender", name, *flags], environment) for name in names]
    with started(contenders) as children:
        answers = take_turns(children, "train", rounds=n_rounds)
        parameters = {child.name: child.facts.get("parameters") for child in children}
    best_flops = median(answer["flops"] / answer["seconds"] for answer in answers.pop("multiplication"))
    flops = flops_of_rounds(network_config(text, threads=threads), n_batches)
    rows, results = [], {}
    for name, own in answers.items():
        assert [answer["tokens"] for answer in own] == [answer["tokens"] for answer in answers["regard"]], (
            "other batches"
        )
        speed = [answer["tokens"] / answer["seconds"] for answer in own]
        ours = [answer["tokens"] / answer["seconds"] for answer in answers["regard"]]
        results[name] = {
            "tokens_per_second": median(speed),
            "regard_is_faster": ratio(ours, speed),
            "peak_bytes": own[-1]["peak_bytes"],
            "matrix_share": median(f / answer["seconds"] for f, answer in zip(flops[1:], own, strict=True))
            / best_flops,
            "loss": own[-1]["loss"],
            "parameters": parameters[name],
        }
    for name in ("regard", *PEERS):
        plain, kept = results[name], results.get(f"{name}+")
        rows.append(
            [
                name,
                *cells(plain),
                f"{plain['matrix_share']:.0%}",
                f"{plain['loss']:.2f}",
                *(cells(kept) if kept else "---"),
            ]
        )
    header = [
        "",
        "tokens/s",
        "ratio",
        "peak",
        "of matrix speed",
        "last loss",
        "our allocator: tokens/s",
        "ratio",
        "peak",
    ]
    lines = [
        f"Training transformer-tiny on {text.name}, {threads} threads; medians of {n_rounds} rounds of {n_batches} updates.",
        f"Large fp32 matrix products reach {best_flops / 1e9:.0f} GFLOP/s here. ratio: regard's speed over this one's.",
        "",
        table(header, rows),
    ]
    found = {
        "text": text.name,
        "threads": threads,
        "gflops": best_flops / 1e9,
        "contenders": results,
        "rounds": answers,
    }
    report("training", "\n".join(lines), found, quick=arguments.quick)


def cells(result: dict[str, Any]) -> list[str]:
    return [
        f"{result['tokens_per_second']:,.0f}",
        f"{result['regard_is_faster']:.2f}",
        f"{result['peak_bytes'] / 2**20:,.0f} MB",
    ]


def prepare_batches(text: Text, *, threads: int, n: int) -> None:
    """Learn the vocabulary, and keep the first n batches of the order in which our loop uses them, for the peers."""
    config = run_config(text, threads=threads)
    prepared = TranslationTask.prepare(config, vocabulary=None, progress=lambda what, done: None)
    prepared.task.save(FOLDER / "vocabulary")
    order = islice(chain.from_iterable(prepared.train.order(epoch) for epoch in count()), n)
    tensors: dict[str, Tensor] = {}
    for number, indices in enumerate(order):
        batch = prepared.train.batch(indices, torch.device("cpu"))
        tensors |= {f"{number}.source": batch.source, f"{number}.target": batch.target}
    save_file(tensors, FOLDER / "batches.safetensors")


def load_batches() -> Iterator[Batch]:
    tensors = load_file(FOLDER / "batches.safetensors")
    for number in range(len(tensors) // 2):
        yield Batch(tensors[f"{number}.source"], tensors[f"{number}.target"])


def flops_of_rounds(config: TransformerConfig, n_batches: int) -> list[float]:
    """The floating-point operations of the matrix products in each round's updates."""
    flops = [flops_of_update(config, batch) for batch in load_batches()]
    return [sum(flops[start : start + n_batches]) for start in range(0, len(flops), n_batches)]


def flops_of_update(config: TransformerConfig, batch: Batch) -> float:
    """Two for each weight and token, two for each pair of positions and feature in either product of attention.

    The backward pass needs two products for each of the forward pass. Padding counts, except before the output layer.
    """
    rows, n_source = batch.source.shape
    n_target = batch.target.shape[1] - 1
    d, f = config.d_model, config.d_ff
    source, target = rows * n_source, rows * n_target
    encoder = source * (8 * d * d + 4 * d * f) + 4 * d * source * n_source
    decoder = target * (12 * d * d + 4 * d * f) + source * 4 * d * d + 4 * d * target * (n_target + n_source)
    output = 2 * d * config.target_vocab * batch.n_tokens
    return 3.0 * (config.n_encoder_layers * encoder + config.n_decoder_layers * decoder + output)


if __name__ == "__main__":
    main()
