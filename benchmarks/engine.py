"""`regard translate` and `regard generate` by their engine, against CTranslate2 by itself: at its best setting, and as its
documentation shows.

All have the same converted weights and search in the same way: translators with a beam, language models greedily.
Translators are timed from text to text: the library with the tokenizer around it and nothing else, ours with all that the
command does. As a generator the library gets ready tokens and gives tokens, ours reads and writes text. The best setting of
the library is the faster of one worker a core with one thread each, and one worker with all threads; in the documentation it
is given neither, nor a size of batches. With a shortlist the library is ours alone; what it loses is measured too.

transformer-tiny is trained until its outputs look like sentences. The others have their first weights, which take as much
time as any where all outputs are of one length: translations of transformer-base as long as a sentence, which hardly ever
end before, and as many tokens of a language model as it is asked for. Of transformer-base a shortlist is only timed: what it
loses only a trained model says.

With `--threads 1` the processor's seconds count, which say something beside other work too.

    python -m benchmarks.engine --only transformer-base gpt-mini gpt2 --sentences 64 --tokens 48 --rounds 2
"""

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import MULTI30K, SHAKESPEARE, Text, find_running_text, find_text, run_config
from benchmarks.decoding import trained
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
from regard.api.proof import prove
from regard.tasks.language_model.continuation import prompt_ids
from regard.training.run import train

BEAM, LONGEST, TOKENS = 5, 100, 2048  # of translations, and of the library's batches
USUAL = 16  # tokens of a translation by a model that knows no end
N_PROMPT, N_TOGETHER = 16, 16  # tokens of a prompt, and prompts together
TYPES = ("float32", "int8")
WORKS = ("together", "alone")
# By contender the library's workers and threads.
SETTINGS: Mapping[str, Callable[[int], dict[str, int]]] = {
    "workers": lambda cores: {"inter_threads": cores, "intra_threads": 1},
    "threads": lambda cores: {"inter_threads": 1, "intra_threads": cores},
    "documented": lambda cores: {},
}
BEST = ("workers", "threads")


@dataclass(frozen=True)
class Subject:
    """A model: what it is for, how its run is made, what is counted of its outputs, and the contenders.

    trained: whether its outputs end, and can be scored
    """

    name: str
    task: str
    make: Callable[[argparse.Namespace, int], str]
    trained: bool = False

    @property
    def unit(self) -> str:
        return "sentences" if self.task == "translate" else "tokens"

    @property
    def contenders(self) -> tuple[str, ...]:
        return ("regard", *["shortlist"] * (self.task == "translate"), *SETTINGS)


def main() -> None:
    parser = options("The engine against the bare library.", rounds=5)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="folder of Multi30k")
    parser.add_argument("--text", type=Path, default=SHAKESPEARE, help="a text file, for language models")
    parser.add_argument("--only", choices=list(SUBJECTS), nargs="+", default=list(SUBJECTS), help="these models")
    parser.add_argument("--sentences", type=int, default=1000, help="translations together; a tenth of it alone")
    parser.add_argument("--tokens", type=int, default=192, help="how many a language model writes behind each prompt")
    parser.add_argument("--run", help="a trained run of transformer-tiny; without it one is trained and kept")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children: SUBJECT NAME TYPE RUN
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    if arguments.contender:
        subject, name, compute_type, run = arguments.contender.split(maxsplit=3)
        Serving(arguments, run, name, compute_type, threads=threads).serve(SUBJECTS[subject])
    else:
        compare(arguments, threads=threads)


# --- the models -------------------------------------------------------------------------------------------------------


def tiny_run(arguments: argparse.Namespace, threads: int) -> str:
    return arguments.run or trained(find_text(arguments.data), threads=threads, quick=arguments.quick)


def base_run(arguments: argparse.Namespace, threads: int) -> str:
    text, run = find_text(arguments.data), kept_run("transformer-base", arguments)
    if not (run / "checkpoints").exists():
        # Small sizes of the same network, where only the way is tried.
        sizes: dict[str, Any] = {"n_encoder_layers": 1, "n_decoder_layers": 1} if arguments.quick else {}
        training = {"steps": 1, "batch_tokens": 1024, "validate_samples": 0}
        model = {"preset": "transformer-base", **sizes}
        for _ in train(run_config(text, threads=threads, model=model, training=training), run):
            pass
    return str(run)


def language_run(preset: str) -> Callable[[argparse.Namespace, int], str]:
    def make(arguments: argparse.Namespace, threads: int) -> str:
        run = kept_run(preset, arguments)
        if not (run / "checkpoints").exists():
            settings = {"runtime.device": "cpu", "runtime.threads": threads, "training.validate_samples": 0}
            if arguments.quick:
                settings |= {"model.n_layers": 2}
            text = find_running_text(arguments.text)
            regard.train("language", train=[text], model=preset, run=run, steps=1, batch_tokens=1024, settings=settings)
        return str(run)

    return make


