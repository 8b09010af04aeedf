"""German and English word forms: from a lemma to the word as it stands in a sentence.

German: articles, adjective endings, noun cases, verb forms. English: a/an, plural, third person, -ing. No choice is made
here; every function is a table look-up or a rule of spelling.
"""

from dataclasses import dataclass

from regard.demo.english_german.adjectives import Adjective
from regard.demo.english_german.nouns import Noun
from regard.demo.english_german.verbs import Verb

# Columns of every table by gender: masculine, feminine, neuter, plural.
_COLUMN = {"m": 0, "f": 1, "n": 2, "plural": 3}
_ARTICLE = {
    "nominative": ("der", "die", "das", "die"),
    "accusative": ("den", "die", "das", "die"),
    "dative": ("dem", "der", "dem", "den"),
}
_STRONG = {
    "nominative": ("er", "e", "es", "e"),
    "accusative": ("en", "e", "es", "e"),
    "dative": ("em", "er", "em", "en"),
}
_WEAK = {
    "nominative": ("e", "e", "e", "en"),
    "accusative": ("en", "e", "e", "en"),
    "dative": ("en", "en", "en", "en"),
}
_MIXED = {
    "nominative": ("er", "e", "es", "en"),
    "accusative": ("en", "e", "es", "en"),
    "dative": ("en", "en", "en", "en"),
}
_ENDLESS = (("nominative", 0), ("nominative", 2), ("accusative", 2))
_CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "an dem": "am",
    "zu dem": "zum",
    "zu der": "zur",
    "von dem": "vom",
}

# Grammatical persons, as columns of the verb tables.
ME, YOU, HE, WE, THEY = range(5)
_IRREGULAR_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind", "sind"),
    "haben": ("habe", "hast", "hat", "haben", "haben"),
    "wissen": ("weiß", "weißt", "weiß", "wissen", "wissen"),
    "mögen": ("mag", "magst", "mag", "mögen", "mögen"),
}
# Spoken German keeps the simple past for these two.
_SIMPLE_PAST = {
    "sein": ("war", "warst", "war", "waren", "waren"),
    "haben": ("hatte", "hattest", "hatte", "hatten", "hatten"),
}
_IRREGULAR_ING = {"lie": "lying", "forget": "forgetting", "be": "being", "see": "seeing"}


@dataclass(frozen=True, slots=True)
class Determiner:
    """An article or its like; `endings` says how it and a following adjective are declined."""

    english: str
    german: str
    endings: str  # article (der, die, das), der (dieser), ein (ein, mein, kein), bare (nothing, numbers)
    known: bool = False  # names something definite: such objects stand early in the German clause, and take nicht


def noun_phrase(
    noun: Noun, determiner: Determiner, adjective: Adjective | None = None, *, case: str, plural: bool = False
) -> tuple[str, str]:
    """Return the English and the German phrase: ("an old man", "einen alten Mann")."""
    head = noun.plural if plural else noun.english
    english = join(determiner.english, adjective.english if adjective else "", head)
    if determiner.english == "a":
        english = with_article(english.removeprefix("a "))
    column = _COLUMN["plural" if plural else noun.gender]
    described = decline(adjective, determiner, case, column) if adjective else ""
    return english, join(_determiner_form(determiner, case, column), described, german_noun(noun, case, plural))


def _determiner_form(determiner: Determiner, case: str, column: int) -> str:
    if determiner.endings == "article":
        return _ARTICLE[case][column]
    # ein Mann, ein Kind: the ending is missing where the adjective shows it.
    missing = determiner.endings == "ein" and (case, column) in _ENDLESS
    if determiner.endings == "bare" or missing:
        return determiner.german
    return determiner.german + _STRONG[case][column]


def decline(adjective: Adjective, determiner: Determiner, case: str, column: int) -> str:
    """Return the attributive form: weak after der and dieser, mixed after ein and mein, strong after nothing."""
    table = {"article": _WEAK, "der": _WEAK, "ein": _MIXED, "bare": _STRONG}[determiner.endings]
    return adjective_stem(adjective.german) + table[case][column]


def adjective_stem(adjective: str) -> str:
    """Return what endings are added to: teuer becomes teur-, müde becomes müd-."""
    return "teur" if adjective == "teuer" else adjective.removesuffix("e")


