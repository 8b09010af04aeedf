"""The sentence patterns of one clause: each draws one sentence on both sides.

A pattern takes a chooser and gives English, German and the mark that ends both. Its docstring is an example.
"""

from collections.abc import Callable
from dataclasses import replace

from regard.demo.english_german.adjectives import ADJECTIVES, COLORS
from regard.demo.english_german.clauses import (
    Clause,
    Phrase,
    english_infinitive,
    english_question,
    english_statement,
    middle,
    verb_first,
    verb_second,
)
from regard.demo.english_german.drawing import (
    BARE,
    WHICH,
    Chooser,
    adjectives,
    clock_times,
    draw_clause,
    draw_complements,
    draw_noun_phrase,
    draw_object,
    draw_place,
    draw_predicate,
    draw_receiver,
    draw_subject,
    nouns,
    times,
    verbs,
)
from regard.demo.english_german.function_words import COMPANY, COUNTS, HELPERS, MANNERS, SPANS, TENS
from regard.demo.english_german.inflection import YOU, imperative, join, noun_phrase, prefix
from regard.demo.english_german.verbs import ARRIVING, BE, BELONG, COST, VERBS

Draft = tuple[str, str, str]  # English, German, the mark at the end
Pattern = Callable[[Chooser], Draft]

_TENSES = ("present", "past", "progressive", "will", "can", "must", "want")
_MODALS = tuple(helper for helper in HELPERS if helper != "will")
_DENIABLE = ("present", "present", "past", "past", "will", "can", "should", "want")
SIMPLE_TENSES = ("present", "past")
_WHO = Phrase("who", "wer")


def said(clause: Clause) -> Draft:
    """Return the clause as a statement."""
    return english_statement(clause), verb_second(clause), "."


def _asked(front: Phrase, clause: Clause) -> Draft:
    return join(front.english, english_question(clause)), join(front.german, verb_first(clause)), "?"


# --- statements -------------------------------------------------------------------------------------------------------


def habit(chooser: Chooser) -> Draft:
    """The man often reads the book."""
    return said(draw_clause(chooser, "present"))


def perfect(chooser: Chooser) -> Draft:
    """The man bought a book yesterday."""
    return said(draw_clause(chooser, "past"))


def right_now(chooser: Chooser) -> Draft:
    """The man is reading the book."""
    return said(draw_clause(chooser, "progressive"))


def future(chooser: Chooser) -> Draft:
    """The man will read the book."""
    return said(draw_clause(chooser, "will"))


def modal(chooser: Chooser) -> Draft:
    """The man must read the book."""
    return said(draw_clause(chooser, chooser.choice(_MODALS)))


def liking(chooser: Chooser) -> Draft:
    """The man likes to read books."""
    subject = draw_subject(chooser)
    return said(draw_clause(chooser, "likes", subject=subject, frames=("plain", "direct", "dative", "about")))


def negation(chooser: Chooser) -> Draft:
    """The man does not read the book."""
    return said(draw_clause(chooser, chooser.choice(_DENIABLE), negative=True))


def manner(chooser: Chooser) -> Draft:
    """The man goes slowly into the garden."""
    tense = chooser.choice(_TENSES)
    verb = chooser.choice([verb for verb in VERBS if "manner" in verb.flags])
    subject = draw_subject(chooser)
    how = Phrase(*chooser.choice(MANNERS), "manner")
    parts = draw_complements(chooser, verb, subject)
    return said(Clause(subject, verb, tense, (how, *parts)))


def company(chooser: Chooser) -> Draft:
    """The man buys a book for his sister."""
    tense, subject = chooser.choice(_TENSES), draw_subject(chooser)
    english, german, case, flag = chooser.choice(COMPANY)
    verb = chooser.choice([verb for verb in verbs("direct", tense) if flag in verb.flags])
    person = draw_noun_phrase(chooser, ("person",), case, avoid=subject.noun)
    companion = Phrase(join(english, person.english), join(german, person.german), "place")
    return said(Clause(subject, verb, tense, (draw_object(chooser, verb, subject), companion)))


def time_in_front(chooser: Chooser) -> Draft:
    """Yesterday the man bought a book."""
    tense = chooser.choice(("present", "past", "past", "will", "must", "can"))
    clause = draw_clause(chooser, tense, timed=False)
    time = chooser.choice([time for time in times(tense) if not time.early])
    return join(time.english, english_statement(clause)), join(time.german, verb_first(clause)), "."


def place_in_front(chooser: Chooser) -> Draft:
    """In the garden the children played."""
    tense = chooser.choice(("present", "past", "will"))
    verb = chooser.choice([verb for verb in verbs("plain", tense) if verb.objects])
    clause = Clause(draw_subject(chooser), verb, tense)
    place = draw_place(chooser, verb.objects)
    return join(place.english, english_statement(clause)), join(place.german, verb_first(clause)), "."