def kept_run(name: str, arguments: argparse.Namespace) -> Path:
    return BUILD / ("engine-quick" if arguments.quick else "engine") / name


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("transformer-tiny", "translate", tiny_run, trained=True),
        Subject("transformer-base", "translate", base_run),
        Subject("gpt-mini", "language", language_run("gpt-mini")),
        Subject("gpt2", "language", language_run("gpt2")),
    )
}


# --- the children -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Amount:
    """How much is done: inputs together, inputs one at a time, and tokens that a language model writes for each."""

    together: int
    alone: int
    written: int = 0

    def of(self, work: str) -> int:
        """How many sentences, or tokens, a work is."""
        return getattr(self, work) * (self.written or 1)  # type: ignore[no-any-return]


def amount(subject: Subject, arguments: argparse.Namespace) -> Amount:
    if subject.task == "translate":
        return Amount(64, 4) if arguments.quick else Amount(arguments.sentences, math.ceil(arguments.sentences / 10))
    return Amount(4, 1, written=8) if arguments.quick else Amount(N_TOGETHER, 1, written=arguments.tokens)


class Serving:
    """A contender at work: ours, or the library with the engine's own folder."""

    def __init__(self, arguments: argparse.Namespace, run: str, name: str, compute_type: str, *, threads: int) -> None:
        runtime.keep_freed_memory()
        self.arguments = arguments
        self.is_ours = name not in SETTINGS
        self.is_documented = name == "documented"
        shortlist = name == "shortlist"
        self.run = regard.load(
            run, device="cpu", threads=threads, engine="ctranslate2", compute_type=compute_type, shortlist=shortlist
        )
        self.engine = self.run.engine.engine
        self.settings = {} if self.is_ours else SETTINGS[name](threads)

    def serve(self, subject: Subject) -> None:
        """Do the work of all inputs in one call, and of the first ones one by one."""
        own = amount(subject, self.arguments)
        longest = 10 if self.arguments.quick else LONGEST if subject.trained else USUAL
        generate, inputs = self.translation(own, longest) if subject.task == "translate" else self.generation(own)

        def together(number: int) -> Answer:
            generate(inputs)
            return {}

        def alone(number: int) -> Answer:
            for one in inputs[: own.alone]:
                generate([one])
            return {}

        serve({"together": together, "alone": alone})

    def translation(self, own: Amount, longest: int) -> tuple[Callable[[Sequence[Any]], object], Sequence[Any]]:
        sentences = find_text(self.arguments.data).test_sentences(own.together)
        if self.is_ours:
            options = self.run.options({"beam": BEAM, "max_length": longest, "log_probs": False})
            return lambda texts: self.run.predict_with(list(texts), options), sentences
        import ctranslate2

        library = ctranslate2.Translator(str(self.engine.folder), device="cpu", **self.settings)
        source, target = self.run.task.vocabulary.source, self.run.task.vocabulary.target
        names, ids_of = self.engine.source_names, self.engine.ids
        batches = {} if self.is_documented else {"max_batch_size": TOKENS, "batch_type": "tokens"}

        def translate(texts: Sequence[str]) -> list[str]:
            rows = [[names[id] for id in (*ids, source.end_id)] for ids in source.encode_batch(list(texts))]
            found = library.translate_batch(rows, beam_size=BEAM, max_decoding_length=longest, **batches)
            return [target.decode([ids_of[name] for name in one.hypotheses[0]]) for one in found]

        return translate, sentences

    def generation(self, own: Amount) -> tuple[Callable[[Sequence[Any]], object], Sequence[Any]]:
        tokenizer = self.run.task.tokenizer
        ids = tokenizer.encode(Path(find_running_text(self.arguments.text)).read_text(encoding="utf-8")[: 1 << 16])
        cut = [tokenizer.decode(ids[start : start + N_PROMPT]) for start in range(0, len(ids), N_PROMPT)]
        prompts = [prompt for prompt in cut if len(prompt_ids(tokenizer, prompt)) == N_PROMPT][: own.together]
        if self.is_ours:
            options = self.run.options({"sample": False, "max_length": own.written, "log_probs": False})
            return lambda texts: self.run.predict_with(list(texts), options), prompts
        import ctranslate2

        library = ctranslate2.Generator(str(self.engine.folder), device="cpu", **self.settings)
        rows = [[self.engine.names[id] for id in prompt_ids(tokenizer, prompt)] for prompt in prompts]
        share = math.ceil(len(rows) / library.num_generators)  # every worker has some
        given: dict[str, Any] = {"max_batch_size": share, "include_prompt_in_result": False, "max_length": own.written}
        if self.is_documented:  # the prompt is part of the result, and all of it but its first token of the length
            given = {"max_length": N_PROMPT - 1 + own.written}
        return lambda tokens: library.generate_batch(list(tokens), **given), rows


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(arguments: argparse.Namespace, *, threads: int) -> None:
    """Let all take turns, once for each model and type of numbers."""
    results: dict[str, Any] = {"threads": threads}
    lines = [f"{threads} threads, beam {BEAM} or greedy search, medians of the rounds; ratio: its time over regard's."]
    bars = []
    for subject in (SUBJECTS[name] for name in arguments.only):
        run = subject.make(arguments, threads)
        for compute_type in TYPES:
            found = rounds(subject, run, compute_type, arguments, threads=threads)
            results[f"{subject.name}, {compute_type}"] = found
            lines += ["", shown(subject, compute_type, found, amount(subject, arguments))]
            bars += reached(subject, compute_type, found)
        if subject.task == "translate" and subject.trained:
            loss = shortlist_loss(run, find_text(arguments.data), quick=arguments.quick)
            results[f"{subject.name}, shortlist"] = {"bleu_lost": loss}
            bars.append([subject.name, "float32", "BLEU that the shortlist loses", f"{loss:.2f}", "at most 0.2"])
    lines += ["", table(["bars", "type", "what", "measured", "wanted"], bars)]
    report("engine", "\n".join(lines), results, quick=arguments.quick)


