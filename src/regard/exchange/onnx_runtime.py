"""Runs a network that regard exported to ONNX, with numpy, tokenizers and onnxruntime alone; search is greedy.

    python run.py "A dog runs."

    from run import load
    model = load(".")
    model.translate(["A dog runs."])         # encoder-decoder: a text for each
    model.generate(["Once upon a time"])     # language model: what follows upon each
    model.predict(["a good film"])           # classes, tags, a number, or the text with its [MASK] filled
    model.embed(["a good film"])             # a vector for each

Exported folders have a copy of this file, which reads the config.json beside it and needs nothing else.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

BATCH = 64  # inputs that are read together
MAX_LENGTH = 256  # tokens that a language model writes where nobody says how many
BEFORE = 16  # tokens of a prompt that its continuation is decoded with: its first space depends on them

Array = npt.NDArray[Any]
Ids = list[int]
State = dict[str, Array]  # by row: the KV cache, the positions that it holds, how many ids were read, the memory


class Text:
    """A tokenizer, which reads no part of a text as a special token; `settings` as config.json has them."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.writer, self.reader, self.continuing = (
            Tokenizer.from_file(str(folder / one)) for one in settings["files"]
        )
        self.reader.encode_special_tokens = self.continuing.encode_special_tokens = True

    def decode(self, ids: Ids) -> str:
        return str(self.writer.decode(ids, skip_special_tokens=True))

    def encode(self, text: str) -> Ids:
        return [id for id, _, _ in self.pieces(text)]

    def pieces(self, text: str, *, continuing: bool = False) -> list[tuple[int, int, int]]:
        """The ids of a text, each with where it begins and ends; `continuing` without a space in front."""
        encoding = (self.continuing if continuing else self.reader).encode(text, add_special_tokens=False)
        unknown, found = self.settings["unknown"], []
        for id, token, span in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
            if id == unknown:
                id = self.settings["hidden"].get(token, id)
            if id not in self.settings["forbidden"]:
                found.append((id if id < self.settings["rows"] else unknown, *span))
        if encoding.tokens[:1] == [self.settings["front"]]:  # a space that is none of the text's
            found[0] = found[0][0], 0, 0
        return found

    def blanks(self, text: str) -> tuple[list[str], list[Ids]]:
        """A text cut at its blanks, and the ids of each part; a space in front of a blank is part of what is hidden."""
        *before, last = re.split(r"\[MASK\]|<mask>", text)
        if not before:
            raise ValueError(f"There is no [MASK] in {text!r}.")
        if self.settings["hides_space"]:
            before = [part.removesuffix(" ") for part in before]
        first, *others = parts = [*before, last]
        return parts, [self.encode(first) if first else [], *map(self._behind, others)]

    def _behind(self, text: str) -> Ids:
        """The ids of text that goes on behind something, and so gets no space in front."""
        if not text or not self.settings["marked"]:
            return [id for id, _, _ in self.pieces(text, continuing=True)] if text else []
        marked = ("(" if text[0].isalnum() else "a") + text  # a character of another kind, so that no token spans both
        return [id for id, begin, _ in self.pieces(marked) if begin > 0]