def quality(chooser: Chooser) -> Draft:
    """The man is very tired."""
    kinds = chooser.choice((("person",), ("animal",), ("thing", "clothes"), ("food", "drink"), ("building", "vehicle")))
    subject = draw_subject(chooser, kinds, described=False)
    return said(
        draw_predicate(chooser, chooser.choice(SIMPLE_TENSES), subject, negative=chooser.choice((True, False, False)))
    )


def comparison(chooser: Chooser) -> Draft:
    """The man is older than the woman; as old as the woman."""
    kind = chooser.choice(("person", "person", "person", "vehicle", "building", "clothes", "text"))
    subject = draw_noun_phrase(chooser, (kind,), "nominative", role="known", described=False)
    other = draw_noun_phrase(chooser, (kind,), "nominative", role="known", avoid=subject.noun)
    adjective = chooser.choice([a for a in ADJECTIVES if kind in a.kinds and a.english not in COLORS])
    if chooser.choice((True, True, False)):
        english, german = f"{adjective.comparative} than", f"{adjective.german_comparative} als"
    else:
        english, german = f"as {adjective.english} as", f"so {adjective.german} wie"
    parts = (Phrase(join(english, other.english), join(german, other.german), "predicate"),)
    return said(Clause(subject, BE, chooser.choice(SIMPLE_TENSES), parts))


def position(chooser: Chooser) -> Draft:
    """The key lies on the table."""
    name, kind = chooser.choice((("lie", "flat"), ("stand", "upright"), ("be", "flat"), ("be", "upright")))
    verb = next(verb for verb in (*VERBS, BE) if verb.english == name)
    subject = draw_noun_phrase(chooser, (kind,), "nominative", role="subject")
    place = draw_place(chooser, ("surface", "below"), "goal")
    return said(
        Clause(subject, verb, chooser.choice(SIMPLE_TENSES), (place,), chooser.choice((True, False, False, False)))
    )


def existence(chooser: Chooser) -> Draft:
    """In the village there is an old church."""
    place = draw_place(chooser, ("settlement", "town"))
    thing = draw_noun_phrase(chooser, ("built", "public"), "accusative", role="new")
    verb = "are" if thing.plural else "is"
    return join(place.english, "there", verb, thing.english), join(place.german, "gibt es", thing.german), "."


def possession(chooser: Chooser) -> Draft:
    """The bag belongs to my sister."""
    subject = draw_noun_phrase(chooser, ("thing", "clothes", "owned", "text"), "nominative", role="subject")
    return said(Clause(subject, BELONG, "present", (draw_receiver(chooser, subject),)))


def age(chooser: Chooser) -> Draft:
    """The child is five years old."""
    numbers, kind = chooser.choice(((COUNTS, "young"), (TENS, "adult")))
    english, german = chooser.choice(numbers)
    years = Phrase(f"{english} years old", f"{german} Jahre alt", "predicate")
    return said(
        Clause(draw_noun_phrase(chooser, (kind,), "nominative", role="known", described=False), BE, "present", (years,))
    )


def price(chooser: Chooser) -> Draft:
    """The bag costs twenty euros."""
    english, german = chooser.choice(COUNTS + TENS)
    subject = draw_noun_phrase(chooser, ("thing", "clothes", "text"), "nominative", role="subject")
    return said(Clause(subject, COST, "present", (Phrase(f"{english} euros", f"{german} Euro", "predicate"),)))


def duration(chooser: Chooser) -> Draft:
    """The man has worked in the office for three years."""
    verb = chooser.choice([verb for verb in VERBS if "lasting" in verb.flags])
    count, zahl = chooser.choice(COUNTS)
    span, spanne = chooser.choice(SPANS[1:])
    place = draw_place(chooser, verb.objects)
    time = Phrase(f"for {count} {span}", f"seit {zahl} {spanne}", "time")
    return said(Clause(draw_subject(chooser), verb, "perfect", (place, time)))


def arrival(chooser: Chooser) -> Draft:
    """The train arrived in Berlin at half past six."""
    verb, tense = chooser.choice(ARRIVING), chooser.choice(("present", "past", "will", "must"))
    subject = draw_noun_phrase(chooser, ("line",), "nominative", role="known", described=False)
    place = (draw_place(chooser, ("town",)),) if verb.frame == "at" else ()
    clause = Clause(subject, verb, tense, (*place, chooser.choice(clock_times())))
    return chooser.choice((said(clause), (english_question(clause), verb_first(clause), "?")))


# --- questions and commands -------------------------------------------------------------------------------------------


def yes_or_no(chooser: Chooser) -> Draft:
    """Does the man read the book?"""
    clause = draw_clause(chooser, chooser.choice(("present", "past", "past", "will", "can", "must", "want", "would")))
    return english_question(clause), verb_first(clause), "?"


