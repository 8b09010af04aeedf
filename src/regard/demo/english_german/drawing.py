"""Chance: phrases and clauses drawn from the lexicon so that they agree in meaning.

Every choice goes through `chooser.choice`, the method of `random.Random`; so the same rules can be drawn from at random,
or walked through in full, as `grammar.count_pairs` does.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Protocol, TypeVar

from regard.demo.english_german.adjectives import ADJECTIVES, COLORS, Adjective
from regard.demo.english_german.clauses import Clause, Phrase
from regard.demo.english_german.function_words import (
    CITIES,
    COUNTS,
    DAYS,
    FREQUENCIES,
    HELPERS,
    NAMES,
    PLACES,
    POSSESSIVES,
    PRONOUNS,
    SPANS,
    TIMES,
)
from regard.demo.english_german.inflection import HE, ME, THEY, WE, YOU, Determiner, contract, join, noun_phrase
from regard.demo.english_german.nouns import NOUNS, Noun
from regard.demo.english_german.verbs import BE, VERBS, Verb

Option = TypeVar("Option")


class Chooser(Protocol):
    """What decides: a `random.Random`, or something that tries every choice in turn."""

    def choice(self, options: Sequence[Option], /) -> Option:
        """Return one of the options."""


THE = Determiner("the", "", "article", known=True)
THIS = Determiner("this", "dies", "der", known=True)
THESE = Determiner("these", "dies", "der", known=True)
EVERY = Determiner("every", "jed", "der", known=True)
WHICH = Determiner("which", "welch", "der", known=True)
MINE = tuple(Determiner(english, german, "ein", known=True) for english, german in POSSESSIVES)
A = Determiner("a", "ein", "ein")
BARE = Determiner("", "", "bare")
NUMBERS = tuple(Determiner(english, german, "bare") for english, german in COUNTS[:7])
# In a negated clause "a book" and "books" become kein Buch and keine Bücher.
_DENIED = {A: Determiner("a", "kein", "ein"), BARE: Determiner("", "kein", "ein")}

_PERSONS = (ME, YOU, HE, HE, WE, THEY)  # of PRONOUNS, in their order
_ONE_IN_THREE = (True, False, False)
_PERSONAL = tuple(adjective for adjective in ADJECTIVES if "person" in adjective.kinds)


@cache
def nouns(kinds: tuple[str, ...], avoid: Noun | None = None) -> tuple[Noun, ...]:
    """Return the nouns of any of these kinds, but for one to avoid."""
    return tuple(noun for noun in NOUNS if not noun.kinds.isdisjoint(kinds) and noun is not avoid)


@cache
def adjectives(noun: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that can describe the noun."""
    return tuple(adjective for adjective in ADJECTIVES if not adjective.kinds.isdisjoint(noun.kinds))


