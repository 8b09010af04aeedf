"""The golden numbers: train one tiny run of every kind, and compare its weights and scores with those stored here.

    python tests/golden/run.py                       all runs; ends with 1 where a number differs
    python tests/golden/run.py --only mask-bert      one of them, or several
    python tests/golden/run.py --write               store what comes out as what is expected

Each run is trained by the command, in a process of its own, on data that is made up here. Bytes are comparable only on the
same processor and with the same versions: `hashes.json` says which those were, and so does this script where they differ.
"""

import argparse
import dataclasses
import hashlib
import importlib.metadata
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from safetensors import safe_open

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).with_name("hashes.json")

# -- how the package calls things: what is renamed there is renamed here, in one line ----------------------------------

FLAGS = {"train": "--train", "run": "--run", "model": "--model", "init": "--init", "set": "--set", "events": "--json"}
KEYS = {
    "seed": "seed",
    "separator": "data.separator",
    "second": "data.text_b",
    "kind": "tokenizer.kind",
    "vocab_size": "tokenizer.vocab_size",
    "shared": "tokenizer.shared",
    "vectors": "tokenizer.vectors",
    "d_model": "model.d_model",
    "d_ff": "model.d_ff",
    "d_head": "model.d_head",
    "d_state": "model.d_state",
    "n_heads": "model.n_heads",
    "n_key_heads": "model.n_key_heads",
    "n_layers": "model.n_layers",
    "n_encoder_layers": "model.n_encoder_layers",
    "n_decoder_layers": "model.n_decoder_layers",
    "context": "model.context",
    "window": "model.window",
    "norm_order": "model.norm_order",
    "positions": "model.positions",
    "pooling": "model.pooling",
    "cell": "model.cell",
    "attention": "model.attention",
    "patch_size": "model.patch_size",
    "n_blocks": "model.n_blocks",
    "width": "model.width",
    "widths": "model.widths",
    "norm": "model.norm",
    "feed_forward": "model.feed_forward",
    "activation": "model.activation",
    # A captioner's two networks have a table each.
    **{f"image_{name}": f"model.encoder.{name}" for name in ("n_layers", "d_model", "d_ff", "n_heads", "patch_size")},
    **{f"image_{name}": f"model.encoder.{name}" for name in ("n_blocks", "width")},
    **{f"text_{name}": f"model.decoder.{name}" for name in ("n_layers", "d_model", "d_ff", "n_heads", "d_state")},
    "crop": "augmentation.crop",
    "mirror": "augmentation.mirror",
    "cutout": "augmentation.cutout",
    "mixup": "augmentation.mixup",
    "steps": "training.steps",
    "batch_tokens": "training.batch_tokens",
    "batch_images": "training.batch_images",
    "optimizer": "training.optimizer",
    "learning_rate": "training.learning_rate",
    "muon_rate": "training.muon_learning_rate",
    "schedule": "training.schedule",
    "warmup": "training.warmup",
    "accumulate": "training.accumulate",
    "label_smoothing": "training.label_smoothing",
    "class_weights": "training.class_weights",
    "freeze": "training.freeze_init",
    "init_rate": "training.init_lr_scale",
    "layer_decay": "training.layer_decay",
    "validate_every": "training.validate_every",
    "average": "training.average",
    "ema": "training.ema",
    "min_length": "decoding.min_length",
    "device": "runtime.device",
    "precision": "runtime.precision",
    "threads": "runtime.threads",
}
CHECKPOINTS, MODEL, METRICS = "checkpoints", "step-{step:08d}/model.safetensors", "metrics.jsonl"
VALIDATED, SAMPLES = "validated", "samples"
ENDS = ("_low", "_high")  # of the intervals of scores, which follow from these

# -- the runs ----------------------------------------------------------------------------------------------------------

STEPS = 30
TOLD = (1, 2, 10, STEPS)  # updates whose loss is kept: before anything was learnt, after one update, and later
MACHINE = {"device": "cpu", "precision": "fp32", "threads": 1}
LEARNING = {"warmup": 5, "schedule": "cosine", "optimizer": "adamw", "learning_rate": 0.01}
COMMON = {"seed": 7, "steps": STEPS, **LEARNING, **MACHINE}