def rounds(
    subject: Subject, run: str, compute_type: str, arguments: argparse.Namespace, *, threads: int
) -> dict[str, Any]:
    """By contender and work, its speed and how many times as long as regard it takes."""
    for shortlist in {False, subject.task == "translate"}:  # converted before anybody is timed
        tell(f"converting {subject.name}, {compute_type}")
        settings: dict[str, Any] = {"compute_type": compute_type, "shortlist": shortlist}
        regard.load(run, device="cpu", threads=threads, engine="ctranslate2", **settings).engine  # noqa: B018
    flags = ["--threads", str(threads), "--data", str(arguments.data), "--text", str(arguments.text)]
    flags += ["--sentences", str(arguments.sentences), "--tokens", str(arguments.tokens)]
    flags += ["--quick"] * arguments.quick
    contenders = [
        Contender(name, "benchmarks.engine", ["--contender", f"{subject.name} {name} {compute_type} {run}", *flags])
        for name in subject.contenders
    ]
    with started(contenders) as children:
        answers = {
            work: take_turns(children, work, rounds=1 if arguments.quick else arguments.rounds) for work in WORKS
        }
    seconds = "processor_seconds" if threads == 1 else "seconds"
    times = {
        name: {work: [one[seconds] for one in answers[work][name]] for work in WORKS} for name in subject.contenders
    }
    own = amount(subject, arguments)
    return {
        name: {
            "per_second": {work: own.of(work) / median(times[name][work]) for work in WORKS},
            "regard_is_faster": {work: ratio(times[name][work], times["regard"][work]) for work in WORKS},
        }
        for name in subject.contenders
    }


def shown(subject: Subject, compute_type: str, found: Mapping[str, Any], own: Amount) -> str:
    rows = [
        [name, *(cell for work in WORKS for cell in (_speed(one, work), f"{one['regard_is_faster'][work]:.2f}"))]
        for name, one in found.items()
    ]
    heading = f"{subject.name}, {compute_type}"
    return table([heading, f"{own.together:,} together: {subject.unit}/s", "ratio", "one at a time", "ratio"], rows)


def _speed(one: Mapping[str, Any], work: str) -> str:
    return f"{one['per_second'][work]:,.1f}"


def reached(subject: Subject, compute_type: str, found: Mapping[str, Any]) -> list[list[str]]:
    """How fast ours is, over the library at its best setting and as documented; the shortlist over the best."""
    rows = []
    for work in WORKS:
        speeds = {name: one["per_second"][work] for name, one in found.items()}
        best = max(speeds[name] for name in BEST)
        for name, over, bar in (
            ("regard", best, "0.95 of the best"),
            ("regard", speeds["documented"], "1.5 of the documented"),
            ("shortlist", best, "1.3 of the best"),
        ):
            if name in speeds and (subject.task == "translate" or over == best):
                rows.append([subject.name, compute_type, f"{name}, {work}", f"{speeds[name] / over:.2f}", bar])
    return rows


def shortlist_loss(run: str, text: Text, *, quick: bool) -> float:
    """BLEU without a shortlist less BLEU with one, in float32."""
    files = list(text.test)
    if quick:
        files = [str(BUILD / f"engine-quick-{number}.txt") for number in range(2)]
        for file, whole in zip(files, text.test, strict=True):
            lines = Path(whole).read_text(encoding="utf-8").split("\n")[:64]
            Path(file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    delta = prove(run, files, shortlist=True).differences["bleu"].delta
    return -delta if delta is not None else 0.0


if __name__ == "__main__":
    main()
