"""What many tests share: a cache of their own, a made-up pair of languages, and tiny runs, one of each task."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ENGLISH = ["a", "the", "dog", "cat", "man", "house", "tree", "runs", "sees", "finds", "red", "big", "old"]
GERMAN = ["ein", "der", "Hund", "Katze", "Mann", "Haus", "Baum", "läuft", "sieht", "findet", "rot", "groß", "alt"]

# A network and a run so small that tens of updates take a second.
TINY: dict[str, Any] = {
    "training.optimizer": "adamw",
    "training.schedule": "inverse-sqrt",
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.n_heads": 2,
    "model.n_encoder_layers": 1,
    "model.n_decoder_layers": 1,
    "model.dropout": 0.1,
    "model.norm": "layer",  # from here on as the paper has it
    "model.positions": "sinusoidal",
    "model.feed_forward": "plain",
    "model.activation": "relu",
    "tokenizer.vocab_size": 320,
    "training.batch_tokens": 96,
    "training.warmup": 10,
    "training.learning_rate": 0.01,
    "training.validate_samples": 4,
    "runtime.device": "cpu",
    "runtime.threads": 1,
}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test touches the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny() -> dict[str, Any]:
    """The settings of a tiny run, by dotted key."""
    return dict(TINY)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Ninety distinct sentences of two to six words and their translation: word by word, from the last to the first."""
    chance = random.Random(5)
    sentences: dict[tuple[int, ...], None] = {}
    while len(sentences) < 90:
        sentences[tuple(chance.randrange(len(ENGLISH)) for _ in range(chance.randint(2, 6)))] = None
    folder = tmp_path_factory.mktemp("corpus")
    source, target = folder / "train.en", folder / "train.de"
    source.write_text("".join(" ".join(ENGLISH[word] for word in one) + "\n" for one in sentences))
    target.write_text("".join(" ".join(GERMAN[word] for word in one[::-1]) + "\n" for one in sentences))
    return str(source), str(target)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, corpus: tuple[str, str], tiny: dict[str, Any]) -> Path:
    """A run that has learned the corpus a little, with a moving average and an average. To be read, not changed."""
    import regard

    path = tmp_path_factory.mktemp("runs") / "trained"
    settings = {
        **tiny,
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.n_heads": 1,
        "model.dropout": 0.0,
        "training.batch_tokens": 256,
        "training.learning_rate": 0.02,
        "training.label_smoothing": 0.0,
        "training.steps": 120,
        "training.validate_every": 40,
        "training.average": 3,
        "training.ema": 0.9,
    }
    regard.train("translate", train=corpus, run=path, settings=settings)
    return path


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory, corpus: tuple[str, str], tiny: dict[str, Any]) -> Path:
    """A run whose probe examples were recorded, with pre-norm, and validation files. To be read, not changed."""
    import regard

    folder = tmp_path_factory.mktemp("watched")
    valid = []
    for file in corpus:
        lines = Path(file).read_text().splitlines(keepends=True)
        valid.append(str(folder / f"valid{Path(file).suffix}"))
        Path(valid[-1]).write_text("".join(lines[:12]))
    settings = {
        **tiny,
        "model.norm_order": "pre",
        "training.steps": 30,
        "training.validate_every": 10,
        "training.save_every_steps": 10,
        "training.keep": 3,
        "decoding.max_length": 10,
        "inspection.probes": 2,
        "inspection.every": 10,
    }
    regard.train("translate", train=corpus, valid=valid, run=folder / "run", settings=settings)
    return folder / "run"


# An encoder so small that it learns the texts below by heart in a second.
READER: dict[str, Any] = {
    "model.n_layers": 1,
    "model.n_heads": 2,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.max_positions": 40,
    "model.dropout": 0.0,
    "tokenizer.kind": "words",
    "data.valid_size": 10,
    "training.batch_tokens": 512,
    "training.warmup": 5,
    "training.learning_rate": 0.01,
    "training.steps": 40,
    "runtime.device": "cpu",
    "runtime.threads": 1,
}
GOOD, BAD = ("good", "fine", "great"), ("bad", "poor", "dull")
NAMES, PLACES = ("Anna", "Ben", "Carla"), ("Rome", "Paris", "Oslo")


