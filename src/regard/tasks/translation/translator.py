"""From lines to translations: split to fit, searched for, joined; word alignments are in `alignment.py`.

One `LineTranslator` serves one call. The loss and the scores are the task's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.encoded_texts import EncodedTexts
from regard.data.text.sentence_splitting import Span, count_sentences, separator, split_to_fit
from regard.decoding.engine.translation_engine import SourceSentence, TranslationEngine
from regard.decoding.ensemble import Ensemble
from regard.decoding.result import Decoded, Hypothesis
from regard.decoding.rules import ForcedPrefix, Rule
from regard.errors import UsageError
from regard.evaluation.alignment import Link, as_pharaoh
from regard.tasks.batches import padded
from regard.tasks.generation import Generator, Output, in_batches, longest_output
from regard.tasks.options import Count, GenerationOptions
from regard.tasks.reading import Reading, decoder_reading, read_positions
from regard.tasks.results import Result, one_line
from regard.tasks.translation.alignment import check_alignable, cross_attentions, link_words, words_of_ids
from regard.tasks.translation.examples import source_row
from regard.tasks.translation.lengths import UsualSource


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


@dataclass(frozen=True, kw_only=True)
class TranslatedPart:
    """What a part of a text became; finished: whether the model ended it, else the limit of length cut it off."""

    source: str
    text: str
    finished: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class Translation(Result):
    """What became of a text: its outputs, best first, and the parts of it that were translated one by one.

    parts: of each output, what each part became; empty where the text was translated as one
    """

    source: str
    outputs: tuple[Output, ...]
    parts: tuple[tuple[TranslatedPart, ...], ...] = ()

    @property
    def n_parts(self) -> int:
        """In how many parts the text was translated."""
        return len(self.parts[0]) if self.parts else 1

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
        n_lines = sum(bool(line.strip()) for line in self.source.splitlines())
        return "translated in parts" if self.n_parts > max(1, n_lines) else ""

    def lines(self, *, top: int = 0) -> list[str]:
        several = top > 1 or len(self.outputs) > 1
        if not several and self.outputs[0].alignment is None:
            return _indented_lines(self.text, n_lines=self.source.count("\n") + 1)
        lines = []
        for output in self.outputs:
            columns = [f"{output.score:.4f}"] * several + [one_line(output.text)]
            lines.append("\t".join(columns if output.alignment is None else [*columns, as_pharaoh(output.alignment)]))
        return lines

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"source": self.source, "translation": self.text, "score": self.score}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        translations = [output.to_json() for output in self.outputs]
        for translation, parts in zip(translations, self.parts, strict=False):
            translation["parts"] = [vars(part) for part in parts]
        return {"source": self.source, "parts": self.n_parts, "translations": translations}


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """What is translated at once: a line, or a piece of one that is too long.

    line, number, span: the number of its text, its own in that, both from 0, and where it stands there
    source, prefix:     its tokens with the end token, and what the translation begins with
    """

    line: int
    number: int
    span: Span
    text: str
    source: list[int]
    prefix: list[int]


class LineTranslator:
    """Translates with one model or an ensemble, under the rules of one call.

    max_length: of a source, in tokens
    usual:      as many tokens and sentences of a line are translated at once
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        models: Sequence[Any],
        decoding: DecodingConfig,
        options: TranslationOptions,
        *,
        max_length: int,
        usual: UsualSource | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.models = models
        self.options = options
        decoder = models[0] if len(models) == 1 else Ensemble(models)
        self.generator = Generator(vocabulary.target, decoder, decoding, options, network=models[0])
        longest = longest_output(models)
        self.model_limit = longest - len(vocabulary.target.prefix)
        self.source_limit = min(longest - len(vocabulary.source.prefix), max_length)
        self.usual = usual or UsualSource()

    def translate(self, texts: Sequence[str], *, progress: Count | None = None) -> list[Translation]:
        """Translate lines, whatever their number and length; in order.

        A line too long for the model is cut into sentences, which are translated and joined, as are the lines of a text of
        several; white space around them stays. An empty text stays empty. Limits of length count from the end of a forced
        beginning.
        """
        prefixes = self.options.prefixes
        if prefixes and len(prefixes) != len(texts):
            raise UsageError(
                f"There are {len(texts):,} lines and {len(prefixes):,} beginnings for their translations.",
                "Give one for each line, empty where the translation is free.",
            )
        if self.options.align:
            check_alignable(self.models[0])
        parts = self._segments(texts, prefixes)
        found = self._by_engine(parts, progress)
        if left := [number for number, one in enumerate(found) if one is None]:
            searched = in_batches(
                [len(parts[number].source) for number in left],
                lambda numbers: self._translate([parts[left[number]] for number in numbers]),
                batch_size=self.generator.decoding.batch_size,
                name=lambda number: f"The line '{excerpt(parts[left[number]].text)}'",
                progress=progress,
            )
            for number, outputs in zip(left, searched, strict=True):
                found[number] = outputs
        numbers_of: list[list[int]] = [[] for _ in texts]
        for number, part in enumerate(parts):
            numbers_of[part.line].append(number)
        return [
            self._joined(text, [parts[number] for number in own], [found[number] for number in own])
            for text, own in zip(texts, numbers_of, strict=True)
        ]

    def reading(self, text: str, output: Output) -> Reading:
        """A text of one part, and what was written of it, to look into; the first model's."""
        parts = self._segments([text], self.options.prefixes)
        if not parts:
            raise UsageError("An empty text has nothing to look into.", "Give a sentence.")
        [part] = parts
        model, source = self.models[0], part.source
        ids, lengths = padded([source], self.vocabulary.source.pad_id, self.generator.device)
        read = read_positions(self.vocabulary.source, source, part.text, name="source")
        return decoder_reading(
            model,
            self.generator,
            output.written(self.vocabulary.target),
            forward=lambda target: model(ids, lengths, target),
            inputs=(ids, lengths),
            limit=self._limit(part),
            result=lambda decoded: self._joined(text, [part], self._outputs([part], [decoded])),
            source=(("source_embedding", read), ("encoder", read)),
            memory=read,
            searched=[(ids, lengths)] * len(self.models) if len(self.models) > 1 else None,
            rules=[ForcedPrefix([part.prefix])] if part.prefix else [],
            words=words_of_ids(self.vocabulary.target, output.ids),
        )

    def _segments(self, texts: Sequence[str], prefixes: Sequence[str]) -> list[_Segment]:
        """Cut texts to fit and encode them. Of a text in several parts, only the first has the beginning."""
        begun = [self._beginning(line, prefix) for line, prefix in enumerate(prefixes)]
        encoded = EncodedTexts(self.vocabulary.source, [line.strip() for text in texts for line in text.splitlines()])
        limits = self.source_limit, min(self.usual.tokens, self.source_limit)

        def fits(part: str) -> bool:
            return len(encoded.ids(part)) <= limits[0]

        def is_usual(part: str) -> bool:
            return count_sentences(part) <= self.usual.sentences and len(encoded.ids(part)) <= limits[1]

        return [
            _Segment(
                line=line,
                number=number,
                span=(start, end),
                text=text[start:end],
                source=source_row(self.vocabulary.source, encoded.ids(text[start:end])),
                prefix=begun[line] if begun and number == 0 else [],
            )
            for line, text in enumerate(texts)
            for number, (start, end) in enumerate(split_to_fit(text, fits=fits, usual=is_usual))
        ]

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

    def _by_engine(self, parts: list[_Segment], progress: Count | None) -> list[Any]:
        """What another engine makes of each part; None for what our own search is to do: all, where there is no engine."""
        engine, options = self.options.engine, self.options
        if not parts or not isinstance(engine, TranslationEngine) or self.unsupported():
            return [None] * len(parts)
        sentences = [SourceSentence(source=part.source, prefix=part.prefix, limit=self._limit(part)) for part in parts]
        decoded = engine.translate(
            sentences,
            start=self.vocabulary.target.prefix,
            config=self.generator.decoding,
            with_log_probs=options.log_probs,
            with_attention=options.align,
        )
        found: list[Any] = [None] * len(parts)
        for n_done, (number, one) in enumerate(decoded, start=1):
            found[number] = one and tuple(self._output(parts[number], own) for own in one.hypotheses)
            if progress is not None:
                progress(n_done)
        return found

    def _output(self, part: _Segment, hypothesis: Hypothesis) -> Output:
        """What is told of a hypothesis of another engine, with its links between words where it has its attention."""
        output = self.generator.output(hypothesis)
        if hypothesis.attention is None:
            return output
        links = link_words(self.vocabulary, part.text, output.ids, hypothesis.attention)
        return replace(output, alignment=tuple(links))

    def unsupported(self) -> str:
        """Why another engine cannot do what is asked for, if it cannot."""
        engine: TranslationEngine = self.options.engine
        options = self.options
        # Scores that count a beginning are made of the log-probabilities of its tokens.
        log_probs = options.log_probs or bool(options.prefixes or self.vocabulary.target.prefix)
        return engine.unsupported(
            self.generator.decoding, banned=bool(options.banned), n_models=len(self.models), log_probs=log_probs
        )

    def _limit(self, part: _Segment) -> int:
        """The most tokens that a part's translation may have, the end token counted."""
        own = self.generator.decoding.max_length or 2 * len(part.source) + 10
        return min(own + len(part.prefix), self.model_limit)

    def _translate(self, parts: list[_Segment]) -> list[tuple[Output, ...]]:
        """Translate a batch of parts; sampling is seeded by the numbers of their lines and their own."""
        return self._outputs(parts, self._decode(parts))

    def _outputs(self, parts: list[_Segment], decoded: list[Decoded]) -> list[tuple[Output, ...]]:
        """What is told of the hypotheses of some parts."""
        outputs = [tuple(map(self.generator.output, one.hypotheses)) for one in decoded]
        return self._aligned(parts, outputs) if self.options.align else outputs

    def _decode(self, parts: list[_Segment]) -> list[Decoded]:
        ids, lengths = padded([part.source for part in parts], self.vocabulary.source.pad_id, self.generator.device)
        inputs: Any = (ids, lengths) if len(self.models) == 1 else [(ids, lengths)] * len(self.models)
        limits = torch.tensor([self._limit(part) for part in parts], device=ids.device)
        prefixes = [part.prefix for part in parts]
        rules: list[Rule] = [ForcedPrefix(prefixes)] if any(prefixes) else []
        keys = [part.line + (part.number << 64) for part in parts]
        prompt = self.generator.target_prompt(len(parts))
        return self.generator.decode(inputs, limits, prompt=prompt, rules=rules, keys=keys)

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

    def _joined(self, text: str, parts: list[_Segment], found: list[tuple[Output, ...]]) -> Translation:
        """Join the translations of a text's parts; with several parts, the n-th best of each make the n-th best."""
        if not parts:
            links = () if self.options.align else None
            nothing = Output(text="", score=0.0, ids=(), tokens=(), log_probs=(), alignment=links)
            return Translation(source=text, outputs=(nothing,))
        if parts[0].span == (0, len(text)):  # the text is its only part
            return Translation(source=text, outputs=found[0])
        rows = list(zip(*found, strict=len(parts) == 1))
        outputs = tuple(self._concatenated(text, [part.span for part in parts], row) for row in rows)
        if len(parts) == 1:
            return Translation(source=text, outputs=outputs)
        pieces = tuple(
            tuple(
                TranslatedPart(source=part.text, text=one.text, finished=one.finished)
                for part, one in zip(parts, row, strict=True)
            )
            for row in rows
        )
        return Translation(source=text, outputs=outputs, parts=pieces)

    def _concatenated(self, text: str, spans: list[Span], row: tuple[Output, ...]) -> Output:
        """Put an output of each part of a text together, with the white space that stands around the parts."""
        links: list[Link] = []
        written, end = "", 0
        for (start, next_end), part in zip(spans, row, strict=True):
            gap = text[end:start]
            written += separator(gap, text[end - 1], written[-1:]) if end else gap
            if part.alignment:
                n_read, n_written = len(text[: start + 1].split()) - 1, len(f"{written}.".split()) - 1
                links += [
                    Link(source=link.source + n_read, target=link.target + n_written, score=link.score)
                    for link in part.alignment
                ]
            written, end = written + part.text, next_end
        return Output(
            text=written + text[end:],
            score=sum(part.score for part in row) / len(row),
            ids=tuple(id for part in row for id in part.ids),
            tokens=tuple(token for part in row for token in part.tokens),
            log_probs=tuple(value for part in row for value in part.log_probs),
            finished=all(part.finished for part in row),
            alignment=tuple(sorted(links)) if self.options.align else None,
        )


def _indented_lines(text: str, *, n_lines: int) -> list[str]:
    """The lines of a text with their indentation, if it has as many as its source; else all on one."""
    lines = text.split("\n")
    if len(lines) != n_lines:
        return [one_line(text)]
    return [line[: len(line) - len(line.lstrip())] + one_line(line.strip()) for line in lines]
