"""Settings as keyword arguments: the keys of a run file's tables as typed dictionaries, for editors and type checkers.

`regard.train("translate", …, steps=300)` and `run.translate(texts, beam=5)` take settings by the names they have in a run
file. A test holds these in step with `tables.py`.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from regard.config.synonyms import keys_of, near_name, which
from regard.errors import UsageError


class DecodingSettings(TypedDict, total=False):
    """The keys of [decoding]."""

    beam: int
    length_penalty: float
    n_best: int
    max_length: int
    min_length: int
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    no_repeat_ngram: int
    repetition_penalty: float
    batch_size: int


class DataSettings(TypedDict, total=False):
    """The keys of [data] that say how files are read."""

    source: str
    target: str
    text: str
    text_b: str
    image: str
    label: str
    split_column: str
    separator: str
    on_bad: str


class TrainingSettings(TypedDict, total=False):
    """The keys of [training]."""

    steps: int
    epochs: int
    min_steps: int
    minutes: float
    batch_tokens: int
    batch_images: int
    accumulate: int
    optimizer: str
    learning_rate: float
    muon_learning_rate: float
    schedule: str
    warmup: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    clip: float
    label_smoothing: float
    class_weights: str
    init: str
    freeze_init: bool
    init_lr_scale: float
    layer_decay: float
    validate_every: int
    validate_samples: int
    save_every_steps: int
    save_every_minutes: float
    best_by: str
    patience: int
    keep: int
    record_gradients: int
    average: int
    ema: float


class RunSettings(TrainingSettings, DataSettings, total=False):
    """What `regard.train` takes by name; any other key of a run file goes by its dotted name."""

    seed: int
    valid_size: int
    image_size: int
    vocab_size: int
    device: str
    precision: str
    threads: int


# Where a setting that goes by its plain name stands in a run file.
HOMES = {
    **{key: f"training.{key}" for key in TrainingSettings.__annotations__},
    **{key: f"data.{key}" for key in (*DataSettings.__annotations__, "valid_size", "image_size")},
    **{key: f"runtime.{key}" for key in ("device", "precision", "threads")},
    "vocab_size": "tokenizer.vocab_size",
    "seed": "seed",
}


def dotted(settings: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """Return settings by name as a run file calls them: steps as training.steps."""
    for name in settings:
        if name not in HOMES:
            dotted_names = [f'settings={{"{key}": …}}' for key in keys_of(name)]
            near = near_name(name, HOMES, otherwise=which(dotted_names) if dotted_names else "")
            raise UsageError(f"{origin}: there is no setting '{name}'.", near)
    return {HOMES[name]: value for name, value in settings.items()}
