"""One clause on both sides: what it says, and its word order in English and in German.

A `Clause` holds subject, verb, tense and the other parts; the functions below put them in order. German has three orders:

    verb second   Der Mann | ruft  | heute den Arzt | an        a statement; also Heute | ruft | der Mann ...
    verb first               Ruft  | der Mann heute den Arzt | an        a question; also what follows a clause in front
    verb last     (weil)   der Mann heute den Arzt | anruft     a subordinate clause

Tenses are translated one way only, so that English decides the German:

    reads -> liest      is reading -> liest gerade      read (past) -> hat gelesen      was, had -> war, hatte
    will read -> wird lesen      likes to read -> liest gern      has worked (for a year) -> arbeitet (seit einem Jahr)
"""

from dataclasses import dataclass, replace

from regard.demo.english_german.function_words import HELPERS
from regard.demo.english_german.inflection import (
    HE,
    ME,
    infinitive,
    join,
    perfect_helper,
    prefix,
    present,
    progressive,
    simple_past,
    third_person,
)
from regard.demo.english_german.nouns import Noun
from regard.demo.english_german.verbs import Verb

# The order of the German middle field. Known objects stand before manner and place, new ones after them; what belongs
# closely to the verb (a goal, a predicate) stands last; nicht stands before all that it may deny.
_MIDDLE = ("pronoun", "time", "dative", "definite", "nicht", "manner", "place", "indefinite", "goal", "predicate")
_RANK = {slot: rank for rank, slot in enumerate(_MIDDLE)}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A constituent on both sides. `slot` is its place in the German middle field; the rest matters for subjects."""

    english: str
    german: str
    slot: str = ""
    person: int = HE
    noun: Noun | None = None  # the head, where there is one
    echo: tuple[str, str] | None = None  # the pronoun that can stand for it later: (she, sie)
    early: bool = False  # stands before the English verb: often, always

    @property
    def plural(self) -> bool:
        """Whether the phrase takes plural verbs."""
        return self.person > HE


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause without word order; `parts` are listed as English orders them."""

    subject: Phrase
    verb: Verb
    tense: str  # present, past, progressive, perfect, likes, or one of HELPERS
    parts: tuple[Phrase, ...] = ()
    negative: bool = False

    def without(self, part: Phrase) -> "Clause":
        """Return the clause less one part, which then stands elsewhere (in front, as a question word, ...)."""
        return replace(self, parts=tuple(other for other in self.parts if other is not part))


def english_statement(clause: Clause) -> str:
    """Return subject, verb, rest."""
    helper, head = _english_verb(clause, question=False)
    return join(clause.subject.english, _negated(helper, clause), *_early(clause), head, *_late(clause))


def english_question(clause: Clause) -> str:
    """Return helper, subject, verb, rest: does the man read."""
    helper, head = _english_verb(clause, question=True)
    negation = "not" if clause.negative else ""
    return join(helper, clause.subject.english, negation, *_early(clause), head, *_late(clause))


def english_infinitive(clause: Clause) -> str:
    """Return base form and rest, as after `to` and in commands."""
    return join(clause.verb.english, *_late(clause))


def verb_second(clause: Clause) -> str:
    """Return the German statement, the subject before the verb."""
    finite, tail = _german_verb(clause)
    return join(clause.subject.german, finite, *middle(clause), tail)


def verb_first(clause: Clause) -> str:
    """Return the German question, which is also what follows a subordinate clause in front."""
    finite, tail = _german_verb(clause)
    return join(finite, clause.subject.german, *middle(clause), tail)


def verb_last(clause: Clause) -> str:
    """Return the German subordinate clause, without its conjunction."""
    finite, tail = _german_verb(clause)
    separable = tail and tail == prefix(clause.verb)
    cluster = tail + finite if separable else join(tail, finite)
    return join(clause.subject.german, *middle(clause), cluster)


def german_infinitive(clause: Clause) -> str:
    """Return the German infinitive clause with zu: den Arzt anzurufen."""
    return join(*middle(clause), infinitive(clause.verb, zu=True))


def middle(clause: Clause) -> list[str]:
    """Return the German middle field, in order."""
    parts = [(_RANK[part.slot], part.german) for part in clause.parts]
    # What the English verb form says, German says by an adverb.
    if clause.tense == "progressive":
        parts.append((_RANK["time"], "gerade"))
    if clause.tense == "likes":
        parts.append((_RANK["time"], "gern"))
    # An indefinite object carries the negation itself: keinen Apfel.
    if clause.negative and not any(part.slot == "indefinite" for part in clause.parts):
        parts.append((_RANK["nicht"], "nicht"))
    return [german for _, german in sorted(parts, key=lambda ranked: ranked[0])]


def _german_verb(clause: Clause) -> tuple[str, str]:
    """Return the finite verb and what closes the clause: (ruft, an), (hat, angerufen), (muss, anrufen)."""
    verb, person = clause.verb, clause.subject.person
    if clause.tense in HELPERS:
        return HELPERS[clause.tense][2][person], infinitive(verb)
    if clause.tense != "past":
        return present(verb, person), prefix(verb)
    past = simple_past(verb, person)
    return (past, "") if past else (perfect_helper(verb, person), verb.participle)


def _english_verb(clause: Clause, *, question: bool) -> tuple[str, str]:
    """Return the helper, which questions put before the subject and which takes `not`, and the rest of the verb."""
    verb, person, tense = clause.verb, clause.subject.person, clause.tense
    if tense in HELPERS:
        helper, to, _ = HELPERS[tense]
        if helper:
            return helper, join(to, verb.english)
        base = join(to, verb.english)
    elif tense == "progressive":
        return _be(person), progressive(verb.english)
    elif tense == "perfect":
        return ("has" if person == HE else "have"), verb.past
    elif verb.english == "be":
        return (_be(person) if tense == "present" else "was" if person in (ME, HE) else "were"), ""
    else:
        base = join("like to" if tense == "likes" else "", verb.english)
    if question or clause.negative:
        return ("did" if tense == "past" else "does" if person == HE else "do"), base
    if tense == "past":
        return "", verb.past
    return "", third_person(base) if person == HE else base


def _be(person: int) -> str:
    return {ME: "am", HE: "is"}.get(person, "are")


def _negated(helper: str, clause: Clause) -> str:
    if not clause.negative:
        return helper
    return "cannot" if helper == "can" else join(helper, "not")


def _early(clause: Clause) -> list[str]:
    return [part.english for part in clause.parts if part.early]


def _late(clause: Clause) -> list[str]:
    return [part.english for part in clause.parts if not part.early]