TEXT = {"vocab_size": 360, "batch_tokens": 256, "kind": "bpe"}
TWO_SIDED = {
    **TEXT,
    "schedule": "inverse-sqrt",
    "min_length": 6,
}  # so that there is something to score, however little was learnt
RUNNING = {**TEXT, "separator": "<end>"}
IMAGES = {"batch_images": 16}
CAPTIONS = {**IMAGES, "schedule": "inverse-sqrt"}
MOVED = {"crop": 1, "mirror": True, "cutout": 3}

TWO_STACKS = {"n_encoder_layers": 1, "n_decoder_layers": 2, "d_model": 16, "d_ff": 32, "n_heads": 2}
TRANSFORMER = {**TWO_STACKS, "norm": "layer", "positions": "sinusoidal", "feed_forward": "plain", "activation": "relu"}
T5 = {**TWO_STACKS, "d_head": 8}
RECURRENT = {"n_layers": 2, "d_model": 16, "d_state": 12}
GPT = {"n_layers": 2, "n_heads": 2, "d_model": 16, "context": 16}
LLAMA = {**GPT, "d_ff": 24, "n_key_heads": 1}
BERT = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_ff": 32}
VIT = {**BERT, "patch_size": 4}
RESNET = {"n_blocks": [1, 1], "width": 8}
IMAGE_VIT = {"image_n_layers": 1, "image_d_model": 16, "image_d_ff": 32, "image_n_heads": 2, "image_patch_size": 4}
IMAGE_RESNET = {"image_n_blocks": [1, 1], "image_width": 8}
TEXT_TRANSFORMER = {"text_n_layers": 2, "text_d_model": 16, "text_d_ff": 32, "text_n_heads": 2}
TEXT_RECURRENT = {"text_d_model": 16, "text_d_state": 12}


@dataclass(frozen=True)
class Run:
    """One run: what it learns from which files, with which settings (names of KEYS) beside COMMON.

    init: the run that it begins with, whose model it takes
    """

    name: str
    task: str
    model: str
    files: tuple[str, ...]
    settings: Mapping[str, Any]
    init: str = ""


