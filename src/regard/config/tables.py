"""The tables of a run file, one class each, and one source for each default; a field's `help` is what the command shows."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# In the place of a default: the field must be given.
REQUIRED: Any = dataclasses.MISSING
# In the place of tokenizer.lowercase, where a run goes on: as its vocabulary has it, whatever the text. No file says so.
AS_SAVED = "as saved"


def option(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    kinds: Mapping[str, Any] | None = None,
) -> Any:
    """Declare a field of a table: its default, the sentence that explains it, the range of a number, the words allowed.

    `check_fields` and whoever builds a table from a file hold values to it, those of a list one by one.
    kinds: of a field that is a table itself, whose key `kind` names one of these dataclasses, each with its defaults
    """
    limits = {"least": least, "most": most, "above": above, "below": below}
    return dataclasses.field(default=default, metadata={"help": help, **limits, "choices": choices, "kinds": kinds})


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is read, and how strictly."""

    train: tuple[str, ...] = option(
        (),
        "training files; which formats a task reads: regard train TASK --help",
    )
    valid: tuple[str, ...] = option(
        (), "validation files; without them a validation split is held out of the training data"
    )
    source: str = option("", "column or language code of the source")
    target: str = option("", "column or language code of the target")
    text: str = option("", "column or language code of the text, or of the captions; by default found by its name")
    text_b: str = option("", "column of the second text of each pair")
    image: str = option("", "column of the image files of captions; by default found by its name")
    label: str = option("", "column of the label, tag or number; by default found by its name")
    split_column: str = option("", "column that says which split a row belongs to: train, valid (or val, dev) or test")
    separator: str = option(
        "", "line that separates documents, such as <|endoftext|>; empty: each file is one document"
    )
    valid_size: int = option(
        0,
        "examples (of running text, documents) in the validation split without validation files; 0: a tenth, at most 1,000;"
        " of more than 100,000 examples 1 %, at most 2,000 (of long documents fewer; of fewer than 100 documents, the last"
        " tenth of the text)",
        least=0,
        most=10**9,
    )
    on_bad: str = option(
        "stop", "stop if more than 1 % of the rows are bad, or keep-going", choices=("stop", "keep-going")
    )
    max_length: int = option(
        256,
        "maximum length in tokens; longer pairs are bad rows, longer texts to label are truncated (language models have"
        " model.context)",
        least=1,
        most=10**6,
    )
    max_ratio: float = option(9.0, "maximum ratio of the lengths of the two sides, in characters", least=1)
    image_size: int = option(
        0, "height and width of images in pixels; 0: chosen by the training images", least=0, most=4096
    )
    channels: int = option(0, "1 for greyscale, 3 for colour; 0: chosen by the training images", least=0, most=3)


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes tokens."""

    kind: str = option(
        "auto",
        "kind of tokens: bpe is byte-level, sentencepiece is what a SentencePiece model can hold (for export to Argos"
        " Translate), tiktoken needs file; vectors for the rows of a CSV; auto: words for texts that get a class or a number"
        " and whose words recur, else bpe",
        choices=(
            "auto",
            "bpe",
            "unigram",
            "wordpiece",
            "sentencepiece",
            "characters",
            "bytes",
            "words",
            "tiktoken",
            "vectors",
        ),
    )
    vocab_size: int = option(0, "vocabulary size; 0: chosen by the training text", least=0, most=10_000_000)
    file: str = option(
        "",
        "a ready vocabulary: a tiktoken file (cl100k_base.tiktoken), or a tokenizer.json that regard wrote",
    )
    shared: bool = option(True, "one vocabulary for source and target")
    lowercase: bool | str = option(
        "auto",
        "lower-case all text, input and output; auto: where the training text is lower-cased, so that input matches it (of a"
        " shared vocabulary, both sides)",
        choices=("auto", "true", "false"),
    )
    normalisation: str = option(
        "auto",
        "Unicode normalisation of all text; auto: nfc where it leaves the training text as it is, else none",
        choices=("auto", "none", "nfc", "nfkc"),
    )
    vectors: str = option("", "pre-trained word vectors for the embedding, in word2vec's text format (kind words)")
    freeze_vectors: bool = option(False, "do not train the given word vectors")


@dataclass(frozen=True, kw_only=True)
class CorruptionConfig:
    """What the tasks mask and denoise hide of a text."""

    rate: float = option(0.15, "share of the tokens that are masked", least=0, below=1)
    span: float = option(3.0, "mean length of a masked span in tokens", least=1, most=1_000)


@dataclass(frozen=True, kw_only=True)
class AugmentationConfig:
    """How training images are changed at random, so that no epoch shows the same; of the tasks image and caption."""

    crop: int = option(0, "random shift of an image by up to so many pixels; 0: none", least=0, most=4096)
    mirror: bool = option(False, "flip images horizontally at random (not for letters and digits)")
    cutout: int = option(0, "side of a random square that is erased, in pixels; 0: none", least=0, most=4096)
    mixup: float = option(
        0.0, "mix two images and their classes with a weight from Beta(mixup, mixup); 0: none", least=0, most=100
    )


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, how fast, and what is kept."""

    steps: int = option(0, "maximum number of updates; 0: no limit", least=0, most=10**9)
    epochs: int = option(0, "maximum number of passes over the training data; 0: no limit", least=0, most=10**6)
    min_steps: int = option(0, "minimum number of updates before epochs end a run", least=0, most=10**9)
    minutes: float = option(0.0, "maximum training time in minutes; 0: no limit", least=0, most=10**7)
    batch_tokens: int = option(
        4096,
        "tokens per batch: of pairs those of the longer side, padded; of running text those of all windows",
        least=1,
        most=10**8,
    )
    batch_images: int = option(128, "images per batch; of captions, each with all of its captions", least=1, most=10**6)
    accumulate: int = option(1, "batches per update (gradient accumulation)", least=1, most=10**6)
    optimizer: str = option(
        "adamw", "muon trains the matrices inside of layers, and AdamW the rest; adamw: all", choices=("muon", "adamw")
    )
    learning_rate: float = option(0.003, "peak learning rate of AdamW", least=0, most=100)
    muon_learning_rate: float = option(0.02, "peak learning rate of Muon", least=0, most=100)
    schedule: str = option(
        "linear",
        "learning-rate schedule, over the steps, epochs or minutes of the run",
        choices=("inverse-sqrt", "cosine", "linear", "constant"),
    )
    warmup: float = option(
        0.05,
        "updates over which the learning rate rises to its peak; below 1: as a share of the run",
        least=0,
        most=10**9,
    )
    beta1: float = option(0.9, "Adam's beta1", least=0, below=1)
    beta2: float = option(0.98, "Adam's beta2", least=0, below=1)
    epsilon: float = option(1e-9, "Adam's epsilon", least=0, most=1)
    weight_decay: float = option(0.0, "decoupled weight decay (AdamW) of matrices", least=0)
    clip: float = option(1.0, "maximum gradient norm; 0: no clipping", least=0)
    label_smoothing: float = option(
        0.1, "share of the target's probability spread over the vocabulary", least=0, below=1
    )
    class_weights: str = option(
        "none", "balanced weighs classes by their inverse frequency; none", choices=("none", "balanced")
    )
    init: str = option("", "initialise from another run: its weights and its vocabulary")
    freeze_init: bool = option(False, "freeze the weights loaded from init")
    init_lr_scale: float = option(1.0, "learning-rate factor for the weights loaded from init", least=0, most=1_000)
    layer_decay: float = option(
        1.0,
        "layer-wise learning-rate decay of the weights loaded from init: a factor per layer below the top",
        least=0,
        most=10,
    )
    validate_every: int = option(
        0, "updates between validations; 0: once per epoch, but at least 100", least=0, most=10**9
    )
    validate_samples: int = option(
        200,
        "validation examples to generate and score; 0: none, -1: all; of running text, 0: show no samples",
        least=-1,
        most=10**9,
    )
    save_every_steps: int = option(
        0, "updates between checkpoints, beside those at validations; 0: none", least=0, most=10**9
    )
    save_every_minutes: float = option(
        10.0, "minutes between checkpoints, beside those at validations; 0: none", least=0, most=10**7
    )
    best_by: str = option("loss", "metric by which a checkpoint is the best: loss, bleu, accuracy, …")
    patience: int = option(
        0, "early stopping: stop after so many validations without improvement; 0: never", least=0, most=10**9
    )
    keep: int = option(5, "how many of the newest checkpoints are kept (the best is kept too)", least=1, most=10**6)
    record_gradients: int = option(
        0,
        "updates between records of the gradient norm per layer, for regard plot --gradients; 0: none",
        least=0,
        most=10**9,
    )
    average: int = option(0, "average the weights of the last N validations at the end; 0: none", least=0, most=1_000)
    ema: float = option(0.0, "decay of the exponential moving average (EMA) of the weights; 0: none", least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How output is searched for."""

    beam: int = option(5, "beam width; 1 is greedy search", least=1, most=1_000)
    length_penalty: float = option(
        1.0, "exponent of the length by which a hypothesis's log-probability is divided", least=-10, most=10
    )
    n_best: int = option(1, "hypotheses to return per sentence", least=1, most=1_000)
    max_length: int = option(
        0,
        "maximum number of tokens to generate; 0: by the length of the input; of captions, by the longest in training",
        least=0,
        most=32_768,
    )
    min_length: int = option(
        0, "minimum number of tokens before the end token, a forced prefix included", least=0, most=10_000
    )
    sample: bool = option(False, "sample tokens instead of searching")
    temperature: float = option(1.0, "sampling temperature", least=0, most=1_000)
    top_k: int = option(0, "sample from the k likeliest tokens; 0: from all", least=0, most=10**9)
    top_p: float = option(
        1.0, "sample from the likeliest tokens that hold this much probability (nucleus sampling)", above=0, most=1
    )
    no_repeat_ngram: int = option(0, "no n-gram of this length may occur twice; 0: no such rule", least=0, most=10_000)
    repetition_penalty: float = option(
        1.0, "divides the logits of tokens already generated; above 1 they come less often", above=0, most=1_000
    )
    batch_size: int = option(64, "sentences per batch", least=1, most=100_000)


@dataclass(frozen=True, kw_only=True)
class InspectionConfig:
    """What is recorded of a model while it learns, into RUN/traces/."""

    probes: int = option(
        0,
        "validation examples that are traced while training (attention, output), for regard inspect RUN --probes; 0: none",
        least=0,
        most=64,
    )
    every: int = option(
        100,
        "updates between traces of the probe examples; of a long run every second one is dropped, again and again",
        least=1,
        most=10**9,
    )


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """The machine."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps")
    precision: str = option("auto", "auto: bf16 on a GPU that has it, else fp32", choices=("auto", "fp32", "bf16"))
    threads: int = option(0, "CPU threads (0: one per core)", least=0, most=1_024)
    workers: int = option(0, "threads that prefetch batches; 0: none", least=0, most=256)
    timeout: float = option(
        600.0,
        "seconds that the processes of a run wait for one of them before it ends (--processes, torchrun)",
        least=1,
        most=10**6,
    )
    int8: bool = option(
        False,
        "let CTranslate2 translate and generate with 8-bit weights, as --int8 does: faster, not quite the same outputs;"
        " prove it first (regard export --int8 --prove)",
    )


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """Which network: a preset's name, then any field of that model's config."""

    preset: str = ""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A whole run file."""

    task: str
    seed: int = option(1, "random seed", least=0, most=2**63 - 1)
    data: DataConfig = DataConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelTable = ModelTable()
    corruption: CorruptionConfig = CorruptionConfig()
    augmentation: AugmentationConfig = AugmentationConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    inspection: InspectionConfig = InspectionConfig()
    runtime: RuntimeConfig = RuntimeConfig()
