"""Sentence boundary detection by rules, as the ONNX graph that MiniSBD runs: Argos Translate splits paragraphs with it.

A package without one makes Argos Translate download a model at its first use. The rules are the main ones of
`data/text/sentence_splitting.py`, on the class of each character and its neighbours:

    ends     . ! ? … with the quotes and brackets behind them, where a space and the beginning of a sentence follow
    begins   a capital letter, one of a script without capitals, or, but not behind a full stop, a digit
    but not  "Dr. Hund", "J. Hund", "z. B. Hund", "am 3. Mai"

MiniSBD gives a graph `units` (B, T), the id of each character in a vocabulary that the file holds, and `features` (B, T, F),
which say of each number of characters up to F / 2 whether so many in front spell, with this one, a word of a lexicon (in the
last half; the first is of characters behind). It takes for each character the largest of three scores (B, T, 3): of no end,
the end of a word, the end of a sentence.
"""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.text.sentence_splitting import FULL_STOPS, INSIDE, TITLES
from regard.errors import MissingExtraError

_QUOTES = "\"'“”‘’«»‹›"
_CLASSES: dict[str, str] = {
    "space": " ",
    "stop": ".",
    "mark": "!?…",
    "full_stop": FULL_STOPS,
    "quote": _QUOTES,
    "closing": ")]}）」』】》〉〕",
    "opening": "„‚([{¿¡–—-•*$€£#",
    "pronoun": "I",  # a word of one letter, where others are initials
}
_CATEGORIES = {"Ll": "small", "Lu": "capital", "Lt": "capital", "Nd": "digit"}
_NAMES = ("padding", "uncased", *_CLASSES, "small", "capital", "digit", "other")
_CAPITAL = {"capital", "pronoun"}
_LETTERS = {"small", "uncased", *_CAPITAL}

# What is asked of a character, by the classes that it may be of.
_FLAGS: dict[str, set[str]] = {
    "space": {"space"},
    "stop": {"stop"},
    "mark": {"stop", "mark"},
    "full_stop": {"full_stop"},
    "closes": {"quote", "closing"},
    "opens": {"quote", "opening"},
    "small": {"small"},
    "capital": _CAPITAL,
    "begins": {"uncased", *_CAPITAL},
    "digit": {"digit"},
    "initial": _LETTERS - {"pronoun"},
    "word": {*_LETTERS, "digit"},
}
_AROUND = 3  # quotes and brackets in a row
_OPSET, _IR_VERSION = 13, 7  # old enough for any onnxruntime of the last years


def character_ids() -> dict[str, int]:
    """Return the id of each character's class; letters of scripts without capitals have that of what is not listed."""
    classes = {"<PAD>": "padding", "<UNK>": "uncased"}
    for character in map(chr, range(0x11_0000)):
        category = unicodedata.category(character)
        if name := _CATEGORIES.get(category, "other" if category[0] in "PS" else ""):
            classes[character] = name
    classes |= {character: name for name, members in _CLASSES.items() for character in members}
    return {character: _NAMES.index(name) for character, name in classes.items()}


