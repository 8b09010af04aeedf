"""Language models: training and generating with gpt-nano and gpt-mini, ours against GPT-2's class of transformers.

Training: our loop as `regard train` runs it, against the peer on ready batches, the same ones, with its own loss,
clip_grad_norm_ and torch.optim.AdamW by its defaults; equal sizes and dropout rates. Generating: 256 tokens by greedy search
behind a prompt of 16, alone and 16 prompts together, equal weights; the outputs must agree. The positions reach as far.
The peer runs twice: as its users run it, and with our settings of the allocator and of denormal numbers.
"""

import argparse
import os
import warnings
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from benchmarks.corpora import SHAKESPEARE, find_running_text
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
from regard.config import DecodingConfig, RunConfig, from_tables
from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.decoding.rules import Banned
from regard.decoding.search import decode
from regard.decoding.sliding_context import Sliding
from regard.models.gpt import GPT, GPTConfig
from regard.models.presets import build_model, model_config
from regard.tasks.language_model.task import LanguageModelTask
from regard.training.loop import Trainer, updates
from regard.training.optimizer import Optimizer
from regard.training.state import Cursor

FOLDER = BUILD / "language"
MODELS = {"gpt-nano": 768, "gpt-mini": 4096}  # tokens a batch: nanoGPT's setting for a CPU, and 16 windows
NAMES = {"regard": "regard", "GPT-2": "GPT-2", "GPT-2+": "GPT-2, our allocator"}
N_PROMPT, N_WRITTEN, N_TOGETHER = 16, 256, 16
END = 2


