"""The built-in English-German corpus: sentences drawn from a synchronous grammar.

The package `english_german` draws a sentence on both sides at once; this file makes corpora of them. The German is a
function of the English: every choice that shows in the German shows in the English too. (`english_german/clauses.py`
says how tenses are translated.)

A hash of the English sentence decides whether it belongs to train, valid or test, so the three never meet, whatever their
sizes and seeds. None of their sentences has more than SHORT words on either side; those of `long` have more on both.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from regard.demo.english_german.clauses import Phrase
from regard.demo.english_german.compounds import COMPOUNDS, LONG
from regard.demo.english_german.drawing import Chooser, draw_noun_phrase, times
from regard.demo.english_german.lexicon import dictionary, lemmas
from regard.demo.english_german.patterns import QUESTIONS, STATEMENTS, Draft
from regard.demo.english_german.verbs import VERBS
from regard.errors import UsageError, did_you_mean

SHORT = 16
LONGEST = 32
PATTERNS = STATEMENTS + QUESTIONS + COMPOUNDS
SPLITS = ("train", "valid", "test", "long")

Outcome = TypeVar("Outcome")
Option = TypeVar("Option")


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English sentence, its German translation, and the pattern that both follow."""

    source: str
    target: str
    pattern: str


def corpus(split: str, n: int, *, seed: int = 1) -> list[Sentence]:
    """Return n different sentences of a split: train, valid, test or long. The same arguments give the same list."""
    if split not in SPLITS:
        raise UsageError(f"The built-in corpus has no part named '{split}'.", did_you_mean(split, SPLITS))
    # A string seeds by its hash, which is the same in every process.
    chooser = random.Random(f"{split} {seed}")
    patterns = LONG if split == "long" else PATTERNS
    found: dict[str, Sentence] = {}
    while len(found) < n:
        pattern = chooser.choice(patterns)
        sentence = _finish(pattern(chooser), pattern.__name__)
        if split_of(sentence) == split:
            found.setdefault(sentence.source, sentence)
    return list(found.values())


def split_of(sentence: Sentence) -> str:
    """Return the split a sentence belongs to; empty for a sentence of a length that no split has."""
    lengths = len(sentence.source.split()), len(sentence.target.split())
    if max(lengths) > SHORT:
        return "long" if min(lengths) > SHORT and max(lengths) <= LONGEST else ""
    digest = hashlib.blake2b(sentence.source.encode(), digest_size=8).digest()
    return {0: "test", 1: "valid"}.get(int.from_bytes(digest) % 10, "train")


def _finish(draft: Draft, pattern: str) -> Sentence:
    english, german, mark = draft
    german = german.rstrip(",")  # which a relative clause at the end leaves behind
    return Sentence(english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark, pattern)


def pattern_names() -> tuple[str, ...]:
    """Return the names of the sentence patterns of train, valid and test."""
    return tuple(pattern.__name__ for pattern in PATTERNS)


def lemma_count() -> int:
    """Return how many different lemmas the corpus uses; names of people and cities do not count."""
    return len({english for english, _ in lemmas()})


# --- how many there are -----------------------------------------------------------------------------------------------


class _Every:
    """A chooser that takes, over repeated runs of a rule, every path through its choices once."""

    def __init__(self) -> None:
        self.path: list[int] = []
        self.widths: list[int] = []

    def choice(self, options: Sequence[Option], /) -> Option:
        if len(self.widths) == len(self.path):
            self.path.append(0)
        different = tuple(dict.fromkeys(options))  # what stands there twice is only likelier
        self.widths.append(len(different))
        return different[self.path[len(self.widths) - 1]]

    def advance(self) -> bool:
        """Turn to the next path, like an odometer; False after the last."""
        while self.path and self.path[-1] + 1 == self.widths[len(self.path) - 1]:
            self.path.pop()
        self.widths.clear()
        if not self.path:
            return False
        self.path[-1] += 1
        return True


def every(rule: Callable[[Chooser], Outcome]) -> Iterator[Outcome]:
    """Give every outcome of a rule, as often as there are ways to it."""
    chooser = _Every()
    yield rule(chooser)
    while chooser.advance():
        yield rule(chooser)


def count_pairs() -> int:
    """Return a lower bound of the number of different pairs: an exact count of those that say who bought what and when.

    They are one part of the pattern `perfect`: a noun phrase, "bought", a noun phrase, a phrase of time. The phrases are
    drawn independently, English puts them side by side in this order, and none can be read as the start of the next; so
    different choices give different sentences, and their number is a product.
    """
    buyers = {phrase.english for phrase in every(_buyer)}
    goods = {phrase.english for phrase in every(_goods)}
    return len(buyers) * len(goods) * len({time.english for time in times("past")})


def _buyer(chooser: Chooser) -> Phrase:
    return draw_noun_phrase(chooser, ("person",), "nominative", role="subject")


def _goods(chooser: Chooser) -> Phrase:
    buy = next(verb for verb in VERBS if verb.english == "buy")
    return draw_noun_phrase(chooser, buy.objects, "accusative")


# --- the baseline -----------------------------------------------------------------------------------------------------


def dictionary_baseline(english: str) -> str:
    """Translate word for word: each English form by one German form, in the English order."""
    german = " ".join(_look_up(word) for word in english.rstrip(".?!").split())
    return german[:1].upper() + german[1:] + english[len(english.rstrip(".?!")) :]


def _look_up(word: str) -> str:
    bare = word.rstrip(",")
    entries = dictionary()
    german = entries.get(bare) or entries.get(bare.lower(), bare)
    return german + word[len(bare) :]
