"""All words together: the list of lemmas, and a dictionary from English word forms to German ones."""

from collections.abc import Iterator
from functools import cache

from regard.demo.english_german.adjectives import ADJECTIVES
from regard.demo.english_german.function_words import (
    CITIES,
    COMPANY,
    COUNTS,
    DAYS,
    FORMS,
    FREQUENCIES,
    FUNCTION_WORDS,
    HELPERS,
    MANNERS,
    PLACES,
    POSSESSIVES,
    PRONOUNS,
    SPANS,
    TENS,
    TIMES,
)
from regard.demo.english_german.inflection import adjective_stem, infinitive, progressive, third_person
from regard.demo.english_german.nouns import NOUNS
from regard.demo.english_german.verbs import ARRIVING, BE, BELONG, COST, INTENDING, SAYING, VERBS

_ALL_VERBS = (*VERBS, BE, COST, BELONG, *SAYING, *INTENDING, *ARRIVING)


def lemmas() -> Iterator[tuple[str, str]]:
    """Give every lemma with its German; names of people and cities are none."""
    yield from ((noun.english, noun.german) for noun in NOUNS)
    yield from ((verb.english, infinitive(verb)) for verb in _ALL_VERBS)
    yield from ((adjective.english, adjective.german) for adjective in ADJECTIVES)
    yield from ((place.english, place.german) for place in PLACES.values())
    yield from ((english, german) for english, german, _, _ in COMPANY)
    yield from ((english, german) for english, _, german, _, _ in PRONOUNS)
    yield from ((helper, forms[2]) for helper, (_, _, forms) in HELPERS.items())
    yield from POSSESSIVES + FREQUENCIES + MANNERS + FUNCTION_WORDS + COUNTS + TENS + DAYS
    # Of the phrases of time those of one word; the words of the others are nouns, or numbers.
    yield from ((english, german) for english, german, _ in TIMES if " " not in english)


@cache
def dictionary() -> dict[str, str]:
    """Return one German form for each English word form: nominatives, third persons, participles."""
    entries = dict(FORMS + FUNCTION_WORDS)

    def learn(english: str, german: str) -> None:
        # The first word of a phrase such as "look for" stands for it; what came first stays.
        entries.setdefault(english.split()[0], german)

    for noun in NOUNS:
        learn(noun.english, noun.german)
        if noun.plural:
            learn(noun.plural, noun.german_plural)
    for adjective in ADJECTIVES:
        learn(adjective.english, adjective_stem(adjective.german) + "e")
        if not adjective.comparative.startswith("more "):
            learn(adjective.comparative, adjective.german_comparative)
    for verb in _ALL_VERBS:
        learn(verb.english, infinitive(verb))
        learn(verb.past, verb.participle)
        learn(third_person(verb.english), verb.third)
        learn(progressive(verb.english), verb.third)
    for english, german in lemmas():
        learn(english, german)
    for _, english, _, german, _ in PRONOUNS:
        learn(english, german)
    for english, german in CITIES + SPANS:
        learn(english, german)
    return entries
