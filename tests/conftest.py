"""What many tests share: a cache of their own, a made-up pair of languages, and one tiny run trained on it."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ENGLISH = ["a", "the", "dog", "cat", "man", "house", "tree", "runs", "sees", "finds", "red", "big", "old"]
GERMAN = ["ein", "der", "Hund", "Katze", "Mann", "Haus", "Baum", "läuft", "sieht", "findet", "rot", "groß", "alt"]

# A network and a run so small that tens of updates take a second.
TINY: dict[str, Any] = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.n_heads": 2,
    "model.n_encoder_layers": 1,
    "model.n_decoder_layers": 1,
    "model.dropout": 0.1,
    "tokenizer.vocab_size": 320,
    "training.batch_tokens": 96,
    "training.warmup": 10,
    "training.learning_rate": 0.01,
    "training.validate_decoded": 4,
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
    """A run that has learnt the corpus a little, with a moving average and an average. To be read, not changed."""
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