def main() -> None:
    parser = options("Language models against transformers' GPT-2.", rounds=5)
    parser.add_argument("--text", type=Path, default=SHAKESPEARE, help="a text file")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children
    parser.add_argument("--model", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    text = find_running_text(arguments.text)
    config = run_config(text, arguments.model or "gpt-nano", threads=threads)
    n_batches = 2 if arguments.quick else {"gpt-nano": 60, "gpt-mini": 6}[config.model.preset]
    if arguments.contender == "regard":
        serve_regard(config, n_batches=n_batches, quick=arguments.quick)
    elif arguments.contender:
        keep_memory = arguments.contender.endswith("+")
        serve_peer(config, n_batches=n_batches, quick=arguments.quick, keep_memory=keep_memory)
    else:
        rows, found = [], {}
        for model in MODELS:
            own = replace(config, model=replace(config.model, preset=model))
            results = compare(own, text, threads=threads, arguments=arguments)
            found[model] = results
            rows += [[f"{model}: {shown}", *cells(results[name])] for name, shown in NAMES.items()]
        header = ["", "training, tokens/s", "ratio", "peak", "1 prompt, tokens/s", "ratio", "16 prompts", "ratio"]
        title = f"{Path(text).name}, {threads} threads; medians of rounds; ratio: regard's speed over this one's."
        report("language", f"{title}\n\n{table(header, rows)}", {"threads": threads, **found}, quick=arguments.quick)


def run_config(text: str, preset: str, *, threads: int) -> RunConfig:
    """A run on the characters of a text."""
    tables = {
        "data": {"train": [text]},
        "tokenizer": {"kind": "characters"},
        "model": {"preset": preset},
        "training": {"batch_tokens": MODELS[preset]},
        "runtime": {"device": "cpu", "threads": threads},
    }
    return from_tables({"task": "language", **tables}, origin="benchmark")


def network_config(config: RunConfig) -> GPTConfig:
    sizes = LanguageModelTask.load(config, FOLDER / "vocabulary").model_fields()
    found = model_config(config.model, origin="benchmark", **sizes)
    assert isinstance(found, GPTConfig)
    return found


def writer(config: RunConfig) -> GPT:
    """The model that generates: of the same sizes, but for positions that reach to the end."""
    return GPT(replace(network_config(config), context=N_PROMPT + N_WRITTEN), seed=1).eval()


def prompts(config: RunConfig, n: int) -> Tensor:
    """The beginnings of n windows of the text."""
    batches = load_file(FOLDER / f"{config.model.preset}.safetensors")
    return torch.cat([batches["0.ids"], batches["1.ids"]])[:n, :N_PROMPT]


# --- the children -----------------------------------------------------------------------------------------------------


def serve_regard(config: RunConfig, *, n_batches: int, quick: bool) -> None:
    """Train as `regard train` does, generate as `regard generate` does."""
    runtime.keep_freed_memory()
    machine = runtime.prepare(config.runtime)
    prepared = LanguageModelTask.prepare(config, vocabulary=FOLDER / "vocabulary", progress=lambda what, done: None)
    model = build_model(network_config(config)).train()
    trainer = Trainer(
        model=model,
        task=prepared.task,
        examples=prepared.train,
        optimizer=Optimizer(model, config.training),
        ema=None,
        config=replace(config.training, schedule="constant"),
        machine=machine,
        seed=config.seed,
        total=0,
    )
    stream = updates(trainer, Cursor())
    gpt = writer(config)
    decoder = Sliding(gpt, gpt.max_length)
    length = 8 if quick else N_WRITTEN

    def train(number: int) -> Answer:
        made = list(islice(stream, n_batches))
        return {"tokens": sum(update.weight for update in made), "loss": made[-1].loss}

    def generate(n: int) -> Answer:
        request = Request(
            prompt=Prompt(prompts(config, n)),
            end_id=END,
            limits=torch.full((n,), length),
            rules=[Banned((END,))],
        )
        found = decode(decoder, decoder.start(n), request, DecodingConfig(beam=1))
        return {"tokens": n * length, "ids": [one.best.ids for one in found]}

    with runtime.denormals_as_zero():
        serve({"train": train, "one": lambda number: generate(1), "many": lambda number: generate(N_TOGETHER)})


def serve_peer(config: RunConfig, *, n_batches: int, quick: bool, keep_memory: bool) -> None:
    """Train and generate as users of transformers do."""
    from benchmarks.gpt2 import gpt2_network, to_gpt2

    if keep_memory:
        runtime.keep_freed_memory()
        torch.set_flush_denormal(True)
    torch.set_num_threads(config.runtime.threads)
    tensors = load_file(FOLDER / f"{config.model.preset}.safetensors")
    batches = ((tensors[f"{number}.ids"], tensors[f"{number}.goals"]) for number in count())
    torch.manual_seed(1)
    model: Any = gpt2_network(network_config(config), pad_id=0, end_id=END).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    gpt: Any = to_gpt2(writer(config), pad_id=0, end_id=END).eval()
    length = 8 if quick else N_WRITTEN

    def update(ids: Tensor, goals: Tensor) -> float:
        optimizer.zero_grad()
        # What is predicted at each place is given as it is: their shift would lose the last token of every window.
        logits = model(ids).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), goals.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    def train(number: int) -> Answer:
        used = list(islice(batches, n_batches))
        losses = [update(ids, goals) for ids, goals in used]
        return {"tokens": sum(goals.numel() for _, goals in used), "loss": losses[-1]}

    def generate(n: int) -> Answer:
        begun = prompts(config, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = gpt.generate(
                begun,
                attention_mask=torch.ones_like(begun),
                do_sample=False,
                max_new_tokens=length,
                min_new_tokens=length,
            )
        return {"tokens": n * length, "ids": found[:, begun.shape[1] :].tolist()}

    serve({"train": train, "one": lambda number: generate(1), "many": lambda number: generate(N_TOGETHER)})


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(config: RunConfig, text: str, *, threads: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the batches, let all take turns, check that they wrote the same."""
    preset = config.model.preset
    n_rounds = 1 if arguments.quick else arguments.rounds
    own = run_config(text, preset, threads=threads)
    tell(f"making batches for {preset}")
    prepare_batches(own, n=(2 if arguments.quick else 60) * (n_rounds + 1))
    flags = ["--threads", str(threads), "--text", text, "--model", preset, *["--quick"] * arguments.quick]
    environment = {"OMP_NUM_THREADS": str(threads)}
    contenders = [Contender(name, "benchmarks.language", ["--contender", name, *flags], environment) for name in NAMES]
    with started(contenders) as children:
        answers = {work: take_turns(children, work, rounds=n_rounds) for work in ("train", "one", "many")}
    for work in ("one", "many"):
        written = {name: [answer["ids"] for answer in own] for name, own in answers[work].items()}
        if any(ids != written["regard"][0] for found in written.values() for ids in found):
            raise SystemExit(f"{preset}, {work}: the outputs differ.")
    results: dict[str, Any] = {}
    for name in NAMES:
        results[name] = {"peak_bytes": answers["train"][name][-1]["peak_bytes"]}
        for work, found in answers.items():
            speed, ours = ([answer["tokens"] / answer["seconds"] for answer in found[one]] for one in (name, "regard"))
            results[name][work] = {"tokens_per_second": median(speed), "regard_is_faster": ratio(ours, speed)}
    return results


def prepare_batches(config: RunConfig, *, n: int) -> None:
    """Learn the vocabulary, and keep the first n batches of the order in which our loop uses them, for the peer."""
    prepared = LanguageModelTask.prepare(config, vocabulary=None, progress=lambda what, done: None)
    prepared.task.save(FOLDER / "vocabulary")
    order = islice(chain.from_iterable(prepared.train.order(epoch) for epoch in count()), n)
    tensors: dict[str, Tensor] = {}
    for number, indices in enumerate(order):
        batch = prepared.train.batch(indices, torch.device("cpu"))
        tensors |= {f"{number}.ids": batch.ids.contiguous(), f"{number}.goals": batch.targets.contiguous()}
    save_file(tensors, FOLDER / f"{config.model.preset}.safetensors")


def cells(result: dict[str, Any]) -> list[str]:
    shown = []
    for work in ("train", "one", "many"):
        shown += [f"{result[work]['tokens_per_second']:,.0f}", f"{result[work]['regard_is_faster']:.2f}"]
        if work == "train":
            shown.append(f"{result['peak_bytes'] / 2**20:,.0f} MB")
    return shown


if __name__ == "__main__":
    main()
