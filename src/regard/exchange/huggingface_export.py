"""Export to Hugging Face: a run as a folder that the transformers package loads, network, tokenizer and model card."""

import json
from pathlib import Path
from typing import Any

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import IMPORTED
from regard.errors import ConfigError
from regard.exchange.exportable import Exportable
from regard.exchange.exported_network import ExportedNetwork
from regard.exchange.huggingface import GENERATION_CONFIG, write_folder
from regard.exchange.image_preprocessing import write_preprocessing
from regard.exchange.imported_network import CONFIG
from regard.exchange.sentence_transformers import SentenceEncoder, write_sentence_encoder
from regard.exchange.tokenizer_files import Family
from regard.exchange.tokenizer_writing import write_tokenizer
from regard.models.captioner import CaptionerConfig
from regard.models.recurrent import RecurrentConfig
from regard.runs.disk import as_json, write_atomically, write_synced

CARD = "README.md"
MOST_WRITTEN = 512  # tokens of an output, where positions do not end before
# By task what reads the text, which decides what stands around it; an encoder reads all others.
_FAMILIES: dict[str, Family] = {
    "translate": "encoder-decoder",
    "denoise": "encoder-decoder",
    "language": "decoder-only",
}
# What model hubs call the tasks, and `transformers.pipeline` those that generate nothing.
_TAGS = {
    "translate": "translation",
    "denoise": "text2text-generation",
    "language": "text-generation",
    "classify": "text-classification",
    "regress": "text-classification",
    "tag": "token-classification",
    "mask": "fill-mask",
    "similarity": "sentence-similarity",
    "image": "image-classification",
}
# Of vocabularies of our own, those in which a space belongs to no token, or is one: a blank hides none.
_SPACE_APART = ("characters", "bytes")


def write_huggingface(folder: Path, given: Exportable) -> list[str]:
    """Write a run into an empty folder; ConfigError names the setting that has no counterpart in transformers."""
    network = _write_network(folder, given)
    if given.source is not None and given.target is not None:
        _write_text(folder, given, network, given.source, given.target)
    if given.task == "regress":  # else a pipeline would show the number between 0 and 1
        _add_settings(folder / CONFIG, problem_type="regression")
    if given.task == "similarity":
        vectors = SentenceEncoder(pooling=given.pooling, normalised=given.normalised, max_length=given.longest)
        sizes = network.config
        write_sentence_encoder(
            folder, vectors, d_model=sizes["hidden_size"], n_positions=sizes["max_position_embeddings"]
        )
    if given.image is not None:
        write_preprocessing(folder, given.image)
    write_synced(folder / CARD, _card(given).encode())
    return _notes(given, network)


def _write_network(folder: Path, given: Exportable) -> ExportedNetwork:
    """Write the weights; what has no counterpart is refused with the kind of export that it has."""
    decoder = isinstance(given.config, CaptionerConfig | RecurrentConfig)
    remedy = f"Export it with --to {'safetensors' if decoder else 'onnx'}, or train a model that has one."
    try:
        return write_folder(
            folder, given.config, given.weights, labels=given.labels, special_ids=_special_ids(given, given.target)
        )
    except ConfigError as error:
        raise ConfigError(error.problem, remedy) from None