PAIRS, TABLE, PNGS = ("pairs.en", "pairs.de"), ("classes.csv",), ("images",)
RUNS = (
    Run("translate-transformer", "translate", "transformer-tiny", PAIRS, {**TWO_SIDED, **TRANSFORMER}),
    Run(
        "translate-transformer-post-rotary",
        "translate",
        "transformer-tiny",
        PAIRS,
        {**TWO_SIDED, **TRANSFORMER, "norm_order": "post", "positions": "rotary", "kind": "words", "shared": False},
    ),
    Run(
        "translate-transformer-window",
        "translate",
        "transformer-tiny",
        PAIRS,
        {**TWO_SIDED, **TRANSFORMER, "window": 3, "kind": "characters", "schedule": "linear"},
    ),
    Run(
        "translate-accumulate-ema",
        "translate",
        "transformer-tiny",
        PAIRS,
        {
            **TWO_SIDED,
            **TRANSFORMER,
            "accumulate": 2,
            "ema": 0.9,
            "label_smoothing": 0.2,
            "validate_every": 10,
            "average": 2,
        },
    ),
    Run(
        "translate-muon",
        "translate",
        "transformer-tiny",
        PAIRS,
        {**TWO_SIDED, **TRANSFORMER, "optimizer": "muon", "accumulate": 2, "ema": 0.9},
    ),
    Run("translate-transformer-preset", "translate", "transformer-tiny", PAIRS, {**TWO_SIDED, **TWO_STACKS}),
    Run("translate-rnn", "translate", "rnn", PAIRS, {**TWO_SIDED, **RECURRENT}),
    Run(
        "translate-rnn-attention",
        "translate",
        "rnn-attention",
        PAIRS,
        {**TWO_SIDED, **RECURRENT, "cell": "lstm", "attention": "additive"},
    ),
    Run(
        "translate-birnn-attention", "translate", "birnn-attention", PAIRS, {**TWO_SIDED, **RECURRENT, "cell": "elman"}
    ),
    Run("translate-t5", "translate", "t5-tiny", PAIRS, {**TWO_SIDED, **T5}),
    Run("language-gpt", "language", "gpt-nano", ("text.txt",), {**RUNNING, **GPT}),
    Run(
        "language-gpt-window",
        "language",
        "gpt-nano",
        ("text.txt",),
        {**RUNNING, **GPT, "window": 4, "kind": "characters"},
    ),
    Run("language-llama", "language", "llama-nano", ("text.txt",), {**RUNNING, **LLAMA, "schedule": "constant"}),
    Run(
        "language-gpt-muon",
        "language",
        "gpt-nano",
        ("text.txt",),
        {**RUNNING, **GPT, "optimizer": "muon", "muon_rate": 0.02},
    ),
    Run("mask-bert", "mask", "bert-tiny", ("text.txt",), {**RUNNING, **BERT}),
    Run("mask-birnn", "mask", "birnn", ("text.txt",), {**RUNNING, **RECURRENT, "kind": "words"}),
    Run("denoise-t5", "denoise", "t5-tiny", ("text.txt",), {**RUNNING, **T5, "schedule": "inverse-sqrt"}),
    Run(
        "denoise-transformer",
        "denoise",
        "transformer-tiny",
        ("text.txt",),
        {**RUNNING, **TRANSFORMER, "kind": "bytes", "schedule": "inverse-sqrt"},
    ),
    Run("classify-bert", "classify", "bert-tiny", TABLE, {**TEXT, **BERT, "pooling": "class"}),
    Run(
        "classify-pair",
        "classify",
        "bert-tiny",
        ("both.csv",),
        {**TEXT, **BERT, "pooling": "class", "second": "second"},
    ),
    Run(
        "classify-balanced",
        "classify",
        "bert-tiny",
        TABLE,
        {**TEXT, **BERT, "class_weights": "balanced", "pooling": "mean", "label_smoothing": 0.1},
    ),
    Run(
        "classify-birnn-word-vectors",
        "classify",
        "birnn",
        TABLE,
        {**TEXT, **RECURRENT, "kind": "words", "vectors": "words.vec"},
    ),
    Run("classify-vectors", "classify", "bert-tiny", ("vectors.npz",), {"batch_tokens": 64, **BERT}),
    Run(
        "classify-init",
        "classify",
        "",
        TABLE,
        {"batch_tokens": 256, "pooling": "class", "init_rate": 0.5, "layer_decay": 0.8},
        "mask-bert",
    ),
    Run(
        "classify-init-frozen",
        "classify",
        "",
        TABLE,
        {"batch_tokens": 256, "pooling": "class", "freeze": True},
        "mask-bert",
    ),
    Run(
        "translate-init",
        "translate",
        "",
        PAIRS,
        {"batch_tokens": 256, "schedule": "inverse-sqrt", "min_length": 6},
        "denoise-t5",
    ),
    Run("tag-birnn", "tag", "birnn", ("words.conll",), {**TEXT, **RECURRENT}),
    Run("tag-bert", "tag", "bert-tiny", ("words.conll",), {**TEXT, **BERT}),
    Run("regress-bert", "regress", "bert-tiny", ("numbers.csv",), {**TEXT, **BERT, "pooling": "class"}),
    Run("regress-lstm", "regress", "lstm", ("numbers.csv",), {**TEXT, **RECURRENT, "kind": "characters"}),
    Run("similarity-bert", "similarity", "bert-tiny", ("overlaps.csv",), {**TEXT, **BERT}),
    Run("similarity-birnn", "similarity", "birnn", ("overlaps.csv",), {**TEXT, **RECURRENT, "kind": "words"}),
    Run("image-resnet", "image", "resnet-20", PNGS, {**IMAGES, **RESNET, **MOVED, "mixup": 0.2}),
    Run("image-vit", "image", "vit-tiny", ("images.npz",), {**IMAGES, **VIT, "crop": 1, "mixup": 0.2}),
    Run("image-convnet", "image", "convnet", PNGS, {**IMAGES, "widths": [8, 8], "class_weights": "balanced"}),
    Run("image-plain", "image", "plain-20", ("images.npz",), {**IMAGES, **RESNET, "norm": "none"}),
    Run("caption-vit", "caption", "captioner-vit", ("captions.tsv",), {**CAPTIONS, **IMAGE_VIT, **TEXT_TRANSFORMER}),
    Run(
        "caption-resnet",
        "caption",
        "captioner-resnet",
        ("captions.tsv",),
        {**CAPTIONS, **IMAGE_RESNET, **TEXT_TRANSFORMER, **MOVED},
    ),
    Run("caption-rnn", "caption", "captioner-rnn", ("captions.tsv",), {**CAPTIONS, **IMAGE_RESNET, **TEXT_RECURRENT}),
)
BY_NAME = {run.name: run for run in RUNS}
WIDTH = max(map(len, BY_NAME))

# -- the data ----------------------------------------------------------------------------------------------------------

