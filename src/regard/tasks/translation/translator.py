"""From lines to translations: split to fit, searched for, joined; word alignments are in `alignment.py`.

One `LineTranslator` serves one call. The loss and the scores are the task's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.sentence_splitting import split_to_fit
from regard.decoding.ensemble import Ensemble
from regard.decoding.result import Decoded
from regard.decoding.rules import ForcedPrefix, Rule
from regard.errors import UsageError
from regard.evaluation.alignment import Link, as_pharaoh
from regard.tasks.batches import padded
from regard.tasks.generation import Generator, Output, in_batches, longest_output
from regard.tasks.offers import device_of
from regard.tasks.options import GenerationOptions
from regard.tasks.results import Result, one_line
from regard.tasks.translation.alignment import check_alignable, cross_attentions, link_words


@dataclass(frozen=True, kw_only=True)
class TranslationOptions(GenerationOptions):
    """How a translator is used.

    prefixes:   a beginning for each translation, empty where it is free
    align:      say from which source words each word was read
    ensemble:   further models that vote on every token
    metrics, tokenize, lowercase:  how translations are scored: see `regard.evaluation.generated_text`
    by_length:  score each range of source lengths apart, too
    """

    prefixes: tuple[str, ...] = ()
    align: bool = False
    ensemble: tuple[Any, ...] = ()
    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")
    tokenize: str = "13a"
    lowercase: bool = False
    by_length: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class Translation(Result):
    """What became of a line: its outputs, best first, and how many parts it was translated in."""

    source: str
    outputs: tuple[Output, ...]
    n_parts: int = 1

    @property
    def text(self) -> str:
        """The best translation."""
        return self.outputs[0].text

    @property
    def score(self) -> float:
        """The score of the best translation."""
        return self.outputs[0].score

    @property
    def truncation(self) -> str:
        return "translated in parts" if self.n_parts > 1 else ""

    def lines(self, *, top: int = 0) -> list[str]:
        several = top > 1 or len(self.outputs) > 1
        lines = []
        for output in self.outputs:
            columns = [f"{output.score:.4f}"] * several + [one_line(output.text)]
            lines.append("\t".join(columns if output.alignment is None else [*columns, as_pharaoh(output.alignment)]))
        return lines

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"source": self.source, "translation": self.text, "score": self.score}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        translations = [output.to_json() for output in self.outputs]
        return {"source": self.source, "parts": self.n_parts, "translations": translations}


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """What is translated at once: a line, or a piece of one that is too long.

    line: the line's number, from 0; source: with the end token; prefix: what the translation begins with.
    """

    line: int
    text: str
    source: list[int]
    prefix: list[int]


class LineTranslator:
    """Translates with one model or an ensemble, under the rules of one call; max_length: of a source, in tokens."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        models: Sequence[Any],
        decoding: DecodingConfig,
        options: TranslationOptions,
        *,
        max_length: int,
    ) -> None:
        self.vocabulary = vocabulary
        self.models = models
        self.options = options
        self.generator = Generator(
            vocabulary.target,
            models[0] if len(models) == 1 else Ensemble(models),
            decoding,
            device=device_of(models[0]),
            banned=options.banned,
            seed=options.seed,
        )
        self.model_limit = longest_output(models)
        self.source_limit = min(self.model_limit, max_length)

    def translate(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> list[Translation]:
        """Translate lines, whatever their number and length; in order.

        A line too long for the model is cut into sentences, which are translated and joined. An empty line stays empty.
        Limits of length count from the end of a forced beginning.
        """
        prefixes = self.options.prefixes
        if prefixes and len(prefixes) != len(texts):
            raise UsageError(
                f"There are {len(texts):,} lines and {len(prefixes):,} beginnings for their translations.",
                "Give one for each line, empty where the translation is free.",
            )
        if self.options.align:
            check_alignable(self.models[0])
        parts = self._parts(texts, prefixes)
        found = in_batches(
            [len(part.source) for part in parts],
            lambda numbers: self._translate([parts[number] for number in numbers], numbers),
            batch_size=self.generator.decoding.batch_size,
            name=lambda number: f"The line '{excerpt(parts[number].text)}'",
            progress=progress,
        )
        numbers_of: list[list[int]] = [[] for _ in texts]
        for number, part in enumerate(parts):
            numbers_of[part.line].append(number)
        return [
            self._joined(text, [parts[number].text for number in own], [found[number] for number in own])
            for text, own in zip(texts, numbers_of, strict=True)
        ]

    def _parts(self, texts: Sequence[str], prefixes: Sequence[str]) -> list[_Segment]:
        """Cut lines to fit and encode them. Of a line in several parts, only the first has the beginning."""
        begun = [self._beginning(line, prefix) for line, prefix in enumerate(prefixes)]
        cut = [(line, n, part) for line, text in enumerate(texts) for n, part in enumerate(self._fitting(text))]
        sources = self.vocabulary.source.encode_batch([text for _, _, text in cut])
        return [
            _Segment(
                line=line,
                text=text,
                source=[*ids, self.vocabulary.source.end_id],
                prefix=begun[line] if begun and n == 0 else [],
            )
            for (line, n, text), ids in zip(cut, sources, strict=True)
        ]

    def _fitting(self, text: str) -> list[str]:
        """The parts of a line that the model can take: none for an empty one."""
        if not text.strip():
            return []
        return split_to_fit(text, lambda part: len(self.vocabulary.source.encode(part)) <= self.source_limit)

    def _beginning(self, line: int, prefix: str) -> list[int]:
        """Encode what a translation must begin with; the end token at least must have a place behind it."""
        ids = self.vocabulary.target.encode(prefix) if prefix else []
        longest = self.model_limit - 1
        if len(ids) > longest:
            raise UsageError(
                f"With the model's positions a beginning has at most {longest:,} tokens,"
                f" but that of line {line + 1:,} has {len(ids):,}.",
                "Shorten it.",
            )
        return ids

    def _translate(self, parts: list[_Segment], numbers: list[int]) -> list[tuple[Output, ...]]:
        """Translate a batch of parts; sampling is seeded by their numbers."""
        decoded = self._decode(parts, numbers)
        outputs = [tuple(map(self.generator.output, one.hypotheses)) for one in decoded]
        return self._aligned(parts, outputs) if self.options.align else outputs

    def _decode(self, parts: list[_Segment], numbers: list[int]) -> list[Decoded]:
        ids, lengths = padded([part.source for part in parts], self.vocabulary.source.pad_id, self.generator.device)
        inputs: Any = (ids, lengths) if len(self.models) == 1 else [(ids, lengths)] * len(self.models)
        longest = self.generator.decoding.max_length
        limits = torch.full_like(lengths, longest) if longest else lengths * 2 + 10
        prefixes = [part.prefix for part in parts]
        limits += torch.tensor([len(prefix) for prefix in prefixes], device=ids.device)
        rules: list[Rule] = [ForcedPrefix(prefixes)] if any(prefixes) else []
        return self.generator.decode(inputs, limits.clamp(max=self.model_limit), rules=rules, keys=numbers)

    def _aligned(self, parts: list[_Segment], outputs: list[tuple[Output, ...]]) -> list[tuple[Output, ...]]:
        """The outputs with the links between their words and the source's, by the first model's cross-attention.

        The best of all parts are read together, then the second best: so no batch is larger than that of the search.
        """
        aligned: list[list[Output]] = [[] for _ in parts]
        for rank in range(max(map(len, outputs))):
            having = [number for number, own in enumerate(outputs) if rank < len(own)]
            written = [outputs[number][rank] for number in having]
            sources = [parts[number].source for number in having]
            weights = cross_attentions(self.models[0], self.vocabulary, sources, [one.ids for one in written])
            for number, output, own in zip(having, written, weights, strict=True):
                links = link_words(self.vocabulary, parts[number].text, output.ids, own)
                aligned[number].append(replace(output, alignment=tuple(links)))
        return list(map(tuple, aligned))

    def _joined(self, text: str, parts: list[str], found: list[tuple[Output, ...]]) -> Translation:
        """Join the translations of a line's parts; with several parts, the n-th best of each make the n-th best."""
        if not parts:
            nothing = Output(text="", score=0.0, ids=(), tokens=(), log_probs=(), alignment=self._no_links)
            return Translation(source=text, outputs=(nothing,))
        if len(parts) == 1:
            return Translation(source=text, outputs=found[0])
        first_words = _first_words(text, parts)
        outputs = tuple(self._concatenated(row, first_words) for row in zip(*found, strict=False))
        return Translation(source=text, outputs=outputs, n_parts=len(parts))

    @property
    def _no_links(self) -> tuple[Link, ...] | None:
        return () if self.options.align else None

    def _concatenated(self, row: tuple[Output, ...], first_words: list[int]) -> Output:
        """Put an output of each part together; `first_words` says which word of the line each part begins with."""
        links: list[Link] = []
        n_written = 0
        for part, n_read in zip(row, first_words, strict=True):
            links += [
                Link(source=link.source + n_read, target=link.target + n_written, score=link.score)
                for link in part.alignment or ()
            ]
            n_written += len(part.text.split())
        return Output(
            text=" ".join(part.text for part in row),
            score=sum(part.score for part in row) / len(row),
            ids=tuple(id for part in row for id in part.ids),
            tokens=tuple(token for part in row for token in part.tokens),
            log_probs=tuple(value for part in row for value in part.log_probs),
            finished=all(part.finished for part in row),
            alignment=tuple(sorted(links)) if self.options.align else None,
        )


def _first_words(text: str, parts: list[str]) -> list[int]:
    """Return the number of the word in which each part begins; the parts are pieces of the text in order."""
    numbers, end = [], 0
    for part in parts:
        start = text.index(part, end)
        numbers.append(len(text[: start + 1].split()) - 1)
        end = start + len(part)
    return numbers