def trained_on(
    factory: pytest.TempPathFactory, task: str, name: str, content: str, settings: dict[str, Any] = READER
) -> Path:
    """Train a tiny run of a task on one file; the file lies beside the run."""
    import regard

    folder = factory.mktemp(task)
    (folder / name).write_text(content)
    regard.train(task, train=[str(folder / name)], run=folder / "run", settings=settings)
    return folder / "run"


@pytest.fixture(scope="session")
def classify_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tells good from bad, each with three words, in texts of up to 37 tokens. To be read, not changed."""
    rows = [
        f"a {word} {noun},{label}"
        for label, words in (("pos", GOOD), ("neg", BAD))
        for word in words
        for noun in ("dog", "film", "day", "song", "tree", "house")
    ]
    content = "text,label\n" + "".join(f"{row}\n" for row in rows * 3)
    return trained_on(tmp_path_factory, "classify", "train.csv", content)


@pytest.fixture(scope="session")
def pairs_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tells whether two texts are the same. To be read, not changed."""
    texts = ("a dog", "a cat", "the sun")
    rows = [f"{one},{other},{'yes' if one == other else 'no'}" for one in texts for other in texts]
    content = "text,second,label\n" + "".join(f"{row}\n" for row in rows * 6)
    return trained_on(tmp_path_factory, "classify", "train.csv", content, {**READER, "data.text_b": "second"})


@pytest.fixture(scope="session")
def tag_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that finds three names and three places. To be read, not changed."""
    content = "".join(
        f"{name} B-PER\n{between}visits O\n{place} B-LOC\n\n"
        for name in NAMES
        for place in PLACES
        for between in ("Smith I-PER\n", "often O\n", "")
    )
    return trained_on(tmp_path_factory, "tag", "train.conll", content * 4)


@pytest.fixture(scope="session")
def regress_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that counts: A is worth 1, C a half. To be read, not changed."""
    chance = random.Random(7)
    texts = ["".join(chance.choices("ACDE", k=chance.randint(3, 8))) for _ in range(120)]
    content = "sequence,fitness\n" + "".join(f"{text},{text.count('A') + text.count('C') / 2}\n" for text in texts)
    settings = {"tokenizer.kind": "characters", "training.steps": 60}
    return trained_on(tmp_path_factory, "regress", "train.csv", content, {**READER, **settings})


@pytest.fixture(scope="session")
def mask_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fills blanks in sentences such as: the dog is good today. To be read, not changed."""
    lines = [f"the {noun} is {word} today ." for noun in ("dog", "film", "day", "song") for word in (*GOOD, *BAD)]
    settings = {**READER, "data.valid_size": 0, "data.max_length": 30, "training.steps": 60}
    return trained_on(tmp_path_factory, "mask", "train.txt", "".join(f"{line}\n" for line in lines * 6), settings)


@pytest.fixture(scope="session")
def denoise_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that writes what is missing of such sentences. To be read, not changed."""
    lines = [f"the {noun} is {word} today ." for noun in ("dog", "film", "day", "song") for word in (*GOOD, *BAD)]
    sizes = {
        "model.preset": "t5-tiny",
        "model.n_encoder_layers": 1,
        "model.n_decoder_layers": 1,
        "model.n_heads": 2,
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.d_head": 16,
        "model.dropout": 0.0,
    }
    others = {name: value for name, value in READER.items() if not name.startswith("model.")}
    settings = {**others, **sizes, "data.valid_size": 0, "data.max_length": 30, "training.steps": 60}
    content = "".join(f"{line}\n" for line in lines * 6)
    return trained_on(tmp_path_factory, "denoise", "train.txt", content, settings)