ENGLISH = ("a", "the", "dog", "cat", "man", "house", "tree", "runs", "sees", "finds", "red", "big", "old")
GERMAN = ("ein", "der", "Hund", "Katze", "Mann", "Haus", "Baum", "läuft", "sieht", "findet", "rot", "groß", "alt")
BEINGS = ("dog", "cat", "man")
CAPTIONS = {
    "lying": ("stripes that lie", "here are stripes that lie"),
    "none": ("no pattern", "here is no pattern"),
    "standing": ("stripes that stand", "here are stripes that stand"),
}
EDGE = 12  # pixels of an image


def write_data(folder: Path) -> None:
    """Write everything that the runs learn from; the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    sentences = draw_sentences(random.Random(5), 120)
    write_lines(folder / "pairs.en", (words(one) for one in sentences))
    write_lines(folder / "pairs.de", (words(one[::-1], GERMAN) for one in sentences))
    documents = [words(one) + "." + ("\n<end>" if number % 5 == 4 else "") for number, one in enumerate(sentences)]
    write_lines(folder / "text.txt", documents)
    write_lines(folder / "classes.csv", ["text,label", *(f"{words(one)},{class_of(words(one))}" for one in sentences)])
    others = [random.Random(number).sample(one, len(one)) for number, one in enumerate(sentences)]
    rows = (
        f"{words(one)},{words(two)},{'same' if one == two else 'turned'}"
        for one, two in zip(sentences, others, strict=True)
    )
    write_lines(folder / "both.csv", ["text,second,label", *rows])
    write_lines(folder / "numbers.csv", ["text,score", *(f"{words(one)},{len(words(one)) / 7}" for one in sentences)])
    rows = (f"{words(one)},{words(two)},{overlap(one, two)}" for one, two in itertools.pairwise(sentences))
    write_lines(folder / "overlaps.csv", ["sentence1,sentence2,score", *rows])
    write_lines(folder / "words.conll", (tagged(words(one)) for one in sentences))
    write_word_vectors(folder / "words.vec", width=16)
    write_vectors(folder / "vectors.npz")
    write_images(folder)


def draw_sentences(chance: random.Random, count: int) -> list[list[int]]:
    """Distinct sentences of two to six words, as places in the word lists."""
    sentences: dict[tuple[int, ...], None] = {}
    while len(sentences) < count:
        sentences[tuple(chance.randrange(len(ENGLISH)) for _ in range(chance.randint(2, 6)))] = None
    return [list(one) for one in sentences]


def words(sentence: Iterable[int], language: Sequence[str] = ENGLISH) -> str:
    return " ".join(language[place] for place in sentence)


def class_of(text: str) -> str:
    return "long" if len(text.split()) > 4 else "dog" if "dog" in text else "other"


def overlap(one: Iterable[int], other: Iterable[int]) -> float:
    first, second = set(one), set(other)
    return 5 * len(first & second) / len(first | second)


def tagged(text: str) -> str:
    return "".join(f"{word}\t{'B-BEING' if word in BEINGS else 'O'}\n" for word in text.split())


def write_lines(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_word_vectors(file: Path, *, width: int) -> None:
    """Vectors of most of the words, in word2vec's text format."""
    chance = random.Random(6)
    rows = [" ".join((word, *(f"{chance.uniform(-1, 1):.4f}" for _ in range(width)))) for word in ENGLISH[2:]]
    write_lines(file, [f"{len(rows)} {width}", *rows])


def write_vectors(file: Path) -> None:
    """Sequences of six vectors that rise or fall."""
    chance = random.Random(8)
    labels = ["up", "down"] * 40
    vectors = [
        [((place if label == "up" else -place) + chance.random(), chance.random()) for place in range(6)]
        for label in labels
    ]
    np.savez(file, vectors=np.array(vectors, np.float32), labels=np.array(labels))


