"""Translating with beam 5: ours against `generate` of the transformers package, on equal weights, to equal outputs.

The weights of a post-norm run of ours are put into Marian's class, and both networks' logits are compared before anything
is timed. Both search with the same width, length penalty, longest length and banned tokens; `generate` with
early_stopping="never", the setting that returns what an exhaustive beam search returns, as ours does. The outputs of all
rounds are compared: some differ, where the order of sums decides between hypotheses of equal score.

Ours is timed from text to text, as `regard translate` runs it; `generate` gets ready ids and gives ids. Both get 64
sentences at a time, sorted by length: ours sorts by itself, for `generate` it was done before. Then one at a time.
"""

import argparse
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
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

import regard
from regard import runtime
from regard.api import Run
from regard.config import DecodingConfig
from regard.models.transformer import Transformer
from regard.tasks.translation.translator import Translation
from regard.training.events import Updated, Validated
from regard.training.run import train

BEAM, BATCH, LONGEST = 5, 64, 100
NAMES = {"regard": "regard", "generate": "generate", "generate+": "generate, our allocator"}
TIE = 1e-4  # scores nearer than this are equal: the order of sums decides


@dataclass(frozen=True)
class Load:
    """How much is translated: together, and one at a time."""

    sentences: list[str]
    n_single: int


def main() -> None:
    parser = options("Beam search against transformers' generate.", rounds=5)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="folder of Multi30k")
    parser.add_argument("--run", help="a trained post-norm run; without it one is trained briefly and kept")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    text = find_text(arguments.data)
    load = Load(text.test_sentences(64), 4) if arguments.quick else Load(text.test_sentences(1000), 100)
    if arguments.contender == "regard":
        serve_regard(arguments.run, load, threads=threads)
    elif arguments.contender:
        serve_generate(arguments.run, load, threads=threads, keep_memory=arguments.contender.endswith("+"))
    else:
        compare(text, load, threads=threads, arguments=arguments)


# --- the children -----------------------------------------------------------------------------------------------------


def serve_regard(run: str, load: Load, *, threads: int) -> None:
    """Translate as `regard translate` does."""
    runtime.keep_freed_memory()
    ours = regard.load(run, device="cpu", threads=threads, engine="torch")
    decoding = DecodingConfig(beam=BEAM, batch_size=BATCH, max_length=LONGEST)

    def answer(translations: Sequence[Translation]) -> Answer:
        found = [one.outputs[0] for one in translations]
        return {"pieces": [one.tokens for one in found], "scores": [one.score for one in found]}

    def together(number: int) -> Answer:
        return answer(ours.translate(load.sentences, decoding=decoding))

    def alone(number: int) -> Answer:
        return answer([ours.translate([text], decoding=decoding)[0] for text in load.sentences[: load.n_single]])

    serve({"together": together, "alone": alone})


