"""The table of tasks, one row each: what every room may know of a task without loading torch.

The command, the settings, the presets, the plan and the report ask this table instead of keeping lists of task names. What
a task does is in the file that `home` names. A new task is a row here and its own files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.errors import UsageError, did_you_mean

Settings = Mapping[str, Mapping[str, Any]]  # by the table of a run file, then by key


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """One task.

    name, about:      what `regard train NAME` is given, and what it trains, in a sentence for the help
    home, run:        where its class is, MODULE:CLASS; the kind of run that `regard.load` returns (regard.api.run)
    verb, example:    the command that uses a trained run, and what that command may be given
    reads, files:     what kind of data: pairs, text, table, words, images, captions; and what --train takes, for the help
    unit:             what is scored, in the plural
    throughput_unit:  what the weight of a loss is a number of, and training speed is measured in
    metrics:          the metrics of a validation by which a checkpoint can be the best
    sample_labels:    what it calls the three texts of a validation sample: input, expected, predicted
    generates:        whether it writes token by token, so that [decoding] applies
    families:         the model families that fit, the first by default; see regard.models.presets
    head, n_outputs:  which head an encoder needs, and how many outputs a plan assumes without data
    settings:         the keys of a run file that not all tasks read and this one does, by table
    defaults:         settings with another default than their table's
    end:              what ends a run by default ([training])
    blank:            what stands in a text where the run fills something in
    options:          by command, options that not every task has and this one does, beside those that `settings` imply
    """

    name: str
    about: str
    home: str
    run: str
    verb: str = "predict"
    example: str = '"…"'
    reads: str
    files: str
    unit: str
    throughput_unit: str = "tokens"
    metrics: tuple[str, ...]
    sample_labels: tuple[str, str, str]
    generates: bool = False
    families: tuple[str, ...]
    head: str = ""
    n_outputs: int = 0
    settings: Mapping[str, tuple[str, ...]]
    defaults: Settings = field(default_factory=dict)
    end: Mapping[str, int]
    blank: str = ""
    options: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def reads_setting(self, table: str, key: str) -> bool:
        """Whether a key of a run file means anything to this task."""
        return key in self.settings.get(table, ()) or key not in SPECIFIC.get(table, ())

    def takes_option(self, command: str, option: str) -> bool:
        """Whether an option of a command that uses a run applies: one that no task claims applies to all.

        Options go by the names of settings: `source`, `beam`.
        """
        if option in _GENERATION:
            generating = command == self.verb or "metrics" in self.options.get(command, ())
            return self.generates and generating and self.reads_setting("decoding", option)
        if option in _COLUMNS:
            reads_files = command != "predict" or self.takes_option(command, "data")
            return reads_files and self.reads_setting("data", option)
        claimed = any(option in other.options.get(command, ()) for other in TASKS.values())
        return not claimed or option in self.options.get(command, ())

    def serves(self, command: str) -> bool:
        """Whether a run of this task can be given to a command."""
        if command == "embed":
            return not self.reads_images
        return command == self.verb or all(command != other.verb for other in TASKS.values())

    @property
    def renamed(self) -> Mapping[str, str]:
        """The keys that this task, and not all others, called otherwise once, with today's names."""
        return _RENAMED.get(self.reads, {})

    @property
    def reads_images(self) -> bool:
        """Whether batches are counted in images."""
        return self.reads in ("images", "captions")

    @property
    def batch_unit(self) -> str:
        """What batches are counted in; where sequences are of vectors, these."""
        return "images" if self.reads_images else "tokens"

    @property
    def reads_text(self) -> bool:
        """Whether there is a tokenizer."""
        return self.reads != "images"


