"""The sentence patterns of several clauses, as in `patterns.py`; at the end, those longer than any others."""

from dataclasses import replace

from regard.demo.english_german.clauses import (
    Clause,
    Phrase,
    english_infinitive,
    english_statement,
    german_infinitive,
    verb_first,
    verb_last,
    verb_second,
)
from regard.demo.english_german.drawing import (
    Chooser,
    draw_clause,
    draw_noun_phrase,
    draw_predicate,
    draw_subject,
    echoing,
    verbs,
)
from regard.demo.english_german.function_words import WEATHER
from regard.demo.english_german.inflection import join, prefix, relative_pronoun
from regard.demo.english_german.patterns import SIMPLE_TENSES, STATEMENTS, Draft, Pattern, said
from regard.demo.english_german.verbs import ASKING, INTENDING, SAYING


def _deed(chooser: Chooser, tense: str, subject: Phrase) -> Clause:
    return draw_clause(chooser, tense, subject=subject, timed=False)


def _about(chooser: Chooser, tense: str, earlier: Phrase) -> Clause:
    """Draw a clause on an earlier subject, taken up by a pronoun, or on a new one."""
    topic = chooser.choice(("quality", "deed", "other"))
    if topic == "other":
        return draw_clause(chooser, tense, timed=False)
    return (draw_predicate if topic == "quality" else _deed)(chooser, tense, echoing(earlier))


def _subordinate(main: Clause, link: tuple[str, str], other: Clause) -> Draft:
    """Return: main clause, conjunction, subordinate clause."""
    english = join(english_statement(main), link[0], english_statement(other))
    return english, f"{verb_second(main)}, {link[1]} {verb_last(other)}", "."


def _in_front(link: tuple[str, str], other: Clause, main: Clause) -> Draft:
    """Return: conjunction, subordinate clause, main clause; the German verb follows the comma."""
    english = f"{link[0]} {english_statement(other)}, {english_statement(main)}"
    return english, f"{link[1]} {verb_last(other)}, {verb_first(main)}", "."


def _coordinated(first: Clause, link: tuple[str, str], second: Clause) -> Draft:
    """Return two main clauses; the link brings its comma along."""
    english = f"{english_statement(first)}{link[0]} {english_statement(second)}"
    return english, f"{verb_second(first)}{link[1]} {verb_second(second)}", "."


def because(chooser: Chooser) -> Draft:
    """The man slept because he was tired."""
    tense = chooser.choice(SIMPLE_TENSES)
    main = draw_clause(chooser, tense)
    return _subordinate(main, ("because", "weil"), _about(chooser, tense, main.subject))


def for_that_reason(chooser: Chooser) -> Draft:
    """The man slept, for he was tired. (denn, with the verb second)"""
    tense = chooser.choice(SIMPLE_TENSES)
    main = draw_clause(chooser, tense, timed=False)
    return _coordinated(main, (", for", ", denn"), _about(chooser, tense, main.subject))


def although(chooser: Chooser) -> Draft:
    """Although the man was tired, he worked."""
    tense = chooser.choice(SIMPLE_TENSES)
    condition = draw_predicate(chooser, tense, draw_subject(chooser, described=False))
    return _in_front(("although", "obwohl"), condition, _deed(chooser, tense, echoing(condition.subject)))


def weather(chooser: Chooser) -> Draft:
    """If it is raining, the man stays in the house."""
    main = draw_clause(chooser, chooser.choice(("present", "will", "must", "can")), timed=False)
    english, subject, verb = chooser.choice(WEATHER)
    return f"if {english}, {english_statement(main)}", f"wenn {subject} {verb}, {verb_first(main)}", "."


def conditional(chooser: Chooser) -> Draft:
    """If the man finds the key, he will open the door."""
    condition = draw_clause(chooser, "present", timed=False)
    subject = chooser.choice((echoing(condition.subject), draw_subject(chooser)))
    return _in_front(("if", "wenn"), condition, _deed(chooser, chooser.choice(("will", "must", "can")), subject))


def meanwhile(chooser: Chooser) -> Draft:
    """The man slept while the woman worked; before she worked, when she worked."""
    tense = chooser.choice(SIMPLE_TENSES)
    links = (("while", "während"), ("before", "bevor"), ("when", "als"))
    link = chooser.choice(links if tense == "past" else links[:2])
    return _subordinate(draw_clause(chooser, tense, timed=False), link, draw_clause(chooser, tense, timed=False))


def report(chooser: Chooser) -> Draft:
    """The woman knows that the man bought the book."""
    speaker = Clause(draw_subject(chooser), chooser.choice(SAYING), "present")
    content = draw_clause(chooser, chooser.choice(("present", "past", "will", "can", "must")))
    return _subordinate(speaker, ("that", "dass"), content)


def doubt(chooser: Chooser) -> Draft:
    """The woman does not know whether the man works; she asks why, when."""
    verb = chooser.choice(ASKING)
    asker = Clause(draw_subject(chooser), verb, "present", negative=verb.english == "know")
    link = chooser.choice((("whether", "ob"), ("whether", "ob"), ("why", "warum"), ("when", "wann")))
    return _subordinate(asker, link, draw_clause(chooser, chooser.choice(("present", "past", "will")), timed=False))


def described_subject(chooser: Chooser) -> Draft:
    """The man who reads the book is tired."""
    kinds = chooser.choice((("person",), ("person",), ("animal",)))
    head = draw_noun_phrase(chooser, kinds, "nominative", role="head", described=False)
    main = chooser.choice((draw_predicate, _deed))
    return said(main(chooser, chooser.choice(SIMPLE_TENSES), _described(chooser, head)))


