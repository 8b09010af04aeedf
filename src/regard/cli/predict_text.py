"""What `regard predict` prints for texts: those of the command line, or the lines of standard input."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.cli.lines import Lines, Predictor, Shown, Truncations, listed
from regard.cli.terminal import note
from regard.errors import UsageError
from regard.tasks.spec import TaskSpec

if TYPE_CHECKING:
    from regard.api.process_pool import Chunk
    from regard.tasks.results import Result

Pair = tuple[str, str]  # a text, and a second one that belongs to it, or ""


def predict_lines(predict: Predictor, show: Shown, read: Lines, *, text_b: str) -> Iterator[list[str]]:
    """Yield what is printed for the texts, or for the lines of standard input, some at a time.

    An empty line stays empty; where blanks are filled in, a line of standard input without one stays as it is.
    """
    run = predict.run
    if run.task.tokenizer is None:
        raise UsageError(
            f"{run.reference} was trained on vectors: it reads no text.", "Give a file of vectors: --data FILE.npz"
        )
    truncations = Truncations()
    unmasked: list[int] = []
    for chunk, found in predict(chunks(run.spec, read, text_b, unmasked), stream=read.stream):
        asked: Asked = chunk.context
        results = dict(zip(asked.numbers, found, strict=True))
        for number, result in results.items():
            truncations.add(number, result.truncation)
        yield [
            line
            for number, pair in asked.pairs.items()
            for line in shown(show, number, pair, results.get(number), **asked.facts.get(number, {}))
        ]
    truncations.tell()
    read.tell()
    if unmasked:
        note(f"without a {run.spec.blank}, printed unchanged: {listed(unmasked)}")


@dataclass(frozen=True)
class Asked:
    """What belongs to a chunk: all of its lines by number, those that are predicted, and what JSON says of bad ones."""

    pairs: Mapping[int, Pair]
    numbers: Sequence[int]
    facts: Mapping[int, Mapping[str, str]]


def chunks(spec: TaskSpec, read: Lines, text_b: str, unmasked: list[int]) -> "Iterator[Chunk]":
    """The lines in chunks, with second texts if any has one; the numbers of those without a blank go to `unmasked`."""
    from regard.api.process_pool import Chunk

    texts, done = read.texts, 0
    for lines in read:
        pairs = [(text, text_b) for text in lines] if texts else split_lines(spec, lines, text_b, read, before=done)
        numbered = dict(enumerate(pairs, start=done + 1))
        asked = {number: pair for number, pair in numbered.items() if pair[0].strip()}
        if spec.blank and not texts:
            unmasked += (without := lacking_blank(asked))
            asked = {number: pair for number, pair in asked.items() if number not in without}
        texts_b = tuple(second for _, second in asked.values())
        yield Chunk(
            inputs=[text for text, _ in asked.values()],
            fields={"texts_b": texts_b} if any(texts_b) else {},
            context=Asked(numbered, list(asked), read.facts()),
        )
        done += len(lines)


def shown(show: Shown, number: int, pair: Pair, result: "Result | None", **facts: str) -> list[str]:
    """What is printed for one line: its prediction; where there is none, the line itself. `facts`: what else JSON says."""
    from regard.tasks.results import one_line

    text, text_b = pair
    if result is None and not show.json:
        return [one_line(text.strip())]
    return show(result, line=number, text=text, **({"text_b": text_b} if text_b else {}), **facts)


def split_lines(spec: TaskSpec, lines: Sequence[str], text_b: str, read: Lines, *, before: int) -> list[Pair]:
    """Split lines of standard input at their tab, where a task takes pairs; `before`: how many lines came before them."""
    if text_b or not spec.reads_setting("data", "text_b"):
        return [(line, text_b) for line in lines]
    pairs = []
    for number, line in enumerate(lines, start=before + 1):
        text, *others = line.split("\t")
        if len(others) > 1:
            reason = f"one text expected, or two separated by a tab; found {len(others) + 1} columns"
            text, others = read.bad(number, reason, line, "Give a table as a file: --data FILE.tsv"), []
        pairs.append((text, others[0] if others else ""))
    return pairs


def lacking_blank(pairs: Mapping[int, Pair]) -> list[int]:
    """The numbers of texts without a blank."""
    from regard.tasks.denoising.fill_mask import has_blank

    return [number for number, (text, _) in pairs.items() if not has_blank(text)]