def sentence_graph() -> bytes:
    """Return the file of the graph, with its vocabulary and lexicon in it."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ModuleNotFoundError:
        raise MissingExtraError("onnx", "A package for Argos Translate", "export") from None
    lexicon = sorted(f"{word.lower()}." for word in {*TITLES.split("|"), *INSIDE.split("|")})
    longest = max(map(len, lexicon)) - 1
    rules = _Rules(onnx, longest=longest)
    scores = rules.scores()
    inputs = [
        helper.make_tensor_value_info("units", TensorProto.INT64, ["batch", "characters"]),
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", "characters", 2 * longest]),
    ]
    outputs = [helper.make_tensor_value_info(scores, TensorProto.FLOAT, ["batch", "characters", 3])]
    graph = helper.make_graph(rules.nodes, "sentences", inputs, outputs, rules.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    config = {"feat_funcs": [], "use_dictionary": True, "num_dict_feat": longest, "batch_size": 32}
    vocabulary = {"lang": "", "_unit2id": character_ids()}
    properties = {"config": config, "vocab": vocabulary, "lexicon": lexicon}
    helper.set_model_props(model, {name: json.dumps(one, ensure_ascii=False) for name, one in properties.items()})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Rules:
    """The graph's nodes; what is true of characters is 1 in tensors (B, T, 1), named as the methods return them."""

    def __init__(self, onnx: Any, *, longest: int) -> None:
        self._onnx = onnx
        self._longest = longest
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        table = [[float(name in members) for members in _FLAGS.values()] for name in _NAMES]
        rows = self._constant(table, (len(_NAMES), len(_FLAGS)))
        flags = self._node("Gather", rows, "units")
        names = [f"is_{flag}" for flag in _FLAGS]
        self.nodes.append(onnx.helper.make_node("Split", [flags, self._sizes([1] * len(names))], names, axis=2))
        self._one = self._constant([[[1.0]]], (1, 1, 1))

    def scores(self) -> str:
        """The scores (B, T, 3)."""
        digit = self._reached("is_digit", "is_opens", -1)
        begins = self._either(digit, self._reached(self._first_letter(), "is_opens", -1))
        follows = self._both(self._from("is_space", -1), self._from(begins, -2))
        single_stop = self._both("is_stop", self._not(self._from("is_mark", 1)))
        inside = self._both(single_stop, self._either(self._abbreviation(), self._from(digit, -2)))
        end = self._both(self._reached("is_mark", "is_closes", 1), follows)
        goes_on = self._from(self._either("is_full_stop", "is_closes"), -1)
        full_end = self._both(self._reached("is_full_stop", "is_closes", 1), self._not(goes_on))
        boundary = self._either(self._both(end, self._not(inside)), full_end)
        none = self._node("Sub", boundary, boundary)
        half = self._node("Add", none, self._constant([[[0.5]]], (1, 1, 1)))
        return self._node("Concat", half, none, boundary, axis=2)

    def _reached(self, one: str, between: str, n: int) -> str:
        """Whether something is true of a character, or, with nothing but quotes and brackets between, of one n further."""
        found = one
        for _ in range(_AROUND):
            found = self._either(one, self._both(between, self._from(found, n)))
        return found

    def _first_letter(self) -> str:
        """Which letters may be the first of a sentence: small ones only in a text without any capital."""
        cased = self._node("ReduceMax", "is_capital", axes=[1], keepdims=1)
        return self._either("is_begins", self._both("is_small", self._not(cased)))

    def _abbreviation(self) -> str:
        """Whether an initial, an ordinal number or a word of the lexicon stands in front of a full stop."""
        starts = [self._not(self._from("is_word", n)) for n in range(self._longest + 2)]  # no word n in front
        initial = self._both(self._from("is_initial", 1), starts[2])
        two = self._both(self._from("is_digit", 2), starts[3])
        ordinal = self._both(self._from("is_digit", 1), self._either(starts[2], two))
        found = self._either(initial, ordinal)
        words = [f"spells_{n}" for n in range(1, self._longest + 1)]
        behind = [f"unused_{n}" for n in range(1, self._longest + 1)]
        sizes = self._sizes([1] * 2 * self._longest)
        self.nodes.append(self._onnx.helper.make_node("Split", ["features", sizes], [*behind, *words], axis=2))
        for n, word in enumerate(words, start=1):
            found = self._either(found, self._both(word, starts[n + 1]))
        return found

    def _both(self, one: str, other: str) -> str:
        return self._node("Mul", one, other)

    def _either(self, one: str, other: str) -> str:
        return self._node("Max", one, other)

    def _not(self, one: str) -> str:
        return self._node("Sub", self._one, one)

    def _from(self, one: str, n: int) -> str:
        """What is true of the character n in front, or, below 0, behind; of none at the text's ends."""
        if not n:
            return one
        padded = self._node("Pad", one, self._sizes([0, max(n, 0), 0, 0, max(-n, 0), 0]))
        start, end = (self._sizes([-n]), self._sizes([2**31])) if n < 0 else (self._sizes([0]), self._sizes([-n]))
        return self._node("Slice", padded, start, end, self._sizes([1]))

    def _node(self, kind: str, *inputs: str, **settings: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **settings))
        return name

    def _constant(self, values: Any, shape: tuple[int, ...]) -> str:
        return self._tensor(self._onnx.TensorProto.FLOAT, values, shape)

    def _sizes(self, values: Sequence[int]) -> str:
        return self._tensor(self._onnx.TensorProto.INT64, values, (len(values),))

    def _tensor(self, kind: int, values: Any, shape: tuple[int, ...]) -> str:
        name = f"constant_{len(self.constants)}"
        flat = np.array(values).reshape(-1).tolist()
        self.constants.append(self._onnx.helper.make_tensor(name, kind, shape, flat))
        return name
