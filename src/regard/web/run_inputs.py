"""Inputs of a run as a page gives them: what it takes, examples to begin with, images from a browser, recorded probes."""

import base64
import binascii
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError, RegardError, UsageError
from regard.inspection.probe_folder import read_examples, recorded_steps, trace_files
from regard.inspection.trace import Trace
from regard.inspection.trace_file import load_trace
from regard.runs.folder import RunFolder

N_EXAMPLES = 6
MOST_VALID_BYTES = 4_000_000  # of validation files that are read for examples


@dataclass(frozen=True, kw_only=True, eq=False)
class InputExample:
    """An input that lies at hand; `text` is empty where it is none, as of an image."""

    title: str
    input: Any
    text: str = ""
    text_b: str = ""
    expected: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "text": self.text, "text_b": self.text_b, "expected": self.expected}


def accepted_input(run: Any) -> str:
    """What a run takes: text, pair (of texts), image or vectors."""
    if run.spec.reads_images:
        return "image"
    table = getattr(run.task, "table", None)
    if getattr(table, "n_features", 0):
        return "vectors"
    return "pair" if getattr(table, "pairs", False) else "text"


def examples_of(folder: RunFolder, run: Any, *, given: str = "") -> list[InputExample]:
    """The probe examples of a run; where it has none, a few of its validation data, if that is still there and small.

    given: the name of an image file, which comes first, of a run that reads images
    """
    first = [_image(given, run)] if given and run.spec.reads_images else []
    return [*first, *_found_examples(folder, run)]


def _image(file: str, run: Any) -> InputExample:
    return InputExample(title=Path(file).name, input=run.task.table.decode(file))


def _found_examples(folder: RunFolder, run: Any) -> list[InputExample]:
    with suppress(ValueError):
        if found := read_examples(folder):
            return [_example(one) for one in found]
    files = validation_files(run)
    with suppress(RegardError, OSError, ValueError):
        if files and sum(Path(file).stat().st_size for file in files if Path(file).is_file()) <= MOST_VALID_BYTES:
            examples = run.task.read(files, run.options({}))
            return [_example(one) for one in run.task.probes(examples, N_EXAMPLES)]
    return []


def validation_files(run: Any) -> list[str]:
    """The validation data that a run was trained with, if all of its files are still there."""
    files = [str(file) for file in run.config.data.valid]
    return files if all(Path(file).exists() for file in files) else []


def _example(found: Any) -> InputExample:
    given = found.input
    text = given if isinstance(given, str) else " ".join(given) if isinstance(given, Sequence) else ""
    return InputExample(title=found.title, input=given, text=text, text_b=found.text_b, expected=found.expected)


def image_from(encoded: str, run: Any) -> Any:
    """The pixels of an image file in base64, decoded by the task's own reader, which is bounded."""
    try:
        content = base64.b64decode(encoded.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        raise DataError("The image is not base64.", "Send the bytes of an image file in base64.") from None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "image"
        file.write_bytes(content)
        try:
            return run.task.table.decode(str(file))
        except RegardError as error:
            problem = error.problem.replace(str(file), "The image")
            raise DataError(problem, "Send a PNG or JPEG file.") from None


def probe_input(folder: RunFolder, step: int, probe: int) -> Trace:
    """The trace of a probe example at a recorded step; no other file is read, since a slider asks for many."""
    steps = recorded_steps(folder)
    if step not in steps:
        recorded = ", ".join(map(str, steps)) or "none"
        raise UsageError(f"Step {step:,} was not recorded in {folder}.", f"Recorded steps: {recorded}.")
    files = trace_files(steps[step])
    if probe not in files:
        raise UsageError(
            f"There is no trace of probe example {probe} at step {step:,}.", "They count from 0; a damaged one is gone."
        )
    return load_trace(files[probe])


def tokenizer_of(run: Any) -> Any:
    """What makes tokens of a run's inputs; refuse a run without any."""
    tokenizer = run.task.vocabulary.source if run.spec.name == "translate" else getattr(run.task, "tokenizer", None)
    if tokenizer is None or run.spec.reads_images:
        raise UsageError(f"{run.reference} reads no text, and has no tokens.", "Name a run over text.")
    return tokenizer