def serve_generate(run: str, load: Load, *, threads: int, keep_memory: bool) -> None:
    """Translate as users of transformers do."""
    from benchmarks.marian import marian_logits, to_marian

    if keep_memory:
        runtime.keep_freed_memory()
    ours = regard.load(run, device="cpu", threads=threads, engine="torch")
    assert isinstance(ours.model, Transformer)
    target = ours.task.vocabulary.target
    ids = {"pad_id": target.pad_id, "start_id": target.start_id, "end_id": target.end_id}
    network: Any = to_marian(ours.model, **ids)
    encoded = encode(ours, load.sentences)
    source, lengths = pad(sorted(encoded, key=len)[-8:])
    begun = torch.tensor([[target.start_id, 40, 50, 60]]).expand(len(source), -1)
    with torch.no_grad():
        difference = marian_logits(network, source, lengths, begun) - ours.model(source, lengths, begun)
    assert difference.abs().max() < 1e-4, f"the networks differ: {difference.abs().max()}"

    def generate(rows: Sequence[list[int]]) -> list[list[int]]:
        source, lengths = pad(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = network.generate(
                source,
                attention_mask=(torch.arange(source.shape[1]) < lengths[:, None]).long(),
                num_beams=BEAM,
                early_stopping="never",
                length_penalty=1.0,
                max_new_tokens=LONGEST,
                max_length=None,
                do_sample=False,
                bad_words_ids=[[target.pad_id], [target.start_id]],
            )
        return [cut(row, target.end_id) for row in found[:, 1:].tolist()]

    order = sorted(range(len(encoded)), key=lambda number: -len(encoded[number]))

    def together(number: int) -> Answer:
        outputs: dict[int, list[int]] = {}
        for start in range(0, len(order), BATCH):
            numbers = order[start : start + BATCH]
            outputs.update(zip(numbers, generate([encoded[n] for n in numbers]), strict=True))
        return {"ids": [outputs[n] for n in range(len(order))]}

    def alone(number: int) -> Answer:
        return {"ids": [generate([row])[0] for row in encoded[: load.n_single]]}

    serve({"together": together, "alone": alone}, logits_differ_by=float(difference.abs().max()))


def encode(run: Run, sentences: Sequence[str]) -> list[list[int]]:
    source = run.task.vocabulary.source
    return [[*ids, source.end_id] for ids in source.encode_batch(sentences)]


def pad(rows: Sequence[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids (B, S), padded behind with 0, and their lengths (B,)."""
    lengths = torch.tensor([len(row) for row in rows])
    return torch.tensor([row + [0] * (int(lengths.max()) - len(row)) for row in rows]), lengths


def cut(ids: list[int], end_id: int) -> list[int]:
    return ids[: ids.index(end_id)] if end_id in ids else ids


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(text: Text, load: Load, *, threads: int, arguments: argparse.Namespace) -> None:
    """Find or train the run, let all take turns, compare outputs and times."""
    run = arguments.run or trained(text, threads=threads, quick=arguments.quick)
    n_rounds = 1 if arguments.quick else arguments.rounds
    flags = ["--threads", str(threads), "--data", str(arguments.data), "--run", run, *["--quick"] * arguments.quick]
    environment = {"OMP_NUM_THREADS": str(threads)}
    contenders = [Contender(name, "benchmarks.decoding", ["--contender", name, *flags], environment) for name in NAMES]
    with started(contenders) as children:
        together = take_turns(children, "together", rounds=n_rounds)
        alone = take_turns(children, "alone", rounds=n_rounds)
        differ_by = children[1].facts["logits_differ_by"]
    agreement = check_outputs(regard.load(run, device="cpu"), load.sentences, {"together": together, "alone": alone})
    results: dict[str, Any] = {"run": run, "threads": threads, "logits_differ_by": differ_by, **agreement}
    rows = []
    for name, shown in NAMES.items():
        times = {"together": seconds(together[name]), "alone": seconds(alone[name])}
        ratios = {
            work: ratio(own, seconds(answers["regard"]))
            for (work, own), answers in zip(times.items(), (together, alone), strict=True)
        }
        per_second = len(load.sentences) / median(times["together"])
        each = median(times["alone"]) / load.n_single
        results[name] = {
            "sentences_per_second": per_second,
            "seconds_alone": each,
            "regard_is_faster": ratios,
            "rounds": times,
        }
        results[name]["peak_bytes"] = together[name][-1]["peak_bytes"]
        rows.append(
            [shown, f"{per_second:.1f}", f"{ratios['together']:.2f}", f"{1000 * each:.0f} ms", f"{ratios['alone']:.2f}"]
        )
    lines = [
        f"Beam {BEAM} on {text.name}, {threads} threads, medians of {n_rounds} rounds. ratio: its time over regard's.",
        f"The networks' logits differ by at most {differ_by:.0e}.",
        agreement["told"],
        "",
        table(["", f"{len(load.sentences):,} by {BATCH}: sentences/s", "ratio", "one alone", "ratio"], rows),
    ]
    report("decoding", "\n".join(lines), results, quick=arguments.quick)


def seconds(answers: Sequence[Answer]) -> list[float]:
    return [answer["seconds"] for answer in answers]


def check_outputs(
    run: Run, sentences: Sequence[str], works: Mapping[str, Mapping[str, Sequence[Answer]]]
) -> dict[str, Any]:
    """Compare the outputs of everybody, in every work and round, with ours of the first round.

    Where two differ, both must have the same score under our model: then the order of sums has decided.
    """
    differ: dict[str, dict[str, int]] = {}
    worst = 0.0
    for work, answers in works.items():
        for name in answers:
            gaps: dict[int, float] = {}  # by the sentence's number
            for other in answers[name]:
                gaps |= differences(run, sentences, answers["regard"][0], other)
            differ.setdefault(name, {})[work] = len(gaps)
            worst = max(worst, *gaps.values(), 0.0)
            if worst > TIE:
                raise SystemExit(f"{name}, {work}: outputs differ, and not by ties: two scores are {worst} apart.")
    sizes = " and ".join(f"{len(answers['regard'][0]['scores']):,} {work}" for work, answers in works.items())
    counts = "; ".join(f"{shown} {' and '.join(map(str, differ[name].values()))}" for name, shown in NAMES.items())
    told = f"Of {sizes}, so many outputs ever differ from regard's first: {counts}"
    told += f" (ties: their scores are at most {worst:.0e} apart)." if worst else "."
    return {"outputs_differ": differ, "scores_apart": worst, "told": told}


def differences(run: Run, sentences: Sequence[str], ours: Answer, theirs: Answer) -> dict[int, float]:
    """Return the numbers of the sentences whose outputs differ, and how far apart the two scores are."""
    if "scores" in theirs:  # ours too
        pairs = zip(ours["pieces"], theirs["pieces"], ours["scores"], theirs["scores"], strict=True)
        return {n: abs(a - b) for n, (own, other, a, b) in enumerate(pairs) if own != other}
    target = run.task.vocabulary.target
    pieces = [[target.piece_text(id) for id in ids] for ids in theirs["ids"]]
    other = [n for n, (own, their) in enumerate(zip(ours["pieces"], pieces, strict=True)) if own != their]
    return {n: abs(score(run, sentences[n], theirs["ids"][n]) - ours["scores"][n]) for n in other}


@torch.inference_mode()
def score(run: Run, sentence: str, ids: Sequence[int]) -> float:
    """The mean log-probability of an output and its end token."""
    target = run.task.vocabulary.target
    source, lengths = pad(encode(run, [sentence]))
    written = [*ids, target.end_id][:LONGEST]
    logits = run.model(source, lengths, torch.tensor([[target.start_id, *written[:-1]]]))
    log_probs = logits[0].log_softmax(-1)[torch.arange(len(written)), torch.tensor(written)]
    return float(log_probs.mean())


def trained(text: Text, *, threads: int, quick: bool) -> str:
    """Train a post-norm transformer-tiny until its outputs look like sentences; once, it is kept."""
    run = BUILD / ("decoding-quick" if quick else "decoding") / text.name.replace(" ", "-").lower()
    training: dict[str, Any] = {"steps": 1000, "warmup": 400, "learning_rate": 0.002, "validate_every": 500}
    if quick:
        training = {"steps": 60, "warmup": 30, "learning_rate": 0.002, "batch_tokens": 512, "validate_every": 60}
        training["validate_samples"] = 0
    if not (run / "checkpoints").exists():
        tell(f"training a post-norm model for {training['steps']} updates")
        config = run_config(text, threads=threads, model={"norm_order": "post", "dropout": 0.1}, training=training)
        for event in train(config, run):
            if isinstance(event, Validated) or (isinstance(event, Updated) and event.update.step % 100 == 0):
                tell(f"training: {event}")
    return str(run)


if __name__ == "__main__":
    main()
