"""The adjectives, their comparatives, and the kinds of nouns they describe."""

from dataclasses import dataclass

from regard.demo.english_german.table import rows


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective, its comparative, and the kinds of nouns it describes."""

    english: str
    comparative: str
    german: str
    german_comparative: str
    kinds: frozenset[str]


def _adjective(english: str, german: str, kinds: str) -> Adjective:
    base, _, comparative = english.partition(" / ")
    german_base, german_comparative = german.split()
    return Adjective(base, comparative or f"more {base}", german_base, german_comparative, frozenset(kinds.split()))


# The comparative is left out where English takes "more".
ADJECTIVES = tuple(
    _adjective(*row)
    for row in rows("""
    old / older             alt älter                 person animal thing clothes vehicle furniture building text
    young / younger         jung jünger               person animal
    tall / taller           groß größer               person plant
    big / bigger            groß größer               animal thing vehicle furniture building room piece
    small / smaller         klein kleiner             animal thing vehicle furniture building room piece
    strong / stronger       stark stärker             person animal
    clever / cleverer       klug klüger               person animal
    friendly / friendlier   freundlich freundlicher   person animal
    happy / happier         glücklich glücklicher     person
    sad / sadder            traurig trauriger         person
    tired                   müde müder                person animal
    sick / sicker           krank kränker             person animal
    hungry / hungrier       hungrig hungriger         person animal
    thirsty / thirstier     durstig durstiger         person animal
    lazy / lazier           faul fauler               person animal
    brave / braver          mutig mutiger             person animal
    polite                  höflich höflicher         person
    curious                 neugierig neugieriger     person animal
    famous                  berühmt berühmter         person building text
    rich / richer           reich reicher             person
    poor / poorer           arm ärmer                 person
    quiet / quieter         ruhig ruhiger             person room outdoors
    dangerous               gefährlich gefährlicher   road
    new / newer             neu neuer                 thing clothes vehicle furniture text building
    beautiful               schön schöner             thing clothes building outdoors plant
    expensive               teuer teurer              thing clothes vehicle furniture drink
    cheap / cheaper         billig billiger           thing clothes vehicle furniture drink
    heavy / heavier         schwer schwerer           upright furniture
    dirty / dirtier         schmutzig schmutziger     clothes vehicle room part
    modern                  modern moderner           vehicle furniture building room
    comfortable             bequem bequemer           clothes seat couch
    fast / faster           schnell schneller         vehicle animal
    slow / slower           langsam langsamer         vehicle animal
    long / longer           lang länger               text road
    interesting             interessant interessanter  text
    boring                  langweilig langweiliger   text
    important               wichtig wichtiger         text
    fresh / fresher         frisch frischer           food
    sweet / sweeter         süß süßer                 sugared
    delicious               lecker leckerer           food
    good / better           gut besser                food drink text
    cold / colder           kalt kälter               drink room outdoors
    hot / hotter            heiß heißer               brewed
    warm / warmer           warm wärmer               clothes brewed room
    red / redder            rot röter                 thing clothes vehicle furniture part
    blue / bluer            blau blauer               thing clothes vehicle furniture part
    green / greener         grün grüner               thing clothes vehicle furniture part
    white / whiter          weiß weißer               thing clothes vehicle furniture part
    black / blacker         schwarz schwärzer         thing clothes vehicle animal
    yellow / yellower       gelb gelber               thing clothes vehicle
    brown / browner         braun brauner             animal furniture
    """)
)
# Nothing is redder than something else.
COLORS = frozenset(["red", "blue", "green", "white", "black", "yellow", "brown"])
