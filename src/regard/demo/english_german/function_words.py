"""The closed word classes of the built-in corpus: prepositions, pronouns, numbers, times, helping verbs, the rest.

These lists are complete for the corpus; the open classes stand in `nouns.py`, `verbs.py` and `adjectives.py`.
"""

from dataclasses import dataclass

from regard.demo.english_german.table import rows


@dataclass(frozen=True, slots=True)
class Place:
    """A preposition of place or direction with its case and the kind of noun that follows."""

    english: str
    german: str
    case: str  # nominative, accusative, dative
    kind: str


PLACES = {
    "inside": Place("in", "in", "dative", "inside"),
    "open": Place("in", "in", "dative", "open"),
    "home": Place("in", "in", "dative", "home"),
    "settlement": Place("in", "in", "dative", "settled"),
    "town": Place("in", "in", "dative", "town"),
    "seat": Place("on", "auf", "dative", "seat"),
    "couch": Place("on", "auf", "dative", "couch"),
    "surface": Place("on", "auf", "dative", "surface"),
    "below": Place("under", "unter", "dative", "surface"),
    "shade": Place("under", "unter", "dative", "shade"),
    "shore": Place("at", "an", "dative", "shore"),
    "water": Place("in", "in", "dative", "water"),
    "front": Place("in front of", "vor", "dative", "landmark"),
    "behind": Place("behind", "hinter", "dative", "landmark"),
    "near": Place("next to", "neben", "dative", "landmark"),
    "into": Place("into", "in", "accusative", "inside"),
    "outward": Place("into", "in", "accusative", "open"),
    "onto": Place("on", "auf", "accusative", "surface"),
    "beneath": Place("under", "unter", "accusative", "surface"),
    "to": Place("to", "zu", "dative", "public"),
    "toward": Place("to", "nach", "dative", "town"),
    "through": Place("through", "durch", "accusative", "open"),
    "over": Place("over", "über", "accusative", "crossed"),
}
# With a person; the last column is the flag of the verbs it goes with.
COMPANY = (
    ("with", "mit", "dative", "shared"),
    ("without", "ohne", "accusative", "shared"),
    ("for", "für", "accusative", "favor"),
)

NAMES = (("Anna", "f"), ("Maria", "f"), ("Laura", "f"), ("Peter", "m"), ("Thomas", "m"), ("Paul", "m"))
# The nouns of the kind `town`.
CITIES = (("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("Munich", "München"), ("Vienna", "Wien"), ("Cologne", "Köln"))

# English subject and object; German nominative, accusative, dative. "You" is one person whom one knows well.
PRONOUNS = (
    ("I", "me", "ich", "mich", "mir"),
    ("you", "you", "du", "dich", "dir"),
    ("he", "him", "er", "ihn", "ihm"),
    ("she", "her", "sie", "sie", "ihr"),
    ("we", "us", "wir", "uns", "uns"),
    ("they", "them", "sie", "sie", "ihnen"),
)
POSSESSIVES = (("my", "mein"), ("your", "dein"), ("his", "sein"), ("her", "ihr"), ("our", "unser"), ("their", "ihr"))

COUNTS = (
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
    ("nine", "neun"),
    ("ten", "zehn"),
    ("eleven", "elf"),
    ("twelve", "zwölf"),
)
TENS = (
    ("twenty", "zwanzig"),
    ("thirty", "dreißig"),
    ("forty", "vierzig"),
    ("fifty", "fünfzig"),
    ("sixty", "sechzig"),
    ("seventy", "siebzig"),
    ("eighty", "achtzig"),
    ("ninety", "neunzig"),
)

# Time phrases, each with the tenses it goes with; `often` and its like stand before the English verb.
TIMES = tuple(
    (english, german, frozenset(tenses.split()))
    for english, german, tenses in rows("""
    today             heute             present past will must should want can may would
    yesterday         gestern           past
    tomorrow          morgen            will must should want can may would
    soon              bald              will
    last week         letzte Woche      past
    next week         nächste Woche     will must should want can may would
    every day         jeden Tag         present
    in the morning    am Morgen         present past will must
    in the evening    am Abend          present past will must
    at night          nachts            present
    in summer         im Sommer         present past will
    in winter         im Winter         present past will
    """)
)
FREQUENCIES = (("often", "oft"), ("always", "immer"), ("sometimes", "manchmal"), ("rarely", "selten"))
DAYS = (
    ("Monday", "Montag"),
    ("Tuesday", "Dienstag"),
    ("Wednesday", "Mittwoch"),
    ("Thursday", "Donnerstag"),
    ("Friday", "Freitag"),
    ("Saturday", "Samstag"),
    ("Sunday", "Sonntag"),
)
# English plural, German dative plural: "three weeks ago", "vor drei Wochen".
SPANS = (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"), ("years", "Jahren"))

MANNERS = (
    ("quietly", "leise"),
    ("slowly", "langsam"),
    ("quickly", "schnell"),
    ("alone", "allein"),
    ("carefully", "vorsichtig"),
)
WEATHER = (
    ("it is raining", "es", "regnet"),
    ("it is snowing", "es", "schneit"),
    ("the sun is shining", "die Sonne", "scheint"),
)

# Helping verbs: the English helper, what it puts before the verb, and the German forms for ich, du, er, wir, sie. An
# empty helper takes "do".
HELPERS = {
    "will": ("will", "", ("werde", "wirst", "wird", "werden", "werden")),
    "can": ("can", "", ("kann", "kannst", "kann", "können", "können")),
    "must": ("must", "", ("muss", "musst", "muss", "müssen", "müssen")),
    "should": ("should", "", ("sollte", "solltest", "sollte", "sollten", "sollten")),
    "may": ("may", "", ("darf", "darfst", "darf", "dürfen", "dürfen")),
    "want": ("", "want to", ("will", "willst", "will", "wollen", "wollen")),
    "would": ("would", "like to", ("möchte", "möchtest", "möchte", "möchten", "möchten")),
}

# Words that the patterns spell out, each with the German word it stands for most often.
FUNCTION_WORDS = tuple(
    (english, german)
    for english, german in rows("""
    the       die
    a         ein
    no        kein
    this      diese
    every     jeder
    not       nicht
    and       und
    but       aber
    so        deshalb
    because   weil
    that      dass
    whether   ob
    if        wenn
    when      wann
    although  obwohl
    before    bevor
    while     während
    who       wer
    what      was
    which     welche
    where     wo
    why       warum
    how       wie
    many      viele
    than      als
    as        wie
    very      sehr
    too       zu
    please    bitte
    there     es
    it        es
    o'clock   Uhr
    half      halb
    ago       vor
    euros     Euro
    sun       Sonne
    """)
)
# Forms of these and of irregular verbs, for the word-for-word dictionary.
FORMS = tuple(
    (english, german)
    for english, german in rows("""
    an        ein
    these     diese
    am        bin
    is        ist
    are       sind
    was       war
    were      waren
    has       hat
    had       hatte
    do        tun
    does      tut
    did       hat
    whom      wen
    cannot    kann nicht
    would     möchte
    past      nach
    order     um
    up        auf
    off       aus
    more      mehr
    wants     will
    front     vor
    of        von
    in        in
    away      weg
    after     nach
    about     über
    back      zurück
    asleep    schlafend
    shopping  einkaufen
    TV        Fernsehen
    along     mit
    morning   Morgen
    evening   Abend
    night     Nacht
    summer    Sommer
    winter    Winter
    week      Woche
    last      letzte
    next      nächste
    day       Tag
    raining   regnet
    snowing   schneit
    shining   scheint
    """)
)
