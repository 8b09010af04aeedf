"""A network in a folder of Hugging Face's transformers (config.json and safetensors): read as ours, and ours written so.

    their config ── architectures ── our config ── rules on shapes ── checked against the file ── our weights
    our config, our weights ── architectures, the same rules backwards ── their config, their tensors

Nothing is downloaded, no code of a folder is run, and nothing large is read before names and shapes were found to fit.
Tokenizers and run folders are not this file's.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor

from regard.errors import DataError, RegardError, UsageError
from regard.exchange.architecture import Source, SpecialIds
from regard.exchange.architectures import find_architecture
from regard.exchange.exported_network import ExportedNetwork, export_network
from regard.exchange.imported_network import CONFIG, REMEDY, ImportedNetwork, Tensors, canonical_names, check_tensors
from regard.exchange.pickled_weights import load_pickled, pickled_files
from regard.exchange.sentence_transformers import read_sentence_encoder
from regard.exchange.tensor_files import WEIGHTS, find_file, find_weights, read_table
from regard.exchange.their_config import TheirConfig
from regard.models.model_config import ModelConfig
from regard.runs import tensors as tensor_file
from regard.runs.disk import write_synced

GENERATION_CONFIG = "generation_config.json"
_DOWNLOAD = (
    "Download the model first, and give its folder, with config.json, model.safetensors and the tokenizer's files."
)
_CLASS_TOKEN = (
    "A text's vector is the state of its class token; fine-tuned on similarity, it is the mean of all states."
)


def read_folder(folder: Path, *, allow_pickle: bool = False) -> ImportedNetwork:
    """Read the network of a folder; DataError where it has no counterpart here, or its files do not fit each other.

    allow_pickle: also read weights that torch pickled (`.bin`), where there is no safetensors file.
    """
    config = _read_config(folder)
    architecture, name = find_architecture(config)
    tensors = _find_tensors(folder, pickled=allow_pickle)
    names = canonical_names(architecture, tensors)
    vectors = read_sentence_encoder(folder)
    with _config_errors(folder):
        network = architecture.read(Source(name=name, config=config, tensors=names))
        rules = architecture.rules(network.config, {key: ids[0] for key, ids in config.special_ids.items() if ids})
        notes = check_tensors(rules, network, names, tensors, name=name, folder=folder)
    return ImportedNetwork(
        folder=folder,
        kind=architecture.kind,
        their_class=name,
        preset=network.preset,
        config=network.config,
        task=network.task,
        labels=network.labels,
        special_ids={**_generation_ids(folder), **config.special_ids},
        notes=(*network.notes, *notes, *([_CLASS_TOKEN] if vectors.pooling == "class" else [])),
        rules=tuple(rules),
        names=names,
        tensors=tensors,
        vectors=vectors,
    )


@contextmanager
def _config_errors(folder: Path) -> Iterator[None]:
    """Name the file in what is refused of sizes, and send nobody to a run file, which there is none of."""
    try:
        yield
    except RegardError as error:
        named = any(str(one) in error.problem for one in (folder, folder.resolve()))
        problem = error.problem if named else f"{folder / CONFIG}: {error.problem}"
        raise DataError(problem, REMEDY if isinstance(error, UsageError) else error.remedy) from None


def _read_config(folder: Path) -> TheirConfig:
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}, and regard downloads nothing.", _DOWNLOAD)
    path = find_file(folder, CONFIG)
    if path is None:
        raise DataError(f"{folder} is no folder of the transformers package: there is no {CONFIG} in it.", _DOWNLOAD)
    config = TheirConfig(read_table(path), str(folder / CONFIG))
    if config.values.get("auto_map"):
        raise DataError(
            f"{config.origin} needs code that comes with the model (auto_map), and regard runs none.",
            "Choose a model of an architecture that regard has.",
        )
    if config.values.get("quantization_config"):
        raise DataError(
            f"{config.origin}: the weights are quantised (quantization_config).",
            "Choose a model that is not quantised.",
        )
    return config


def _generation_ids(folder: Path) -> dict[str, tuple[int, ...]]:
    """The special tokens that newer folders name in a file of their own."""
    path = find_file(folder, GENERATION_CONFIG)
    return {} if path is None else TheirConfig(read_table(path), str(folder / GENERATION_CONFIG)).special_ids


def _find_tensors(folder: Path, *, pickled: bool) -> Tensors:
    found = find_weights(folder)
    if found is not None:
        return found
    files = pickled_files(folder)
    if files and pickled:
        return load_pickled(files)
    raise DataError(
        f"{folder} holds no {WEIGHTS}, and regard downloads nothing.",
        f"Convert {files[0].name} to safetensors, or allow pickled weights (--allow-pickle) if you trust its source."
        if files
        else "Download the weights into the folder, too.",
    )


def write_folder(
    folder: Path,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    *,
    labels: Sequence[str] = (),
    special_ids: SpecialIds | None = None,
) -> ExportedNetwork:
    """Write a network of ours as a folder that the transformers package loads; what is there already is not replaced."""
    theirs = export_network(config, weights, labels=labels, special_ids=special_ids)
    for name in (CONFIG, WEIGHTS):
        if (folder / name).exists():
            raise UsageError(f"{folder} already holds a {name}.", "Give a new folder.")
    content = json.dumps(theirs.config, indent=2, sort_keys=True, ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # As their package marks files whose layout is torch's; without it, it refuses them.
        tensor_file.save(folder / WEIGHTS, theirs.tensors, metadata={"format": "pt"})
        write_synced(folder / CONFIG, f"{content}\n".encode())  # last: a folder without it is no model
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{folder} cannot be written: {reason}.", "Give another folder, or free some space.") from None
    return theirs