def described_object(chooser: Chooser) -> Draft:
    """The woman sees the man who reads the book."""
    subject = draw_subject(chooser)
    personal = [verb for verb in verbs("direct", "present") + verbs("dative", "present") if "person" in verb.objects]
    # Without a prefix, which would have to stand behind the relative clause.
    verb = chooser.choice([verb for verb in personal if not prefix(verb)])
    case = "accusative" if verb.frame == "direct" else "dative"
    person = draw_noun_phrase(chooser, ("person",), case, role="head", avoid=subject.noun)
    return said(Clause(subject, verb, "present", (_described(chooser, person),)))


def _described(chooser: Chooser, head: Phrase) -> Phrase:
    """Add a relative clause whose subject is the head."""
    assert head.noun is not None
    word = "who" if "person" in head.noun.kinds else "that"
    pronoun = Phrase(word, relative_pronoun(head.noun, "nominative", head.plural), person=head.person, noun=head.noun)
    clause = _deed(chooser, chooser.choice(SIMPLE_TENSES), pronoun)
    english = join(head.english, english_statement(clause))
    return replace(head, english=english, german=f"{head.german}, {verb_last(clause)},")


def described_by_others(chooser: Chooser) -> Draft:
    """The book that the man bought is expensive."""
    tense, frame = chooser.choice(SIMPLE_TENSES), chooser.choice(("direct", "direct", "direct", "dative"))
    verb = chooser.choice(verbs(frame, tense))
    head = draw_noun_phrase(chooser, verb.objects, "nominative", role="head", described=False)
    assert head.noun is not None
    case = "accusative" if frame == "direct" else "dative"
    clause = Clause(draw_subject(chooser), verb, tense)
    english = join(head.english, "whom" if "person" in head.noun.kinds else "that", english_statement(clause))
    german = f"{head.german}, {relative_pronoun(head.noun, case, head.plural)} {verb_last(clause)},"
    return said(draw_predicate(chooser, tense, replace(head, english=english, german=german)))


def intention(chooser: Chooser) -> Draft:
    """The man tries to find the key."""
    subject = draw_subject(chooser)
    main = Clause(subject, chooser.choice(INTENDING), chooser.choice(("present", "past", "will")))
    deed = _deed(chooser, "must", subject)
    english = join(english_statement(main), "to", english_infinitive(deed))
    return english, f"{verb_second(main)}, {german_infinitive(deed)}", "."


def purpose(chooser: Chooser) -> Draft:
    """The man goes into the kitchen in order to cook potatoes."""
    subject, tense = draw_subject(chooser), chooser.choice(("present", "past", "will", "must"))
    main = draw_clause(chooser, tense, subject=subject, frames=("going",), timed=False)
    deed = draw_clause(chooser, "must", subject=subject, frames=("direct", "direct", "dative"), timed=False)
    english = join(english_statement(main), "in order to", english_infinitive(deed))
    return english, f"{verb_second(main)}, um {german_infinitive(deed)}", "."


def coordination(chooser: Chooser) -> Draft:
    """The man works and the woman sleeps; but the woman sleeps."""
    tense = chooser.choice(("present", "past", "will"))
    first, second = draw_clause(chooser, tense, timed=False), draw_clause(chooser, tense, timed=False)
    return _coordinated(first, chooser.choice(_JOINTS), second)


def consequence(chooser: Chooser) -> Draft:
    """The man is tired, so he sleeps."""
    tense = chooser.choice(SIMPLE_TENSES)
    cause = draw_predicate(chooser, tense, draw_subject(chooser, described=False))
    effect = _deed(chooser, tense, echoing(cause.subject))
    english = f"{english_statement(cause)}, so {english_statement(effect)}"
    return english, f"{verb_second(cause)}, deshalb {verb_first(effect)}", "."


_BUT = (", but", ", aber")
_JOINTS = ((" and", " und"), _BUT)

COMPOUNDS: tuple[Pattern, ...] = (
    because, for_that_reason, although, weather, conditional, meanwhile, report, doubt, described_subject,
    described_object, described_by_others, intention, purpose, coordination, consequence,
)  # fmt: skip


# --- longer than any of these -----------------------------------------------------------------------------------------


def chain(chooser: Chooser) -> Draft:
    """Two statements of any pattern, joined by and or but."""
    english, german, _ = chooser.choice(STATEMENTS + COMPOUNDS)(chooser)
    more_english, more_german, _ = chooser.choice(STATEMENTS + COMPOUNDS)(chooser)
    # Between plain clauses und takes no comma, after a subordinate clause it does; aber always does.
    joint, fuge = _BUT if "," in german else chooser.choice(_JOINTS)
    return f"{english}{joint} {more_english}", f"{german.rstrip(',')}{fuge} {more_german}", "."


def nest(chooser: Chooser) -> Draft:
    """The woman knows that the man who reads the book is tired because the dog followed him."""
    tense = chooser.choice(SIMPLE_TENSES)
    person = draw_noun_phrase(chooser, ("person",), "nominative", role="head")
    content = _deed(chooser, tense, chooser.choice((person, _described(chooser, person))))
    speaker = Clause(draw_subject(chooser), chooser.choice(SAYING), "present")
    english, german, mark = _subordinate(speaker, ("that", "dass"), content)
    reason = draw_clause(chooser, tense)
    return join(english, "because", english_statement(reason)), f"{german}, weil {verb_last(reason)}", mark


LONG: tuple[Pattern, ...] = (chain, nest)
