"""GGUF: a Llama-type decoder in a file of llama.cpp, read as the folder of the same network would be.

    metadata ── config.json's words ── our config ── rules on shapes ── checked against the file ── weights, dequantised

The `gguf` package dequantises; the file itself is never believed, and nothing large is read before names, shapes and places
of all tensors were found to fit. The tokenizer inside is read in `gguf_tokenizer.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import DataError, MissingExtraError, RegardError, UsageError
from regard.exchange.architecture import Source
from regard.exchange.architectures.llama import LLAMA
from regard.exchange.gguf_config import (
    CLASSES,
    ROTARY_FACTORS,
    find_gguf_architecture,
    rotary_settings,
    stored_rules,
    their_settings,
)
from regard.exchange.gguf_header import SUFFIX, read_gguf_header
from regard.exchange.gguf_tensors import GgufTensors, find_gguf_tensors
from regard.exchange.imported_network import CONFIG, ImportedNetwork, check_tensors
from regard.exchange.their_config import TheirConfig

REMEDY = "Download it again, or another conversion of the same model."


def is_gguf(path: Path) -> bool:
    """Say whether a path is to be read as a GGUF file and not as a folder."""
    return path.suffix.lower() == SUFFIX or path.is_file()


def read_gguf(path: Path) -> ImportedNetwork:
    """Read the network of a file; DataError where it has no counterpart here, or its parts do not fit each other."""
    header = read_gguf_header(path)
    metadata = TheirConfig(header.metadata, str(path))
    with gguf_errors(path):
        architecture = find_gguf_architecture(metadata)
        tensors = find_gguf_tensors(path, header)
        settings = their_settings(metadata, architecture, tensors.stored)
        factors = _rotary_factors(tensors, settings)
        settings |= rotary_settings(metadata, architecture, base=settings["rope_theta"], factors=factors)
        config = TheirConfig(settings, str(path))
        name = CLASSES[architecture]
        network = LLAMA.read(Source(name=name, config=config, tensors=tensors.stored))
        rules = stored_rules(LLAMA.rules(network.config, {}), architecture)
        names = {one: one for one in tensors.stored if one != ROTARY_FACTORS}
        notes = check_tensors(rules, network, names, tensors, name=name, folder=path)
    return ImportedNetwork(
        folder=path,
        kind=LLAMA.kind,
        their_class=name,
        preset=network.preset,
        config=network.config,
        task=network.task,
        labels=network.labels,
        special_ids=config.special_ids,
        notes=(*network.notes, *notes, *_quantised(tensors)),
        rules=tuple(rules),
        names=names,
        tensors=tensors,
    )


def _rotary_factors(tensors: GgufTensors, settings: dict[str, Any]) -> Tensor | None:
    """By what rotary angles are divided, where the file holds that; a head has one angle for two of its features."""
    if ROTARY_FACTORS not in tensors.stored:
        return None
    found, expected = tensors.shapes[ROTARY_FACTORS], (settings["head_dim"] // 2,)
    if found != expected or not expected[0]:
        raise DataError(
            f"{tensors.path}: {ROTARY_FACTORS} has the shape {list(found)}, and by its metadata it must have "
            f"{list(expected)}.",
            REMEDY,
        )
    with tensors.reading() as read:
        return read(ROTARY_FACTORS)


def _quantised(tensors: GgufTensors) -> tuple[str, ...]:
    kinds = ", ".join(tensors.quantised)
    return (f"the weights were quantised ({kinds}), and are now what was left of them in float32",) if kinds else ()


@contextmanager
def gguf_errors(path: Path) -> Iterator[None]:
    """Name the file in what is refused, and speak of its metadata where a folder has a config.json."""
    try:
        yield
    except MissingExtraError:
        raise
    except RegardError as error:
        problem, remedy = error.problem.replace(f"its {CONFIG}", CONFIG).replace(CONFIG, "its metadata"), error.remedy
        named = problem if str(path) in problem else f"{path}: {problem}"
        fits = remedy and CONFIG not in remedy and not isinstance(error, UsageError)  # which speaks of a run file
        raise DataError(named, remedy if fits else REMEDY) from None