def _write_text(
    folder: Path, given: Exportable, network: ExportedNetwork, source: Tokenizer, target: Tokenizer
) -> None:
    """Write the tokenizer, and how text is generated."""
    family = _FAMILIES.get(given.task, "encoder-only")
    longest = given.config.max_length or network.config.get("max_position_embeddings")
    write_tokenizer(folder, source, family=family, target=target, max_length=longest)
    settings = folder / "tokenizer_config.json"
    if family == "encoder-only" and getattr(given.config, "n_segments", 1) > 1:
        _add_settings(settings, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    if given.task in ("mask", "denoise") and source.kind != IMPORTED:
        _add_settings(settings, split_special_tokens=False)  # blanks are written as tokens into a text
        _hide_spaces(folder / "tokenizer.json", source)
    if given.task in _FAMILIES:
        generation = _generation(given, target, longest)
        write_synced(folder / GENERATION_CONFIG, as_json(generation, indent=2) + b"\n")


def _special_ids(given: Exportable, target: Tokenizer | None) -> dict[str, int]:
    """The ids that a config.json names, by what reads the text."""
    if target is None:
        return {}
    ids = {"pad": target.pad_id}
    if given.task == "language":
        pad = {} if target.roles.pad is None else ids  # else read again, the end token would be named as padding
        return {**pad, "bos": target.opening[0], "eos": target.end_id}
    if given.task in _FAMILIES:
        return {**ids, "bos": target.start_id, "eos": target.end_id, "decoder_start": target.start_id}
    return ids


def _generation(given: Exportable, target: Tokenizer, longest: int | None) -> dict[str, Any]:
    """How text is generated by default: as here, greedily, with what begins every output and what is never written."""
    begins = target.gap_ids[:1] if given.task == "denoise" else target.prefix if given.task == "translate" else ()
    never = {*target.unwritten(unknown=given.task == "language"), *range(target.n_tokens, target.vocab_size)}
    most = longest or MOST_WRITTEN
    return {
        "max_length": most if given.task == "language" else min(most, MOST_WRITTEN),
        **{f"{name}_token_id": id for name, id in _special_ids(given, target).items()},
        **({"forced_bos_token_id": begins[0]} if begins else {}),
        **({"suppress_tokens": sorted(never)} if never else {}),
    }


def _add_settings(path: Path, **settings: Any) -> None:
    """Add settings to a JSON file."""
    table = json.loads(path.read_text(encoding="utf-8"))
    write_atomically(path, as_json({**table, **settings}, indent=2) + b"\n")


def _hide_spaces(path: Path, tokenizer: Tokenizer) -> None:
    """Let a token that stands for a blank hide the space in front of it, as it does here.

    Where each text gets a space in front, transformers gives one also to what stands behind a blank: it replaces that
    which is there.
    """
    if tokenizer.kind in _SPACE_APART:
        return
    blanks = {tokenizer.roles.mask, *tokenizer.roles.gaps}
    tokens = json.loads(path.read_text(encoding="utf-8"))["added_tokens"]
    hidden = {"lstrip": True, "rstrip": tokenizer.spaced}
    _add_settings(path, added_tokens=[{**one, **(hidden if one["content"] in blanks else {})} for one in tokens])


def _card(given: Exportable) -> str:
    """The run's card between the table that model hubs read and the code that runs the folder."""
    table = ["---", "library_name: transformers", f"pipeline_tag: {_TAGS[given.task]}", "tags:", "- regard", "---"]
    return "\n".join([*table, "", given.card, "## Use it with transformers", "", "```python", _code(given), "```", ""])


def _code(given: Exportable) -> str:
    example = _example(given)
    if given.task in _FAMILIES:
        kind = "AutoModelForCausalLM" if given.task == "language" else "AutoModelForSeq2SeqLM"
        lines = [
            f"from transformers import {kind}, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained(".")',
            f'model = {kind}.from_pretrained(".")',
            f'inputs = tokenizer({example}, return_tensors="pt")',
            "print(tokenizer.decode(model.generate(**inputs)[0], skip_special_tokens=True))",
        ]
    elif given.task == "similarity":
        lines = [
            "from transformers import AutoModel, AutoTokenizer",
            "",
            f'inputs = AutoTokenizer.from_pretrained(".")({example}, return_tensors="pt")',
            'states = AutoModel.from_pretrained(".")(**inputs).last_hidden_state',
            f"vector = {'states[0, 0]' if given.pooling == 'class' else 'states[0].mean(0)'}",
            f"print({'vector / vector.norm()' if given.normalised else 'vector'})  # as sentence-transformers has it, too",
        ]
    elif given.image is not None:
        mode, edges = "RGB" if len(given.image.mean) == 3 else "L", (given.image.size, given.image.size)
        lines = [
            "from PIL import Image",
            "from transformers import pipeline",
            "",
            f'image = Image.new("{mode}", {edges})  # or Image.open(FILE)',
            f'print(pipeline("{_TAGS[given.task]}", ".")(image))',
        ]
    else:
        lines = ["from transformers import pipeline", "", f'print(pipeline("{_TAGS[given.task]}", ".")({example}))']
    return "\n".join(lines)


def _example(given: Exportable) -> str:
    """What the code reads, with a blank where there must be one."""
    roles = given.source.roles if given.source is not None else None
    if roles is not None and given.task == "mask":
        return f'"A {roles.mask} runs."'
    if roles is not None and given.task == "denoise":
        return f'"A dog runs. {roles.gaps[0]}"'
    return '"A dog"' if given.task == "language" else '"A dog runs."'


def _notes(given: Exportable, network: ExportedNetwork) -> list[str]:
    notes = [f"Written as {network.their_class}."]
    if getattr(given.config, "positions", "") == "sinusoidal":
        notes.append(f"Sinusoids are written as a table of {network.config['max_position_embeddings']:,} positions.")
    if given.task in ("mask", "denoise") and given.source is not None and given.source.spaced:
        notes.append("transformers reads a space between a blank and a punctuation mark right behind it.")
    return notes