_TOKENIZER = ("kind", "vocab_size", "file", "lowercase", "normalisation", "vectors", "freeze_vectors")
_SEARCH = ("beam", "length_penalty", "max_length", "min_length", "no_repeat_ngram", "repetition_penalty", "batch_size")
_DECODING = (*_SEARCH, "n_best", "sample", "temperature", "top_k", "top_p")
_ENGINE = ("int8",)  # of another engine than our own search
_BY_STEPS = {"steps": 10_000, "patience": 10}
# Tasks over so few examples that their number tells how long is enough; ten passes over a hundred rows would teach nothing.
_BY_EPOCHS = {"epochs": 10, "min_steps": 500}
# Few texts are learned by heart in a few passes. Images are not, and gain most while the rate falls to nothing.
_BY_PATIENCE = {**_BY_EPOCHS, "patience": 4}
# A text of which something is said is read whole: this leaves special tokens their place among 512 positions.
_WHOLE: Mapping[str, Any] = {"max_length": 500}
# AdamW as BERT has it (Devlin et al. 2019, A.2 and A.3).
_ADAMW: Mapping[str, Any] = {
    "label_smoothing": 0.0,
    "learning_rate": 0.0005,
    "beta2": 0.999,
    "epsilon": 1e-8,
    "weight_decay": 0.01,
}
# Muon for the matrices of layers: half the updates and fewer, but where texts are few (docs/LOG.md).
_MUON: Mapping[str, Any] = {"optimizer": "muon", "muon_learning_rate": 0.02}
# What is read of a run file by tasks over running text, and by those over a table of labelled texts.
_TEXT: Mapping[str, tuple[str, ...]] = {
    "data": ("text", "separator", "max_length"),
    "tokenizer": _TOKENIZER,
    "training": ("batch_tokens", "label_smoothing"),
}
_TABLE: Mapping[str, tuple[str, ...]] = {
    "data": ("text", "text_b", "label", "split_column", "max_length"),
    "tokenizer": _TOKENIZER,
    "training": ("batch_tokens",),
}
_COLUMNS = frozenset({"source", "target", "text", "text_b", "image", "label", "split_column"})
# What tasks that read such data called a key once.
_RENAMED = {"text": {"data.source": "data.text"}, "captions": {"data.source": "data.image"}}
_GENERATION = frozenset({*_DECODING, "seed", "banned"})
_TEXT_METRICS = frozenset({"metrics", "tokenize", "lowercase"})
_FILE = frozenset({"data", "on_bad"})  # of which some rows may be bad, as of standard input some lines
_ROWS = frozenset({"split"})  # of a test set in which some rows may be of other splits

