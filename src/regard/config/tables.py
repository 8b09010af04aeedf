"""The tables of a run file, one class each, and one source for each default; a field's `help` is what the command shows."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# In the place of a default: the field must be given.
REQUIRED: Any = dataclasses.MISSING


def option(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    kinds: Mapping[str, Any] | None = None,
) -> Any:
    """Declare a field of a table: its default, the sentence that explains it, the range of a number, the words allowed.

    `check_fields` and whoever builds a table from a file hold values to it, those of a list one by one.
    kinds: of a field that is a table itself, whose key `kind` names one of these dataclasses, each with its defaults
    """
    metadata = {"help": help, "least": least, "above": above, "below": below, "choices": choices, "kinds": kinds}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is read, and how strictly."""

    train: tuple[str, ...] = option(
        (),
        "training files: for translate two aligned text files, or one or more of any known format; for language, mask and"
        " denoise one or more, of text or of any such format; for classify and regress tables; for tag columns of words;"
        " for image folders of class folders, IDX or NPZ; for caption tables of images and captions",
    )
    valid: tuple[str, ...] = option((), "validation files; without them some of the training data is held out")
    source: str = option("", "language code or column of the source, or of the text, where a file holds several")
    target: str = option("", "language code or column of the target, where a file holds several")
    text: str = option(
        "", "column of the text that is classified, tagged or measured; found by itself where it is plain"
    )
    text_b: str = option("", "column of a second text that belongs to the text")
    label: str = option("", "column of the label, the tag or the number; found by itself where it is plain")
    split_column: str = option("", "column that says which split a row belongs to: train, valid (or val, dev) or test")
    separator: str = option("", "line between the documents of a text file, as <|endoftext|>; else a file is one")
    valid_size: int = option(
        0,
        "how many pairs or documents to hold out without validation files; 0 chooses 1 %, 100 to 2,000 (of fewer than"
        " 100 documents, the last tenth of the text)",
        least=0,
    )
    on_bad: str = option("stop", "stop when more than 1 % of the pairs or lines are bad, or keep-going")
    max_length: int = option(
        256,
        "longest sentence in tokens; a longer one is a bad pair, or is cut where it is classified, tagged or measured (a"
        " language model has its context)",
        least=1,
    )
    max_ratio: float = option(9.0, "largest ratio of the two sides' lengths in characters", least=1)
    image_size: int = option(0, "pixels of an image's edge; 0 takes what suits the training images", least=0)
    channels: int = option(0, "1 for grey images, 3 for colours; 0 takes what suits the training images", least=0)


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes tokens."""

    kind: str = option(
        "bpe", "bpe (byte-level), unigram, wordpiece, characters, bytes or words; vectors for the rows of a CSV"
    )
    vocab_size: int = option(0, "number of tokens; 0 chooses by the size of the corpus", least=0)
    file: str = option(
        "",
        "a vocabulary brought along: a tiktoken file (cl100k_base.tiktoken), or a tokenizer.json that regard wrote",
    )
    shared: bool = option(True, "one vocabulary for source and target")
    vectors: str = option("", "word vectors in word2vec's text format for the embedding (kind words)")
    freeze_vectors: bool = option(False, "keep given vectors as they are")


@dataclass(frozen=True, kw_only=True)
class CorruptionConfig:
    """What the tasks mask and denoise hide of a text."""

    rate: float = option(0.15, "share of the tokens that are hidden", least=0, below=1)
    span: float = option(3.0, "mean length of a hidden span, for denoise", least=1)


@dataclass(frozen=True, kw_only=True)
class AugmentationConfig:
    """How training images are changed at random, so that no epoch shows the same; of the tasks image and caption."""

    crop: int = option(0, "by how many pixels an image is moved at most; 0 for not at all", least=0)
    mirror: bool = option(False, "mirror every second image, which letters and digits do not bear")
    cutout: int = option(0, "side of a square that is cut out; 0 for none", least=0)
    mixup: float = option(
        0.0, "mix two images, and their classes, by shares from Beta(mixup, mixup); 0 for none; of image alone", least=0
    )


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, how fast, and what is kept."""

    steps: int = option(0, "stop after so many updates; 0 for no such limit", least=0)
    epochs: int = option(0, "stop after so many passes over the data; 0 for no such limit", least=0)
    min_steps: int = option(0, "an end by epochs waits for so many updates; 0 for no such wait", least=0)
    minutes: float = option(0.0, "stop after so many minutes; 0 for no such limit", least=0)
    batch_tokens: int = option(
        4096, "tokens in a batch: of pairs those of the longer side, padded; of text those of all its windows", least=1
    )
    batch_images: int = option(128, "images in a batch, of caption each with all its captions", least=1)
    accumulate: int = option(1, "batches whose gradients are added up before an update", least=1)
    learning_rate: float = option(0.003, "the schedule's peak", least=0)
    schedule: str = option(
        "inverse-sqrt",
        "inverse-sqrt, cosine, linear or constant; auto is cosine, or constant where only minutes end the run",
    )
    warmup: int = option(1000, "updates over which the rate rises to its peak", least=0)
    beta1: float = option(0.9, "Adam's decay of the mean", least=0, below=1)
    beta2: float = option(0.98, "Adam's decay of the square", least=0, below=1)
    epsilon: float = option(1e-9, "Adam's epsilon", least=0)
    weight_decay: float = option(0.0, "decoupled weight decay of matrices", least=0)
    clip: float = option(1.0, "largest norm of the gradient; 0 for none", least=0)
    label_smoothing: float = option(
        0.1, "share of the target's probability spread over the vocabulary", least=0, below=1
    )
    class_weights: str = option("none", "balanced lets rare classes count as much as frequent ones; none")
    init: str = option("", "a run whose vocabulary and weights the new one begins with")
    freeze_init: bool = option(False, "keep the weights taken from another run as they are")
    init_lr_scale: float = option(1.0, "factor on the learning rate of the weights taken from another run", least=0)
    layer_decay: float = option(1.0, "further factor for each layer between such a weight and the top", least=0)
    validate_every: int = option(0, "updates between validations; 0 for once an epoch, at least 200", least=0)
    validate_samples: int = option(
        200,
        "how many validation sentences are decoded and scored, 0 for none, -1 for all; of text, 0 for no samples",
        least=-1,
    )
    save_every_steps: int = option(0, "updates between saves beside those at validations; 0 for none", least=0)
    save_every_minutes: float = option(10.0, "minutes between saves beside those at validations; 0 for none", least=0)
    best_by: str = option("loss", "the score by which a checkpoint is the best: loss, bleu, accuracy, …")
    patience: int = option(0, "stop after so many validations without a better one; 0 for never", least=0)
    keep: int = option(5, "how many of the newest checkpoints stay (the best stays too)", least=1)
    record_gradients: int = option(
        0, "updates between records of the gradient's norm by layer, for regard plot --gradients; 0 for none", least=0
    )
    average: int = option(0, "average the weights of the last so many validations at the end; 0 for none", least=0)
    ema: float = option(0.0, "decay of the moving average of the weights; 0 for none", least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How output is searched for."""

    beam: int = option(5, "hypotheses kept a sentence; 1 is greedy search", least=1)
    length_penalty: float = option(1.0, "exponent of the length that divides a hypothesis's log-probability")
    n_best: int = option(1, "hypotheses returned a sentence", least=1)
    max_length: int = option(
        0,
        "most tokens written; 0 chooses by the length of the input, or of the longest caption learned from",
        least=0,
    )
    min_length: int = option(0, "fewest tokens before the end token, a forced beginning counted", least=0)
    sample: bool = option(False, "draw tokens at random instead of searching")
    temperature: float = option(1.0, "divides the logits before sampling")
    top_k: int = option(0, "sample among so many likeliest tokens; 0 for all", least=0)
    top_p: float = option(1.0, "sample among the likeliest tokens that hold this much probability")
    no_repeat_ngram: int = option(0, "no n-gram of this length occurs twice; 0 for no such rule", least=0)
    repetition_penalty: float = option(
        1.0, "divides the logits of tokens already written; above 1 they come less often"
    )
    batch_size: int = option(64, "sentences decoded together", least=1)


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """The machine."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps")
    precision: str = option("auto", "auto, fp32, bf16")
    threads: int = option(0, "threads of the CPU; 0 for one a core", least=0)
    workers: int = option(0, "threads that read batches ahead of their update; 0 for none", least=0)


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """Which network: a preset's name, then any field of that model's config."""

    preset: str = ""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A whole run file."""

    task: str
    seed: int = option(1, "seed of everything random", least=0)
    data: DataConfig = DataConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelTable = ModelTable()
    corruption: CorruptionConfig = CorruptionConfig()
    augmentation: AugmentationConfig = AugmentationConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    runtime: RuntimeConfig = RuntimeConfig()