class Model:
    """An exported network; its task, in config.json, says which of the methods serve."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.task: str = self.config["task"]
        self.max_length: int | None = self.config["max_length"]  # of what is read at once; None for any
        self.longest: int | None = self.config["longest"]  # of an example, without special tokens
        self.before, self.after = self.config["around"]  # the special tokens around a text
        options, where = onnxruntime.SessionOptions(), ["CPUExecutionProvider"]
        options.intra_op_num_threads = threads
        files = {name: str(folder / f"{name}.onnx") for name in self.config["graphs"]}
        self.graphs = {name: onnxruntime.InferenceSession(file, options, where) for name, file in files.items()}
        self.reads_text = "source" in self.config
        if self.reads_text:
            self.source, self.target = (Text(folder, self.config[side]) for side in ("source", "target"))

    def run(self, graph: str, **inputs: Array) -> dict[str, Array]:
        """Run a graph: what goes in and what comes out, by name."""
        names = [one.name for one in self.graphs[graph].get_outputs()]
        return dict(zip(names, self.graphs[graph].run(names, inputs), strict=True))

    def translate(self, texts: Sequence[str], *, max_length: int = 0) -> list[str]:
        """A text for each, which is read as one sentence; max_length: the most tokens that are written."""
        self._require("translate")
        rows = [self._row(self.source.encode(text.strip())) for text in texts]
        self._refuse_longer(rows, self.max_length)
        begin = self.config["begin"]
        most = (self.max_length or sys.maxsize) - len(begin)

        def write(own: list[Ids]) -> list[Ids]:
            ids, lengths = _padded(own)
            memory = {**self.run("encoder", ids=ids, lengths=lengths), "source_lengths": lengths}
            del memory["states"]
            return self._write([begin] * len(own), [min(max_length or 2 * len(row) + 10, most) for row in own], memory)

        written = _in_batches(rows, write)
        # White space around a text stays, and an empty one stays empty.
        around = [text.partition(text.strip() or text or " ") for text in texts]
        return [
            before + (self.target.decode(ids) if text.strip() else text) + after
            for (before, text, after), ids in zip(around, written, strict=True)
        ]

    def generate(self, prompts: Sequence[str], *, max_length: int = MAX_LENGTH) -> list[str]:
        """What follows upon each prompt, without it."""
        self._require("language")
        rows = [self.config["prefix"] + self.source.encode(prompt) or self.before for prompt in prompts]
        context = self.config["context"]
        self._refuse_longer(rows, context)
        # Where a context may fill up, each row runs alone: it forgets when its own is full.
        alone = context is not None and max(map(len, rows), default=0) + max_length > context
        written = _in_batches(rows, lambda own: self._write(own, [max_length] * len(own), {}), 1 if alone else BATCH)
        return [_behind(self.source, row[-BEFORE:], ids) for row, ids in zip(rows, written, strict=True)]

    def predict(self, inputs: Sequence[Any], texts_b: Sequence[str] = ()) -> list[Any]:
        """What the network says of each input: its classes, its tags, a number, or the text with its blanks filled.

        inputs:   texts; sentences, or lists of words, to tag; vectors (T, F); images (H, W, C) of bytes, of their size
        texts_b:  second texts, for a network that learned from pairs
        """
        self._require("mask", "classify", "tag", "regress", "similarity", "image")
        if self.task == "mask":
            return [self._filled(text) for text in inputs]
        if self.task == "tag" and self.reads_text:
            return [self._tags(one.split() if isinstance(one, str) else list(one)) for one in inputs]
        if self.task == "similarity":
            lowest, span = self.config["unit"]
            return [lowest + span * _cosine(*self._vectors(pair)) for pair in self._pairs(inputs, texts_b)]
        if self.task == "image":
            logits = _in_batches(inputs, self._see)
        else:
            rows = (
                [self._row(*pair) for pair in self._pairs(inputs, texts_b)]
                if self.reads_text
                else [one[: self.longest] for one in inputs]
            )
            logits = self._read(rows, "logits")
        if self.task == "regress":
            return [float(own[0]) for own in logits]
        return [self._named(own.argmax(1)) if own.ndim == 2 else self._classes(own) for own in logits]

    def embed(self, texts: Sequence[str]) -> list[Array]:
        """A vector (D,) for each text: the mean of its tokens' states, or as config.json says."""
        if not self.reads_text:
            raise ValueError("This network reads no texts.")
        return self._vectors([self.source.encode(text)[: self.longest] for text in texts])

    # -- reading --------------------------------------------------------------------------------------------------------

    def _read(self, rows: Sequence[Any], output: str) -> list[Array]:
        """What comes out for each row of ids, or of vectors, without padding: (N,), or (T, N)."""
        graph, name = next(iter(self.graphs)), "ids" if self.reads_text else "vectors"

        def read(own: list[Any]) -> Iterator[Array]:
            inputs, lengths = _padded(own)
            found = self.run(graph, **{name: inputs}, lengths=lengths)[output]
            return (one if one.ndim == 1 else one[: len(row)] for one, row in zip(found, own, strict=True))

        return _in_batches(rows, read)

    def _row(self, ids: Ids, ids_b: Sequence[int] = ()) -> Ids:
        """The ids that are read of a text, and of a second one."""
        return [*self.before, *ids, *self.after, *ids_b, *(self.after if ids_b else ())]

    def _pairs(self, texts: Sequence[str], texts_b: Sequence[str]) -> Iterator[tuple[Ids, Ids]]:
        """The ids of texts with their second ones; of two that are too long together, the longer loses more."""
        for text, text_b in zip(texts, texts_b or [""] * len(texts), strict=True):
            ids, ids_b = self.source.encode(text.strip()), self.source.encode(text_b.strip())
            if self.longest is not None:
                ids_b = ids_b[: max(self.longest // 2, self.longest - len(ids))]
                ids = ids[: self.longest - len(ids_b)]
            yield ids, ids_b

    def _vectors(self, rows: Sequence[Ids]) -> list[Array]:
        """The mean states of texts, or their first; special tokens count where an encoder alone has read them."""
        found = []
        for ids, states in zip(rows, self._read([self._row(ids) for ids in rows], "states"), strict=True):
            inner = slice(len(self.before), len(self.before) + len(ids))
            own = states if ids and "model" in self.graphs else states[inner]
            if self.config["pooling"] == "class":
                own = states[:1]
            vector = own.mean(0) if len(own) else np.zeros(states.shape[1], np.float32)
            found.append(vector / max(float(np.linalg.norm(vector)), 1e-12) if self.config["normalised"] else vector)
        return found

    def _tags(self, words: Sequence[str]) -> list[str]:
        """The tag of each word, which is told at its first token."""
        pieces = self.source.pieces(" ".join(words))
        row = self._row([id for id, _, _ in pieces])
        self._refuse_longer([row], self.max_length)
        begins = np.cumsum([0, *(len(word) + 1 for word in words)])[: len(words) if pieces else 0]
        firsts = np.searchsorted([end for _, _, end in pieces], begins, side="right")
        [logits] = self._read([row], "logits")
        return self._named(logits[len(self.before) + np.minimum(firsts, len(pieces) - 1)].argmax(1))

    def _filled(self, text: str) -> str:
        """The text with the likeliest token in each of its blanks."""
        (filled, *parts), (read, *ids) = self.source.blanks(text)
        row = self._row([*read, *(id for own in ids for id in (self.config["mask"], *own))])
        self._refuse_longer([row], self.max_length)
        [logits] = self._read([row], "logits")
        for token, part, own in zip(
            self._likeliest(logits[np.equal(row, self.config["mask"])]), parts, ids, strict=True
        ):
            filled += _behind(self.source, read, [token]) + part
            read = [*read, token, *own]
        return filled

    def _see(self, images: Sequence[Array]) -> Array:
        """The logits of images (H, W, C) of bytes."""
        size, mean, deviation = (self.config["image"][name] for name in ("size", "mean", "deviation"))
        for image in images:
            if image.shape != (size, size, len(mean)) or image.dtype != np.uint8:
                raise ValueError(f"An image has the shape {(size, size, len(mean))}, of uint8, not {image.shape}.")
        pixels = (np.stack(images) / 255 - mean) / deviation
        return self.run("model", pixels=pixels.transpose(0, 3, 1, 2).astype(np.float32))["logits"]

    def _classes(self, logits: Array) -> dict[str, float]:
        """Each class with its probability, the likeliest first."""
        shares = np.exp(logits.astype(np.float64) - logits.max())
        order = np.argsort(-shares, kind="stable")
        return dict(zip(self._named(order), (shares / shares.sum())[order].tolist(), strict=True))

    def _named(self, numbers: Array) -> list[str]:
        return [self.config["labels"][number] for number in numbers]

    def _require(self, *tasks: str) -> None:
        if self.task not in tasks:
            raise ValueError(f"This network was trained for {self.task}, and not for {' or '.join(tasks)}.")

    def _refuse_longer(self, rows: Sequence[Ids], most: int | None) -> None:
        longest = max(map(len, rows), default=0)
        if most is not None and longest > most:
            raise ValueError(f"A text has {longest} tokens, and the network reads at most {most}: shorten it.")

    # -- writing --------------------------------------------------------------------------------------------------------

    def _write(self, rows: list[Ids], limits: list[int], memory: State) -> list[Ids]:
        """Greedy search: the ids behind each row, as many as its limit allows, without the end token."""
        end, written = self.config["end"], [list[int]() for _ in rows]
        numbers = list(range(len(rows)))  # of the rows that go on
        logits, state = self._first(rows, memory)
        while True:
            ids = self._likeliest(logits)
            for number, id in zip(numbers, ids, strict=True):
                written[number].append(id)
            stay = [n for n, one in enumerate(numbers) if ids[n] != end and len(written[one]) < limits[one]]
            if not stay:
                return [own[:-1] if own[-1] == end else own for own in written]
            numbers, state = [numbers[n] for n in stay], {name: one[stay] for name, one in state.items()}
            logits, state = self._next([rows[number] + written[number] for number in numbers], state)

    def _likeliest(self, logits: Array) -> Ids:
        """The best token of each row of logits (B, V), of those that may be written."""
        logits[:, self.config["never"]] = -np.inf
        return [int(id) for id in logits.argmax(1)]

    def _first(self, rows: list[Ids], memory: State) -> tuple[Array, State]:
        """Read what rows begin with: the logits (B, V) of what follows, and the state."""
        ids, lengths = _padded(rows)
        found = self.run("first", ids=ids, lengths=lengths, **memory)
        places = np.arange(ids.shape[1])
        held = np.where(places < lengths[:, None], places, -1)
        return found["logits"], {**memory, **_cache(found), "held": held, "lengths": lengths}

    def _next(self, rows: list[Ids], state: State) -> tuple[Array, State]:
        """Read the last id of each row; who has filled the context reads the newer half of it again."""
        context, lengths = self.config["context"], state["lengths"]
        if context is not None and lengths.max() >= context:
            return self._first([row[-max(1, context // 2) :] for row in rows], {})
        found = self.run("next", ids=np.array([row[-1:] for row in rows]), **state)
        held = np.concatenate([state["held"], lengths[:, None]], axis=1)
        return found["logits"], {**state, **_cache(found), "held": held, "lengths": lengths + 1}


def load(folder: str | Path, *, threads: int = 0) -> Model:
    """Open an exported folder; threads: of the processor, 0 for all."""
    return Model(Path(folder), threads=threads)


def _in_batches(rows: Sequence[Any], run: Callable[[list[Any]], Any], size: int = BATCH) -> list[Any]:
    """What comes of each row; those of like lengths run together."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    found: dict[int, Any] = {}
    for begin in range(0, len(order), size):
        numbers = order[begin : begin + size]
        found |= zip(numbers, run([rows[number] for number in numbers]), strict=True)
    return [found[number] for number in range(len(rows))]


def _padded(rows: Sequence[Any]) -> tuple[Array, Array]:
    """Rows of ids, or of vectors, as one array with zeros behind them, and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    first = np.asarray(rows[0])
    padded = np.zeros((len(rows), lengths.max(), *first.shape[1:]), np.int64 if first.ndim == 1 else np.float32)
    for own, row in zip(padded, rows, strict=True):
        own[: len(row)] = row
    return padded, lengths


def _cache(found: Mapping[str, Array]) -> State:
    """The KV cache that a step gives, by the names under which the next one reads it."""
    return {f"cached_{name}": one for name, one in found.items() if name.startswith(("key_", "value_"))}


def _behind(text: Text, before: Ids, ids: Ids) -> str:
    """What ids mean behind others, spaces among it."""
    return text.decode([*before, *ids])[len(text.decode(before)) :]


def _cosine(first: Array, second: Array) -> float:
    return float(first @ second / max(np.linalg.norm(first) * np.linalg.norm(second), 1e-8))


def main(inputs: Sequence[str]) -> None:
    """Write what the network makes of each input on a line of its own; a second text stands behind a tab."""
    model = load(Path(__file__).parent)
    if model.task in ("translate", "language"):
        found: list[Any] = (model.translate if model.task == "translate" else model.generate)(inputs)
    elif model.reads_text:
        pairs = [text.partition("\t") for text in inputs]
        found = model.predict([text for text, _, _ in pairs], [second for _, _, second in pairs])
    else:
        found = model.predict([np.load(file) for file in inputs])  # images or vectors, as numpy keeps them
    for one in found:
        sys.stdout.write((one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