def who(chooser: Chooser) -> Draft:
    """Who reads the book?"""
    english, german, _ = said(draw_clause(chooser, chooser.choice(_TENSES), subject=_WHO))
    return english, german, "?"


def what_or_whom(chooser: Chooser) -> Draft:
    """What does the man read? Whom does the woman help?"""
    tense, frame = chooser.choice(_TENSES), chooser.choice(("direct", "direct", "dative"))
    verb = chooser.choice(verbs(frame, tense))
    word = Phrase("whom", "wem" if frame == "dative" else "wen")
    if any(kind != "person" for kind in verb.objects) and frame == "direct":
        word = Phrase("what", "was")
    return _asked(word, Clause(draw_subject(chooser), verb, tense))


def where(chooser: Chooser) -> Draft:
    """Where does the man work? Where does the man go? (wo, wohin)"""
    tense, frame = chooser.choice(_TENSES), chooser.choice(("plain", "at", "going", "putting"))
    verb = chooser.choice([verb for verb in verbs(frame, tense) if verb.objects and verb.english != "come"])
    subject = draw_subject(chooser)
    parts = draw_complements(chooser, verb, subject)[:1] if frame == "putting" else ()
    word = Phrase("where", "wohin" if frame in ("going", "putting") else "wo")
    return _asked(word, Clause(subject, verb, tense, parts))


def when_or_why(chooser: Chooser) -> Draft:
    """When does the man buy the book?"""
    word = Phrase(*chooser.choice((("when", "wann"), ("why", "warum"))))
    tense = chooser.choice([tense for tense in _TENSES if tense != "progressive"])
    return _asked(word, draw_clause(chooser, tense, timed=False))


def which(chooser: Chooser) -> Draft:
    """Which book does the man read?"""
    tense = chooser.choice(_TENSES)
    verb = chooser.choice(verbs("direct", tense))
    noun = chooser.choice(nouns(verb.objects))
    plural = bool(noun.plural) and chooser.choice((True, False))
    front = Phrase(*noun_phrase(noun, WHICH, case="accusative", plural=plural))
    return _asked(front, Clause(draw_subject(chooser), verb, tense))


def how_many(chooser: Chooser) -> Draft:
    """How many apples does the man eat?"""
    tense = chooser.choice(_TENSES)
    verb = chooser.choice([verb for verb in verbs("direct", tense) if verb.objects != ("drink",)])
    noun = chooser.choice([noun for noun in nouns(verb.objects) if noun.plural])
    english, german = noun_phrase(noun, BARE, case="accusative", plural=True)
    front = Phrase(f"how many {english}", f"wie viele {german}")
    return _asked(front, Clause(draw_subject(chooser), verb, tense))


def how_old(chooser: Chooser) -> Draft:
    """How old is the man?"""
    subject = draw_noun_phrase(
        chooser, ("person", "animal", "vehicle", "building", "clothes"), "nominative", role="known", described=False
    )
    assert subject.noun is not None
    adjective = chooser.choice([a for a in adjectives(subject.noun) if a.english not in COLORS])
    front = Phrase(f"how {adjective.english}", f"wie {adjective.german}")
    return _asked(front, Clause(subject, BE, chooser.choice(SIMPLE_TENSES)))


def command(chooser: Chooser) -> Draft:
    """Please open the window!"""
    clause = _order(chooser, negative=False)
    please, bitte = chooser.choice((("", ()), ("please", (Phrase("", "bitte", "time"),))))
    german = join(imperative(clause.verb), *middle(replace(clause, parts=clause.parts + bitte)), prefix(clause.verb))
    return join(please, english_infinitive(clause)), german, "!"


def prohibition(chooser: Chooser) -> Draft:
    """Do not forget the key!"""
    clause = _order(chooser, negative=True)
    return (
        f"do not {english_infinitive(clause)}",
        join(imperative(clause.verb), *middle(clause), prefix(clause.verb)),
        "!",
    )


def _order(chooser: Chooser, *, negative: bool) -> Clause:
    addressed = Phrase("you", "du", person=YOU)
    # A mishap can only be forbidden.
    flags = ("ordered", "mishap") if negative else ("ordered",)
    options = [verb for verb in VERBS if not verb.flags.isdisjoint(flags) and verb.frame != "plain"]
    verb = chooser.choice(options)
    return Clause(addressed, verb, "present", draw_complements(chooser, verb, addressed, negative=negative), negative)


# An arrival may be asked about, so it is no statement.
STATEMENTS: tuple[Pattern, ...] = (
    habit, perfect, right_now, future, modal, liking, negation, manner, company, time_in_front, place_in_front, quality,
    comparison, position, existence, possession, age, price, duration,
)  # fmt: skip
QUESTIONS: tuple[Pattern, ...] = (
    arrival, yes_or_no, who, what_or_whom, where, when_or_why, which, how_many, how_old, command, prohibition,
)  # fmt: skip
