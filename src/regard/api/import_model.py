"""Import: a folder of Hugging Face's transformers package, or a GGUF file, becomes an ordinary run of one checkpoint.

What its network is finds `exchange/huggingface.py`, what its tokens are `exchange/tokenizers.py`; of a GGUF file,
`exchange/gguf_file.py` and `exchange/gguf_tokenizer.py`. Here the two are joined to the task that they suit, so that the
run predicts, generates, embeds, is scored and fine-tuned as any other. Nothing is downloaded, and no code of a folder is
run.
"""

import dataclasses
from pathlib import Path
from typing import Any

from regard.api.new_run import with_defaults
from regard.api.run import Run, load
from regard.config import ModelTable, RunConfig, default_config, to_toml
from regard.data.text.tokenizer import Tokenizer
from regard.errors import DataError, UsageError
from regard.exchange.gguf_file import is_gguf, read_gguf
from regard.exchange.gguf_tokenizer import read_gguf_tokenizer
from regard.exchange.huggingface import read_folder
from regard.exchange.image_preprocessing import read_preprocessing, scaling_notes
from regard.exchange.imported_network import CONFIG, ImportedNetwork
from regard.exchange.tokenizers import read_tokenizers
from regard.runs import checkpoints
from regard.runs.disk import disk_errors, write_atomically
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.tasks.imported import image_task, text_task
from regard.tasks.task import UsableTask


def import_model(
    path: str | Path,
    *,
    run: str | Path,
    source_language: str = "",
    target_language: str = "",
    allow_pickle: bool = False,
) -> Run[Any]:
    """Import a folder of the transformers package, or a GGUF file of a Llama-type decoder, as a new run, and load it.

    languages:     of a translator between many, by their codes, such as eng_Latn and deu_Latn
    allow_pickle:  also read weights that torch pickled, where there is no safetensors file
    """
    new = RunFolder.new(run)
    source = Path(path)
    network = read_gguf(source) if is_gguf(source) else read_folder(source, allow_pickle=allow_pickle)
    config = _settings(network)
    if (source_language or target_language) and config.task != "translate":
        raise UsageError(
            f"{source} is no translator: it has no languages to choose from.",
            "Leave --source-language and --target-language out.",
        )
    task, notes = _task(network, config, source_language=source_language, target_language=target_language)
    weights = network.weights()
    with locked(RunFolder.create(new.path)):
        checkpoints.clean(new)
        with disk_errors(new.path, needed=0):
            task.save(new.vocabulary)
        new.write_task({"task": config.task, "files": {}, "imported": _origin(network)})
        checkpoints.write(new, step=0, model=weights, facts={"imported": network.their_class})
        # The config comes last: with it the folder is a run.
        write_atomically(new.config_file, to_toml(config).encode())
    loaded: Run[Any] = load(new.path)
    loaded.notes = (*network.notes, *notes, *loaded.notes)
    return loaded


def _settings(network: ImportedNetwork) -> RunConfig:
    """The settings of the task, with the network's sizes."""
    config = default_config(network.task)
    model = ModelTable(preset=network.preset, fields=network.fields)
    # What a network was trained to read whole is not cut; where it says nothing, as much as any new run reads.
    longest = network.vectors.max_length or network.config.max_length or config.data.max_length
    data = dataclasses.replace(config.data, max_length=longest)
    return with_defaults(dataclasses.replace(config, model=model, data=data))


def _task(
    network: ImportedNetwork, config: RunConfig, *, source_language: str, target_language: str
) -> tuple[UsableTask[Any], tuple[str, ...]]:
    """The task with its vocabulary and labels, and what there is to note about these."""
    fields = network.fields
    if config.task == "image":
        found = read_preprocessing(
            network.folder, size=fields.get("image_size", 0), n_channels=int(fields["n_channels"])
        )
        task = image_task(config, found.size, mean=found.mean, deviation=found.deviation, labels=network.labels)
        return task, scaling_notes(network.folder, size=found.size)
    rows = int(fields["vocab"] if "vocab" in fields else fields["source_vocab"])
    if is_gguf(network.folder):
        tokenizer = read_gguf_tokenizer(network.folder, rows=rows)
        return text_task(config, tokenizer, tokenizer, labels=network.labels), _spare_rows(tokenizer)
    tokens = read_tokenizers(
        network.folder,
        rows=rows,
        source_language=source_language or None,
        target_language=target_language or None,
    )
    if config.task == "mask" and tokens.source.roles.mask is None:
        raise DataError(
            f"{network.folder}: its tokenizer has no mask token, and does not fit the weights: a {network.their_class}"
            " predicts masked words.",
            "Download the tokenizer of this very model.",
        )
    task = text_task(
        config,
        tokens.source,
        tokens.target,
        labels=network.labels,
        pooling=network.vectors.pooling,
        normalised=network.vectors.normalised,
    )
    return task, _spare_rows(tokens.source)


def _spare_rows(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Note rows of the embedding that no token has: many pad it to a round number, but it may be another's tokenizer."""
    rows, n_tokens = tokenizer.vocab_size, tokenizer.n_tokens
    if rows == n_tokens:
        return ()
    return (f"The embedding has {rows:,} rows, and the tokenizer {n_tokens:,} tokens: the other rows are never used.",)


def _origin(network: ImportedNetwork) -> dict[str, Any]:
    """Where a run comes from: the folder or file, the class, and the hash of each file that was read."""
    config = () if is_gguf(network.folder) else (network.folder / CONFIG,)
    files = {*network.tensors.files.values(), *config}
    return {
        "from": str(network.folder.resolve()),
        "class": network.their_class,
        "files": {path.name: checkpoints.sha256(path.resolve()) for path in sorted(files)},
    }