def write_images(folder: Path) -> None:
    """Stripes in noise: as PNG files in a folder for each class, as one NPZ in grey, and as a table with captions."""
    stripes = np.tile(np.array([60, 60, 190, 190]), EDGE // 4)
    patterns = {"lying": stripes[:, None], "none": np.full((EDGE, EDGE), 125), "standing": stripes[None, :]}
    chance = random.Random(9)
    rows, grey = ["image\tcaption"], []
    for name, pattern in patterns.items():
        (folder / "images" / name).mkdir(parents=True)
        for number in range(24):
            noise = np.frombuffer(chance.randbytes(EDGE * EDGE * 3), np.uint8).reshape(EDGE, EDGE, 3) // 4
            pixels = (np.broadcast_to(pattern, (EDGE, EDGE))[:, :, None] + noise).astype(np.uint8)
            file = Path("images") / name / f"{number:03}.png"
            Image.fromarray(pixels).save(folder / file)
            rows += [f"{file}\t{caption}" for caption in CAPTIONS[name]]
            grey.append(pixels[:, :, 0])
    write_lines(folder / "captions.tsv", rows)
    np.savez(folder / "images.npz", images=np.stack(grey), labels=np.repeat(list(patterns), 24))


# -- training ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run came to, as far as it must not change.

    sha256:      of the file with the weights at the end
    values:      the same without the names of the tensors and their order
    beside:      sha256 of what else was saved at the end: the optimizer's state, averages of weights
    losses:      of some updates, by their number
    validation:  the loss and the scores at the end
    samples:     what the validation showed: input, what was expected, what came
    """

    sha256: str
    values: str
    beside: Mapping[str, str]
    losses: Mapping[str, float]
    validation: Mapping[str, float]
    samples: Sequence[Sequence[str]]


class Workshop:
    """Trains runs in a folder, each at most once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.results: dict[str, Result] = {}
        write_data(self.data)

    def train(self, run: Run) -> Result:
        """Train a run, and before it the one that it begins with."""
        if run.name not in self.results:
            path = self.folder / "runs" / run.name
            init = ""
            if run.init:
                self.train(BY_NAME[run.init])
                init = str(path.with_name(run.init))
            events = self._call(command(run, self.data, path, init), cache=self.folder / "caches" / run.name)
            self.results[run.name] = read_result(path, events.replace(str(self.folder), ""))
        return self.results[run.name]

    def _call(self, arguments: Sequence[str], *, cache: Path) -> str:
        """Let the package of this very checkout train, in a process of its own and with a cache of its own."""
        paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
        env = {**os.environ, "PYTHONPATH": paths, "REGARD_CACHE": str(cache)}
        done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr}")
        return done.stdout


def command(run: Run, data: Path, path: Path, init: str) -> list[str]:
    """The arguments of Python that train a run."""
    where = [FLAGS["train"], *(str(data / file) for file in run.files), FLAGS["run"], str(path), FLAGS["events"]]
    begin = [FLAGS["init"], init] if init else [FLAGS["model"], run.model]
    sets = [f"{key}={as_toml(value)}" for key, value in settings_of(run, data).items()]
    return ["-m", "regard", "train", run.task, *where, *begin, *(part for one in sets for part in (FLAGS["set"], one))]


def settings_of(run: Run, data: Path) -> dict[str, Any]:
    """The settings of a run by the package's keys."""
    settings = {**COMMON, **run.settings}
    if "vectors" in settings:
        settings["vectors"] = str(data / settings["vectors"])
    return {KEYS[name]: value for name, value in settings.items()}


def as_toml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def read_result(path: Path, events: str) -> Result:
    """Read what a run came to from its folder, and from what the command wrote."""
    records = [json.loads(line) for line in (path / METRICS).read_text(encoding="utf-8").splitlines()]
    losses = {str(one["step"]): one["loss"] for one in records if one["kind"] == "train" and one["step"] in TOLD}
    last = [one for one in records if one["kind"] == "valid"][-1]
    shown = [event for event in map(json.loads, events.splitlines()) if event["event"] == VALIDATED][-1]
    checkpoints = path / CHECKPOINTS
    model = checkpoints / MODEL.format(step=STEPS)
    beside = sorted({*checkpoints.glob(f"*{STEPS}/*{model.suffix}")} - {model})
    return Result(
        sha256=sha256(model),
        values=hash_of_values(model),
        beside={str(file.relative_to(checkpoints)): sha256(file) for file in beside},
        losses=losses,
        validation={
            name: last[name] for name in last if name not in ("kind", "step", "epoch") and not name.endswith(ENDS)
        },
        samples=shown[SAMPLES],
    )


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def hash_of_values(file: Path) -> str:
    """A hash of the tensors of a file that stays the same where only their names or their order change."""
    with safe_open(file, framework="np") as opened:
        tensors = [opened.get_tensor(name) for name in opened.keys()]  # noqa: SIM118 (the file is no mapping)
    hashes = sorted(hashlib.sha256(f"{one.dtype} {one.shape} ".encode() + one.tobytes()).hexdigest() for one in tensors)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


# -- comparing ---------------------------------------------------------------------------------------------------------