TASKS: Mapping[str, TaskSpec] = {
    spec.name: spec
    for spec in (
        TaskSpec(
            name="translate",
            about="translation, or any sequence from another: a Transformer, a T5 or a recurrent network",
            home="regard.tasks.translation.task:TranslationTask",
            run="Translator",
            verb="translate",
            reads="pairs",
            files="two aligned text files, or one or more of TSV, CSV, JSONL, Parquet, TMX, XLIFF, PO",
            unit="sentences",
            metrics=("loss", "perplexity", "bleu", "chrf"),
            sample_labels=("source", "expected", "output"),
            generates=True,
            families=("transformer", "recurrent", "t5"),
            settings={
                "data": ("source", "target", "max_length", "max_ratio"),
                "tokenizer": (*_TOKENIZER, "shared"),
                "training": ("batch_tokens", "label_smoothing"),
                "decoding": _DECODING,
                "runtime": _ENGINE,
            },
            defaults={"training": {**_MUON, "learning_rate": 0.01}},
            end=_BY_STEPS,
            options={
                "evaluate": _TEXT_METRICS | {"by_length", "output"},
                "compare": _TEXT_METRICS | {"by_length", "picture"},
            },
        ),
        TaskSpec(
            name="language",
            about="language modelling: a Llama or a GPT that goes on from a prompt",
            home="regard.tasks.language_model.task:LanguageModelTask",
            run="LanguageModel",
            verb="generate",
            reads="text",
            files="text files, or the text column of TSV, CSV, JSONL, Parquet, TMX, XLIFF, PO",
            unit="tokens",
            metrics=("loss", "perplexity", "bits_per_byte"),
            sample_labels=("given", "followed", "written"),
            generates=True,
            families=("llama", "gpt"),
            settings={**_TEXT, "decoding": _DECODING, "runtime": _ENGINE},
            defaults={
                "training": {
                    **_ADAMW,
                    **_MUON,
                    "muon_learning_rate": 0.04,
                    "learning_rate": 0.003,
                    "beta2": 0.99,
                    "weight_decay": 0.1,
                },
                "decoding": {"beam": 1, "sample": True, "temperature": 0.8},
            },
            end=_BY_STEPS,
        ),
        TaskSpec(
            name="mask",
            about="masked language modelling: a BERT that guesses hidden words, to fine-tune afterwards",
            home="regard.tasks.denoising.masked_lm:MaskedLMTask",
            run="MaskedLM",
            example='"… [MASK] …"',
            reads="text",
            files="text files, or the text column of TSV, CSV, JSONL, Parquet, TMX, XLIFF, PO",
            unit="tokens",
            throughput_unit="hidden tokens",
            metrics=("loss", "perplexity", "masked_accuracy"),
            sample_labels=("hidden", "was", "guessed"),
            families=("bert", "recurrent-encoder"),
            head="words",
            settings={**_TEXT, "corruption": ("rate",)},
            defaults={"training": {**_ADAMW, **_MUON, "learning_rate": 0.002}},
            end=_BY_STEPS,
            blank="[MASK]",
            options={"predict": frozenset({"top", "on_bad"})},
        ),
        TaskSpec(
            name="denoise",
            about="span corruption: a T5 or a Transformer that writes hidden spans, to fine-tune afterwards",
            home="regard.tasks.denoising.span_corruption:DenoisingTask",
            run="Denoiser",
            example='"… [MASK] …"',
            reads="text",
            files="text files, or the text column of TSV, CSV, JSONL, Parquet, TMX, XLIFF, PO",
            unit="tokens",
            throughput_unit="hidden tokens",
            metrics=("loss", "perplexity"),
            sample_labels=("hidden", "was", "guessed"),
            generates=True,
            families=("t5", "transformer"),
            settings={**_TEXT, "corruption": ("rate", "span"), "decoding": _DECODING},
            defaults={
                "training": {**_MUON, "muon_learning_rate": 0.01, "learning_rate": 0.002, "label_smoothing": 0.0},
                "decoding": {"beam": 1},
            },
            end=_BY_STEPS,
            blank="[MASK]",
            options={"predict": frozenset({"on_bad"})},
        ),
        TaskSpec(
            name="classify",
            about="text classification: a class for each text, pair of texts, or sequence of vectors",
            home="regard.tasks.labelling.classification:ClassificationTask",
            run="Classifier",
            reads="table",
            files="tables (CSV, TSV, JSONL, Parquet) with a text and a label column; NPZ or CSV for vectors",
            unit="texts",
            throughput_unit="texts",
            metrics=("accuracy", "macro_f1", "loss"),
            sample_labels=("text", "label", "predicted"),
            families=("bert", "recurrent-encoder"),
            head="sequence",
            n_outputs=2,
            settings={**_TABLE, "training": ("batch_tokens", "label_smoothing", "class_weights")},
            defaults={"data": _WHOLE, "training": {**_ADAMW, "batch_tokens": 1024, "best_by": "accuracy"}},
            end={**_BY_PATIENCE, "epochs": 6},
            options={
                "predict": _FILE | {"top"},
                "evaluate": _ROWS | {"output", "picture"},
                "compare": _ROWS,
            },
        ),
        TaskSpec(
            name="tag",
            about="sequence tagging: a tag for each word, such as named entities, or for each vector of a sequence",
            home="regard.tasks.labelling.tagging:TaggingTask",
            run="Tagger",
            reads="words",
            files="CoNLL files: a word and its tag per line, a blank line between sentences; NPZ or CSV for vectors",
            unit="sentences",
            throughput_unit="words",
            metrics=("entity_f1", "accuracy", "loss"),
            sample_labels=("text", "tags", "predicted"),
            families=("bert", "recurrent-encoder"),
            head="tokens",
            n_outputs=2,
            settings={**_TEXT, "data": ("text", "label", "max_length")},
            defaults={
                "data": _WHOLE,
                "training": {
                    **_ADAMW,
                    **_MUON,
                    "muon_learning_rate": 0.04,
                    "learning_rate": 0.002,
                    "batch_tokens": 1024,
                    "best_by": "entity_f1",
                },
            },
            end=_BY_PATIENCE,
            options={"predict": _FILE, "evaluate": frozenset({"output"})},
        ),
        TaskSpec(
            name="regress",
            about="regression: a number for each text, pair of texts, or sequence of vectors",
            home="regard.tasks.labelling.regression:RegressionTask",
            run="Regressor",
            reads="table",
            files="tables (CSV, TSV, JSONL, Parquet) with a text and a number column; NPZ or CSV for vectors",
            unit="texts",
            throughput_unit="texts",
            metrics=("spearman", "r_squared", "mae", "loss"),
            sample_labels=("text", "value", "predicted"),
            families=("bert", "recurrent-encoder"),
            head="sequence",
            n_outputs=1,
            settings=_TABLE,
            defaults={"data": _WHOLE, "training": {**_ADAMW, "batch_tokens": 1024, "best_by": "spearman"}},
            end=_BY_PATIENCE,
            options={"predict": _FILE, "evaluate": _ROWS | {"output"}, "compare": _ROWS},
        ),
        TaskSpec(
            name="similarity",
            about="similarity: a number of agreement for two texts, and vectors of texts that compare by cosine",
            home="regard.tasks.labelling.similarity:SimilarityTask",
            run="Similarity",
            example='"…" --text-b "…"',
            reads="table",
            files="tables (CSV, TSV, JSONL, Parquet) with two text columns and a number column",
            unit="pairs",
            throughput_unit="pairs",
            metrics=("spearman", "pearson", "loss"),
            sample_labels=("texts", "score", "predicted"),
            families=("bert", "recurrent-encoder"),
            head="none",
            settings=_TABLE,
            defaults={"data": _WHOLE, "training": {**_ADAMW, "batch_tokens": 1024, "best_by": "spearman"}},
            end=_BY_PATIENCE,
            options={"predict": _FILE, "evaluate": _ROWS | {"output"}, "compare": _ROWS},
        ),
        TaskSpec(
            name="image",
            about="image classification: a class for each image, by a ViT, a ResNet or a convolutional network",
            home="regard.tasks.images.image_classification:ImageClassificationTask",
            run="ImageClassifier",
            example="photo.jpg",
            reads="images",
            files="folders of class folders, IDX or NPZ",
            unit="images",
            throughput_unit="images",
            metrics=("accuracy", "top_5", "macro_f1", "loss"),
            sample_labels=("image", "class", "predicted"),
            families=("vit", "convnet", "resnet"),
            settings={
                "data": ("image_size", "channels"),
                "augmentation": ("crop", "mirror", "cutout", "mixup"),
                "training": ("batch_images", "label_smoothing", "class_weights"),
            },
            defaults={
                "training": {
                    **_ADAMW,
                    **_MUON,
                    "learning_rate": 0.002,
                    "weight_decay": 0.05,
                    "best_by": "accuracy",
                },
                "runtime": {"workers": 2},
            },
            end=_BY_EPOCHS,
            options={
                "predict": frozenset({"top"}),
                "evaluate": _ROWS | {"output", "picture", "blocks"},
                "compare": _ROWS,
            },
        ),
        TaskSpec(
            name="caption",
            about="image captioning: a sentence for each image",
            home="regard.tasks.images.captioning:CaptioningTask",
            run="Captioner",
            example="photo.jpg",
            reads="captions",
            files="tables (CSV, TSV, JSONL, Parquet) with an image and a caption column, several captions per image",
            unit="images",
            metrics=("loss", "perplexity", "bleu", "chrf"),
            sample_labels=("image", "expected", "output"),
            generates=True,
            families=("captioner",),
            settings={
                "data": ("image", "text", "split_column", "max_length", "image_size", "channels"),
                "tokenizer": _TOKENIZER,
                "augmentation": ("crop", "mirror", "cutout"),
                "training": ("batch_images", "label_smoothing"),
                "decoding": _DECODING,
            },
            defaults={
                "training": {**_MUON, "learning_rate": 0.002, "batch_images": 32},
                "runtime": {"workers": 2},
            },
            end=_BY_EPOCHS,
            options={
                "evaluate": _ROWS | _TEXT_METRICS | {"output"},
                "compare": _ROWS | _TEXT_METRICS,
            },
        ),
    )
}

# The keys that some tasks read and others do not, by table; every other key applies to all.
SPECIFIC: Mapping[str, frozenset[str]] = {
    table: frozenset(key for spec in TASKS.values() for key in spec.settings.get(table, ()))
    for table in ("data", "tokenizer", "corruption", "augmentation", "training", "decoding", "runtime")
}


def wrong_kind(run: object, spec: TaskSpec, wanted: str) -> UsageError:
    """What is said of a run that is of another kind than was asked for."""
    article = "an" if spec.run[0] in "AEIOU" else "a"
    return UsageError(
        f"{run} is {article} {spec.run}, not {wanted}: it was trained for the task '{spec.name}'.",
        f"Use it with: regard {spec.verb} {run}",
    )


def find_spec(name: str) -> TaskSpec:
    """Return the row of the task of this name."""
    if name not in TASKS:
        raise UsageError(f"There is no task '{name}'.", did_you_mean(name, TASKS))
    return TASKS[name]
