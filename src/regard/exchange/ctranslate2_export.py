"""Export to CTranslate2: a folder that its Translator, Generator or Encoder loads, with the tokenizers beside it."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.exchange.ctranslate2 import convert, position_limit, token_names
from regard.exchange.exportable import Exportable
from regard.runs.disk import write_synced

CARD = "README.md"
MOST_WRITTEN = 256  # tokens behind a prompt, as many as ours writes where nobody says how many


def write_ctranslate2(
    folder: Path, given: Exportable, *, compute_type: str = "float32", shortlist: bytes = b""
) -> list[str]:
    """Write a run into an empty folder; ConfigError names the setting that has no counterpart in CTranslate2.

    shortlist: which target tokens a source token may become, as a vocabulary map of the library; empty for any
    """
    if given.image is not None or given.source is None or given.target is None:
        reads = "images" if given.image is not None else "sequences of vectors"
        kind = "safetensors" if given.task == "caption" else "onnx"
        raise UsageError(f"CTranslate2 reads text, and this run reads {reads}.", f"Export it with --to {kind}.")
    folder.rmdir()  # which the conversion makes itself, whole or not at all
    convert(
        folder,
        given.config,
        given.weights,
        source=given.source,
        target=given.target,
        compute_type=compute_type,
        vocabulary_map=shortlist,
    )
    for name, text in given.tokenizer_files.items():
        write_synced(folder / name, text.encode())
    code, notes = _code(given, given.source, given.target, shortlist=bool(shortlist)), _notes(given)
    said = "".join(f"\n{note}\n" for note in notes)
    use = f"\n## Use it with CTranslate2\n\n```python\n{code}\n```\n"
    write_synced(folder / CARD, f"{given.card}{use}{said}".encode())
    return notes


def _notes(given: Exportable) -> list[str]:
    if given.task == "translate":
        return ["Each text is read as one sentence: split longer ones first."]
    if given.task in ("language", "denoise", "similarity"):
        return []
    return ["CTranslate2 gives the encoder's states, without the head that predicts: --to onnx has both."]


def _code(given: Exportable, source: Tokenizer, target: Tokenizer, *, shortlist: bool) -> str:
    """The lines of Python that run the folder: tokens go in and come out by name, and a source ends with its end token."""
    reading, writing = (*given.tokenizer_files, *given.tokenizer_files)[:2]
    text = "A dog" if given.task == "language" else "A dog runs."
    lines = [
        "import ctranslate2",
        "from tokenizers import Tokenizer",
        "",
        f'reader = Tokenizer.from_file("{reading}")',
        f'ids = reader.encode("{text}", add_special_tokens=False).ids',
        "tokens = [reader.id_to_token(id) for id in ids]",
    ]
    if given.task in ("translate", "denoise"):
        lines += _translation(given.task, source, target, writing, shortlist=shortlist)
    elif given.task == "language":
        lines += _generation(given, target)
    else:
        names = token_names(source)
        lines += [
            _joined("source", [names[source.start_id]], [names[source.end_id]]),
            'model = ctranslate2.Encoder(".", intra_threads=1)',
            "states = model.forward_batch([source]).last_hidden_state",
            "print(states.shape)  # numpy.array(states) has the numbers",
        ]
    return "\n".join(lines)


def _translation(task: str, source: Tokenizer, target: Tokenizer, writing: str, *, shortlist: bool) -> list[str]:
    blank = source.roles.gaps[:1] if task == "denoise" else ()
    begins = [*target.roles.prefix, *blank]
    options = [
        "beam_size=5",
        f"max_decoding_length=2 * len(source) + {10 + len(begins)}",
        f"suppress_sequences={_never(target, target.unwritten())}",
        *([f"target_prefix=[{begins}]"] if begins else []),
        *["use_vmap=True"] * shortlist,
    ]
    return [
        _joined("source", source.roles.prefix, [*blank, source.roles.end]),
        'model = ctranslate2.Translator(".", intra_threads=1)',
        f"options = dict({', '.join(options)})",
        "[found] = model.translate_batch([source], **options)",
        f'writer = Tokenizer.from_file("{writing}")',
        "print(writer.decode([writer.token_to_id(token) for token in found.hypotheses[0]]))",
    ]


def _generation(given: Exportable, tokenizer: Tokenizer) -> list[str]:
    context = position_limit(given.config) or getattr(given.config, "context", None)
    most = f"min({MOST_WRITTEN}, {context} - len(prompt))" if context else str(MOST_WRITTEN)
    never = _never(tokenizer, tokenizer.unwritten(unknown=True))
    return [
        _joined("prompt", tokenizer.roles.prefix, []),
        'model = ctranslate2.Generator(".", intra_threads=1)',
        f"options = dict(max_length={most}, suppress_sequences={never})",
        "[found] = model.generate_batch([prompt], include_prompt_in_result=False, **options)",
        "print(reader.decode(ids + found.sequences_ids[0]))",
    ]


def _joined(name: str, before: Sequence[str], behind: Sequence[str]) -> str:
    """The line that puts special tokens around a text."""
    return (
        f"{name} = {' + '.join([*[str(list(before))] * bool(before), 'tokens', *[str(list(behind))] * bool(behind)])}"
    )


def _never(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[str]] | None:
    """What is never written, as the library takes it."""
    names = token_names(tokenizer)
    return [[names[id]] for id in ids] or None