def german_noun(noun: Noun, case: str, plural: bool) -> str:
    """Return the noun in its case; weak nouns are marked in the singular, all but -n and -s in the dative plural."""
    if plural:
        marked = case == "dative" and noun.german_plural[-1] not in "ns"
        return noun.german_plural + "n" if marked else noun.german_plural
    # The marked singular of every weak noun listed is spelt as its plural.
    return noun.german_plural if "weak" in noun.kinds and case != "nominative" else noun.german


def relative_pronoun(noun: Noun, case: str, plural: bool) -> str:
    """Return der, die, das, ... as it opens a relative clause."""
    if plural and case == "dative":
        return "denen"
    return _ARTICLE[case][_COLUMN["plural" if plural else noun.gender]]


def contract(preposition: str, phrase: str) -> str:
    """Join a preposition and its phrase: in + dem Garten gives im Garten."""
    article, _, rest = phrase.partition(" ")
    return join(_CONTRACTIONS.get(f"{preposition} {article}", f"{preposition} {article}"), rest)


def with_article(phrase: str) -> str:
    """Put a or an before an English phrase."""
    return f"an {phrase}" if phrase[0] in "aeiou" else f"a {phrase}"


def prefix(verb: Verb) -> str:
    """Return the separable prefix, or nothing."""
    return verb.german.rpartition("|")[0]


def infinitive(verb: Verb, *, zu: bool = False) -> str:
    """Return anrufen, or with zu: anzurufen, zu lesen."""
    particle, _, stem = verb.german.rpartition("|")
    if zu:
        return f"{particle}zu{stem}" if particle else f"zu {stem}"
    return particle + stem


def present(verb: Verb, person: int) -> str:
    """Return the German present without the separable prefix."""
    stem = verb.german.rpartition("|")[2]
    if stem in _IRREGULAR_PRESENT:
        return _IRREGULAR_PRESENT[stem][person]
    if person == ME:
        return (stem.removesuffix("en") if stem.endswith("en") else stem.removesuffix("n")) + "e"
    if person == YOU:
        root = verb.third.removesuffix("t")
        return root + ("t" if root[-1] in "sßzx" else "st")
    return verb.third if person == HE else stem


def simple_past(verb: Verb, person: int) -> str | None:
    """Return war or hatte; None for the verbs which say the past by the perfect."""
    forms = _SIMPLE_PAST.get(verb.german)
    return forms[person] if forms else None


def perfect_helper(verb: Verb, person: int) -> str:
    """Return the form of haben or sein that goes with the participle."""
    return _IRREGULAR_PRESENT[verb.auxiliary][person]


def imperative(verb: Verb) -> str:
    """Return the command to one person, without the separable prefix: lies, öffne, fahr."""
    stem = verb.german.rpartition("|")[2]
    if stem.endswith("ern"):
        return stem.removesuffix("n") + "e"
    root = verb.third.removesuffix("t")
    # e becomes i here too (nimm), but a does not become ä (trag).
    if any(letter in root and letter not in stem for letter in "äö"):
        root = stem.removesuffix("en")
    return root + "e" if root[-1] in "dt" or stem.endswith("ieren") else root


def third_person(verb: str) -> str:
    """Return the English third person; the first word of a phrase such as `look for` is inflected."""
    word, _, rest = verb.partition(" ")
    if word == "have":
        return join("has", rest)
    if word.endswith("y") and word[-2] not in "aeiou":
        return join(word[:-1] + "ies", rest)
    return join(word + ("es" if word.endswith(("s", "sh", "ch", "x", "o")) else "s"), rest)


def progressive(verb: str) -> str:
    """Return the -ing form; the first word of a phrase is inflected."""
    word, _, rest = verb.partition(" ")
    if word in _IRREGULAR_ING:
        return join(_IRREGULAR_ING[word], rest)
    if word.endswith("e"):
        return join(word[:-1] + "ing", rest)
    vowels = [letter in "aeiou" for letter in word]
    # run, sit, swim, put, get: one short vowel, then one consonant that is doubled
    doubled = sum(vowels) == 1 and vowels[-2] and not vowels[-1] and word[-1] not in "wxy"
    return join(word + (word[-1] if doubled else "") + "ing", rest)


def join(*words: str) -> str:
    """Join the words that are there by single spaces."""
    return " ".join(word for word in words if word)