@cache
def determiners(noun: Noun, plural: bool, role: str) -> tuple[Determiner, ...]:
    """Return the determiners that go with the noun, the common ones several times.

    Roles: `subject`, `object`, `denied` (object of a negated verb, which takes kein), `known` and `new` (just definite
    or just indefinite ones), `head` (of a relative clause, hence not "my"). Subjects are not bare: "books".
    """
    mine: tuple[Determiner, ...] = MINE if role != "head" and _owned(noun, plural) else ()
    bare: tuple[Determiner, ...] = (BARE, BARE, BARE) if role not in ("subject", "head") else ()
    known = (THE,) * (4 + len(mine) // 3) + mine
    if not noun.plural:
        new = bare
    elif plural:
        known += (THESE, THESE)
        new = bare if role == "denied" else bare + NUMBERS
    else:
        known += (THIS, THIS, EVERY) if role == "subject" and "person" in noun.kinds else (THIS, THIS)
        new = (A, A, A, A)
    if role == "denied":
        new = tuple(_DENIED[determiner] for determiner in new)
    return {"known": known, "new": new}.get(role, known + new)


def _owned(noun: Noun, plural: bool) -> bool:
    if "person" in noun.kinds:
        return "kin" in noun.kinds and not (plural and "parent" in noun.kinds)
    return noun.kinds.isdisjoint(("outdoors", "public"))


def draw_noun_phrase(
    chooser: Chooser,
    kinds: tuple[str, ...],
    case: str,
    *,
    role: str = "object",
    avoid: Noun | None = None,
    described: bool = True,
) -> Phrase:
    """Draw a phrase with a noun of these kinds; `role` chooses the determiners, `described` allows an adjective."""
    noun = chooser.choice(nouns(kinds, avoid))
    plural = bool(noun.plural) and chooser.choice(_ONE_IN_THREE)
    determiner = chooser.choice(determiners(noun, plural, role))
    adjective = chooser.choice(adjectives(noun)) if described and chooser.choice(_ONE_IN_THREE) else None
    english, german = noun_phrase(noun, determiner, adjective, case=case, plural=plural)
    slot = "definite" if determiner.known else "indefinite"
    return Phrase(english, german, slot, THEY if plural else HE, noun, echo_of(noun, plural))


def echo_of(noun: Noun, plural: bool) -> tuple[str, str]:
    """Return the pronoun that stands for the noun; German follows its gender: it, but er, sie or es."""
    if plural:
        return "they", "sie"
    german = {"m": "er", "f": "sie", "n": "es"}[noun.gender]
    if "she" in noun.kinds:
        return "she", "sie"
    return {"er": "he", "sie": "she", "es": "it"}[german] if "person" in noun.kinds else "it", german


def draw_subject(chooser: Chooser, kinds: tuple[str, ...] = ("person",), *, described: bool = True) -> Phrase:
    """Draw a subject: a noun phrase, and where persons are meant sometimes a pronoun or a name."""
    form = chooser.choice(("noun", "noun", "noun", "pronoun", "pronoun", "name")) if "person" in kinds else "noun"
    if form == "pronoun":
        # "I" and "you" twice: their verb forms are met nowhere else.
        return chooser.choice(pronoun_subjects() + pronoun_subjects()[:2])
    if form == "name":
        name, gender = chooser.choice(NAMES)
        return Phrase(name, name, echo=("he", "er") if gender == "m" else ("she", "sie"))
    return draw_noun_phrase(chooser, kinds, "nominative", role="subject", described=described)


@cache
def pronoun_subjects() -> tuple[Phrase, ...]:
    """Return I, you, he, she, we, they as subjects."""
    rows = zip(PRONOUNS, _PERSONS, strict=True)
    return tuple(Phrase(row[0], row[2], person=person, echo=(row[0], row[2])) for row, person in rows)


def is_animal(phrase: Phrase) -> bool:
    """Whether the phrase names an animal."""
    return phrase.noun is not None and "animal" in phrase.noun.kinds


def echoing(subject: Phrase) -> Phrase:
    """Return the pronoun that takes up a subject again: the man ... he."""
    english, german = subject.echo or (subject.english, subject.german)
    return Phrase(english, german, person=subject.person, noun=subject.noun, echo=subject.echo)


def draw_object(chooser: Chooser, verb: Verb, subject: Phrase, *, negative: bool = False) -> Phrase:
    """Draw what a `direct` or `dative` verb acts on; persons are sometimes pronouns."""
    case = "accusative" if verb.frame == "direct" else "dative"
    # Not "picks up him": English would part the verb.
    if "person" in verb.objects and " " not in verb.english and chooser.choice((True, False, False, False)):
        return draw_pronoun_object(chooser, case, subject)
    if case == "dative":
        role = "known" if negative else "object"
        return replace(draw_noun_phrase(chooser, verb.objects, case, role=role, avoid=subject.noun), slot="dative")
    return draw_noun_phrase(chooser, verb.objects, case, role="denied" if negative else "object", avoid=subject.noun)


def draw_pronoun_object(chooser: Chooser, case: str, subject: Phrase) -> Phrase:
    """Draw me, you, him, ...; never one that would have to be reflexive (I ... me, we ... me, you ... you)."""
    return chooser.choice(_pronoun_objects(case, subject.person))


@cache
def _pronoun_objects(case: str, subject: int) -> tuple[Phrase, ...]:
    column = 3 if case == "accusative" else 4
    reflexive = {ME: (ME, WE), WE: (ME, WE), YOU: (YOU,)}.get(subject, ())
    rows = zip(PRONOUNS, _PERSONS, strict=True)
    return tuple(Phrase(row[1], row[column], "pronoun") for row, person in rows if person not in reflexive)


def draw_place(chooser: Chooser, names: Sequence[str], slot: str = "place") -> Phrase:
    """Draw a phrase of place or direction from the named PLACES."""
    place = PLACES[chooser.choice(names)]
    if place.kind == "town":
        english, german = chooser.choice(CITIES)
    else:
        noun = chooser.choice(nouns((place.kind,)))
        determiner = chooser.choice((THE, THE, THE, A))
        adjective = chooser.choice(adjectives(noun)) if chooser.choice(_ONE_IN_THREE) else None
        english, german = noun_phrase(noun, determiner, adjective, case=place.case)
    return Phrase(join(place.english, english), contract(place.german, german), slot)


def draw_time(chooser: Chooser, tense: str) -> Phrase:
    """Draw a phrase of time that goes with the tense."""
    return chooser.choice(times(tense))


@cache
def times(tense: str) -> tuple[Phrase, ...]:
    """Return the phrases of time that go with the tense."""
    phrases = [Phrase(english, german, "time") for english, german, tenses in TIMES if tense in tenses]
    if tense == "past" or tense in HELPERS:
        phrases += [Phrase(f"on {english}", f"am {german}", "time") for english, german in DAYS]
    if tense in ("present", "past", "will", "must"):
        phrases += clock_times()
    if tense == "past":
        spans = [(count, span) for count in COUNTS[:5] for span in SPANS]
        phrases += [Phrase(f"{n} {span} ago", f"vor {zahl} {spanne}", "time") for (n, zahl), (span, spanne) in spans]
    if tense == "present":
        phrases += [Phrase(english, german, "time", early=True) for english, german in FREQUENCIES * 2]
    return tuple(phrases)


@cache
def clock_times() -> tuple[Phrase, ...]:
    """Return the full and the half hours; German counts half hours towards the next: half past six, halb sieben."""
    full = [Phrase(f"at {english} o'clock", f"um {german} Uhr", "time") for english, german in COUNTS]
    half = [Phrase(f"at half past {now[0]}", f"um halb {after[1]}", "time") for now, after in pairwise(COUNTS)]
    return (*full, *half)


FRAMES = ("plain", "direct", "direct", "direct", "dative", "giving", "about", "at", "going", "putting")


@cache
def verbs(frame: str, tense: str, animal: bool = False) -> tuple[Verb, ...]:
    """Return the verbs of the frame that can stand in the tense, with an animal as subject or with a person."""
    return tuple(verb for verb in VERBS if verb.frame == frame and _fits(verb, tense, animal))


def _fits(verb: Verb, tense: str, animal: bool) -> bool:
    if animal and "animal" not in verb.flags:
        return False
    if tense == "past":
        return verb.past != verb.english  # "they put" would not say when
    if tense == "likes":
        return "liked" in verb.flags
    if tense == "progressive" and "steady" in verb.flags:
        return False
    return tense == "present" or ("state" not in verb.flags and (tense == "will" or "mishap" not in verb.flags))


def draw_clause(
    chooser: Chooser,
    tense: str,
    *,
    subject: Phrase | None = None,
    frames: tuple[str, ...] = FRAMES,
    negative: bool = False,
    timed: bool = True,
) -> Clause:
    """Draw a clause in this tense about somebody (or about `subject`); `timed` allows a phrase of time."""
    if subject is None:
        subject = draw_subject(chooser, chooser.choice((("person",), ("person",), ("person",), ("animal",))))
    animal = is_animal(subject)
    possible = [frame for frame in frames if verbs(frame, tense, animal)]
    verb = chooser.choice(verbs(chooser.choice(possible), tense, animal))
    parts = draw_complements(chooser, verb, subject, negative=negative)
    if timed and not negative and "state" not in verb.flags and times(tense) and chooser.choice((True, False)):
        parts = (*parts, draw_time(chooser, tense))
    return Clause(subject, verb, tense, parts, negative)


def draw_complements(chooser: Chooser, verb: Verb, subject: Phrase, *, negative: bool = False) -> tuple[Phrase, ...]:
    """Draw what the verb's frame asks for, in English order."""
    known = "known" if negative else "object"
    denied = "denied" if negative else "object"
    match verb.frame:
        case "plain":
            placed = bool(verb.objects) and not chooser.choice(_ONE_IN_THREE)
            return (draw_place(chooser, _places(verb, subject)),) if placed else ()
        case "direct" | "dative":
            return (draw_object(chooser, verb, subject, negative=negative),)
        case "giving":
            receiver = draw_receiver(chooser, subject, known)
            return receiver, draw_noun_phrase(chooser, verb.objects, "accusative", role=denied)
        case "at" | "going":
            return (draw_place(chooser, _places(verb, subject), "goal"),)
        case "putting":
            thing = draw_noun_phrase(chooser, verb.objects, "accusative", role=denied)
            return thing, draw_place(chooser, ("onto", "beneath"), "goal")
    phrase = draw_noun_phrase(chooser, verb.objects, verb.case, role=known, avoid=subject.noun)
    return (Phrase(phrase.english, contract(verb.preposition, phrase.german), "goal"),)


def _places(verb: Verb, subject: Phrase) -> tuple[str, ...]:
    """Return where the verb may happen; animals keep out of buildings."""
    if not is_animal(subject):
        return verb.objects
    return tuple(
        {"inside": "open", "into": "outward", "to": "through", "toward": "over"}.get(n, n) for n in verb.objects
    )


def draw_receiver(chooser: Chooser, subject: Phrase, role: str = "object") -> Phrase:
    """Draw the person to whom something is given."""
    if chooser.choice(_ONE_IN_THREE):
        return draw_pronoun_object(chooser, "dative", subject)
    return replace(draw_noun_phrase(chooser, ("person",), "dative", role=role, avoid=subject.noun), slot="dative")


def draw_predicate(chooser: Chooser, tense: str, subject: Phrase, *, negative: bool = False) -> Clause:
    """Draw a clause that says how the subject is: the man is tired."""
    options = adjectives(subject.noun) if subject.noun else _PERSONAL
    adjective = chooser.choice(options)
    degrees = (("", ""), ("", ""), ("very", "sehr"), ("too", "zu"))
    english, german = chooser.choice(degrees if adjective.english not in COLORS else degrees[:1])
    quality = Phrase(join(english, adjective.english), join(german, adjective.german), "predicate")
    return Clause(subject, BE, tense, (quality,), negative)