@pytest.fixture(scope="session")
def vectors_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tells sequences of vectors that rise from those that fall. To be read, not changed."""
    import numpy as np

    import regard

    folder = tmp_path_factory.mktemp("vectors")
    random = np.random.default_rng(3)
    labels = np.array(["up", "down"] * 40)
    steps = np.where(labels == "up", 0.3, -0.3)[:, None] * np.arange(6) + random.normal(0, 0.1, (80, 6))
    vectors = np.stack([steps, random.normal(0, 0.1, (80, 6))], axis=-1).astype(np.float32)
    np.savez(folder / "train.npz", vectors=vectors, labels=labels)
    settings = {name: value for name, value in READER.items() if name != "tokenizer.kind"}
    regard.train("classify", train=[str(folder / "train.npz")], run=folder / "run", settings=settings)
    return folder / "run"


def draw_stripes(folder: Path, *, per_class: int = 20, seed: int = 3) -> str:
    """Write class folders of 8 × 8 pixels in noise: stripes that lie, stripes that stand, and none."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(seed)
    stripes = np.tile(np.array([60, 60, 190, 190]), 2)
    patterns = {"lying": stripes[:, None], "none": np.full((8, 8), 125), "standing": stripes[None, :]}
    for name, pattern in patterns.items():
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            noise = random.integers(-40, 40, (8, 8, 3))
            pixels = np.broadcast_to(pattern, (8, 8))[:, :, None] + noise
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{number:03}.png")
    return str(folder)


# A residual network so small that it tells stripes apart in a second.
SEEING: dict[str, Any] = {
    "model.preset": "resnet-20",
    "model.n_blocks": [2, 1],
    "model.width": 8,
    "data.valid_size": 12,
    "training.batch_images": 16,
    "training.warmup": 5,
    "training.learning_rate": 0.02,
    "training.steps": 40,
    "runtime.device": "cpu",
    "runtime.threads": 1,
}


@pytest.fixture(scope="session")
def image_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tells stripes apart; what it learned from lies beside it in `train`. To be read, not changed."""
    import regard

    folder = tmp_path_factory.mktemp("images")
    regard.train("image", train=draw_stripes(folder / "train"), run=folder / "run", settings=SEEING)
    return folder / "run"


def draw_captions(folder: Path) -> str:
    """Write the images of `draw_stripes` into one folder, and beside them a table with two captions for each."""
    said = {
        "lying": ("stripes that lie", "here are stripes that lie"),
        "none": ("no pattern", "here is no pattern"),
        "standing": ("stripes that stand", "here are stripes that stand"),
    }
    rows = ["image\tcaption"]
    root = Path(draw_stripes(folder))
    for name, captions in said.items():
        for file in sorted((root / name).iterdir()):
            moved = file.rename(root / f"{name}-{file.name}")
            rows += [f"{moved.name}\t{caption}" for caption in captions]
        (root / name).rmdir()
    table = root / "captions.tsv"
    table.write_text("".join(f"{row}\n" for row in rows))
    return str(table)


# A captioner so small that it learns these captions in seconds.
DESCRIBING: dict[str, Any] = {
    "model.preset": "captioner-vit",
    "model.encoder.patch_size": 4,
    **{
        f"model.{table}.{name}": value
        for table in ("encoder", "decoder")
        for name, value in {"n_layers": 1, "n_heads": 2, "d_model": 32, "d_ff": 64, "dropout": 0.0}.items()
    },
    "tokenizer.kind": "words",
    "data.valid_size": 6,
    "training.batch_images": 16,
    "training.warmup": 5,
    "training.learning_rate": 0.01,
    "training.label_smoothing": 0.0,
    "training.steps": 60,
    "training.validate_samples": 4,
    "runtime.device": "cpu",
    "runtime.threads": 1,
}


@pytest.fixture(scope="session")
def caption_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that says what stripes do; what it learned from lies beside it in `images`. To be read, not changed."""
    import regard

    folder = tmp_path_factory.mktemp("captions")
    regard.train("caption", train=draw_captions(folder / "images"), run=folder / "run", settings=DESCRIBING)
    return folder / "run"