def differences(expected: Result | None, found: Result) -> list[str]:
    """Say where a result is not as expected, what comes first in a run first."""
    if expected is None:
        return ["nothing is stored to compare it with"]
    told = [
        f"{what} {name}: {one!r} was expected, {other!r} came"
        for what in ("losses", "validation", "beside")
        for name, one, other in unequal(getattr(expected, what), getattr(found, what))
    ]
    if expected.samples != found.samples:
        told.append(f"samples: {expected.samples} was expected, {found.samples} came")
    if expected.sha256 != found.sha256:
        same = "other names or order, the same values" if expected.values == found.values else "other values"
        told.append(f"weights: {same}")
    return told


def unequal(expected: Mapping[str, object], found: Mapping[str, object]) -> list[tuple[str, object, object]]:
    """Return what is not the same, or only in one of two tables, with both values."""
    names = [*expected, *(name for name in found if name not in expected)]
    pairs = ((name, expected.get(name), found.get(name)) for name in names)
    return [(name, one, other) for name, one, other in pairs if one != other]


def machine() -> dict[str, str]:
    """On what the last bits of a number depend: versions and the processor."""
    libraries = ("torch", "numpy", "tokenizers", "safetensors", "pillow", "sacrebleu")
    processor = processor_facts()
    flags = [flag for flag in processor.get("flags", "").split() if flag.startswith(("avx", "fma", "amx", "sse4"))]
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in libraries},
        "libc": " ".join(platform.libc_ver()),
        "processor": processor.get("model name") or platform.processor() or platform.machine(),
        "flags": " ".join(sorted(flags)),
    }


def processor_facts() -> dict[str, str]:
    """What Linux says of the first processor; nothing elsewhere."""
    file = Path("/proc/cpuinfo")
    first = file.read_text().split("\n\n")[0] if file.exists() else ""
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_stored() -> tuple[dict[str, str], dict[str, Result]]:
    """The machine on which the stored results came about, and the results by the names of runs."""
    if not STORED.exists():
        return {}, {}
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return stored["machine"], {name: Result(**values) for name, values in stored["runs"].items()}


def write_stored(results: Mapping[str, Result]) -> None:
    """Store results, in the order of the table."""
    ordered = {run.name: dataclasses.asdict(results[run.name]) for run in RUNS if run.name in results}
    text = json.dumps({"machine": machine(), "runs": ordered}, indent=2, ensure_ascii=False)
    STORED.write_text(text + "\n", encoding="utf-8")


# -- the command -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train tiny runs and compare their numbers with the stored ones.")
    parser.add_argument(
        "--only", nargs="+", choices=list(BY_NAME), metavar="NAME", help="these runs alone, in this order"
    )
    parser.add_argument("--write", action="store_true", help="store the numbers instead of comparing them")
    options = parser.parse_args(arguments)
    where, expected = read_stored()
    elsewhere = [f"{name}: {one!r} there, {other!r} here" for name, one, other in unequal(where, machine())]
    if expected and elsewhere:
        print("The hashes were stored on another machine, and bytes need not be the same here:", *elsewhere, sep="\n  ")
        if options.write and options.only:
            print("Store all of them anew: those of two machines do not belong together.")
            return 1
    began = time.monotonic()
    found, wrong = train_all(options.only or list(BY_NAME), None if options.write else expected)
    print(f"{len(found)} runs in {time.monotonic() - began:.0f} s; not as expected: {', '.join(wrong) or 'none'}")
    if options.write and not wrong:
        write_stored({**(expected if options.only else {}), **found})
    return 1 if wrong else 0


def train_all(names: Sequence[str], expected: Mapping[str, Result] | None) -> tuple[dict[str, Result], list[str]]:
    """Train runs and print what they came to; return it, and the names of those that failed or are not as expected."""
    found: dict[str, Result] = {}
    wrong = []
    with tempfile.TemporaryDirectory(prefix="regard-golden-") as folder:
        workshop = Workshop(Path(folder))
        for name in names:
            try:
                found[name] = workshop.train(BY_NAME[name])
            except RuntimeError as error:
                told = [str(error)]
            else:
                told = [] if expected is None else differences(expected.get(name), found[name])
            came = found[name].sha256 if name in found else "failed"
            print(f"{name:{WIDTH}}  {came}", *told, sep="\n    ", flush=True)
            wrong += [name] if told else []
    return found, wrong


if __name__ == "__main__":
    sys.exit(main())
